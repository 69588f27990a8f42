package experiment_test

import (
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/control"
	"icrl/policyattention/experiment"
	"icrl/policyattention/method"
	"icrl/policyattention/results"
)

// A method as a module of its own would add it: conservative policy iteration (Kakade and Langford,
// 2002), a step toward the greedy policy with the exact critic. Its JSON becomes part of a hash.
type towardGreedy struct {
	Step float64 `json:"greedy_step"`
}

func (towardGreedy) Weights() []method.Weights { return nil } // nothing is trained

func (g towardGreedy) Controller(_ *method.Models, eta float64, _ uint64) (control.Controller, error) {
	loop := control.ExactPMD(eta)
	loop.Actor = control.ActorFunc(func(c control.Context) (*mat.Dense, error) {
		next := mat.DenseCopyOf(c.Pi)
		next.Scale(1-g.Step, next)
		for s := range next.RawMatrix().Rows {
			best := floats.MaxIdx(c.Q.RawRowView(s))
			next.Set(s, best, next.At(s, best)+g.Step)
		}
		return next, nil
	})
	return loop, nil
}

var own = method.Method{Name: "conservative", Label: "conservative policy iteration", Untrained: true,
	Deploy: func(method.Setting) (method.Deployment, error) { return towardGreedy{0.2}, nil }}

// To here it is the method.

// A method from outside is planned, run, stored, verified, and stands in a table with an interval.
func TestMethodFromOutside(t *testing.T) {
	row := func(name string) experiment.Row {
		return experiment.Row{Block: experiment.Benchmark, Method: name, Sizes: []int{8}}
	}
	p := experiment.Preset{Name: "outside", Steps: 1, Problems: 6,
		Rows: []experiment.Row{row("exact-pmd"), row(own.Name)}}.
		With(&experiment.PaperProtocol, method.Registry{own, {Name: "exact-pmd", Label: "exact PMD", Untrained: true}})
	s := testkit.Must(p.Open(t.TempDir(), "go"))(t)
	for _, task := range testkit.Must(s.Tasks())(t) {
		testkit.Must(s.Run(t.Context(), task))(t)
	}
	testkit.Must(s.Merge(t.Context()))(t)
	if v := testkit.Must(s.Verify(t.Context(), true))(t); v.Err() != nil || v.Units != 2 || v.Missing != 0 {
		t.Errorf("%v: %v", v, v.Discrepancies)
	}
	rows := results.Open(s.Root()).Block("benchmark").At(20)
	exact := rows.Where(results.Method.Is("exact-pmd")).By(results.S)
	table, err := rows.By(results.Method, results.S).Median().Against(exact).Ratio().WithInterval().Shown()
	if err != nil || len(table.Rows) != 2 {
		t.Fatalf("%v, %v", table.Rows, err)
	}
	for _, line := range table.Text() {
		t.Log(line)
	}
}
