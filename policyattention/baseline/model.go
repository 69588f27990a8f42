package baseline

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/control"
	"icrl/policyattention/pmd"
)

// StepOperations is what a step of policy mirror descent takes: a logarithm, a product
// and a sum for each pair, and of the softmax a comparison, a difference, an
// exponential, a sum and a division.
func StepOperations(states, actions int) int { return 8 * states * actions }

// greedyOperations is what a greedy policy takes: a comparison for the greatest value
// and one for ties, for each pair.
func greedyOperations(states, actions int) int { return 2 * states * actions }

// Charged is an actor that charges a number of operations for each of its contexts.
type Charged struct {
	control.Actor
	Operations func(states, actions int) int
}

// Act implements control.Actor.
func (c Charged) Act(batch []control.Context) ([]*mat.Dense, error) {
	for _, x := range batch {
		x.MDP.Meter().Charge(c.Operations(x.MDP.States(), x.MDP.Actions()))
	}
	return c.Actor.Act(batch)
}

// PMD is the exact actor.
func PMD() control.Actor { return Charged{control.RuleActor(pmd.PMD), StepOperations} }

// Greedy is the actor that takes the action of the greatest value, uniformly among ties.
func Greedy() control.Actor { return Charged{control.RuleActor(pmd.RewardOnly), greedyOperations} }

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
