package wang

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/capability"
)

// System is its row in the capability map. What is not there it cannot do.
var System = capability.System{
	Name: "Wang et al. 2025", Source: "arXiv 2405.13861",
	Ticks: map[capability.Capability]capability.Tick{
		capability.Softmax:    capability.Word("emp.", capability.Files("field/wang/softmax-looped-1.safetensors"), capability.Files("field/wang/evidence.json")),
		capability.Evaluation: capability.Yes(capability.Test("field/wang.TestEachLayerIsAStep"), capability.Test("field/wang.TestDemoHasTheFiguresErrors")),
		capability.Learned:    capability.Yes(capability.Files("field/wang/linear-looped-*.safetensors"), capability.Files("field/wang/evidence.json")),
	},
	Model: "none", Samples: "n transitions of one policy", Weights: "2(2d+1)² a layer: 162 at d = 4, looped", Work: "O(d²n) a layer, linear attention",
	Step: step,
}

// step makes batch TD(0) of a walk, from values 0, by a layer.
func step(w capability.Walk) (capability.Step, error) {
	m, n := w.Problem.MDP, len(w.Window)
	s := capability.Step{Algorithm: "batch TD(0), one-hot features, α = 1", Attends: "φ_kᵀφ: transitions from the same state, alike", Keys: w.Keys()}
	c := &Context{Phi: mat.NewDense(m.States(), n, nil), Next: mat.NewDense(m.States(), n, nil), Queries: mat.NewDense(m.States(), 1, nil)}
	for k, t := range w.Window {
		c.Phi.Set(t.State, k, 1)
		c.Next.Set(t.Next, k, m.Gamma)
		c.R = append(c.R, t.Reward)
	}
	c.Queries.Set(w.Last, 0, 1)
	spec := Spec{Algorithm: TD0, D: m.States(), N: n, Queries: 1, Alpha: 1}
	layer, err := spec.Layer()
	if err != nil {
		return s, err
	}
	prompt, err := c.Prompt(0)
	if err != nil {
		return s, err
	}
	z, err := layer.Apply(prompt)
	if err != nil {
		return s, err
	}
	got, err := spec.Values(z)
	if err != nil {
		return s, err
	}
	want, err := spec.Step(c, make([]float64, m.States()))
	if err != nil {
		return s, err
	}
	s.Distance = math.Abs(got[0] - want[w.Last])
	s.Bound = Tolerance(m.States(), n) * float64(n)
	var key, scores mat.VecDense
	key.MulVec(layer.Heads[0].Q, prompt.ColView(n))
	scores.MulVec(prompt.T(), &key)
	s.Share = capability.Shares(scores.RawVector().Data[:n])
	return s, nil
}
