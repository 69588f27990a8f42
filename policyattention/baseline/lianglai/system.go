package lianglai

import "icrl/policyattention/capability"

// System is its row in the paper's Table 1.
var System = capability.System{
	Name: "Liang–Lai 2026", Source: "arXiv 2605.05755",
	Softmax:    capability.Mark{As: "linear", Test: "baseline/lianglai.TestAnalyticActorCritic"},
	Evaluation: capability.Yes("baseline/lianglai.TestAnalyticActorCritic"),
	Control:    capability.Yes("baseline/lianglai.TestHarnessShapeAndController"),
	Learned:    capability.Yes("baseline/lianglai.TestQualificationInTheNativeShape"),
}
