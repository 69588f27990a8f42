package xie

import (
	"fmt"

	"icrl/policyattention/field/evidence"
)

// Run is one training of the evidence.
type Run = evidence.Run[Training]

// Runs are all trainings of the evidence: random features as in Wang et al., and one-hot
// features, with which the algorithm can be tabular TD; two seeds each.
func Runs() []Run {
	var all []Run
	for root := uint64(1); root <= 2; root++ {
		t := Recipe(root)
		all = append(all, Run{Name: fmt.Sprintf("features-%d", root), Kind: "features", Recipe: t})
		t.OneHot, t.D = true, t.States
		all = append(all, Run{Name: fmt.Sprintf("one-hot-%d", root), Kind: "one-hot", Recipe: t})
	}
	return all
}
