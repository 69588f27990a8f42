package control_test

import (
	"fmt"
	"log"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
)

// conservative is conservative policy iteration (Kakade and Langford, 2002): a
// small step toward the greedy policy.
type conservative struct{ step float64 }

func (c conservative) Act(batch []control.Context) ([]*mat.Dense, error) {
	next := make([]*mat.Dense, len(batch))
	for i, x := range batch {
		next[i] = mat.DenseCopyOf(x.Pi)
		next[i].Scale(1-c.step, next[i])
		for s := range x.Pi.RawMatrix().Rows {
			greedy := floats.MaxIdx(x.Q.RawRowView(s))
			next[i].Set(s, greedy, next[i].At(s, greedy)+c.step)
		}
	}
	return next, nil
}

// An update rule of one's own is an Actor. The loop asks it for all problems of a
// round at once, and the score is exact.
func ExampleLoop() {
	problems, err := mdp.Random.Draw(1, 8, 3, 1)
	if err != nil {
		log.Fatal(err)
	}
	loop := control.ExactPMD(0.8)
	exact, err := loop.Solve(problems[0], 40)
	if err != nil {
		log.Fatal(err)
	}
	loop.Actor = conservative{step: 0.2}
	own, err := loop.Solve(problems[0], 40)
	if err != nil {
		log.Fatal(err)
	}
	for _, round := range []int{0, 10, 40} {
		fmt.Printf("round %2d: PMD %.4f, own rule %.4f\n", round, exact.Loss[round], own.Loss[round])
	}
	// Output:
	// round  0: PMD 1.0000, own rule 1.0000
	// round 10: PMD 0.1314, own rule 0.1091
	// round 40: PMD 0.0009, own rule 0.0001
}
