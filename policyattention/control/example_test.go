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
func conservative(c control.Context) (*mat.Dense, error) {
	const step = 0.2
	next := mat.DenseCopyOf(c.Pi)
	next.Scale(1-step, next)
	for s := range next.RawMatrix().Rows {
		greedy := floats.MaxIdx(c.Q.RawRowView(s))
		next.Set(s, greedy, next.At(s, greedy)+step)
	}
	return next, nil
}

// An update rule of one's own is a function of a context, or an Actor that is asked
// for all problems of a round at once. The score is exact.
func ExampleLoop() {
	problems, err := mdp.Random.Draw(1, 8, 3, 1)
	if err != nil {
		log.Fatal(err)
	}
	loop := control.ExactPMD(0.8)
	exact, err := loop.Run(problems, 40)
	if err != nil {
		log.Fatal(err)
	}
	loop.Actor = control.ActorFunc(conservative)
	own, err := loop.Run(problems, 40)
	if err != nil {
		log.Fatal(err)
	}
	scored, err := control.Score([]mdp.Problem{problems[0], problems[0]}, []control.Trajectory{exact[0], own[0]})
	if err != nil {
		log.Fatal(err)
	}
	for _, round := range []int{0, 10, 40} {
		fmt.Printf("round %2d: PMD %.4f, own rule %.4f\n", round, scored[0].Loss[round], scored[1].Loss[round])
	}
	// Output:
	// round  0: PMD 1.0000, own rule 1.0000
	// round 10: PMD 0.1314, own rule 0.1091
	// round 40: PMD 0.0009, own rule 0.0001
}
