package train

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/control"
	"icrl/policyattention/seed"
)

// SampleMean is a critic without a network. From as many transitions of every pair as a
// learned critic sees, and the same ones below the same root, it returns
//
//	Q(s,a) = r + γ (w·mean of v' + (1−w)·mean of v over all states),  v = ⟨π̂, Q_k⟩,
//
// with weight w = 1 the mean sampled target. Where rows of P are drawn from Dirichlet(1),
// as the family random has them, w = m/(m+S) is the mean under the posterior of P given
// the transitions, so that no function of them has a smaller mean squared error. A network
// that is trained for that error comes to it at best, and in the loop it is worse than
// the mean of samples, whose errors have mean 0 and average out over rounds.
type SampleMean struct {
	Samples int     // m
	Weight  float64 // w
	Root    uint64
}

// PosteriorWeight is the weight of SampleMean with the smallest mean squared error on
// problems with as many states, given m samples.
func PosteriorWeight(m, states int) float64 { return float64(m) / float64(m+states) }

// Evaluate implements control.Critic.
func (s SampleMean) Evaluate(batch []control.Context) ([]*mat.Dense, error) {
	if s.Samples < 1 {
		return nil, fmt.Errorf("train: %d samples of every pair, want at least one", s.Samples)
	}
	return control.CriticFunc(func(x control.Context) (*mat.Dense, error) {
		if x.MDP == nil {
			return nil, fmt.Errorf("train: the context of problem %d has no MDP to sample from", x.Problem)
		}
		c := Config{Actions: x.MDP.Actions(), Samples: s.Samples}
		sampled := c.sample(seed.New(s.Root, "critic", x.Problem, x.Round), x.MDP, x.Pi, x.Q)
		usual := 0.0
		for _, v := range sampled.values {
			usual += x.MDP.Gamma * v / float64(len(sampled.values))
		}
		q := mat.NewDense(x.MDP.States(), x.MDP.Actions(), nil)
		q.Apply(func(i, j int, mean float64) float64 {
			if math.IsInf(mean, -1) {
				return mean
			}
			return s.Weight*mean + (1-s.Weight)*(sampled.rewards[i*c.Actions+j]+usual)
		}, sampled.mean)
		return q, nil
	}).Evaluate(batch)
}
