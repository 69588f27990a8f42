package wang

import "icrl/policyattention/capability"

// System is its row in the capability map. What is not there it cannot do.
var System = capability.System{
	Name: "Wang et al. 2025", Source: "arXiv 2405.13861",
	Ticks: map[capability.Capability]capability.Tick{
		capability.Softmax:    capability.Word("emp.", capability.Files("field/wang/softmax-looped-1.safetensors"), capability.Files("field/wang/evidence.json")),
		capability.Evaluation: capability.Yes(capability.Test("field/wang.TestEachLayerIsAStep"), capability.Test("field/wang.TestDemoHasTheFiguresErrors")),
		capability.Learned:    capability.Yes(capability.Files("field/wang/linear-looped-*.safetensors"), capability.Files("field/wang/evidence.json")),
	},
	Model: "none", Samples: "n transitions of one policy", Weights: "2(2d+1)² a layer: 162 at d = 4, looped", Work: "O(d²n) a layer, linear attention",
}
