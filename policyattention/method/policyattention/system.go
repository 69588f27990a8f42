package policyattention

import "icrl/policyattention/capability"

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
}
