package mdp

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
)

// problem is a case of testdata/cases.json: problems from the facts of public files and bug
// reports, with V* [S] and the optimal actions of each state, computed in exact rational arithmetic
// and rounded. A reward of null is −∞.
type problem struct {
	Gamma   float64
	P       [][][]float64
	R       [][]*float64
	V       []float64
	Optimal [][]int
}

// model returns the problem as a Model.
func (x problem) model() Model {
	model := Model{Gamma: x.Gamma, R: mat.NewDense(len(x.R), len(x.R[0]), nil)}
	for s, rows := range x.P {
		for a, row := range rows {
			for t, p := range row {
				model.P.Add(t, p)
			}
			model.P.EndRow()
			if model.R.Set(s, a, math.Inf(-1)); x.R[s][a] != nil {
				model.R.Set(s, a, *x.R[s][a])
			}
		}
	}
	return model
}

func cases(t testing.TB) map[string]problem {
	t.Helper()
	x := map[string]problem{}
	testkit.Check(t, json.Unmarshal(testkit.Must(os.ReadFile("testdata/cases.json"))(t), &x))
	return x
}

// TestCases asks for values within 1e-9 of max(1, |V*|) in each state, an error that says how
// near they are, the same optimal actions, and a warning of penalties.
func TestCases(t *testing.T) {
	for name, x := range cases(t) {
		m, err := x.model().Build()
		if name == "undisc-1" {
			if err == nil || !strings.Contains(err.Error(), "gamma is 1, but no state ends an episode") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := testkit.Must(m.Optimal())(t)
		if _, share := got.Uncertain(); !(share < 1e-12) {
			t.Errorf("%s: values are said to be certain to %.2g of themselves", name, share)
		}
		for s, v := range x.V {
			// Expected values are rounded to the nearest float64 themselves.
			off := math.Abs(got.V[s] - v)
			if !(off <= 1e-9*max(1, math.Abs(v))) || off > got.Error[s]+0x1p-53*math.Abs(v) {
				t.Errorf("%s, state %d: V* = %v, got %v ± %.2g", name, s, v, got.V[s], got.Error[s])
			}
			if want := slices.Max(got.Q.RawRowView(s)); got.V[s] != want {
				t.Errorf("%s, state %d: V* is %v, max Q* is %v", name, s, got.V[s], want)
			}
			var optimal []int
			for a := range m.Actions() {
				if got.Optimal(s, a) {
					optimal = append(optimal, a)
				}
			}
			if !slices.Equal(optimal, x.Optimal[s]) || !slices.Contains(optimal, got.Policy[s]) {
				t.Errorf("%s, state %d: optimal actions %v (%d), want %v",
					name, s, optimal, got.Policy[s], x.Optimal[s])
			}
		}
		penalized := m.RMax() >= 1000 && !strings.Contains(name, "bridge") && name != "dollars"
		if len(m.Warnings) > 0 != penalized {
			t.Errorf("%s: warnings %q", name, m.Warnings)
		}
	}
}
