package wang

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/gomlx/compute"

	"icrl/policyattention/field/evidence"
)

// Evidence is everything that is measured of the method. All of it but the trained weights is
// made again by verification.
type Evidence struct {
	Seed           uint64       `json:"seed"`
	Check          []LayerError `json:"check"`
	Preconditioned []LayerError `json:"preconditioned"` // with random preconditioners for all
	Demo           []DemoError  `json:"demo"`
	Weights        []WeightRow  `json:"weights"`
	Likeness       []Likeness   `json:"likeness"`
	Published      []Comparison `json:"published"`
	Departures     []Departure  `json:"departures"`
}

// Comparison is a number of the paper's figures beside ours.
type Comparison struct {
	Quantity  string  `json:"quantity"`
	Published float64 `json:"published"`
	Reading   float64 `json:"reading"`            // the figure was read to ± this
	Theirs    float64 `json:"published_standard"` // standard error of the published number
	Ours      float64 `json:"ours"`
	Standard  float64 `json:"standard"` // standard error of ours
	Count     int     `json:"count"`    // of seeds or processes
	// Agrees says that they differ by at most Reading and two standard errors of the
	// difference.
	Agrees bool `json:"agrees"`
}

func compare(c Comparison) Comparison {
	c.Agrees = math.Abs(c.Ours-c.Published) <= c.Reading+2*math.Hypot(c.Theirs, c.Standard)
	return c
}

// plan is how much of everything the evidence has.
type plan struct {
	seed   uint64
	runs   []Run
	trials int // of a check
	loops  int // of the demonstration
	chains int // of each measure of likeness
}

// standard is the plan of the evidence that is stored; tests have smaller ones.
func standard() plan { return plan{seed: 2405, runs: Runs(), trials: 30, loops: 3000, chains: 32} }

// weights returns the mean over seeds of a number of the weight rows, its standard error and
// the number of seeds; layers of one network are averaged.
func (e *Evidence) weights(kind string, processes int, of func(WeightRow) float64) (mean, standard float64, count int) {
	bySeed := map[uint64][]float64{}
	for _, r := range e.Weights {
		if r.Kind == kind && r.Processes == processes {
			bySeed[r.Seed] = append(bySeed[r.Seed], of(r))
		}
	}
	var values []float64
	for _, root := range slices.Sorted(maps.Keys(bySeed)) {
		m, _ := evidence.Moments(bySeed[root])
		values = append(values, m)
	}
	mean, standard = evidence.Moments(values)
	return mean, standard, len(values)
}

// likeness is weights for the rows of likeness.
func (e *Evidence) likeness(kind string, processes int, of func(Likeness) float64) (mean, standard float64, count int) {
	var values []float64
	for _, r := range e.Likeness {
		if r.Kind == kind && r.Processes == processes {
			values = append(values, of(r))
		}
	}
	mean, standard = evidence.Moments(values)
	return mean, standard, len(values)
}

// published compares with the figures in the public repository: P and Q after 4,000 processes
// with 30 seeds, whose bands of a standard error are read off too; the demonstration of 300
// loops. Cosines and value difference are theirs on the chain just trained on, ours on chains
// that were not trained on.
func (e *Evidence) published(loops int) []Comparison {
	var all []Comparison
	for _, r := range e.Demo {
		published := PublishedErrors()[r.Length]
		all = append(all, compare(Comparison{
			Quantity: fmt.Sprintf("demonstration: squared error at n = %d", r.Length), Published: published, Reading: .05 * published,
			Theirs: r.Standard * math.Sqrt(float64(loops)/300), Ours: r.Mean, Standard: r.Standard, Count: loops,
		}))
	}
	const kind, processes = "linear-looped", 4000
	for _, w := range []struct {
		quantity                   string
		published, reading, theirs float64
		of                         func(WeightRow) float64
	}{
		{"P[−1, −1]", 1.6, .02, .15, func(r WeightRow) float64 { return r.Corner }},
		{"mean |·| of P's others", .12, .01, .01, func(r WeightRow) float64 { return r.OthersP }},
		{"trace of Q[:d, :d]", -4.3, .1, .38, func(r WeightRow) float64 { return r.Left }},
		{"trace of Q[:d, d:2d]", 3.3, .1, .34, func(r WeightRow) float64 { return r.Right }},
		{"the code's mean of Q's others", .2, .02, .02, func(r WeightRow) float64 { return r.SignedQ }},
	} {
		mean, standard, count := e.weights(kind, processes, w.of)
		all = append(all, compare(Comparison{Quantity: w.quantity, Published: w.published, Reading: w.reading, Theirs: w.theirs, Ours: mean, Standard: standard, Count: count}))
	}
	for _, l := range []struct {
		quantity                   string
		published, reading, theirs float64
		of                         func(Likeness) float64
	}{
		{"cosine of implicit weights", .93, .02, .01, func(l Likeness) float64 { return l.Implicit }},
		{"cosine of sensitivities", .93, .02, .01, func(l Likeness) float64 { return l.Sensitivity }},
		{"value difference", .02, .01, .005, func(l Likeness) float64 { return l.ValueDifference }},
	} {
		mean, standard, count := e.likeness(kind, processes, l.of)
		all = append(all, compare(Comparison{Quantity: l.quantity, Published: l.published, Reading: l.reading, Theirs: l.theirs, Ours: mean, Standard: standard, Count: count}))
	}
	return all
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
	e := &Evidence{Seed: p.seed}
	check := PublishedCheck(p.seed)
	check.Trials = p.trials
	var err error
	if e.Check, err = check.Run(); err != nil {
		return nil, err
	}
	check.Preconditioned = true
	if e.Preconditioned, err = check.Run(); err != nil {
		return nil, err
	}
	if e.Demo, err = PublishedDemo(p.seed, p.loops).Run(); err != nil {
		return nil, err
	}
	err = evidence.Each(dir, p.runs, Read, func(t *Trained) Training { return t.Training }, func(r Run, t *Trained) error {
		e.Weights = append(e.Weights, t.WeightRows(r.Kind)...)
		for i := range t.After {
			l, err := t.Likeness(r.Kind, i, p.seed, p.chains)
			if err != nil {
				return err
			}
			e.Likeness = append(e.Likeness, l)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	e.Published = e.published(p.loops)
	e.Departures, err = departures(e, p.seed)
	return e, err
}

// ReadEvidence reads what Make stored in dir.
func ReadEvidence(dir string) (*Evidence, error) { return evidence.Read[Evidence](dir) }

// Verify makes the evidence in dir again from nothing but the trained weights there and
// returns what differs, and each layer of a construction that is not within the tolerance.
func Verify(dir string) ([]string, error) { return standard().verify(dir) }

func (p plan) verify(dir string) ([]string, error) {
	return evidence.Verify(dir, p.measure, (*Evidence).broken)
}

// broken lists the layers of constructions that are not within the tolerance.
func (e *Evidence) broken() (found []string) {
	for _, r := range slices.Concat(e.Check, e.Preconditioned) {
		if !(r.OneStep <= 1) {
			found = append(found, fmt.Sprintf("%s, layer %d: one-step error is %.3g tolerances", r.Algorithm, r.Layer, r.OneStep))
		}
	}
	return found
}
