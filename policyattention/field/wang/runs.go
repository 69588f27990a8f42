package wang

import (
	"fmt"

	"icrl/policyattention/field/evidence"
)

// Run is one training of the evidence.
type Run = evidence.Run[Training]

// Runs are all trainings of the evidence: the paper's standard setting with eight seeds and with
// as many processes as the public code's default, so that both ends can be read; weights of
// their own for each layer with two seeds; and softmax, normalized over keys as attention is,
// over queries and by n as in the public code, and by n alone, with one seed each and half the
// processes. Runs of one seed see the same processes and walks.
func Runs() []Run {
	var all []Run
	add := func(kind string, seeds int, change func(*Training)) {
		for root := 1; root <= seeds; root++ {
			t := Recipe(uint64(root))
			change(&t)
			all = append(all, Run{Name: fmt.Sprintf("%s-%d", kind, root), Kind: kind, Recipe: t})
		}
	}
	add("linear-looped", 8, func(t *Training) { t.Processes = 5000 })
	add("linear-sequential", 2, func(t *Training) { t.Sequential = true })
	for _, a := range []Attention{OverKeys, OverQueries, OverKeysByN} {
		add(string(a)+"-looped", 1, func(t *Training) { t.Attention, t.Processes = a, 2000 })
	}
	return all
}
