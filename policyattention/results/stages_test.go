package results

import (
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"testing"

	"icrl/internal/testkit"
	"icrl/policyattention/experiment"
)

// The rows along a training are those of the stored files, read here without the store.
func TestStages(t *testing.T) {
	store, err := experiment.Open("../../artifacts", "paper", "go")
	testkit.Check(t, err)
	rows := testkit.Must(New(store).Stages())(t)
	if len(rows) == 0 {
		t.Fatal("no rows")
	}
	steps, hours := 0, 0.
	for i, r := range rows {
		if r.S != 8 {
			continue
		}
		if want := Horizons[i%len(Horizons)]; r.T != want || r.Of != 40000 {
			t.Errorf("row %d is of T = %d and %d steps, want %d and 40,000", i, r.T, r.Of, want)
		}
		if i%len(Horizons) == 0 && (r.Steps <= steps || r.Hours <= hours) {
			t.Errorf("row %d has %d steps in %.1f hours, the one before %d in %.1f", i, r.Steps, r.Hours, steps, hours)
		}
		steps, hours = r.Steps, r.Hours
		recipe := fmt.Sprintf("full-after-%d", r.Steps)
		if r.Steps == r.Of {
			recipe = "full"
		}
		if got := medianOf(t, one(t, "benchmark/algorithm-distillation-"+recipe+"-S8-18100-*"), r.T); got != r.Loss.Value {
			t.Errorf("after %d steps, T = %d: %v, the file has %v", r.Steps, r.T, r.Loss.Value, got)
		}
		if got := medianOf(t, one(t, "benchmark/actor-critic-source-S8-*"), r.T); got != r.Source.Value {
			t.Errorf("the source, T = %d: %v, the file has %v", r.T, r.Source.Value, got)
		}
		_, seconds := trained(t, one(t, fmt.Sprintf("train/algorithm-distillation-source4-context200-steps%d-S8-18100-*", r.Steps)))
		if got := seconds / 3600; got != r.Hours {
			t.Errorf("after %d steps: %v hours, the manifest has %v", r.Steps, r.Hours, got)
		}
		// A uniform guess among three actions has log 3.
		if !(r.TrainingLoss > 0 && r.TrainingLoss < 1.0987) {
			t.Errorf("after %d steps the training loss is %v, want less than log 3", r.Steps, r.TrainingLoss)
		}
	}
}

// one returns the only folder of the paper's preset that a pattern matches.
func one(t *testing.T, pattern string) string {
	t.Helper()
	found := testkit.Must(filepath.Glob(filepath.Join("../../artifacts/paper", pattern)))(t)
	if len(found) != 1 {
		t.Fatalf("%d folders %s, want one", len(found), pattern)
	}
	return found[0]
}

// trained reads from a stored training run of Algorithm Distillation its steps and the seconds of
// processor time that they took.
func trained(t *testing.T, folder string) (steps, seconds float64) {
	t.Helper()
	var manifest struct {
		Distill struct{ Steps float64 }
		Cost    struct {
			Seconds float64 `json:"cpu_seconds"`
		}
	}
	text := testkit.Must(os.ReadFile(filepath.Join(folder, "manifest.json")))(t)
	testkit.Check(t, json.Unmarshal(text, &manifest))
	return manifest.Distill.Steps, manifest.Cost.Seconds
}

// medianOf is the median over problems of a stored loop's losses after a round.
func medianOf(t *testing.T, folder string, round int) float64 {
	t.Helper()
	file := testkit.Must(os.Open(filepath.Join(folder, "rounds.csv.gz")))(t)
	defer file.Close()
	lines := testkit.Must(csv.NewReader(testkit.Must(gzip.NewReader(file))(t)).ReadAll())(t)
	var losses []float64
	for _, line := range lines[1:] {
		if line[1] == strconv.Itoa(round) {
			losses = append(losses, testkit.Must(strconv.ParseFloat(line[2], 64))(t))
		}
	}
	sort.Float64s(losses)
	n := len(losses)
	return (losses[(n-1)/2] + losses[n/2]) / 2
}
