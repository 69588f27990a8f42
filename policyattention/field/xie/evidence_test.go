package xie

import (
	"context"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"icrl/policyattention/backend"
	"icrl/policyattention/field/evidence"
)

// Evidence made at small size is verified; numbers changed in it are found.
func TestEvidenceIsVerified(t *testing.T) {
	on, err := backend.New("go")
	if err != nil {
		t.Fatal(err)
	}
	p, dir := plan{seed: 3, studies: []Study{small(.5, .1, -.5)}, trials: 2, chains: 2}, t.TempDir()
	for _, oneHot := range []bool{false, true} {
		r := Run{Kind: "some", Recipe: tiny(oneHot)}
		r.Name = map[bool]string{false: "features", true: "one-hot"}[oneHot]
		p.runs = append(p.runs, r)
	}
	e, err := p.make(context.Background(), on, dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if found, err := p.verify(dir); err != nil || len(found) > 0 {
		t.Fatalf("%q, %v", found, err)
	}
	for want, change := range map[string]func(*Evidence){
		".Likeness[0].Step":  func(e *Evidence) { e.Likeness[0].Step += .01 },
		"times the bound":    func(e *Evidence) { e.Contraction[0].Worst = 1.1 },
		"error is 3 tol":     func(e *Evidence) { e.Check[5].OneStep = 3 },
		".Contraction has 3": func(e *Evidence) { e.Contraction = e.Contraction[:3] },
	} {
		changed := *e
		changed.Likeness = append([]Likeness(nil), e.Likeness...)
		changed.Contraction = append([]Contraction(nil), e.Contraction...)
		changed.Check = append([]LayerError(nil), e.Check...)
		change(&changed)
		if err := evidence.Write(dir, changed); err != nil {
			t.Fatal(err)
		}
		if found, err := p.verify(dir); err != nil || !strings.Contains(strings.Join(found, "\n"), want) {
			t.Errorf("%q, %v, want %q among them", found, err, want)
		}
	}
}

// What is stored was made by the standard plan: all runs are there, the last row of each agrees
// with its weights, and the theorem's bound holds where it promises something.
func TestStoredEvidence(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "artifacts", "field", "xie")
	stored, err := ReadEvidence(dir)
	if err != nil {
		t.Fatal(err)
	}
	p := standard()
	for _, r := range p.runs {
		trained, err := Read(r.Path(dir))
		if err != nil {
			t.Fatal(err)
		}
		if trained.Training != r.Recipe {
			t.Errorf("%s: recipe %+v, want %+v", r.Name, trained.Training, r.Recipe)
		}
		again, err := trained.Likeness(r.Kind, len(trained.After)-1, p.seed, p.chains)
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
	rest := 0.
	for _, c := range stored.Contraction {
		if c.N == 0 && c.Worst > 1+1e-9 {
			t.Errorf("γ = %v, C = %v: %v times the bound after %d layers", c.Gamma, c.Margin, c.Worst, c.Layers)
		}
		if c.N >= 1000 && c.Margin > 0 {
			rest = math.Max(rest, c.Scaled)
		}
	}
	// The theorem's constant is not known; the largest measured is about 4, at γ = .9.
	if !(rest > 0 && rest < 10) {
		t.Errorf("the rest times √n reaches %v", rest)
	}
}
