package xie

import (
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/capability"
)

// System is its row in the capability map. What is not there it cannot do.
var System = capability.System{
	Name: "Xie et al. 2026", Source: "arXiv 2605.07333",
	Ticks: map[capability.Capability]capability.Tick{
		capability.Softmax:    capability.Yes(capability.Test("field/xie.TestEachLayerIsAStep")),
		capability.Evaluation: capability.Yes(capability.Test("field/xie.TestTheoremTwo"), capability.Files("field/xie/evidence.json")),
		capability.Learned:    capability.Yes(capability.Files("field/xie/features-*.safetensors"), capability.Files("field/xie/evidence.json")),
	},
	Model: "none", Samples: "n transitions of one policy", Weights: "d² + 3 under the masks: 19 at d = 4", Work: "O(dn²) a layer, softmax attention",
	Step: step,
}

// step makes weighted softmax TD of a walk, from values 0, by a layer.
func step(w capability.Walk) (capability.Step, error) {
	m, n := w.Problem.MDP, len(w.Window)
	s := capability.Step{Algorithm: "weighted softmax TD, one-hot features, α = 1", Attends: "softmax of ⟨x, x_k⟩: e times as much to the same state", Keys: w.Keys()}
	c := &Context{X: mat.NewDense(m.States(), n+1, nil)}
	for k, t := range w.Window {
		c.X.Set(t.State, k, 1)
		c.R = append(c.R, t.Reward)
	}
	c.X.Set(w.Last, n, 1)
	spec := Spec{Form: OneHead, D: m.States(), N: n, Gamma: m.Gamma, Alpha: 1}
	layer, err := spec.Layer()
	if err != nil {
		return s, err
	}
	zero := make([]float64, n+1)
	prompt, err := spec.Prompt(c, zero)
	if err != nil {
		return s, err
	}
	got, err := layer.Apply(prompt)
	if err != nil {
		return s, err
	}
	next, err := spec.Step(c, zero)
	if err != nil {
		return s, err
	}
	kernel, err := Kernel(prompt, layer.Heads[0].A)
	if err != nil {
		return s, err
	}
	s.Distance = floats.Distance(got.RawRowView(m.States()+1), next, math.Inf(1)) // the row of v, see OneHead
	s.Bound = Tolerance(m.States(), n, 1) * (2*floats.Norm(next, math.Inf(1)) + floats.Norm(c.R, math.Inf(1)))
	s.Share = mat.Col(nil, n, kernel)[:n]
	return s, nil
}
