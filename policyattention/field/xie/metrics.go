package xie

import (
	"fmt"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/seed"
)

// Likeness says what a trained layer is and how near it is to weighted softmax TD with the step
// size and temperature that were fitted on the same batches: means over walks on Boyan chains
// that it was not trained on and over the states of each walk.
type Likeness struct {
	Kind      string `json:"kind"`
	Seed      uint64 `json:"seed"`
	Processes int    `json:"processes"`

	// Step is V's weight of the reward: α of the algorithm. Discount is that of the
	// successor's value over Step: γ. Current is that of the value over −Step: 1.
	Step     float64 `json:"step"`
	Discount float64 `json:"discount"`
	Current  float64 `json:"current"`
	// Temperature is the mean of A's diagonal, and Identity the cosine between A and the
	// identity: 1 for the algorithm's A. With one-hot features a number added to a column
	// of A changes nothing, since the softmax is over its rows: there Temperature is the
	// mean of what the diagonal exceeds the rest of its column by, and the cosine is that
	// of both matrices with their columns' means taken off.
	Temperature float64 `json:"temperature"`
	Identity    float64 `json:"identity"`
	// The fitted algorithm's.
	FittedStep        float64 `json:"fitted_step"`
	FittedTemperature float64 `json:"fitted_temperature"`

	// ValueDifference is the squared difference of both values. Error, ErrorFitted and
	// Zero are the squared errors against the exact values of the network, of the fitted
	// algorithm and of the constant 0.
	ValueDifference float64 `json:"value_difference"`
	Error           float64 `json:"error"`
	ErrorFitted     float64 `json:"error_fitted"`
	Zero            float64 `json:"zero"`
}

// Likeness measures the i-th weights kept on chains of the stream root.
func (t *Trained) Likeness(kind string, i int, root uint64, chains int) (Likeness, error) {
	params := t.Params[i]
	w, fitted := t.Weights(params), t.Fitted(params)
	l := Likeness{
		Kind: kind, Seed: t.Seed, Processes: t.After[i],
		Step: w.Reward, Discount: w.Successor / w.Reward, Current: -w.Value / w.Reward,
		FittedStep: fitted.Alpha, FittedTemperature: fitted.W.At(0, 0),
	}
	l.Temperature, l.Identity = t.scores(w.A)
	layer, err := t.Layer(w)
	if err != nil {
		return l, err
	}
	fresh := t.Training
	fresh.Seed = root
	for k := range chains {
		if err := fresh.likeness(&l, layer, fitted, k, 1/float64(chains)); err != nil {
			return l, fmt.Errorf("xie: chain %d: %w", k, err)
		}
	}
	return l, nil
}

// likeness adds the share of process k to l.
func (t Training) likeness(l *Likeness, layer *Layer, fitted Spec, k int, share float64) error {
	process, features, err := t.process(k)
	if err != nil {
		return err
	}
	values, err := process.Values()
	if err != nil {
		return err
	}
	walk := process.Walk(seed.New(t.Seed, "xie", "likeness", k), t.N)
	c, err := Window(process, features, walk)
	if err != nil {
		return err
	}
	exact, algorithm := make([]float64, len(walk)), make([]float64, len(walk))
	z, err := fitted.Prompt(c, algorithm)
	if err != nil {
		return err
	}
	for range t.Layers {
		if z, err = layer.Apply(z); err != nil {
			return err
		}
		if algorithm, err = fitted.Step(c, algorithm); err != nil {
			return err
		}
	}
	for j, s := range walk {
		exact[j] = values[s]
	}
	network := z.RawRowView(fitted.current())
	share /= float64(len(walk))
	squared := func(a, b []float64) float64 { d := floats.Distance(a, b, 2); return share * d * d }
	l.ValueDifference += squared(network, algorithm)
	l.Error += squared(network, exact)
	l.ErrorFitted += squared(algorithm, exact)
	l.Zero += squared(exact, make([]float64, len(walk)))
	return nil
}

// scores returns what a trained A [d, d] is of τI: τ, and the cosine.
func (t Training) scores(a *mat.Dense) (temperature, identity float64) {
	one := mat.NewDense(t.D, t.D, nil)
	for i := range t.D {
		one.Set(i, i, 1)
	}
	if t.OneHot {
		a = mat.DenseCopyOf(a)
		for _, m := range []*mat.Dense{a, one} {
			for j := range t.D {
				column := mat.Col(nil, j, m)
				floats.AddConst(-floats.Sum(column)/float64(t.D), column)
				m.SetCol(j, column)
			}
		}
	}
	// one is a projection, or the identity: its trace is its squared norm.
	temperature = floats.Dot(a.RawMatrix().Data, one.RawMatrix().Data) / mat.Trace(one)
	return temperature, temperature * mat.Norm(one, 2) / mat.Norm(a, 2)
}
