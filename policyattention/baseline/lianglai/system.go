package lianglai

import "icrl/policyattention/capability"

// system is its row in the capability map. What is not there it cannot do.
var system = &capability.System{
	Name: "Liang–Lai 2026", Source: "arXiv 2605.05755",
	Ticks: map[capability.Capability]capability.Tick{
		capability.Softmax:    capability.Word("linear", capability.Test("baseline/lianglai.TestAnalyticActorCritic")),
		capability.Evaluation: capability.Yes(capability.Test("baseline/lianglai.TestAnalyticActorCritic"), capability.Test("baseline/lianglai.TestQualificationInTheNativeShape")),
		capability.Control:    capability.Yes(capability.Files("paper/benchmark/liang-lai-paper-S8-18100-*/manifest.json")),
		capability.Learned:    capability.Yes(capability.Test("baseline/lianglai.TestHarnessShapeAndController"), capability.Files("paper/qualification/liang-lai-*/manifest.json")),
	},
	Model: "none", Samples: "20 transitions a round", Weights: "2(2SA+3S+2)²: 10,952 at S = 8", Work: "one layer a round",
}
