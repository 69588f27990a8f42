package s5rl

import "icrl/policyattention/capability"

// System is its row in the paper's Table 1.
var System = capability.System{
	Name: "S5RL", Source: "arXiv 2303.03982",
	Evaluation: capability.Mark{As: "implicit", Test: "field/s5rl.TestEstimate"},
	Control:    capability.Yes("field/s5rl.TestReturnedPolicy"),
	Learned:    capability.Yes("field/s5rl.TestLossIsPPOs"),
}
