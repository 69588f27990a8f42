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
	exact, err := loop.Solve(problems[0], 40)
	if err != nil {
		log.Fatal(err)
	}
	loop.Actor = control.ActorFunc(conservative)
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

// The proof of Theorem 2, walked on exact PMD with an actor that is off by a tenth.
func ExampleProve() {
	problems, err := mdp.Random.Draw(1, 4, 3, 1)
	if err != nil {
		log.Fatal(err)
	}
	loop := control.ExactPMD(0.8)
	loop.Actor = control.MixedActor{Actor: loop.Actor, Phi: 0.1}
	trajectories, err := loop.Run(problems, 3)
	if err != nil {
		log.Fatal(err)
	}
	steps, err := control.Prove(problems[0], trajectories[0])
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range steps {
		if s.Round == 2 {
			relation := "≤"
			if s.Identity {
				relation = "="
			}
			fmt.Printf("%-8s %6.3f %s %6.3f  %s\n", s.Equation, s.Left, relation, s.Right, s.Says)
		}
	}
	// Output:
	// (12)      0.094 ≤  0.397  max_a Q_k − ⟨PMD, Q_k⟩ ≤ D_k/η
	// (23)      0.115 ≤  1.138  g_k ≤ D_k/η + Bζ_k
	// (11)      3.539 ≤  3.897  E_{T−1} ≤ γ^{T−1}E_0 + Σγ^{T−2−k}δ_k + Σγ^{T−1−k}ḡ_k
	// (19)      2.679 =  2.679  Q* − Q^π = (I − γP^π)⁻¹(FQ* − F^πQ*)
	// (19)      0.000 ≤  0.132  no entry of the inverse is negative
	// (19)     10.000 = 10.000  its rows sum to 1/(1−γ)
	// (20)      0.682 ≤  7.719  max_a Q* − ⟨π, Q*⟩ ≤ g_{T−1}(s) + 2E_{T−1} at every state s
	// (20)      0.682 ≤  7.543  as printed: max_a Q* − ⟨π, Q*⟩ ≤ ḡ_{T−1} + 2E_{T−1} at every state s
	// (20)      0.484 ≤  7.543  lifted: ‖P(max_a Q* − ⟨π, Q*⟩)‖ ≤ ḡ_{T−1} + 2E_{T−1}
	// (21)      2.679 ≤ 67.887  ‖Q* − Q^π̂_T‖ ≤ 2γE_{T−1}/(1−γ) + γḡ_{T−1}/(1−γ)
	// (8)–(9)   2.679 ≤ 74.338  Theorem 2, without δ_{T−1}
}
