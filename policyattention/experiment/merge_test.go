package experiment_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/control"
	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/rows"
)

// lossOf scores a stored policy from the stored problems alone.
func lossOf(t *testing.T, problems []rows.Problem, p rows.Policy) float64 {
	t.Helper()
	for _, x := range problems {
		if x.S == p.S && x.Problem == p.Problem {
			s, a := int(x.S), int(x.A)
			m := testkit.Must(mdp.New(x.Gamma, mat.NewDense(s*a, s, x.P), mat.NewDense(s, a, x.R)))(t)
			scale := testkit.Must(control.NewScale(mdp.Problem{MDP: m, Pi0: mat.NewDense(s, a, x.Pi0)}))(t)
			return testkit.Must(scale.Loss(mat.NewDense(s, a, append([]float64(nil), p.Policy...))))(t)
		}
	}
	t.Fatalf("no problem %d", p.Problem)
	return 0
}

// What two machines have made is one result, whichever is named first, and what contradicts it
// is refused.
func TestMerge(t *testing.T) {
	_, one := merged(t)
	p := little(t)
	sums := map[string]bool{}
	for range 2 {
		into := t.TempDir()
		s := testkit.Must(p.Open(into, "go"))(t)
		put := testkit.Must(s.Merge(t.Context(), one))(t)
		if again := testkit.Must(s.Merge(t.Context(), one))(t); put < 8 || again != 0 {
			t.Errorf("%d results put together, then %d", put, again)
		}
		sums[string(testkit.Must(os.ReadFile(filepath.Join(s.Root(), "SHA256SUMS")))(t))] = true
		if v := testkit.Must(s.Verify(t.Context(), false))(t); v.Err() != nil || v.Missing > 0 {
			t.Errorf("%v: %v", v, v.Discrepancies)
		}
	}
	sums[string(testkit.Must(os.ReadFile(filepath.Join(one, "little", "SHA256SUMS")))(t))] = true
	if len(sums) != 1 {
		t.Errorf("merged results have %d lists of digests, want one", len(sums))
	}
	s, other := merged(t)
	edit(t, s.Root()+"/rows/backups.parquet", func(r []rows.Backup) []rows.Backup { r[0].Error += 1e-15; return r })
	into := testkit.Must(p.Open(one, "go"))(t)
	if _, err := into.Merge(t.Context(), other); !errors.Is(err, experiment.ErrConflict) {
		t.Errorf("results that contradict each other: %v", err)
	}
	if _, err := into.Merge(t.Context(), t.TempDir()); err == nil {
		t.Error("a folder without results was merged")
	}
}

// What has failed for good is not tried again by what needs it; what passes is.
func TestFailures(t *testing.T) {
	s := testkit.Must(little(t).Open(t.TempDir(), "go"))(t)
	tasks := testkit.Must(s.Tasks())(t)
	training := tasks[0]
	work := filepath.Join(s.Root(), experiment.WorkFolder)
	testkit.Check(t, os.MkdirAll(work, 0o755))
	failed := filepath.Join(work, training.Name()+"-"+training.Training.Hash()[:12]+".failed")
	testkit.Check(t, os.WriteFile(failed, []byte(`{"error": "no such luck"}`), 0o644))
	if state, failure, err := s.State(training); state != experiment.Failed || failure == nil || err != nil {
		t.Errorf("state %q, %v, %v", state, failure, err)
	}
	for _, task := range tasks {
		if task.Unit == nil || len(task.Unit.Weights) == 0 ||
			task.Unit.Weights[0].Training.Hash() != training.Training.Hash() {
			continue
		}
		if _, err := s.Run(t.Context(), task); err == nil {
			t.Errorf("%s was made without its training run", task.Name())
		}
	}
}
