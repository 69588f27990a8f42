package xie

import "icrl/policyattention/capability"

// System is its row in the capability map. What is not there it cannot do.
var System = capability.System{
	Name: "Xie et al. 2026", Source: "arXiv 2605.07333",
	Ticks: map[capability.Capability]capability.Tick{
		capability.Softmax:    capability.Yes(capability.Test("field/xie.TestEachLayerIsAStep")),
		capability.Evaluation: capability.Yes(capability.Test("field/xie.TestTheoremTwo"), capability.Files("field/xie/evidence.json")),
		capability.Learned:    capability.Yes(capability.Files("field/xie/features-*.safetensors"), capability.Files("field/xie/evidence.json")),
	},
	Model: "none", Samples: "n transitions of one policy", Weights: "d² + 3 under the masks: 19 at d = 4", Work: "O(dn²) a layer, softmax attention",
}
