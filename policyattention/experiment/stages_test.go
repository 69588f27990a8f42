package experiment

import (
	"sync/atomic"
	"testing"

	"github.com/gomlx/gomlx/core/tensors"

	"icrl/internal/testkit"
	"icrl/policyattention/method"
	"icrl/policyattention/train"
)

// staged is a stage of one run.
type staged struct {
	train.Config
	batches *atomic.Int64 // drawn so far
}

func (c staged) In(dir string, progress func(train.Progress)) (train.Run, error) {
	r, err := c.Config.In(dir, progress)
	r.Job.Line, r.Job.Batches = "line", counted{r.Job.Batches, c.batches}
	return r, err
}

type counted struct {
	train.Batches
	n *atomic.Int64
}

func (c counted) Batch(step int) ([]*tensors.Tensor, error) {
	c.n.Add(1)
	return c.Batches.Batch(step)
}

// Stages that are asked for together, the last one first, are made in order, each from where the
// one before it ended.
func TestStagesInOrder(t *testing.T) {
	s := testkit.Must(Open(t.TempDir(), "smoke", "go"))(t)
	var n atomic.Int64
	stage := func(steps int) method.Training {
		c := train.Standard(train.Proximal, train.Plain(), 7, 3)
		c.Actions, c.MDPs, c.Examples, c.Batch, c.Steps, c.Snapshots = 2, 4, 20, 7, steps, nil
		c.Layers, c.Heads, c.Width, c.Hidden = 1, 2, 8, 8
		return staged{c, &n}
	}
	stages := []method.Training{stage(9), stage(3), stage(5)}
	testkit.Check(t, s.TrainTogether(t.Context(), stages))
	if n.Load() != 9 {
		t.Errorf("%d batches were drawn for 9 steps", n.Load())
	}
	for _, c := range stages {
		run := testkit.Must(s.FindTraining(c))(t)
		if losses := testkit.Must(run.Losses())(t); len(losses) != c.Budget() {
			t.Errorf("%d losses of %d steps", len(losses), c.Budget())
		}
	}
}
