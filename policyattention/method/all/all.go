// Package all lists the methods of the paper and of this repository. Without a line here a
// method's folder can be removed.
package all

import (
	"slices"

	"icrl/policyattention/baseline/distill"
	"icrl/policyattention/baseline/lianglai"
	"icrl/policyattention/field/s5rl"
	"icrl/policyattention/method"
	"icrl/policyattention/method/policyattention"
)

// Methods are all methods, in the order of tables. A method that deploys nothing is exact policy
// mirror descent.
var Methods = method.Registry(slices.Concat(
	policyattention.Methods,
	[]method.Method{lianglai.Method},
	[]method.Method{distill.Method, distill.Source},
	[]method.Method{s5rl.Method},
	[]method.Method{{Name: "exact-pmd", Label: "exact PMD", Untrained: true}},
))
