package wang

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/field/evidence"
	"icrl/policyattention/field/mrp"
	"icrl/policyattention/seed"
)

// Check is a comparison of layers with the algorithm they are built for, on contexts of
// independent standard normal features and rewards, as in the public code's verify.py
// (d = 3, n = 100, 40 layers, 30 trials, γ = .9, λ = .5).
type Check struct {
	D, N, Layers, Trials int
	Gamma, Lambda        float64
	Seed                 uint64
	// Preconditioned draws the preconditioner of every layer from N(0, 1) for all
	// algorithms, not for average-reward TD alone as the public code does.
	Preconditioned bool
}

// PublishedCheck is that of the public code.
func PublishedCheck(root uint64) Check {
	return Check{D: 3, N: 100, Layers: 40, Trials: 30, Gamma: .9, Lambda: .5, Seed: root}
}

// LayerError is what Check finds for one algorithm at one depth, over its trials.
type LayerError struct {
	Algorithm Algorithm `json:"algorithm"`
	Layer     int       `json:"layer"` // from 1
	// OneStep is the largest error of the layer's last row when it starts from the
	// algorithm's own weights, in units of Tolerance: at most 1 if the layer is the step.
	OneStep float64 `json:"one_step" verify:"rounding"`
	// Free is the mean error of the query's value when nothing is corrected on the
	// way.
	Free float64 `json:"free" verify:"rounding"`
	// Value is the mean size of the algorithm's value: where it grows, Free grows
	// with it, and FreeRelative, the mean of error over size, says by how much more.
	Value        float64 `json:"value"`
	FreeRelative float64 `json:"free_relative" verify:"rounding"`
}

// LogFree is the natural logarithm of Free, what the paper's figure shows.
func (e LayerError) LogFree() float64 { return math.Log(e.Free) }

// Tolerance bounds the rounding of one layer in units of the numbers that are added: the sum
// of the absolute values of all terms of an entry, the products of absolute values in place
// of products, times (n + 4d + 16) units in the last place. It is the classical bound for
// sums of products, (number of operations on the way of a term) · 2⁻⁵³, of layer and
// algorithm together (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1).
func Tolerance(d, n int) float64 { return float64(2*(n+4*d+16)) * 0x1p-53 }

// Run compares all algorithms: for each its layers from 1.
func (c Check) Run() ([]LayerError, error) {
	if !(c.Gamma >= 0 && c.Gamma < 1) {
		return nil, fmt.Errorf("wang: discount is %v, want 0 ≤ γ < 1", c.Gamma)
	}
	if c.D < 1 || c.N < 1 {
		return nil, fmt.Errorf("wang: %d features and %d transitions, want at least one of each", c.D, c.N)
	}
	var all []LayerError
	for _, a := range Algorithms() {
		rows, err := evidence.Layers(c.Layers, c.Trials, func(trial int, rows []LayerError) error { return c.trial(a, trial, rows) })
		if err != nil {
			return nil, fmt.Errorf("wang: %w", err)
		}
		for i := range rows {
			rows[i].Algorithm, rows[i].Layer = a, i+1
			for _, mean := range []*float64{&rows[i].Free, &rows[i].Value, &rows[i].FreeRelative} {
				*mean /= float64(c.Trials)
			}
		}
		all = append(all, rows...)
	}
	return all, nil
}

// trial adds one context's errors to rows.
func (c Check) trial(a Algorithm, trial int, rows []LayerError) error {
	rng := seed.New(c.Seed, "wang", "check", trial)
	gamma := c.Gamma
	if a == AverageReward {
		gamma = 1
	}
	context := normalContext(c.D, c.N, gamma, rng)
	spec := Spec{Algorithm: a, D: c.D, N: c.N, Queries: 1, Alpha: 1}
	if a == TDLambda {
		spec.Trace = c.Lambda
	}
	preconditioner := seed.New(c.Seed, "wang", "check", trial, "preconditioner", string(a))
	w := make([]float64, c.D)
	z, err := context.Prompt(spec.extra())
	if err != nil {
		return err
	}
	for l := range rows {
		if c.Preconditioned || a == AverageReward {
			spec.C = mrp.Normal(c.D, c.D, 1, preconditioner)
		}
		layer, err := spec.Layer()
		if err != nil {
			return err
		}
		next, err := spec.Step(context, w)
		if err != nil {
			return err
		}
		off, err := oneStep(spec, layer, context, w, next)
		if err != nil {
			return err
		}
		rows[l].OneStep = max(rows[l].OneStep, off)
		if z, err = layer.Apply(z); err != nil {
			return err
		}
		values, err := spec.Values(z)
		if err != nil {
			return err
		}
		w = next
		value := floats.Dot(w, column(context.Queries, 0))
		free := math.Abs(values[0] - value)
		rows[l].Free += free
		rows[l].Value += math.Abs(value)
		rows[l].FreeRelative += free / math.Abs(value)
	}
	return nil
}

// state returns the prompt whose last row is what the algorithm's weights w make it: the
// error δ_k of each transition and the query's value with the sign of spec. For
// average-reward TD it is −wᵀ(φ′ − φ), the part of the error that depends on w.
func state(s Spec, c *Context, w []float64) (*mat.Dense, error) {
	z, err := c.Prompt(s.extra())
	if err != nil {
		return nil, err
	}
	rows, _ := z.Dims()
	for k, r := range c.R {
		drift := floats.Dot(w, column(c.Next, k)) - floats.Dot(w, column(c.Phi, k))
		if s.Algorithm == AverageReward {
			z.Set(rows-1, k, -drift)
		} else {
			z.Set(rows-1, k, r+drift)
		}
	}
	for k := range s.Queries {
		z.Set(rows-1, s.N+k, s.sign()*floats.Dot(w, column(c.Queries, k)))
	}
	return z, nil
}

// oneStep returns the largest error of a layer's last row from the algorithm's weights w
// against its next ones, in units of the tolerance.
func oneStep(s Spec, layer *Layer, c *Context, w, next []float64) (float64, error) {
	from, err := state(s, c, w)
	if err != nil {
		return 0, err
	}
	want, err := state(s, c, next)
	if err != nil {
		return 0, err
	}
	got, err := layer.Apply(from)
	if err != nil {
		return 0, err
	}
	scale, err := layer.magnitude(from)
	if err != nil {
		return 0, err
	}
	rows, cols := got.Dims()
	worst := 0.0
	for k := range cols {
		// The weights enter by way of terms as large as w itself.
		size := scale.At(rows-1, k) + floats.Norm(w, 1) + math.Abs(want.At(rows-1, k))
		worst = max(worst, math.Abs(got.At(rows-1, k)-want.At(rows-1, k))/(size*Tolerance(s.D, s.N)))
	}
	return worst, nil
}

// magnitude is Apply with the absolute value of every number in place of the number.
func (l *Layer) magnitude(z *mat.Dense) (*mat.Dense, error) {
	abs := func(m *mat.Dense) *mat.Dense {
		var out mat.Dense
		out.Apply(func(_, _ int, v float64) float64 { return math.Abs(v) }, m)
		return &out
	}
	positive := &Layer{Scale: math.Abs(l.Scale)}
	for _, h := range l.Heads {
		positive.Heads = append(positive.Heads, Head{abs(h.P), abs(h.Q), abs(h.Mix)})
	}
	return positive.Apply(abs(z))
}

// normalContext draws independent standard normal features and rewards.
func normalContext(d, n int, gamma float64, rng *rand.Rand) *Context {
	c := &Context{Phi: mrp.Normal(d, n, 1, rng), Next: mrp.Normal(d, n, 1, rng), R: make([]float64, n), Queries: mrp.Normal(d, 1, 1, rng)}
	c.Next.Scale(gamma, c.Next)
	for i := range c.R {
		c.R[i] = rng.NormFloat64()
	}
	return c
}
