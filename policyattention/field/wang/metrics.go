package wang

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/field/mrp"
	"icrl/policyattention/seed"
)

// WeightRow is what one layer's weights are at some point of a training, in the paper's
// figures. P and Q are shown with the sign of P[−1, −1]: the function is the same for
// (−P, −Q), and half of all seeds find each.
type WeightRow struct {
	Kind      string `json:"kind"`
	Seed      uint64 `json:"seed"`
	Processes int    `json:"processes"`
	Layer     int    `json:"layer"` // from 0; 0 alone for a looped layer

	Corner  float64 `json:"corner"`   // P[−1, −1]; TD(0) has its step size here
	OthersP float64 `json:"others_p"` // mean |·| of P's other entries; TD(0): 0
	Left    float64 `json:"left"`     // trace of Q[:d, :d]; TD(0) has −d
	Right   float64 `json:"right"`    // trace of Q[:d, d:2d]; TD(0) has d
	OthersQ float64 `json:"others_q"` // mean |·| of Q's entries beside those two diagonals; TD(0): 0
	// SignedQ is what the public code shows in place of OthersQ: it subtracts the
	// traces with their signs from the sum of the absolute values.
	SignedQ float64 `json:"signed_q"`
}

// WeightRows returns a row for each layer after each number of processes.
func (t *Trained) WeightRows(kind string) []WeightRow {
	var rows []WeightRow
	for i, params := range t.Params {
		for l := range t.blocks() {
			p, q := t.Weights(params, l)
			row := weightRow(p, q, t.D)
			row.Kind, row.Seed, row.Processes, row.Layer = kind, t.Seed, t.After[i], l
			rows = append(rows, row)
		}
	}
	return rows
}

func weightRow(p, q *mat.Dense, d int) WeightRow {
	r := 2*d + 1
	sign := 1.
	if p.At(r-1, r-1) < 0 {
		sign = -1
	}
	sum := func(m *mat.Dense) float64 { return floats.Norm(m.RawMatrix().Data, 1) }
	row := WeightRow{Corner: sign * p.At(r-1, r-1)}
	row.OthersP = (sum(p) - row.Corner) / float64(r*r-1)
	diagonals := 0.
	for i := range d {
		row.Left += sign * q.At(i, i)
		row.Right += sign * q.At(i, d+i)
		diagonals += math.Abs(q.At(i, i)) + math.Abs(q.At(i, d+i))
	}
	others := float64(r*r - 2*d)
	row.OthersQ = (sum(q) - diagonals) / others
	row.SignedQ = (sum(q) - row.Left - row.Right) / others
	return row
}

// Likeness says how near a trained network is to TD(0) with the step size that was fitted on
// the same batches, on Boyan chains that it was not trained on: means over the chains of
// averages over states, weighted by the stationary distribution.
type Likeness struct {
	Kind      string  `json:"kind"`
	Seed      uint64  `json:"seed"`
	Processes int     `json:"processes"`
	Step      float64 `json:"step"` // fitted step size of TD(0)
	// ValueDifference is the squared difference of the two values.
	ValueDifference float64 `json:"value_difference"`
	// Implicit is the cosine between TD(0)'s weights and the weights of the linear
	// function nearest to the network's values. Sensitivity is the cosine between the
	// gradients of both values by the query's features. For linear attention the value is
	// linear in the query, and the two are the same number.
	Implicit    float64 `json:"implicit"`
	Sensitivity float64 `json:"sensitivity"`
	// Error, ErrorTD and Zero are the squared errors against the exact values of the
	// network, of TD(0) and of the constant 0.
	Error   float64 `json:"error"`
	ErrorTD float64 `json:"error_td"`
	Zero    float64 `json:"zero"`
}

// Likeness measures the i-th weights kept on chains of the stream root.
func (t *Trained) Likeness(kind string, i int, root uint64, chains int) (Likeness, error) {
	params := t.Params[i]
	sum := Likeness{Kind: kind, Seed: t.Seed, Processes: t.After[i], Step: t.Step(params)}
	fresh := t.Training
	fresh.Seed = root
	share := 1 / float64(chains)
	for k := range chains {
		one, err := fresh.likeness(params, k)
		if err != nil {
			return Likeness{}, fmt.Errorf("wang: chain %d: %w", k, err)
		}
		sum.ValueDifference += share * one.ValueDifference
		sum.Implicit += share * one.Implicit
		sum.Sensitivity += share * one.Sensitivity
		sum.Error += share * one.Error
		sum.ErrorTD += share * one.ErrorTD
		sum.Zero += share * one.Zero
	}
	return sum, nil
}

// likeness measures weights on process k of t.
func (t Training) likeness(params []float64, k int) (l Likeness, err error) {
	process, features, err := t.process(k)
	if err != nil {
		return l, err
	}
	weights, err := process.Stationary()
	if err != nil {
		return l, err
	}
	exact, err := process.Values()
	if err != nil {
		return l, err
	}
	c, err := Window(process, features, process.Walk(seed.New(t.Seed, "wang", "likeness", k), t.N))
	if err != nil {
		return l, err
	}
	spec := Spec{Algorithm: TD0, D: t.D, N: t.N, Queries: 1, Alpha: t.Step(params)}
	w := make([]float64, t.D)
	for range t.Layers {
		if w, err = spec.Step(c, w); err != nil {
			return l, err
		}
	}
	values, gradients, err := t.sensitivities(params, c, features)
	if err != nil {
		return l, err
	}
	td := make([]float64, t.States)
	for s, gradient := range gradients {
		td[s] = floats.Dot(w, features.RawRowView(s))
		l.Sensitivity += weights[s] * cosine(gradient, w)
	}
	implicit, err := nearest(features, weights, values)
	if err != nil {
		return l, err
	}
	l.Implicit = cosine(implicit, w)
	l.ValueDifference = mrp.Expect(weights, values, td)
	l.Error, l.ErrorTD = mrp.Expect(weights, values, exact), mrp.Expect(weights, td, exact)
	l.Zero = mrp.Expect(weights, exact, make([]float64, t.States))
	return l, nil
}

// values returns the network's value of each of some queries, columns [d, q], in the context c.
func (n Network) values(params []float64, c *Context, queries *mat.Dense) ([]float64, error) {
	with, at := *c, 1
	d, count := queries.Dims()
	if n.Attention == Linear { // a softmax's weights depend on all queries of the prompt
		at = count
	}
	var values []float64
	for start := 0; start < count; start += at {
		with.Queries = queries.Slice(0, d, start, start+at).(*mat.Dense)
		z, err := with.Prompt(0)
		if err != nil {
			return nil, err
		}
		all, err := n.Forward(params, z)
		if err != nil {
			return nil, err
		}
		for _, v := range all[n.Layers].RawRowView(n.rows() - 1)[n.N:] {
			values = append(values, -v)
		}
	}
	return values, nil
}

// sensitivities returns the network's values [S] of the features of each state, [S, d], and
// their gradients [S][d] by these, by central differences: with h = 1e-5 and values of order one
// they are right to about 1e-10.
func (n Network) sensitivities(params []float64, c *Context, features *mat.Dense) (values []float64, gradients [][]float64, err error) {
	const h = 1e-5
	states, d := features.Dims()
	queries, each := mat.NewDense(d, states*(1+2*d), nil), 1+2*d
	for s := range states {
		for k := range each {
			queries.SetCol(s*each+k, features.RawRowView(s))
		}
		for i := range d {
			x := features.At(s, i)
			queries.Set(i, s*each+1+2*i, x+h)
			queries.Set(i, s*each+2+2*i, x-h)
		}
	}
	all, err := n.values(params, c, queries)
	if err != nil {
		return nil, nil, err
	}
	for s := range states {
		own, gradient := all[s*each:][:each], make([]float64, d)
		for i := range gradient {
			gradient[i] = (own[1+2*i] - own[2+2*i]) / (2 * h)
		}
		values, gradients = append(values, own[0]), append(gradients, gradient)
	}
	return values, gradients, nil
}

// nearest returns the w [d] of least Σ_s weight(s)(v(s) − φ(s)ᵀw)².
func nearest(features *mat.Dense, weights, v []float64) ([]float64, error) {
	states, d := features.Dims()
	a, b := mat.NewDense(states, d, nil), mat.NewVecDense(states, nil)
	for s, weight := range weights {
		root := math.Sqrt(weight)
		for i := range d {
			a.Set(s, i, root*features.At(s, i))
		}
		b.SetVec(s, root*v[s])
	}
	var w mat.VecDense
	if err := w.SolveVec(a, b); err != nil {
		return nil, fmt.Errorf("wang: the nearest linear function: %w", err)
	}
	return w.RawVector().Data, nil
}

func cosine(x, y []float64) float64 {
	return floats.Dot(x, y) / (floats.Norm(x, 2) * floats.Norm(y, 2))
}
