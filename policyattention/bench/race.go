package bench

import (
	"fmt"

	"github.com/gomlx/compute"

	"icrl/policyattention/method"
	"icrl/policyattention/train"
	"icrl/policyattention/transformer"
)

// raceRow is an optimizer step of a method that says how it is raced. Its number is its loss.
type raceRow struct {
	*method.Race
	name string
	job  train.Job
}

// race returns the row of a method. It panics where the method's own training is not valid, or
// not of a network of package transformer.
func race(m method.Method) Row {
	run, err := m.Race.Training.In("", nil)
	if err != nil {
		panic(fmt.Errorf("bench: %s: %w", m.Label, err))
	}
	return raceRow{m.Race, fmt.Sprintf("%s S=%d", m.Label, m.Race.States), run.Job}
}

func (r raceRow) Name() string { return r.name }

func (r raceRow) network() transformer.Config { return r.job.Model.(train.Transformer).Network }

func (r raceRow) FLOPs() float64 {
	linear, attention := perToken(r.network(), r.job.Tokens)
	return 3 * float64(r.job.Examples*r.job.Tokens) * (linear + attention)
}

func (r raceRow) Parity() int { return r.Race.Parity }

func (r raceRow) Scan() int { return r.Race.Scan }

func (r raceRow) Identities() int { return 1 }

func (r raceRow) Export(path string, steps int) error { return r.job.Export(path, r.Arrays, steps) }

func (r raceRow) Start(backend compute.Backend) (Session, error) {
	s, err := train.NewJobSession(backend, train.Execution{}, r.job)
	return trainingSession{s}, err
}
