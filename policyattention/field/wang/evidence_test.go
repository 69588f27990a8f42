package wang

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"icrl/internal/safetensors"
	"icrl/policyattention/backend"
	"icrl/policyattention/field/evidence"
)

// small is a plan of seconds, with the kinds that the departures compare.
func small() plan {
	p := plan{seed: 3, trials: 2, loops: 4, chains: 2}
	for _, r := range Runs() {
		if r.Recipe.Seed == 1 {
			t := &r.Recipe
			t.D, t.N, t.Layers, t.States, t.Processes, t.Batches, t.Batch = 2, 5, 2, 4, 12, 1, 4
			p.runs = append(p.runs, r)
		}
	}
	return p
}

// Evidence made at small size is verified; a number changed in it, or weights changed beside
// it, are found.
func TestEvidenceIsVerified(t *testing.T) {
	on, err := backend.New("go")
	if err != nil {
		t.Fatal(err)
	}
	p, dir := small(), t.TempDir()
	e, err := p.make(context.Background(), on, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := p.verify(dir); err != nil || len(found) > 0 {
		t.Fatalf("%q, %v", found, err)
	}
	changed := *e
	changed.Demo = append([]DemoError(nil), e.Demo...)
	changed.Demo[2].Mean *= 1.001
	if err := evidence.Write(dir, changed); err != nil {
		t.Fatal(err)
	}
	if found, err := p.verify(dir); err != nil || len(found) != 1 || !strings.Contains(found[0], ".Demo[2].Mean") {
		t.Errorf("a changed error of the demonstration: %q, %v", found, err)
	}
	if err := evidence.Write(dir, e); err != nil {
		t.Fatal(err)
	}
	path := p.runs[0].Path(dir)
	file, err := safetensors.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	snapshots, _, err := safetensors.Get[float64](file, "snapshots")
	if err != nil {
		t.Fatal(err)
	}
	snapshots[0] += .1
	if err := safetensors.WriteFile(path, file); err != nil {
		t.Fatal(err)
	}
	if found, err := p.verify(dir); err != nil || len(found) == 0 {
		t.Errorf("changed weights: %q, %v", found, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := p.verify(dir); err == nil {
		t.Error("missing weights are no error")
	}
}

// What is stored was made by the standard plan: all runs are there, every row that is cheap to
// make again agrees, and what the package claims of the figures holds.
func TestStoredEvidence(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "artifacts", "field", "wang")
	stored, err := ReadEvidence(dir)
	if err != nil {
		t.Fatal(err)
	}
	p := standard()
	var rows []WeightRow
	for _, r := range p.runs {
		trained, err := Read(r.Path(dir))
		if err != nil {
			t.Fatal(err)
		}
		if trained.Training != r.Recipe {
			t.Errorf("%s: recipe %+v, want %+v", r.Name, trained.Training, r.Recipe)
		}
		rows = append(rows, trained.WeightRows(r.Kind)...)
		last := len(trained.After) - 1
		if r.Recipe.Seed > 1 {
			continue
		}
		again, err := trained.Likeness(r.Kind, last, p.seed, p.chains)
		if err != nil {
			t.Fatal(err)
		}
		found := []string{"no such row"}
		for _, l := range stored.Likeness {
			if l.Kind == r.Kind && l.Seed == r.Recipe.Seed && l.Processes == again.Processes {
				found = evidence.Differences(l, again)
			}
		}
		if len(found) > 0 {
			t.Errorf("%s: %q", r.Name, found)
		}
	}
	if found := evidence.Differences(stored.Weights, rows); len(found) > 0 {
		t.Errorf("weights: %q", found)
	}
	if found := evidence.Differences(stored.Published, stored.published(p.loops)); len(found) > 0 {
		t.Errorf("comparisons: %q", found)
	}
	for _, c := range stored.Published {
		if !c.Agrees {
			t.Errorf("%s: %.3g ± %.2g, published %.3g ± %.2g", c.Quantity, c.Ours, c.Standard, c.Published, c.Theirs)
		}
	}
}
