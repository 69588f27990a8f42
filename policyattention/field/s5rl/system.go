package s5rl

import "icrl/policyattention/capability"

// qualified says that it beats its control, with the interval's end below zero: nothing that it can
// do in context prints without it.
var qualified = capability.Claim("S5RL, which the text sets beside them, learns in context: structured state-space models, trained online by PPO", "S = 8: qualifies")

// system is its row in the capability map. What is not there it cannot do.
var system = &capability.System{
	Name: "S5RL", Source: "arXiv 2303.03982",
	Ticks: map[capability.Capability]capability.Tick{
		capability.Evaluation: capability.Word("implicit", qualified, capability.Files("paper/qualification/s5rl-cpu-S8-*/manifest.json")),
		capability.Control:    capability.Yes(qualified, capability.Files("paper/qualification/s5rl-cpu-cleared-S8-*/manifest.json"), capability.Files("paper/benchmark/s5rl-cpu-S8-*/manifest.json")),
		capability.Learned:    capability.Yes(qualified, capability.Test("field/s5rl.TestLossIsPPOs"), capability.Files("paper/train/s5rl-S8-*/weights.safetensors")),
	},
	Model: "none", Samples: "20 transitions a round", Weights: "39,104 at S = 8", Work: "20 steps of the recurrence a round",
}
