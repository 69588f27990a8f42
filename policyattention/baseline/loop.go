package baseline

import (
	"fmt"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/rows"
	"icrl/policyattention/seed"
)

// Increment returns what to add to θ [S·A] and w [S] of a learner after a window under
// pi = softmax(θ).
type Increment func(l *ActorCritic, window []Transition, pi *mat.Dense) (dTheta, dW []float64)

// Stepping is the agent with the parameters (θ, w) and the policy softmax(θ). Each round it adds an increment, which
// is that of a tabular learner and is carried over to its features.
type Stepping struct {
	*ActorCritic
	Increment Increment
	pi        *mat.Dense
	kernel    *kernel
}

// NewStepping returns the agent before its first round, which starts as start says, with w = 0. Its features are
// drawn from a stream below root.
func NewStepping(t Told, start Start, features Features, root uint64, increment Increment) (*Stepping, error) {
	l, err := start.Learner(t.Pi0)
	if err != nil {
		return nil, err
	}
	kernel, err := features.kernel(t.States, t.Actions, seed.New(root, "baseline", "features", t.Problem))
	return &Stepping{l, increment, l.Policy(), kernel}, err
}

// Behaviour implements Agent.
func (a *Stepping) Behaviour() *mat.Dense { return a.pi }

// Learn implements Agent.
func (a *Stepping) Learn(window []Transition) (*mat.Dense, error) {
	dTheta, dW := a.Increment(a.ActorCritic, window, a.pi)
	a.kernel.carry(dTheta, dW)
	if err := a.Step(dTheta, dW); err != nil {
		return nil, err
	}
	a.pi = a.Policy()
	return a.pi, nil
}

// Teacher is the controller that runs actor–critic itself: the teacher of Liang–Lai and, tabular, the source of
// Algorithm Distillation. Each round draws [Window] transitions.
type Teacher struct {
	Steps    StepSizes
	Start    Start
	Features Features
	Root     uint64 // of the transitions and the features
}

// Run implements control.Controller.
func (c Teacher) Run(problems []mdp.Problem, rounds int) ([]control.Trajectory, error) {
	if rounds < 1 {
		return nil, fmt.Errorf("baseline: %d rounds, want at least 1", rounds)
	}
	agents := Agents{Source: Walk{N: Window, Root: c.Root}, New: func(t Told) (Agent, error) {
		increment := func(l *ActorCritic, window []Transition, pi *mat.Dense) (dTheta, dW []float64) {
			return l.Increment(window, pi, t.Gamma, c.Steps)
		}
		return NewStepping(t, c.Start, c.Features, c.Root, increment)
	}}
	return agents.Run(problems, rounds)
}

// Features says what the parameters of a learner multiply: log π(a|s) is
// x(s,a)ᵀθ up to a constant, and V(s) is f(s)ᵀw.
type Features string

const (
	OneHot Features = ""      // tabular: a parameter for each pair and each state
	Dense  Features = "dense" // numbers uniform on [0, 1), S·A of them for each pair and S for each state
)

// kernel carries a tabular increment over to other features. With the rows of X
// as features, a gradient g with respect to the logits Xθ makes an increment
// Xᵀg of θ, and so X Xᵀg of the logits; likewise F Fᵀ for the values. Learners
// are kept as logits and values, so that they need nothing else. Tabular ones
// have none.
type kernel struct{ pairs, states *mat.Dense } // X Xᵀ [SA, SA], F Fᵀ [S, S]

// kernel draws features for S states and A actions.
func (f Features) kernel(states, actions int, rng *rand.Rand) (*kernel, error) {
	switch f {
	case OneHot:
		return nil, nil
	case Dense:
		return &kernel{gram(states*actions, rng), gram(states, rng)}, nil
	}
	return nil, fmt.Errorf("baseline: features %q, want %q or %q", f, OneHot, Dense)
}

// gram returns X Xᵀ for a square X of numbers uniform on [0, 1).
func gram(n int, rng *rand.Rand) *mat.Dense {
	x := mat.NewDense(n, n, nil)
	for i := range x.RawMatrix().Data {
		x.RawMatrix().Data[i] = rng.Float64()
	}
	var k mat.Dense
	k.Mul(x, x.T())
	return &k
}

// carry replaces the increments of θ [S·A] and w [S].
func (k *kernel) carry(dTheta, dW []float64) {
	if k == nil {
		return
	}
	for _, part := range []struct {
		by *mat.Dense
		of []float64
	}{{k.pairs, dTheta}, {k.states, dW}} {
		v := mat.NewVecDense(len(part.of), part.of)
		v.MulVec(part.by, mat.VecDenseCopyOf(v))
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
				Problem: int32(i), Round: int32(horizon), Loss: loss})
		}
	}
	return all, nil
}
