package baseline

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/control"
	"icrl/policyattention/pmd"
)

// PMD is the exact actor.
func PMD() control.Actor { return control.RuleActor(pmd.PMD) }

// Greedy is the actor that takes the action of the greatest value, uniformly among ties.
func Greedy() control.Actor { return control.RuleActor(pmd.RewardOnly) }

// FullEvaluation is the critic that solves for Q^π of the policy returned.
func FullEvaluation() control.Critic {
	return control.CriticFunc(func(c control.Context) (*mat.Dense, error) {
		if c.MDP == nil {
			return nil, fmt.Errorf("baseline: full evaluation needs the MDP")
		}
		return c.MDP.PolicyValue(c.Pi)
	})
}

// ExactPMD is policy mirror descent with the exact one-step backup.
func ExactPMD(eta float64) control.Loop {
	return control.Loop{Actor: PMD(), Critic: control.ExactCritic{}, Eta: eta}
}

// ValueIteration backs up by the optimality operator and returns the greedy policy.
func ValueIteration() control.Loop {
	return control.Loop{Actor: Greedy(), Critic: control.CriticFunc(func(c control.Context) (*mat.Dense, error) {
		if c.MDP == nil {
			return nil, fmt.Errorf("baseline: value iteration needs the MDP")
		}
		return c.MDP.OptimalityBackup(c.Q), nil
	})}
}

// PolicyIteration is Howard's: the greedy policy of Q^π.
func PolicyIteration() control.Loop { return control.Loop{Actor: Greedy(), Critic: FullEvaluation()} }

// NaturalPolicyGradient is the softmax natural policy gradient with full evaluation
// (Agarwal et al., JMLR 22, 2021): policy mirror descent with Q^π.
func NaturalPolicyGradient(eta float64) control.Loop {
	return control.Loop{Actor: PMD(), Critic: FullEvaluation(), Eta: eta}
}
