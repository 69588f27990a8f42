package train

import (
	"math"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
)

// TestActorObjectives compares the graphs with float64 formulas, among them the
// identity ℓ_prox(p) − ℓ_prox(q) = KL(p‖q) for q = PMD_η(π,Q).
func TestActorObjectives(t *testing.T) {
	const states, actions = 40, 3
	rng := seed.New(1, "test", "objectives")
	p, pi := mdp.RandomPolicy(rng, states, actions), mdp.RandomPolicy(rng, states, actions)
	q := mat.NewDense(states, actions, nil)
	for i := range q.RawMatrix().Data {
		q.RawMatrix().Data[i] = 4*rng.Float64() - 2
	}
	const eta = 0.8
	target := testkit.Must(pmd.Step(pi, q, eta))(t)
	logs := func(x *mat.Dense) (out []float32) {
		for _, v := range x.RawMatrix().Data {
			out = append(out, float32(math.Log(v)))
		}
		return out
	}
	var gain []float32
	for _, v := range q.RawMatrix().Data {
		gain = append(gain, float32(eta*v))
	}
	inputs := []any{}
	for _, x := range [][]float32{logs(p), logs(pi), gain} {
		inputs = append(inputs, tensors.FromFlatDataAndDimensions(x, 1, states, actions))
	}
	backend := testkit.Backend(t)
	rows := func(o Objective) []float32 {
		exec := testkit.Must(NewExec(backend, o.rows))(t)
		x := testkit.Must(exec.Call1(inputs...))(t)
		return tensors.MustCopyFlatData[float32](x)
	}
	proximal, direct, reward := rows(Proximal), rows(PMDTarget), rows(RewardOnly)
	for s := range states {
		one := func(x *mat.Dense) *mat.Dense { return x.Slice(s, s+1, 0, actions).(*mat.Dense) }
		prox := func(x *mat.Dense) float64 { return pmd.ProximalLoss(one(x), one(pi), one(q), eta) }
		expected := 0.0
		for a, v := range p.RawRowView(s) {
			expected -= eta * v * q.At(s, a)
		}
		for _, c := range []struct {
			name      string
			got, want float64
		}{
			{"ℓ_prox", float64(proximal[s]), prox(p)},
			{"proximal excess", float64(proximal[s]) - prox(target), pmd.KL(p.RawRowView(s), target.RawRowView(s))},
			{"KL(q‖p)", float64(direct[s]), pmd.KL(target.RawRowView(s), p.RawRowView(s))},
			{"−η⟨p,Q⟩", float64(reward[s]), expected},
		} {
			// Sums of three float32 terms of magnitude below ten.
			if math.Abs(c.got-c.want) > 1e-5 {
				t.Errorf("state %d: %s is %v, want %v", s, c.name, c.got, c.want)
			}
		}
	}
}
