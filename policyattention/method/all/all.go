// Package all lists the methods of the paper and of this repository, and the systems beside them. Without
// its lines here a baseline's folder can be removed.
package all

import (
	"slices"

	"icrl/policyattention/baseline/distill"
	"icrl/policyattention/baseline/lianglai"
	"icrl/policyattention/field"
	"icrl/policyattention/field/s5rl"
	"icrl/policyattention/field/wang"
	"icrl/policyattention/field/xie"
	"icrl/policyattention/method"
	"icrl/policyattention/method/policyattention"
)

// Methods are all methods, in the order of tables. One that deploys nothing is exact policy mirror descent.
var Methods = method.Registry(slices.Concat(
	policyattention.Methods,
	[]method.Method{lianglai.Method},
	[]method.Method{distill.Method, distill.Source},
	[]method.Method{s5rl.Method},
	[]method.Method{{Name: "exact-pmd", Label: "exact PMD", Untrained: true}},
))

// Systems are those of the paper's Table 1 that evaluate policies and return none, so that they are not among the
// methods.
var Systems = map[string]field.System{
	"wang": wang.System,
	"xie":  xie.System,
}
