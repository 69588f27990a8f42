package baseline

import (
	"fmt"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/control"
	"icrl/policyattention/rows"
	"icrl/policyattention/seed"
)

// Increment returns what to add to θ [S·A] and w [S] of a learner after a window under
// pi = softmax(θ).
type Increment func(l *ActorCritic, window []Transition, pi *mat.Dense) (dTheta, dW []float64)

// Stepping is the agent with the parameters (θ, w) and the policy softmax(θ), which starts as start says, with w = 0.
// Each round it adds an increment, which is that of a tabular learner and is carried over to its features. These are
// drawn from a stream below root.
func Stepping(t Told, start Start, features Features, root uint64, increment Increment) (Agent, error) {
	l, err := start.Learner(t.Pi0)
	if err != nil {
		return nil, err
	}
	carry, err := features.carry(t.States, t.Actions, seed.New(root, "baseline", "features", t.Problem))
	pi := l.Policy()
	return func(window []Transition) (*mat.Dense, *mat.Dense, error) {
		if len(window) > 0 {
			dTheta, dW := increment(l, window, pi)
			carry(dTheta, dW)
			if err := l.Step(dTheta, dW); err != nil {
				return nil, nil, err
			}
			pi = l.Policy()
		}
		return pi, pi, nil
	}, err
}

// Teacher is the controller that runs actor–critic itself: the teacher of Liang–Lai and, tabular, the source of
// Algorithm Distillation. Each round draws [Window] transitions. These and the features come from streams below root.
func Teacher(steps StepSizes, start Start, features Features, root uint64) Agents {
	return Agents{Source: Walk(Window, root), New: func(t Told) (Agent, error) {
		increment := func(l *ActorCritic, window []Transition, pi *mat.Dense) (dTheta, dW []float64) {
			return l.Increment(window, pi, t.Gamma, steps)
		}
		return Stepping(t, start, features, root, increment)
	}}
}

// Features says what the parameters of a learner multiply: log π(a|s) is
// x(s,a)ᵀθ up to a constant, and V(s) is f(s)ᵀw.
type Features string

const (
	OneHot Features = ""      // tabular: a parameter for each pair and each state
	Dense  Features = "dense" // numbers uniform on [0, 1), S·A of them for each pair and S for each state
)

// carry draws features for S states and A actions, and returns what carries tabular increments of θ [S·A] and w [S]
// over to them. With the rows of X as features, a gradient g with respect to the logits Xθ makes an increment
// Xᵀg of θ, and so X Xᵀg of the logits; likewise F Fᵀ for the values. Learners
// are kept as logits and values, so that they need nothing else.
func (f Features) carry(states, actions int, rng *rand.Rand) (func(dTheta, dW []float64), error) {
	switch f {
	case OneHot:
		return func(_, _ []float64) {}, nil
	case Dense:
		pairs, values := gram(states*actions, rng), gram(states, rng)
		return func(dTheta, dW []float64) {
			pairs(dTheta)
			values(dW)
		}, nil
	}
	return nil, fmt.Errorf("baseline: features %q, want %q or %q", f, OneHot, Dense)
}

// gram draws a square X of numbers uniform on [0, 1), and returns what multiplies a vector [n] by X Xᵀ.
func gram(n int, rng *rand.Rand) func(g []float64) {
	x, k := mat.NewDense(n, n, nil), new(mat.Dense)
	for i := range x.RawMatrix().Data {
		x.RawMatrix().Data[i] = rng.Float64()
	}
	k.Mul(x, x.T())
	return func(g []float64) {
		v := mat.NewVecDense(n, g)
		v.MulVec(k, mat.VecDenseCopyOf(v))
	}
}

// Horizons are the numbers of rounds T at which losses are tabulated and tunings scored.
var Horizons = []int{20, 40}

// Score returns the losses at [Horizons] of a learner with step sizes and a start.
func Score(
	trajectories []control.Trajectory, steps StepSizes, start Start, scales []*control.Scale,
) (all []rows.Tuned, err error) {
	for _, horizon := range Horizons {
		for i, scale := range scales {
			loss, err := scale.Loss(trajectories[i].Policies[horizon])
			if err != nil {
				return nil, fmt.Errorf("problem %d, round %d: %w", i, horizon, err)
			}
			all = append(all, rows.Tuned{Start: string(start), Alpha: steps.Alpha, Beta: steps.Beta,
				Problem: int32(i), Round: int32(horizon), Loss: rows.Single(loss)})
		}
	}
	return all, nil
}
