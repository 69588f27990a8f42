package lianglai

import (
	"errors"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
)

// PaperSteps returns the paper's choice for S states. It is stated for S=8 and
// S=16 only; both actor steps are the largest value of the paper's grid.
func PaperSteps(states int) (baseline.StepSizes, error) {
	switch states {
	case 8:
		return baseline.StepSizes{Alpha: 2, Beta: 0.2}, nil
	case 16:
		return baseline.StepSizes{Alpha: 2, Beta: 0.8}, nil
	default:
		return baseline.StepSizes{}, fmt.Errorf("lianglai: the paper states no step sizes for S=%d", states)
	}
}

// Controller deploys an actor–critic block. Each round draws a window of
// on-policy transitions, passes it through the block once with the current θ
// and w as its query, and adds the increments. It starts as Start says, with w =
// 0; the returned policy is softmax(θ).
type Controller struct {
	Prompt *ActorCriticPrompt
	Block  *Block // with its step sizes, see [ActorCriticPrompt.WithSteps]
	Start  baseline.Start
	// Features are of the learner that the policy is returned from. The block is
	// the same for all: its increments are linear in V, so features amount to a
	// fixed matrix after it.
	Features baseline.Features
	Root     uint64 // of the streams of transitions and features, one for each problem's index
}

// Run implements control.Controller. On the same Root its transitions come from
// the same random numbers as those of [baseline.Teacher]. It returns an error on a block of
// another width than the prompt's.
func (c Controller) Run(problems []mdp.Problem, rounds int) ([]control.Trajectory, error) {
	if c.Prompt == nil || c.Block == nil {
		return nil, errors.New("lianglai: a controller needs a prompt and a block")
	}
	for _, m := range []*mat.Dense{c.Block.P, c.Block.V} {
		if m == nil {
			return nil, errors.New("lianglai: the block lacks P or V")
		}
		if rows, cols := m.Dims(); rows != c.Prompt.Width() || cols != rows {
			return nil, fmt.Errorf("lianglai: the block is [%d, %d], the prompt's columns have length %d", rows, cols, c.Prompt.Width())
		}
	}
	return baseline.Run(problems, rounds, c.Start, c.Features, c.Root, func(i int, l *baseline.ActorCritic, window []baseline.Transition, pi *mat.Dense) (dTheta, dW []float64, err error) {
		if s, a := pi.Dims(); s != c.Prompt.States || a != c.Prompt.Actions {
			return nil, nil, fmt.Errorf("lianglai: the problem has S=%d, A=%d, the block is for S=%d, A=%d", s, a, c.Prompt.States, c.Prompt.Actions)
		}
		dTheta, dW = c.Prompt.Increment(c.Block.Attend(c.Prompt.Context(window, pi), c.Prompt.Query(l)))
		return dTheta, dW, nil
	})
}
