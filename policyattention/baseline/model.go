package baseline

import (
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/control"
	"icrl/policyattention/pmd"
)

// greedy is the actor that takes the action of the greatest value, uniformly among ties.
var greedy = control.RuleActor(pmd.RewardOnly)

// fullEvaluation is the critic that solves for Q^π of the policy returned.
var fullEvaluation = control.CriticFunc(func(c control.Context) (*mat.Dense, error) { return c.MDP.PolicyValue(c.Pi) })

// ValueIteration backs up by the optimality operator and returns the greedy policy.
func ValueIteration() control.Loop {
	return control.Loop{Actor: greedy, Critic: control.CriticFunc(func(c control.Context) (*mat.Dense, error) {
		return c.MDP.OptimalityBackup(c.Q), nil
	})}
}

// PolicyIteration is Howard's: the greedy policy of Q^π.
func PolicyIteration() control.Loop { return control.Loop{Actor: greedy, Critic: fullEvaluation} }

// NaturalPolicyGradient is the softmax natural policy gradient with full evaluation
// (Agarwal et al., JMLR 22, 2021): policy mirror descent with Q^π.
func NaturalPolicyGradient(eta float64) control.Loop {
	return control.Loop{Actor: control.RuleActor(pmd.PMD), Critic: fullEvaluation, Eta: eta}
}
