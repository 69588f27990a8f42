package distill

import "icrl/policyattention/capability"

// system is its row in the capability map. What is not there it cannot do.
var system = &capability.System{
	Name: "Algorithm Distillation", Source: "arXiv 2210.14215",
	Ticks: map[capability.Capability]capability.Tick{
		capability.Softmax:    capability.Yes(capability.Test("baseline/distill.TestCachedPassAndQueryAgreeWithFullPasses")),
		capability.Evaluation: capability.Word("implicit", capability.Files("paper/qualification/algorithm-distillation-*/manifest.json")),
		capability.Control:    capability.Yes(capability.Files("paper/benchmark/algorithm-distillation-*/manifest.json")),
		capability.Learned:    capability.Yes(capability.Test("baseline/distill.TestTrainingLearnsResumesAndRepeats")),
	},
	Model: "none", Samples: "20 transitions a round, 200 tokens in context", Weights: "1,138,467 at S = 8", Work: "20 passes of a token a round",
}
