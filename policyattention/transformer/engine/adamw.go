package engine

import (
	"math"
	"slices"

	"icrl/internal/numeric"
	"icrl/policyattention/transformer"
)

// Optimizer is the parameters of a model with what AdamW keeps of them.
type Optimizer struct {
	transformer.AdamW
	Clip float64 // the largest Euclidean norm of a gradient: longer ones are shortened to it; 0 for no bound
	// Params are the parameters [Size], M and V the moments of their gradient. Average is that of the
	// parameters over the steps so far, with a weight of order t⁸ on step t.
	Params, M, V, Average []float32

	kernels *kernels[float32]
	network *Network[float32] // of the parameters, or nil
}

// NewOptimizer returns an optimizer before its first step, of a copy of the parameters.
func NewOptimizer(o transformer.AdamW, clip float64, params []float32) *Optimizer {
	zeros := func() []float32 { return make([]float32, len(params)) }
	return &Optimizer{AdamW: o, Clip: clip, Params: slices.Clone(params), M: zeros(), V: zeros(), Average: zeros(),
		kernels: kernelsOf[float32]()}
}

// Network returns the network of c with the parameters as each step leaves them. It is called once.
func (o *Optimizer) Network(c transformer.Config) (n *Network[float32], err error) {
	if n, err = New[float32](c, o.Params); err == nil {
		o.Params, o.network = n.params[:len(o.Params)], n
	}
	return n, err
}

// averageOrder is η of Shamir and Zhang 2013, arXiv 1212.1824; a larger one forgets faster.
const averageOrder = 8

// Step makes the step of a number, from 1 on, with the sum of gradients. How many cores share it changes no bit.
func (o *Optimizer) Step(step int, gradients [][]float32) {
	const entries = 1 << 14
	ranges := (len(o.Params) + entries - 1) / entries
	each := func(f func(i, from, to int)) {
		numeric.Parallel(ranges, func(i int) error { //nolint:errcheck // there are no errors
			f(i, i*entries, min((i+1)*entries, len(o.Params)))
			return nil
		})
	}
	squares := make([]float64, ranges)
	each(func(i, from, to int) {
		sum := gradients[0][from:to]
		for _, gradient := range gradients[1:] {
			for j, v := range gradient[from:to] {
				sum[j] += v
			}
		}
		if o.Clip > 0 {
			for _, v := range sum {
				squares[i] += float64(v) * float64(v)
			}
		}
	})
	scale := 1.
	if o.Clip > 0 {
		total := 0.
		for _, v := range squares {
			total += v
		}
		scale = o.Clip / max(math.Sqrt(total), o.Clip)
	}
	// 1 − βᵗ by expm1, which keeps all digits where βᵗ is close to 1.
	correction := func(beta float64) float64 { return -1 / math.Expm1(float64(step)*math.Log(beta)) }
	weight := (averageOrder + 1) / float64(step+averageOrder) // the first step has 1
	var rates [10]float32
	for i, x := range []float64{
		o.Beta1, (1 - o.Beta1) * scale, o.Beta2, (1 - o.Beta2) * scale * scale,
		correction(o.Beta1), correction(o.Beta2), o.Epsilon, o.WeightDecay, o.Rate(step), weight,
	} {
		rates[i] = float32(x)
	}
	each(func(_, from, to int) {
		part := func(x []float32) []float32 { return x[from:to] }
		o.kernels.adamw(part(o.Params), part(gradients[0]), part(o.M), part(o.V), part(o.Average), &rates)
	})
	if o.network != nil {
		o.network.pack()
	}
}
