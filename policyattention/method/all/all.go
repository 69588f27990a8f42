// Package all lists the methods of the paper and of this repository.
package all

import (
	"slices"

	"icrl/policyattention/baseline/distill"
	"icrl/policyattention/baseline/lianglai"
	"icrl/policyattention/field/s5rl"
	"icrl/policyattention/method"
	"icrl/policyattention/method/exactpmd"
	"icrl/policyattention/method/policyattention"
)

// Methods are all methods, a line each, in the order of tables.
var Methods = method.Registry(slices.Concat(
	policyattention.Methods,
	[]method.Method{lianglai.Method},
	[]method.Method{distill.Method, distill.Source},
	[]method.Method{s5rl.Method},
	[]method.Method{exactpmd.Method},
))
