package mdp

import (
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/seed"
)

// sparseMDP has two successors for each of 300·2 state-action pairs: large and
// sparse enough to be solved by iteration.
func sparseMDP(t *testing.T, gamma float64) *MDP {
	t.Helper()
	rng := seed.New(9, "sparse")
	p, r := mat.NewDense(600, 300, nil), mat.NewDense(300, 2, nil)
	for i := range 600 {
		u := rng.Float64()
		p.Set(i, rng.IntN(300), u)
		j := rng.IntN(300)
		p.Set(i, j, p.At(i, j)+1-u)
		r.Set(i/2, i%2, 2*rng.Float64()-1)
	}
	m, err := New(gamma, p, r)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestSparseAgainstDense(t *testing.T) {
	for _, gamma := range []float64{0, 0.5, 0.9, 0.99, 0.9999} {
		m := sparseMDP(t, gamma)
		dense := *m

		pi := RandomPolicy(seed.New(9, "policy"), 300, 2)
		got, err := m.PolicyValue(pi)
		if err != nil {
			t.Fatal(err)
		}
		want, err := dense.PolicyValue(pi)
		if err != nil {
			t.Fatal(err)
		}
		// Rounding of an LU solve or of γ-contracting sweeps: some ε B/(1−γ).
		if diff := MaxAbsDiff(got, want); diff > 20*0x1p-52*m.Bound()/(1-gamma) {
			t.Errorf("γ=%v: Q^π differs by %v", gamma, diff)
		}
		if MaxAbsDiff(m.EvaluationBackup(pi, got), dense.EvaluationBackup(pi, got)) != 0 {
			t.Errorf("γ=%v: the backups differ", gamma)
		}
		a, err := m.Optimal()
		if err != nil {
			t.Fatal(err)
		}
		b, err := dense.Optimal()
		if err != nil {
			t.Fatal(err)
		}
		if diff := MaxAbsDiff(a.Q, b.Q); diff > 20*0x1p-52*m.Bound()/(1-gamma) {
			t.Errorf("γ=%v: Q* differs by %v", gamma, diff)
		}
	}
}
