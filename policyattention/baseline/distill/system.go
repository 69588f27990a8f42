package distill

import "icrl/policyattention/capability"

// System is its row in the paper's Table 1.
var System = capability.System{
	Name: "Algorithm Distillation", Source: "arXiv 2210.14215",
	Softmax:    capability.Yes("baseline/distill.TestCachedPassAndQueryAgreeWithFullPasses"),
	Evaluation: capability.Mark{As: "implicit", Test: "baseline/distill.TestLossIsTheNegativeLogLikelihood"},
	Control:    capability.Yes("baseline/distill.TestReliveAgreesWithLive"),
	Learned:    capability.Yes("baseline/distill.TestTrainingLearnsResumesAndRepeats"),
}
