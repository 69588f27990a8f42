package control_test

import (
	"fmt"
	"log"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
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

// A runner measures one round after the other, here of exact PMD whose critic sees
// rewards of half the size.
func ExampleNewRunner() {
	problems, err := mdp.Random.Draw(1, 8, 3, 1)
	if err != nil {
		log.Fatal(err)
	}
	p := problems[0]
	q0, err := p.MDP.PolicyValue(p.Pi0)
	if err != nil {
		log.Fatal(err)
	}
	runner, err := control.NewRunner(p, q0, 0.8, func(c control.Context) (next pmd.Policy, q *mat.Dense, err error) {
		if next, err = control.ActOn(control.RuleActor(pmd.PMD), c); err != nil {
			return next, nil, err
		}
		q = c.MDP.EvaluationBackup(next.Pi, c.Q)
		half := mat.DenseCopyOf(c.MDP.R)
		half.Scale(0.5, half)
		q.Sub(q, half)
		return next, q, nil
	})
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		k, err := runner.Step()
		if err != nil {
			log.Fatal(err)
		}
		bound, err := runner.Bound()
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("round %d: ζ %.0f, δ %.3f, ḡ %.3f, distance %.3f of at most %.2f\n",
			k.Index, k.Zeta, k.Delta, k.Defect, k.Distance, bound.Total())
	}
	// Output:
	// round 0: ζ 0, δ 0.499, ḡ 0.591, distance 4.730 of at most 112.53
	// round 1: ζ 0, δ 0.499, ḡ 0.270, distance 4.146 of at most 117.47
	// round 2: ζ 0, δ 0.499, ḡ 0.237, distance 3.619 of at most 119.01
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
