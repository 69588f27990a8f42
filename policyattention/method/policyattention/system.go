package policyattention

import (
	"icrl/policyattention/capability"
	"icrl/policyattention/control"
	"icrl/policyattention/decoder"
	"icrl/policyattention/pmd"
)

// system is its row in the capability map. What is not there it cannot do.
var system = &capability.System{
	Name: "PolicyAttention", Source: "this paper",
	Ticks: map[capability.Capability]capability.Tick{
		capability.Softmax:     capability.Yes(capability.Test("decoder.TestBounds")),
		capability.Evaluation:  capability.Yes(capability.Test("decoder.TestBounds"), capability.Test("decoder.TestCoverage")),
		capability.Control:     capability.Yes(capability.Files("paper/benchmark/policyattention-S8-18100-*/manifest.json"), capability.Test("decoder.TestConverges")),
		capability.Learned:     capability.Yes(capability.Files("paper/train/proximal-plain-S8-18100-*/weights.safetensors"), capability.Test("train.TestTrainLearns")),
		capability.ReturnError: capability.Yes(capability.Test("control.TestProve"), capability.Test("decoder.TestAudit")),
	},
	Model: "a backup of the model, or 144 samples a round", Samples: "none, or 144 a round", Weights: "272,451 at S = 8; the fixed decoder: none", Work: "one pass a round",
	Step: step,
}

// step makes policy mirror descent from π₀, with its exact value, by the decoder.
func step(w capability.Walk) (capability.Step, error) {
	m := w.Problem.MDP
	s := capability.Step{Algorithm: "policy mirror descent, η = .8 (ζ)", Attends: "softmax of log π + ηQ: memories of the state, better actions more"}
	q, err := m.PolicyValue(w.Problem.Pi0)
	if err != nil {
		return s, err
	}
	d, err := decoder.New(decoder.Caps{
		States: m.States(), Actions: m.Actions(), Gamma: m.Gamma, RMax: 1, EtaMin: control.NominalStep, EtaMax: control.NominalStep,
		Rounds: 1, Routing: 1e-3, Alpha: .05, Packets: 1,
	})
	if err != nil {
		return s, err
	}
	next, err := d.Improve(w.Problem.Pi0, q, control.NominalStep)
	if err != nil {
		return s, err
	}
	exact, err := pmd.Step(w.Problem.Pi0, q, control.NominalStep)
	if err != nil {
		return s, err
	}
	s.Distance, s.Bound = pmd.MaxRowL1(next, exact), d.ZetaAt(control.NominalStep)
	call, err := d.TraceActor(w.Problem.Pi0, q, control.NominalStep)
	if err != nil {
		return s, err
	}
	memories := m.States() * m.Actions()
	s.Keys = call.Names[:memories]
	s.Share = call.Blocks[0].Heads[0].Weights(memories + w.Last)[:memories]
	return s, nil
}
