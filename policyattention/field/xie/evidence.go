package xie

import (
	"context"
	"fmt"

	"github.com/gomlx/compute"

	"icrl/policyattention/field/evidence"
)

// Evidence is everything that is measured of the method. All of it but the trained weights is
// made again by verification.
type Evidence struct {
	Seed        uint64        `json:"seed"`
	Check       []LayerError  `json:"check"`
	Studies     []Study       `json:"studies"`
	Contraction []Contraction `json:"contraction"`
	Likeness    []Likeness    `json:"likeness"`
}

// plan is how much of everything the evidence has.
type plan struct {
	seed    uint64
	runs    []Run
	studies []Study
	trials  int // of the check
	chains  int // of each measure of likeness
}

// standard is the plan of the evidence that is stored; tests have smaller ones.
func standard() plan {
	return plan{seed: 2605, runs: Runs(), studies: Studies(2605), trials: 30, chains: 64}
}

// Make trains in dir what is missing of Runs, measures everything and stores it there. Progress
// gets the name of each run before it begins; it may be nil.
func Make(ctx context.Context, on compute.Backend, dir string, progress func(name string)) (*Evidence, error) {
	return standard().make(ctx, on, dir, progress)
}

func (p plan) make(ctx context.Context, on compute.Backend, dir string, progress func(name string)) (*Evidence, error) {
	return evidence.Make(ctx, on, dir, p.runs, Training.Run, progress, p.measure)
}

// measure makes the evidence from the trained weights in dir.
func (p plan) measure(dir string) (*Evidence, error) {
	e := &Evidence{Seed: p.seed, Studies: p.studies}
	check := StandardCheck(p.seed)
	check.Trials = p.trials
	var err error
	if e.Check, err = check.Run(); err != nil {
		return nil, err
	}
	for _, s := range e.Studies {
		rows, err := s.Run()
		if err != nil {
			return nil, err
		}
		e.Contraction = append(e.Contraction, rows...)
	}
	err = evidence.Each(dir, p.runs, Read, func(t *Trained) Training { return t.Training }, func(r Run, t *Trained) error {
		for i := range t.After {
			l, err := t.Likeness(r.Kind, i, p.seed, p.chains)
			if err != nil {
				return err
			}
			e.Likeness = append(e.Likeness, l)
		}
		return nil
	})
	return e, err
}

// ReadEvidence reads what Make stored in dir.
func ReadEvidence(dir string) (*Evidence, error) { return evidence.Read[Evidence](dir) }

// Verify makes the evidence in dir again from nothing but the trained weights there and
// returns what differs, each layer of a construction that is not within the tolerance, and
// each bound of the theorem that is broken in the limit of long walks.
func Verify(dir string) ([]string, error) { return standard().verify(dir) }

func (p plan) verify(dir string) ([]string, error) {
	return evidence.Verify(dir, p.measure, (*Evidence).broken)
}

// broken lists the layers of constructions that are not within the tolerance, and bounds of the
// theorem that do not hold.
func (e *Evidence) broken() (found []string) {
	for _, r := range e.Check {
		if !(r.OneStep <= 1) {
			found = append(found, fmt.Sprintf("%s, layer %d: one-step error is %.3g tolerances", r.Form, r.Layer, r.OneStep))
		}
	}
	for _, r := range e.Contraction {
		if r.N == 0 && !(r.Worst <= 1+1e-9) {
			found = append(found, fmt.Sprintf("γ = %v, C = %v: %v times the bound after %d layers", r.Gamma, r.Margin, r.Worst, r.Layers))
		}
	}
	return found
}
