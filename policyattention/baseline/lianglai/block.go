// Package lianglai is the baseline of Liang and Lai (arXiv 2605.05755): one
// linear self-attention layer that carries out a step of actor–critic on the
// transitions in its prompt.
//
// The package holds the analytic parameters, the training of a block from random
// parameters by imitation of the analytic one, and the controller that deploys a
// block.
package lianglai

import (
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/baseline"
)

// Block is a linear self-attention layer with the parameters P and V [d, d], on a prompt of width d.
//
// On context columns z_1, …, z_n and a query column q it adds to the query
//
//	(1/n) V (Σ_i z_i z_iᵀ) P q,
//
// that is, attention with the scores z_iᵀ P q, the values V z_i and no softmax.
// The query is not a key of itself.
type Block struct {
	Prompt *ActorCriticPrompt
	P, V   *mat.Dense
}

// Attend returns what the layer adds to the query [d]. The context is [n, d],
// one prompt column a row. It panics when a shape is another.
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

// field is a named range of coordinates of a prompt column.
type field struct{ from, size int }

func (f field) of(column []float64) []float64 { return column[f.from : f.from+f.size] }

// ActorCriticPrompt is the layout of the actor–critic prompt. A context column
// holds ∇log π(a|s), φ(s), φ(s′) and r of one transition, the query column
// holds θ, w and 1; every other coordinate is zero. φ is one-hot. A column has 2SA + 3S + 2 entries.
type ActorCriticPrompt struct {
	States, Actions int

	score       field // ∇log π(a|s) [S·A]
	state, next field // φ(s), φ(s′) [S]
	reward      field // r [1]
	theta       field // θ [S·A]
	w           field // w [S]
	one         field // 1
	width       int
}

// NewActorCriticPrompt returns the layout for S ≥ 1 states and A ≥ 1 actions.
func NewActorCriticPrompt(states, actions int) *ActorCriticPrompt {
	p := &ActorCriticPrompt{States: states, Actions: actions}
	for _, x := range []struct {
		of   *field
		size int
	}{
		{&p.score, states * actions}, {&p.state, states}, {&p.next, states}, {&p.reward, 1},
		{&p.theta, states * actions}, {&p.w, states}, {&p.one, 1},
	} {
		*x.of = field{p.width, x.size}
		p.width += x.size
	}
	return p
}

// Context returns the context columns [n, 2SA+3S+2] of a window that was drawn
// under pi [S, A].
func (p *ActorCriticPrompt) Context(window []baseline.Transition, pi *mat.Dense) *mat.Dense {
	context := mat.NewDense(len(window), p.width, nil)
	for i, t := range window {
		column := context.RawRowView(i)
		score := p.score.of(column)[t.State*p.Actions : (t.State+1)*p.Actions]
		for b, prob := range pi.RawRowView(t.State) {
			score[b] = -prob
		}
		score[t.Action]++
		p.state.of(column)[t.State] = 1
		p.next.of(column)[t.Next] = 1
		p.reward.of(column)[0] = t.Reward
	}
	return context
}

// Query returns the query column [2SA+3S+2] of a learner.
func (p *ActorCriticPrompt) Query(l *baseline.ActorCritic) []float64 {
	column := make([]float64, p.width)
	copy(p.theta.of(column), l.Theta.RawMatrix().Data)
	copy(p.w.of(column), l.W)
	p.one.of(column)[0] = 1
	return column
}

// Analytic returns the block whose increments are those of
// [baseline.ActorCritic.Increment].
func (p *ActorCriticPrompt) Analytic(gamma float64, steps baseline.StepSizes) *Block {
	b := &Block{p, mat.NewDense(p.width, p.width, nil), mat.NewDense(p.width, p.width, nil)}
	// Score of a transition: z_iᵀ P q = r + γ w(s′) − w(s) = δ_i.
	b.P.Set(p.reward.from, p.one.from, 1)
	for s := range p.States {
		b.P.Set(p.next.from+s, p.w.from+s, gamma)
		b.P.Set(p.state.from+s, p.w.from+s, -1)
	}
	// Value of a transition: α ∇log π in the place of θ, β φ(s) in that of w.
	for i := range p.score.size {
		b.V.Set(p.theta.from+i, p.score.from+i, steps.Alpha)
	}
	for s := range p.States {
		b.V.Set(p.w.from+s, p.state.from+s, steps.Beta)
	}
	return b
}

// WithSteps returns a copy of a block that was made for the step sizes α = β =
// 1, with its increments Δθ multiplied by α and Δw by β. The update is linear in
// the step sizes, so one trained block serves all of them.
func (b *Block) WithSteps(steps baseline.StepSizes) *Block {
	scaled := &Block{b.Prompt, mat.DenseCopyOf(b.P), mat.DenseCopyOf(b.V)}
	for _, part := range []struct {
		rows field
		step float64
	}{{b.Prompt.theta, steps.Alpha}, {b.Prompt.w, steps.Beta}} {
		for i := range part.rows.size {
			row := scaled.V.RawRowView(part.rows.from + i)
			for j := range row {
				row[j] *= part.step
			}
		}
	}
	return scaled
}
