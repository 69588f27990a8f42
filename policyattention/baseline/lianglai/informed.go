package lianglai

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
)

// PaperSteps returns the paper's choice for S states. It is stated for S=8 and
// S=16 only; both actor steps are the largest value of the paper's grid.
func PaperSteps(states int) (baseline.StepSizes, error) {
	beta, ok := map[int]float64{8: .2, 16: .8}[states]
	if !ok {
		return baseline.StepSizes{}, fmt.Errorf("lianglai: the paper states no step sizes for S=%d", states)
	}
	return baseline.StepSizes{Alpha: 2, Beta: beta}, nil
}

// increment returns what transitions under pi [S, A] with the given weights, whose sum stands
// for one window, add to θ [S·A] and w [S] of l; nil are equal weights. The
// block is linear in z zᵀ over its columns z, so a weight is a factor √(n·weight) of a column.
func (b *Block) increment(
	l *baseline.ActorCritic, window []baseline.Transition, weights []float64, pi *mat.Dense,
) (dTheta, dW []float64) {
	context, n := b.Prompt.Context(window, pi), len(window)
	for i, w := range weights {
		row, factor := context.RawRowView(i), math.Sqrt(float64(n)*w)
		for j := range row {
			row[j] *= factor
		}
	}
	added := b.Attend(context, b.Prompt.Query(l))
	return b.Prompt.theta.of(added), b.Prompt.w.of(added)
}

// on deploys the block, which has its step sizes, on a source of transitions. Each round passes the source's through
// the block once with the current θ and w as its query, and adds the increments. It starts as start says, with w = 0;
// the returned policy is softmax(θ). The update is an expectation under the policy, so generative transitions, whose
// actions are uniform, get the weights A·π(a|s)/n.
//
// Features are of the learner that the policy is returned from, and are drawn below root. The block is the same for
// all: its increments are linear in V, so features amount to a fixed matrix after it.
func (b *Block) on(
	source baseline.Source, generative bool, start baseline.Start, features baseline.Features, root uint64,
) control.Controller {
	return baseline.Agents{Source: source, New: func(t baseline.Told) (baseline.Agent, error) {
		if t.States != b.Prompt.States || t.Actions != b.Prompt.Actions {
			return nil, fmt.Errorf("lianglai: S=%d, A=%d, the block is for S=%d, A=%d",
				t.States, t.Actions, b.Prompt.States, b.Prompt.Actions)
		}
		increment := func(l *baseline.ActorCritic, window []baseline.Transition, pi *mat.Dense) (dTheta, dW []float64) {
			var weights []float64
			for _, x := range window {
				if generative {
					weights = append(weights, float64(t.Actions)*pi.At(x.State, x.Action)/float64(len(window)))
				}
			}
			return b.increment(l, window, weights, pi)
		}
		return baseline.Stepping(t, start, features, root, increment)
	}}
}

// informed are the trained block's controllers with equal information. Its free numbers are both step
// sizes and the start.
var informed = method.Informed{
	method.ByModel: controllerOf, method.ByGenerative: controllerOf, method.ByWindow: controllerOf,
}

// controllerOf returns the trained block in any condition.
func controllerOf(c method.Case) (control.Controller, error) {
	d, err := c.Deploy(name, "tuned")
	if err != nil {
		return nil, err
	}
	steps := baseline.StepSizes{Alpha: c.Values[0], Beta: c.Values[1]}
	block, err := d.(*Deployment).LiangLai.Training.block(c.Models, steps)
	if err != nil {
		return nil, err
	}
	start := method.StartOf(c.Values[2])
	if c.Information == method.ByModel {
		return expected{block, start}, nil
	}
	return block.on(c.Source(), c.Information == method.ByGenerative, start, baseline.OneHot, c.Root), nil
}

// expected is the block with the expected update in place of its window: every pair and
// successor with the weight π(a|s)P(s'|s,a)/S. It knows Q^{π₀} at the beginning, like all
// that have the model, so w starts at V^{π₀}.
type expected struct {
	*Block
	start baseline.Start
}

// Run implements control.Controller.
func (e expected) Run(problems []mdp.Problem, rounds int) ([]control.Trajectory, error) {
	trajectories := make([]control.Trajectory, len(problems))
	for i, p := range problems {
		m := p.MDP
		l, err := e.start.Learner(p.Pi0)
		if err != nil {
			return nil, err
		}
		pi := l.Policy()
		q, err := m.PolicyValue(pi)
		if err != nil {
			return nil, err
		}
		l.W = m.StateValues(pi, q)
		trajectories[i].Policies = []*mat.Dense{p.Pi0}
		for range rounds {
			var all []baseline.Transition
			var weights []float64
			for s := range m.States() {
				for a, chosen := range pi.RawRowView(s) {
					reward := m.Reward(s, a)
					for next, probability := range m.Next(s, a) {
						all = append(all, baseline.Transition{State: s, Action: a, Reward: reward, Next: next})
						weights = append(weights, chosen*probability/float64(m.States()))
					}
				}
			}
			if err := l.Step(e.increment(l, all, weights, pi)); err != nil {
				return nil, err
			}
			pi = l.Policy()
			trajectories[i].Policies = append(trajectories[i].Policies, pi)
		}
	}
	return trajectories, nil
}
