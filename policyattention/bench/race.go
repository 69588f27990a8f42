package bench

import (
	"fmt"

	"github.com/gomlx/compute"

	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/method/all"
	"icrl/policyattention/train"
	"icrl/policyattention/transformer"
)

// Race says how the training of a network is timed beside programs in other languages.
type Race struct {
	Method, Recipe string
	Arrays         []string // what those programs call the arrays of the data
	// How many steps' losses are compared first, and how many steps a program makes in one call
	// that makes several.
	Steps, Calls int
}

// races are those of the baselines. The arrays are those of all histories on end, each
// [Histories·Length, 1]: previous actions (−1 for none), rewards, states and actions. Batches are
// where in them windows begin. A step takes seconds, and gigabytes in some programs, so that a few
// have to do.
var races = []Race{{
	Method: "algorithm-distillation", Recipe: "full", Arrays: []string{"previous", "reward", "state", "action"}, Steps: 6, Calls: 2,
}}

// raceRow is an optimizer step of a race. Its number is its loss.
type raceRow struct {
	Race
	name string
	job  train.Job
}

// row returns the row of a race at S = 8, nil where there is no such method. It panics where its
// training is not valid, or not of a network of package transformer.
func (r Race) row() Row {
	m, err := all.Methods.Find(r.Method)
	if err != nil {
		return nil
	}
	d, err := m.Deploy(method.Setting{Recipe: r.Recipe, States: 8, Actions: mdp.Actions, Identity: method.Identity{Model: 1}})
	var run train.Run
	if err == nil {
		run, err = d.Weights()[0].Training.(method.Shared).In("", nil)
	}
	if err != nil {
		panic(fmt.Errorf("bench: %s: %w", m.Label, err))
	}
	return raceRow{r, m.Label + " S=8", run.Job}
}

func (r raceRow) Name() string { return r.name }

func (r raceRow) network() transformer.Config { return r.job.Model.(train.Transformer).Network }

func (r raceRow) FLOPs() float64 {
	linear, attention := perToken(r.network(), r.job.Tokens)
	return 3 * float64(r.job.Examples*r.job.Tokens) * (linear + attention)
}

func (r raceRow) Parity() int { return r.Race.Steps }

func (r raceRow) Scan() int { return r.Race.Calls }

func (r raceRow) Identities() int { return 1 }

func (r raceRow) Export(path string, steps int) error { return r.job.Export(path, r.Arrays, steps) }

func (r raceRow) Start(backend compute.Backend) (Session, error) {
	s, err := train.NewJobSession(backend, train.Execution{}, r.job)
	return trainingSession{s}, err
}
