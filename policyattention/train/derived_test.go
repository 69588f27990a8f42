package train_test

import (
	"testing"

	"icrl/internal/testkit"
	"icrl/policyattention/anymdp"
	"icrl/policyattention/anymdp/critic"
	"icrl/policyattention/train"
)

// Package engine makes the steps of a job that its graph would make: five losses, of
// which all but the first depend on the gradients, up to float32 rounding. The objectives of
// package train are in TestEngineSteps.
func TestObjectivesInGo(t *testing.T) {
	b := testkit.Backend(t)
	actor := anymdp.Standard(1)
	actor.Actions, actor.Examples, actor.Batch, actor.Steps = 4, 8, 4, 10
	alone := actor
	alone.Attention = train.None
	memory := critic.Standard(7)
	memory.Problems, memory.Batch, memory.Steps = 6, 8, 10
	for name, of := range map[string]struct {
		job       func() (train.Job, error)
		tolerance float64
	}{
		// Its logits are multiples of the outputs: float32 is seen in the fifth digit of its first loss. A
		// step moves it in the second.
		"any":    {actor.Job, 5e-4},
		"alone":  {alone.Job, 5e-4},
		"critic": {memory.Job, 1e-5},
	} {
		job := testkit.Must(of.job())(t)
		var losses [2][]float32
		for i := range losses {
			s := testkit.Must(train.NewSession(b, job))(t)
			losses[i] = testkit.Must(s.Steps(5))(t)
			s.Close()
			job.Model = struct{ train.Trainable }{job.Model} // GoMLX takes the gradients
		}
		testkit.Near(t, name+": losses in Go and by the graph", losses[0], losses[1], of.tolerance, 0)
	}
}
