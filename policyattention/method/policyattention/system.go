package policyattention

import "icrl/policyattention/capability"

// System is its row in the paper's Table 1.
var System = capability.System{
	Name: "PolicyAttention", Source: "this paper",
	Softmax:     capability.Yes("decoder.TestBounds"),
	Evaluation:  capability.Yes("decoder.TestCoverage"),
	Control:     capability.Yes("decoder.TestConverges"),
	Learned:     capability.Yes("train.TestTrainLearns"),
	ReturnError: capability.Yes("control.TestProve"),
}
