package s5

import (
	"fmt"
	"math"
	"math/cmplx"
)

// Step makes one step in plain Go: from the state x [P] and the input u [H] it returns the output
// [H] and the next state. With reset the state is cleared before the input comes. It returns
// an error if a length is another.
func (l Layer) Step(params []float64, x []complex128, u []float64, reset bool) (out []float64, next []complex128, err error) {
	if err := l.Validate(); err != nil {
		return nil, nil, err
	}
	if len(params) != l.Size() || len(x) != l.kept() || len(u) != l.Width {
		return nil, nil, fmt.Errorf("s5: %d parameters, a state of %d and an input of %d, want %d, %d and %d", len(params), len(x), len(u), l.Size(), l.kept(), l.Width)
	}
	p, _ := l.parts()
	next = make([]complex128, l.kept())
	for j := range next {
		lambda := complex(p.lambdaRe.of(params)[j], p.lambdaIm.of(params)[j])
		decay := cmplx.Exp(lambda * complex(math.Exp(p.logStep.of(params)[j]), 0))
		input := 0i
		for h, v := range u {
			at := j*l.Width + h
			input += complex(p.bRe.of(params)[at], p.bIm.of(params)[at]) * complex(v, 0)
		}
		next[j] = (decay - 1) / lambda * input
		if !reset {
			next[j] += decay * x[j]
		}
	}
	g := make([]float64, l.Width)
	for h := range g {
		y := p.d.of(params)[h] * u[h]
		for j, s := range next {
			at := h*l.kept() + j
			y += 2 * real(complex(p.cRe.of(params)[at], p.cIm.of(params)[at])*s)
		}
		g[h] = gelu(y)
	}
	out = make([]float64, l.Width)
	for h := range out {
		value, gate := p.bias1.of(params)[h], p.bias2.of(params)[h]
		for k, v := range g {
			value += p.out1.of(params)[h*l.Width+k] * v
			gate += p.out2.of(params)[h*l.Width+k] * v
		}
		out[h] = u[h] + value/(1+math.Exp(-gate))
	}
	return out, next, nil
}

// gelu is x·Φ(x) by the approximation with tanh that jax.nn.gelu has by default.
func gelu(x float64) float64 {
	return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+.044715*x*x*x)))
}
