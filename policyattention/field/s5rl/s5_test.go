package s5rl

import (
	"fmt"
	"math"
	"math/cmplx"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/seed"
)

// normalPart returns S = A + PPᵀ [n, n] from the definition of HiPPO-LegS.
func normalPart(n int) *mat.Dense {
	s := mat.NewDense(n, n, nil)
	s.Apply(func(i, j int, _ float64) float64 {
		a := 0.
		switch {
		case i > j:
			a = -math.Sqrt(float64((2*i + 1) * (2*j + 1)))
		case i == j:
			a = -float64(i + 1)
		}
		return a + math.Sqrt((float64(i)+.5)*(float64(j)+.5))
	}, s)
	return s
}

// By hand at n = 2: S + ½ = [[0, √¾], [−√¾, 0]]. That V Λ Vᴴ is the matrix is part of
// TestStepIsTheExactSolution.
func TestDiagonalization(t *testing.T) {
	if lambda, _ := diagonalize(2); math.Abs(imag(lambda[0])+math.Sqrt(.75)) > 1e-15 {
		t.Errorf("%v, want −½ − i√¾", lambda)
	}
}

// Zero-order hold is exact for an input that is constant over a step: it agrees with the
// exponential of the real system of N states, x' = Sx + Bu, by gonum, where S is one HiPPO matrix
// or has three along its diagonal.
func TestStepIsTheExactSolution(t *testing.T) {
	const n, delta, u = 6, .3, 1.7
	for _, blocks := range []int{1, 3} {
		l := Config{Width: 1, State: n, Blocks: blocks, Out: 1, Skip: 1}
		params, size := l.layer(seed.New(1)), n/blocks
		_, v := diagonalize(size)
		p := l.split(params)
		for j := range l.State / 2 {
			p[2][j] = math.Log(delta)
		}
		// states returns the N real states V(·) + its conjugate.
		states := func(x func(j int) complex128) []float64 {
			out := make([]float64, n)
			for i := range out {
				for j := range v {
					out[i] += 2 * real(v[j][i%size]*x(i/size*len(v)+j))
				}
			}
			return out
		}
		b := states(func(j int) complex128 { return complex(p[3][j], p[4][j]) })
		// d/dt (x, u) = (Sx + Bu, 0).
		system, exponential := mat.NewDense(n+1, n+1, nil), new(mat.Dense)
		s := normalPart(size)
		for i := range n {
			for j := range size {
				system.Set(i, i/size*size+j, delta*s.At(i%size, j))
			}
			system.Set(i, n, delta*b[i])
		}
		exponential.Exp(system)
		want := mat.NewVecDense(n+1, nil)
		want.SetVec(n, u)
		x := make([]complex128, l.State/2)
		for range 5 {
			_, x = l.step(params, x, []float64{u}, false)
			var next mat.VecDense
			next.MulVec(exponential, want)
			want.CopyVec(&next)
			for i, got := range states(func(j int) complex128 { return x[j] }) {
				if math.Abs(got-want.AtVec(i)) > 1e-12 {
					t.Fatalf("%d blocks: x[%d] = %v, the exponential gives %v", blocks, i, got, want.AtVec(i))
				}
			}
		}
	}
}

// sequence is inputs [T, B, H], resets [T, B] and states [B, P].
type sequence struct {
	length, batch int
	u, reset      []float64
	re, im        []float64
}

func (l Config) random(length, batch int, share float64, root uint64) sequence {
	rng := seed.New(root, length, batch)
	u, reset := testkit.Normal[float64](rng, length*batch*l.Width), make([]float64, length*batch)
	re, im := testkit.Normal[float64](rng, batch*l.State/2), testkit.Normal[float64](rng, batch*l.State/2)
	s := sequence{length, batch, u, reset, re, im}
	for i := range s.reset {
		if rng.Float64() < share {
			s.reset[i] = 1
		}
	}
	return s
}

// plain returns the outputs [T, B, H] and last states by the recurrence.
func (l Config) plain(t *testing.T, params []float64, s sequence) (out []float64, last [][]complex128) {
	t.Helper()
	out = make([]float64, s.length*s.batch*l.Width)
	for b := range s.batch {
		x := make([]complex128, l.State/2)
		for j := range x {
			x[j] = complex(s.re[b*l.State/2+j], s.im[b*l.State/2+j])
		}
		for k := range s.length {
			at := k*s.batch + b
			y, next := l.step(params, x, s.u[at*l.Width:][:l.Width], s.reset[at] == 1)
			copy(out[at*l.Width:], y)
			x = next
		}
		last = append(last, x)
	}
	return out, last
}

// inputs are the tensors of apply after the parameters.
func (l Config) sequence(s sequence) []any {
	return []any{
		tensors.FromFlatDataAndDimensions(s.u, s.length, s.batch, l.Width),
		tensors.FromFlatDataAndDimensions(s.reset, s.length, s.batch),
		tensors.FromFlatDataAndDimensions(s.re, s.batch, l.State/2),
		tensors.FromFlatDataAndDimensions(s.im, s.batch, l.State/2),
	}
}

// The scan is the recurrence, for lengths around powers of two and others, with no resets, some,
// only resets, and one at every position in turn; to some units of the numbers that are added
// (of order ten).
func TestScanIsTheRecurrence(t *testing.T) {
	on := testkit.Backend(t)
	l := Config{Width: 3, State: 8, Blocks: 2, Out: 1, Skip: 1}
	params := l.layer(seed.New(2))
	check := func(name string, s sequence) {
		t.Helper()
		out := testkit.Must(CallOnceN(on, func(in []*Node) []*Node {
			y, last := l.s5(parts(in[0]), in[1], in[2], number{in[3], in[4]})
			return []*Node{y, last.re, last.im}
		}, append([]any{params}, l.sequence(s)...)...))(t)
		want, last := l.plain(t, params, s)
		for i, y := range tensors.MustCopyFlatData[float64](out[0]) {
			if math.Abs(y-want[i]) > 1e-12 {
				t.Fatalf("%s: output %d is %v, the recurrence has %v", name, i, y, want[i])
			}
		}
		re, im := tensors.MustCopyFlatData[float64](out[1]), tensors.MustCopyFlatData[float64](out[2])
		for b := range last {
			for j, x := range last[b] {
				if at := b*l.State/2 + j; cmplx.Abs(complex(re[at], im[at])-x) > 1e-12 {
					t.Fatalf("%s: state %d is %v + %vi, the recurrence has %v", name, at, re[at], im[at], x)
				}
			}
		}
	}
	for _, length := range []int{1, 2, 3, 7, 8, 9, 37, 64} {
		for _, share := range []float64{0, .2, 1} {
			check(fmt.Sprintf("T = %d, resets %v", length, share), l.random(length, 2, share, 3))
		}
	}
	for at := range 9 {
		s := l.random(9, 1, 0, 4)
		s.reset[at] = 1
		check(fmt.Sprintf("reset at %d", at), s)
	}
}

// split are the parameters by part, see shapes.
func (l Config) split(params []float64) (all [][]float64) {
	for _, shape := range l.shapes() {
		all, params = append(all, params[:size(shape)]), params[size(shape):]
	}
	return all
}

// step makes one step of the recurrence in plain Go: from the state x [P] and the input u [H] it returns the output
// [H] and the next state. With reset the state is cleared before the input comes.
func (l Config) step(params []float64, x []complex128, u []float64, reset bool) (out []float64, next []complex128) {
	p := l.split(params)
	next = make([]complex128, l.State/2)
	for j := range next {
		lambda := complex(p[0][j], p[1][j])
		decay := cmplx.Exp(lambda * complex(math.Exp(p[2][j]), 0))
		input := 0i
		for h, v := range u {
			at := j*l.Width + h
			input += complex(p[3][at], p[4][at]) * complex(v, 0)
		}
		next[j] = (decay - 1) / lambda * input
		if !reset {
			next[j] += decay * x[j]
		}
	}
	g := make([]float64, l.Width)
	for h := range g {
		y := p[7][h] * u[h]
		for j, s := range next {
			at := h*l.State/2 + j
			y += 2 * real(complex(p[5][at], p[6][at])*s)
		}
		g[h] = geluOf(y)
	}
	out = make([]float64, l.Width)
	for h := range out {
		value, gate := p[9][h], p[11][h]
		for k, v := range g {
			value += p[8][h*l.Width+k] * v
			gate += p[10][h*l.Width+k] * v
		}
		out[h] = u[h] + value/(1+math.Exp(-gate))
	}
	return out, next
}

// geluOf is x·Φ(x) by the approximation with tanh that jax.nn.gelu has by default.
func geluOf(x float64) float64 {
	return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+.044715*x*x*x)))
}
