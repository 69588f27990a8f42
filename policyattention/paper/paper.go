// Package paper lists what the paper and this repository compare: methods, presets, which say what is
// run at which scale, studies besides the blocks of a preset, and systems that are no methods. Without its
// lines here a baseline's folder can be removed.
package paper

import (
	"slices"

	"icrl/policyattention/baseline"
	"icrl/policyattention/baseline/distill"
	"icrl/policyattention/baseline/lianglai"
	"icrl/policyattention/field/s5rl"
	"icrl/policyattention/field/wang"
	"icrl/policyattention/field/xie"
	"icrl/policyattention/method"
)

// Methods are all methods, in the order of tables. One that deploys nothing is exact policy mirror descent.
var Methods = method.Registry(slices.Concat(
	proposed,
	[]method.Method{lianglai.Method},
	[]method.Method{distill.Method, distill.Source},
	[]method.Method{s5rl.Method},
	[]method.Method{{Name: "exact-pmd", Label: "exact PMD", Untrained: true}},
))

// Systems are those of the paper's Table 1 that evaluate policies and return none, so that they are not among the
// methods.
var Systems = map[string]baseline.Trainer{
	"wang": wang.System,
	"xie":  xie.System,
}
