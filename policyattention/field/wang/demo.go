package wang

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/field/mrp"
	"icrl/policyattention/seed"
)

// Demo is the demonstration of the paper's Figure 1: TD(0) in 15 layers on loops of 5 to 15
// states whose values the features represent, by length of context. The public code makes
// the updates directly; here the constructed layers make them.
type Demo struct {
	D, Layers, Processes int
	Alpha, Gamma         float64
	Lengths              []int // of the context
	Seed                 uint64
}

// PublishedDemo is that of the public code with this many loops; it has 300.
func PublishedDemo(root uint64, processes int) Demo {
	return Demo{D: 5, Layers: 15, Processes: processes, Alpha: .2, Gamma: .9, Lengths: []int{1, 3, 9, 17, 39}, Seed: root}
}

// PublishedErrors are the errors by length, read off the figure in the repository: ±5 %.
func PublishedErrors() map[int]float64 {
	return map[int]float64{1: 1.50, 3: .93, 9: .44, 17: .33, 39: .29}
}

// DemoError is the squared error of the values in one length of context, weighted by the
// stationary distribution: mean over processes and its standard error.
type DemoError struct {
	Length   int     `json:"length"`
	Mean     float64 `json:"mean"`
	Standard float64 `json:"standard_error"`
}

// Run returns one row a length.
func (d Demo) Run() ([]DemoError, error) {
	if d.Processes < 2 {
		return nil, fmt.Errorf("wang: a demonstration on %d processes, want at least 2", d.Processes)
	}
	if d.D < 1 {
		return nil, fmt.Errorf("wang: %d features, want at least one", d.D)
	}
	for _, n := range d.Lengths {
		if n < 1 {
			return nil, fmt.Errorf("wang: a context of %d transitions, want at least one", n)
		}
	}
	rows := make([]DemoError, len(d.Lengths))
	for i, n := range d.Lengths {
		rows[i].Length = n
		sum, squares := 0., 0.
		for k := range d.Processes {
			e, err := d.loop(k, n)
			if err != nil {
				return nil, err
			}
			sum += e
			squares += e * e
		}
		count := float64(d.Processes)
		rows[i].Mean = sum / count
		rows[i].Standard = math.Sqrt((squares/count - rows[i].Mean*rows[i].Mean) / (count - 1))
	}
	return rows, nil
}

// loop is one process of a demonstration.
type loop struct {
	context  *Context   // n transitions
	features *mat.Dense // [S, d]
	values   []float64  // exact [S]
	weights  []float64  // stationary [S]
}

// error returns the squared error of values [S], weighted by the stationary distribution.
func (l *loop) error(values []float64) float64 { return mrp.Expect(l.weights, values, l.values) }

// loop returns the squared error on loop k with a context of n transitions.
func (d Demo) loop(k, n int) (float64, error) {
	l, err := d.draw(k, n)
	if err != nil {
		return 0, err
	}
	values, err := d.values(l.context, l.features)
	if err != nil {
		return 0, err
	}
	return l.error(values), nil
}

// draw draws loop k and a walk of n transitions.
func (d Demo) draw(k, n int) (*loop, error) {
	rng := seed.New(d.Seed, "wang", "demo", k)
	states := 5 + rng.IntN(11)
	threshold := .1 + .8*rng.Float64()
	features := mrp.Features(states, d.D, rng)
	w := make([]float64, d.D)
	for i := range w {
		w[i] = rng.NormFloat64()
	}
	process, err := mrp.Loop(states, d.Gamma, threshold, rng)
	if err != nil {
		return nil, err
	}
	var v mat.VecDense
	v.MulVec(features, mat.NewVecDense(d.D, w))
	if process, err = process.WithValues(v.RawVector().Data); err != nil {
		return nil, err
	}
	weights, err := process.Stationary()
	if err != nil {
		return nil, err
	}
	walk := process.Walk(seed.New(d.Seed, "wang", "demo", k, "walk", n), n)
	c, err := Window(process, features, walk)
	if err != nil {
		return nil, err
	}
	return &loop{c, features, v.RawVector().Data, weights}, nil
}

// values returns the layers' value of every state [S].
func (d Demo) values(c *Context, features *mat.Dense) ([]float64, error) {
	c.Queries = mat.DenseCopyOf(features.T())
	states, _ := features.Dims()
	spec := Spec{Algorithm: TD0, D: d.D, N: len(c.R), Queries: states, Alpha: d.Alpha}
	layer, err := spec.Layer()
	if err != nil {
		return nil, err
	}
	return spec.through(layer, c, d.Layers)
}

// through returns the values of a context's queries [q] after so many layers.
func (s Spec) through(layer *Layer, c *Context, layers int) ([]float64, error) {
	z, err := c.Prompt(s.extra())
	if err != nil {
		return nil, err
	}
	for range layers {
		if z, err = layer.Apply(z); err != nil {
			return nil, err
		}
	}
	return s.Values(z)
}

// Window returns the context of a walk [n+1] in features [S, d]: its n transitions, with
// the state after them as the query.
func Window(p *mrp.Process, features *mat.Dense, walk []int) (*Context, error) {
	if err := p.Walked(features, walk); err != nil {
		return nil, fmt.Errorf("wang: %w", err)
	}
	n := len(walk) - 1
	_, d := features.Dims()
	c := &Context{Phi: mat.NewDense(d, n, nil), Next: mat.NewDense(d, n, nil), R: make([]float64, n), Queries: mat.NewDense(d, 1, nil)}
	c.Queries.SetCol(0, features.RawRowView(walk[n]))
	for k, s := range walk[:n] {
		c.Phi.SetCol(k, features.RawRowView(s))
		c.Next.SetCol(k, features.RawRowView(walk[k+1]))
		c.R[k] = p.R[s]
	}
	c.Next.Scale(p.Gamma, c.Next)
	return c, nil
}
