package lianglai

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/seed"
	"icrl/policyattention/stats"
)

// UpdateError returns the median over held-out windows, drawn as in training
// from fresh MDPs, of ‖increment − teacher's‖ / ‖teacher's‖ for a block with
// α = β = 1.
func (t Config) UpdateError(block *Block, windows int) (float64, error) {
	if windows < 1 {
		return 0, fmt.Errorf("lianglai: update error over %d windows", windows)
	}
	prompt, err := NewActorCriticPrompt(t.States, t.Actions)
	if err != nil {
		return 0, err
	}
	rng := seed.New(t.Seed, "lianglai", "held-out windows")
	problems, err := drawProblems(rng.Uint64(), t.States, t.Actions, t.Gamma, windows)
	if err != nil {
		return 0, err
	}
	b := newBatch(prompt, windows)
	b.draw(rng, problems, t.Gamma, 1)
	errors := make([]float64, windows)
	query := make([]float64, prompt.width)
	for i := range errors {
		copy(query[prompt.theta.from:], b.query.RawRowView(i))
		dTheta, dW := prompt.Increment(block.Attend(prompt.Context(b.windows[i], b.pi[i]), query))
		target := b.target.RawRowView(i)
		distance := math.Hypot(floats.Distance(dTheta, target[:len(dTheta)], 2), floats.Distance(dW, target[len(dTheta):], 2))
		errors[i] = distance / floats.Norm(target, 2)
	}
	return stats.Median(errors), nil
}

// CloseLoop runs block and teacher with the same step sizes on held-out MDPs,
// from the same policies and random numbers, and takes the curves at every
// multiple of every, 0 included.
func (t Config) CloseLoop(block *Block, steps baseline.StepSizes, mdps, updates, every int) (*baseline.Curves, error) {
	if mdps < 1 || updates < 1 || every < 1 {
		return nil, fmt.Errorf("lianglai: closed loop of %d MDPs, %d updates, every %d", mdps, updates, every)
	}
	prompt, err := NewActorCriticPrompt(t.States, t.Actions)
	if err != nil {
		return nil, err
	}
	root := seed.New(t.Seed, "lianglai", "held-out MDPs").Uint64()
	problems, err := drawProblems(root, t.States, t.Actions, t.Gamma, mdps)
	if err != nil {
		return nil, err
	}
	loop := &baseline.Curves{}
	for k := 0; k <= updates; k += every {
		loop.Updates = append(loop.Updates, k)
	}
	for _, run := range []struct {
		control.Controller
		curve *[]float64
	}{
		{Controller{Prompt: prompt, Block: prompt.WithSteps(block, steps), Start: baseline.Initial, Root: root}, &loop.Learned},
		{baseline.Teacher{Steps: steps, Start: baseline.Initial, Root: root}, &loop.Teacher},
	} {
		trajectories, err := run.Run(problems, updates)
		if err != nil {
			return nil, err
		}
		for _, k := range loop.Updates {
			mean := 0.0
			for i, problem := range problems {
				v, err := meanValue(problem.MDP, trajectories[i].Policies[k])
				if err != nil {
					return nil, err
				}
				mean += v / float64(len(problems))
			}
			*run.curve = append(*run.curve, mean)
		}
	}
	return loop, nil
}

// meanValue returns the mean over states of V^π.
func meanValue(m *mdp.MDP, pi *mat.Dense) (float64, error) {
	q, err := m.PolicyValue(pi)
	if err != nil {
		return 0, err
	}
	return floats.Dot(pi.RawMatrix().Data, q.RawMatrix().Data) / float64(m.States()), nil
}
