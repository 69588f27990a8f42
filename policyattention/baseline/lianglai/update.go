package lianglai

import (
	"math"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
)

// update is a trained block and its prompt.
type update struct {
	prompt *ActorCriticPrompt
	block  *Block
}

// update returns the trained block, with step sizes, as an update from any transitions.
func (d *Deployment) update(m *method.Models, steps baseline.StepSizes) (*update, error) {
	training := d.LiangLai.Training
	trained, err := training.load(m)
	if err != nil {
		return nil, err
	}
	prompt, err := NewActorCriticPrompt(training.States, training.Actions)
	if err != nil {
		return nil, err
	}
	return &update{prompt, prompt.WithSteps(trained.Block, steps)}, nil
}

// learned adds to l what transitions under pi [S, A] with the given weights, whose sum
// stands for one window, make of it; nil are equal weights. It charges meter. The block is
// linear in z zᵀ over its columns z, so a weight is a factor √(n·weight) of a column.
func (u *update) learned(l *baseline.ActorCritic, window []baseline.Transition, weights []float64, pi *mat.Dense, meter *mdp.Meter) error {
	context, n := u.prompt.Context(window, pi), len(window)
	for i, w := range weights {
		row, factor := context.RawRowView(i), math.Sqrt(float64(n)*w)
		for j := range row {
			row[j] *= factor
		}
	}
	d := u.prompt.Width()
	// Two products with a matrix [d, d], two with the columns, a division; the columns; the
	// sums with θ and w.
	meter.Charge(4*d*d + 4*n*d + d + n*d + len(l.Theta.RawMatrix().Data) + len(l.W))
	return l.Step(u.prompt.Increment(u.block.Attend(context, u.prompt.Query(l))))
}
