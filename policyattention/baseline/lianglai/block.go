// Package lianglai is the baseline of Liang and Lai (arXiv 2605.05755): one linear self-attention layer that carries
// out a step of actor–critic on the transitions in its prompt.
//
// The package holds the training of a block by imitation of that step, and its controller.
package lianglai

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
)

// Block is a linear self-attention layer with the parameters P and V [d, d], on a prompt of width d.
//
// On context columns z_1, …, z_n and a query column q it adds to the query
//
//	(1/n) V (Σ_i z_i z_iᵀ) P q,
//
// that is, attention with the scores z_iᵀ P q, the values V z_i and no softmax. The query is not a key of itself.
type Block struct {
	Prompt *ActorCriticPrompt
	P, V   *mat.Dense
}

// Attend returns what the layer adds to the query [d] with a context [n, d]; it panics when a shape is another.
func (b *Block) Attend(context *mat.Dense, query []float64) []float64 {
	n, d := context.Dims()
	var pq, scores, mixed, out mat.VecDense
	pq.MulVec(b.P, mat.NewVecDense(d, query))
	scores.MulVec(context, &pq)
	mixed.MulVec(context.T(), &scores)
	out.MulVec(b.V, &mixed)
	out.ScaleVec(1/float64(n), &out)
	return out.RawVector().Data
}

// ActorCriticPrompt is a layout of 2SA + 3S + 2 numbers a column: that of a transition holds ∇log π(a|s), φ(s),
// φ(s′) and r, the query column θ, w and 1; all else is zero. φ is one-hot.
type ActorCriticPrompt struct {
	States, Actions int

	// Where in a column each begins.
	score       int // ∇log π(a|s) [S·A]
	state, next int // φ(s), φ(s′) [S]
	reward      int // r
	theta       int // θ [S·A]
	w           int // w [S]
	one         int // 1
	width       int
}

// NewActorCriticPrompt returns the layout for S ≥ 1 states and A ≥ 1 actions.
func NewActorCriticPrompt(states, actions int) *ActorCriticPrompt {
	p := &ActorCriticPrompt{States: states, Actions: actions}
	take := func(size int) (from int) {
		p.width += size
		return p.width - size
	}
	p.score, p.state, p.next, p.reward = take(states*actions), take(states), take(states), take(1)
	p.theta, p.w, p.one = take(states*actions), take(states), take(1)
	return p
}

// Context returns the context columns [n, 2SA+3S+2] of a window that was drawn under pi [S, A].
func (p *ActorCriticPrompt) Context(window []baseline.Transition, pi *mat.Dense) *mat.Dense {
	context := mat.NewDense(len(window), p.width, nil)
	for i, t := range window {
		column := context.RawRowView(i)
		score := column[p.score+t.State*p.Actions:]
		for b, prob := range pi.RawRowView(t.State) {
			score[b] = -prob
		}
		score[t.Action]++
		column[p.state+t.State], column[p.next+t.Next], column[p.reward] = 1, 1, t.Reward
	}
	return context
}

// WithSteps returns a copy of a block that was made for the step sizes α = β = 1, with its increments Δθ multiplied
// by α and Δw by β. The update is linear in the step sizes, so one trained block serves all of them.
func (b *Block) WithSteps(steps baseline.StepSizes) *Block {
	scaled := &Block{b.Prompt, mat.DenseCopyOf(b.P), mat.DenseCopyOf(b.V)}
	p, v := b.Prompt, scaled.V
	theta, w := v.Slice(p.theta, p.w, 0, p.width).(*mat.Dense), v.Slice(p.w, p.one, 0, p.width).(*mat.Dense)
	theta.Scale(steps.Alpha, theta)
	w.Scale(steps.Beta, w)
	return scaled
}

// increment returns what transitions under pi [S, A] with the given weights, whose sum stands for one window, add to
// θ and w of l [S·A + S]; nil are equal. A weight is a factor √(n·weight) of z: the block is linear in z zᵀ.
func (b *Block) increment(
	l *baseline.ActorCritic, window []baseline.Transition, weights []float64, pi *mat.Dense) []float64 {
	p, context, query := b.Prompt, b.Prompt.Context(window, pi), make([]float64, b.Prompt.width)
	for i, w := range weights {
		floats.Scale(math.Sqrt(float64(len(window))*w), context.RawRowView(i))
	}
	copy(query[p.theta:], l.Theta.RawMatrix().Data)
	copy(query[p.w:], l.W)
	query[p.one] = 1
	return b.Attend(context, query)[p.theta:p.one]
}

// on deploys the block, which has its step sizes, on a source of transitions. Each round passes the source's through
// the block once with the current θ and w as its query, and adds the increments. It starts as start says, with w = 0;
// the returned policy is softmax(θ). The update is an expectation under the policy, so generative transitions, whose
// actions are uniform, get the weights A·π(a|s)/n.
//
// Features are of the learner that the policy is returned from, and are drawn below root. The block is the same for
// all: its increments are linear in V, so features amount to a fixed matrix after it.
func (b *Block) on(source baseline.Source, generative bool, start baseline.Start, features baseline.Features,
	root uint64) control.Controller {
	return baseline.Agents{Source: source, New: func(t baseline.Told) (baseline.Agent, error) {
		if t.States != b.Prompt.States || t.Actions != b.Prompt.Actions {
			return nil, fmt.Errorf("lianglai: S=%d, A=%d, the block is for S=%d, A=%d",
				t.States, t.Actions, b.Prompt.States, b.Prompt.Actions)
		}
		increment := func(l *baseline.ActorCritic, window []baseline.Transition, pi *mat.Dense) []float64 {
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

// expected is the block with the expected update in place of its window: every pair and successor with the weight
// π(a|s)P(s'|s,a)/S. It knows Q^{π₀} at the beginning, like all that have the model, so w starts at V^{π₀}.
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
