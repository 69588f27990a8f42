package baseline

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
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
