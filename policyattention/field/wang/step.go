package wang

import (
	"fmt"

	"gonum.org/v1/gonum/floats"
)

// Step returns the weights w [d] after one step of the algorithm on the context's
// transitions, w + C (α/n) Σ_k δ_k g_k. It is the textbook's loop over transitions and
// shares nothing with the layers.
func (s Spec) Step(c *Context, w []float64) ([]float64, error) {
	if err := s.validate(); err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if d, n := c.Phi.Dims(); d != s.D || n != s.N || len(w) != d {
		return nil, fmt.Errorf("wang: features [%d, %d] and %d weights, want [%d, %d] and %d", d, n, len(w), s.D, s.N, s.D)
	}
	sum := make([]float64, s.D)
	trace := make([]float64, s.D)
	total := 0.0
	for k, r := range c.R {
		total += r
		phi, next := column(c.Phi, k), column(c.Next, k)
		delta := r + floats.Dot(w, next) - floats.Dot(w, phi)
		g := phi
		switch s.Algorithm {
		case TDLambda:
			for i := range trace {
				trace[i] = s.Trace*trace[i] + phi[i]
			}
			g = trace
		case ResidualGradient:
			for i := range g {
				g[i] -= next[i]
			}
		case AverageReward:
			delta -= total / float64(k+1)
		}
		floats.AddScaled(sum, delta, g)
	}
	floats.Scale(s.Alpha/float64(s.N), sum)
	out := append([]float64(nil), w...)
	for i := range out {
		if s.C == nil {
			out[i] += sum[i]
			continue
		}
		for j := range sum {
			out[i] += s.C.At(i, j) * sum[j]
		}
	}
	return out, nil
}

// column returns a copy of column k.
func column(m interface {
	Dims() (int, int)
	At(i, j int) float64
}, k int) []float64 {
	rows, _ := m.Dims()
	out := make([]float64, rows)
	for i := range out {
		out[i] = m.At(i, k)
	}
	return out
}
