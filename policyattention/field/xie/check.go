package xie

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/field/evidence"
	"icrl/policyattention/field/mrp"
	"icrl/policyattention/seed"
)

// Check is a comparison of layers with the algorithm, on walks of independent standard normal
// features and rewards, with weights W of standard deviation 1/√d.
type Check struct {
	D, N, Layers, Trials int
	Gamma, Alpha         float64
	Seed                 uint64
}

// StandardCheck has the sizes of Wang et al.'s.
func StandardCheck(root uint64) Check {
	return Check{D: 3, N: 100, Layers: 40, Trials: 30, Gamma: .9, Alpha: 1, Seed: root}
}

// LayerError is what Check finds for one form at one depth, over its trials.
type LayerError struct {
	Form  Form `json:"form"`
	Layer int  `json:"layer"` // from 1
	// OneStep is the largest error of any column's value, and of any successor's, when the
	// layer starts from the algorithm's own values, in units of Tolerance.
	OneStep float64 `json:"one_step" verify:"rounding"`
	// Free is the largest error of any value when nothing is corrected on the way, and
	// Value the largest value.
	Free  float64 `json:"free" verify:"rounding"`
	Value float64 `json:"value"`
}

// Tolerance bounds the rounding of one layer and one step in units of the numbers that are
// added: the largest |v| and the largest sum of the parts of an error δ in absolute value.
// A weight of the kernel is right to (d² + n + 8 + 2·largest score) units in the last place
// (the score's rounding is an absolute error of its exponential; sum; quotient), a sum of n
// of them to n more, and both sides have it.
func Tolerance(d, n int, score float64) float64 {
	return 2 * (float64(d*d+2*n+8) + 2*score*float64(d*d)) * 0x1p-53
}

// Run compares both forms: for each its layers from 1.
func (c Check) Run() ([]LayerError, error) {
	if c.D < 1 || c.N < 1 {
		return nil, fmt.Errorf("xie: %d features and %d transitions, want at least one of each", c.D, c.N)
	}
	var all []LayerError
	for _, form := range []Form{TwoHeads, OneHead} {
		rows, err := evidence.Layers(c.Layers, c.Trials, func(trial int, rows []LayerError) error { return c.trial(form, trial, rows) })
		if err != nil {
			return nil, fmt.Errorf("xie: %w", err)
		}
		for i := range rows {
			rows[i].Form, rows[i].Layer = form, i+1
		}
		all = append(all, rows...)
	}
	return all, nil
}

// trial raises rows to one walk's errors.
func (c Check) trial(form Form, trial int, rows []LayerError) error {
	rng := seed.New(c.Seed, "xie", "check", trial)
	context := &Context{X: mrp.Normal(c.D, c.N+1, 1, rng), R: mrp.Normal(1, c.N, 1, rng).RawRowView(0)}
	spec := Spec{Form: form, D: c.D, N: c.N, Gamma: c.Gamma, Alpha: c.Alpha, W: mrp.Normal(c.D, c.D, 1/math.Sqrt(float64(c.D)), rng)}
	layer, err := spec.Layer()
	if err != nil {
		return err
	}
	v := make([]float64, c.N+1)
	z, err := spec.Prompt(context, v)
	if err != nil {
		return err
	}
	for l := range rows {
		next, err := spec.Step(context, v)
		if err != nil {
			return err
		}
		off, err := spec.oneStep(layer, context, v, next)
		if err != nil {
			return err
		}
		rows[l].OneStep = max(rows[l].OneStep, off)
		if z, err = layer.Apply(z); err != nil {
			return err
		}
		v = next
		for j, want := range v {
			rows[l].Free = max(rows[l].Free, math.Abs(z.At(spec.current(), j)-want))
			rows[l].Value = max(rows[l].Value, math.Abs(want))
		}
	}
	return nil
}

// oneStep returns the largest error of the layer from the algorithm's values v against its
// next ones, in units of the tolerance.
func (s Spec) oneStep(layer *Layer, c *Context, v, next []float64) (float64, error) {
	from, err := s.Prompt(c, v)
	if err != nil {
		return 0, err
	}
	want, err := s.Prompt(c, next)
	if err != nil {
		return 0, err
	}
	got, err := layer.Apply(from)
	if err != nil {
		return 0, err
	}
	size := 0.
	for _, values := range [][]float64{v, next} {
		size = max(size, floats.Norm(values, math.Inf(1)))
	}
	size += math.Abs(s.Alpha) * (floats.Norm(c.R, math.Inf(1)) + (1+s.Gamma)*floats.Norm(v, math.Inf(1)))
	score := 0.
	for j := range s.N + 1 {
		for k := range s.N {
			score = max(score, math.Abs(s.similarity(c.X, j, k)))
		}
	}
	var difference mat.Dense
	difference.Sub(got, want)
	difference.Set(s.successor(), s.N, 0) // the query has no successor and nothing reads this
	return floats.Norm(difference.RawMatrix().Data, math.Inf(1)) / (size * Tolerance(s.D, s.N, score)), nil
}
