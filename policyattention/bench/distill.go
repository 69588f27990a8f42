package bench

import (
	"fmt"

	"github.com/gomlx/compute"

	"icrl/policyattention/baseline/distill"
)

// distillation is the row of Algorithm Distillation, by the paper's recipe at S = 8.
func distillation() Row { return distillRow{distill.Paper(1, 8)} }

// distillRow is an optimizer step of Algorithm Distillation, whose number is its loss. It
// takes seconds, and gigabytes in some programs, so that a few steps and one run have to do.
type distillRow struct{ distill.Config }

func (r distillRow) Name() string { return fmt.Sprintf("Algorithm Distillation S=%d", r.States) }

func (r distillRow) FLOPs() float64 {
	linear, attention := perToken(r.Network(), r.Context)
	return 3 * float64(r.Batch*r.Context) * (linear + attention)
}

func (r distillRow) Parity() int { return 6 }

func (r distillRow) Scan() int { return 2 }

func (r distillRow) Identities() int { return 1 }

func (r distillRow) Start(backend compute.Backend) (Session, error) {
	s, err := r.NewSession(backend)
	return trainingSession{s}, err
}
