package s5rl

import (
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"slices"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/seed"
	"icrl/policyattention/transformer"
)

// dense is a layer x ↦ xW + b, at first with W = gain · orthonormal rows or columns (arXiv 1312.6120) and b = 0.
type dense struct {
	name    string
	in, out int
	gain    float64
}

// layers are the dense layers: the encoder, and the heads with the source's gains, which have a row for each state.
func (c Config) layers() (encoder, actor, critic []dense) {
	head := func(name string, outputs int, gain float64) []dense {
		in, last := dense{name + "0", c.Width, c.Hidden, 2}, dense{name + "2", c.Hidden, outputs, gain}
		return []dense{in, {name + "1", c.Hidden, c.Hidden, 2}, last}
	}
	encoder = []dense{{"encoder", 2*c.States*c.Actions + c.States + 1, c.Width, 1}}
	return encoder, head("actor", c.States*c.Actions, .01), head("critic", c.States, 1)
}

// parameters draws all parameters, and says where each is.
func (c Config) parameters() (layout []transformer.Tensor, params []float32) {
	add := func(name string, values []float64, shape ...int) {
		layout = append(layout, transformer.Tensor{Name: name, Shape: shape, Offset: len(params)})
		for _, x := range values {
			params = append(params, float32(x))
		}
	}
	encoder, actor, critic := c.layers()
	for i, d := range slices.Concat(encoder, actor, critic) {
		if i == len(encoder) {
			x := c.layer(seed.New(c.Seed, "s5rl", "init", "s5", 0))
			add("s5.0", x, len(x))
		}
		w := baseline.OrthogonalMatrix(d.in, d.out, seed.New(c.Seed, "s5rl", "init", d.name))
		w.Scale(d.gain, w)
		add(d.name+".weight", w.RawMatrix().Data, d.in, d.out)
		add(d.name+".bias", make([]float64, d.out), d.out)
	}
	return layout, params
}

// Layout and Init implement train.Trainable.
func (c Config) Layout() []transformer.Tensor { layout, _ := c.parameters(); return layout }
func (c Config) Init() []float32              { _, params := c.parameters(); return params }

// inputs builds the features [T, B, features] and the resets [T, B] from tokens, each [T, B]: the state, the action and
// the reward before, and the state now. They are a one-hot of the pair of state and action before, less 1/SA, and the
// one-hot times its reward, both zero at the first step of a life, which has no action before; a one-hot of the state
// now, less 1/S; the flag of a first step. What the layer sums up is then what differs from pair to pair.
func (c Config) inputs(before, previous, reward, state *Node) (features, reset *Node) {
	dtype := reward.DType()
	reset = ConvertDType(Equal(previous, Const(previous.Graph(), int32(baseline.None))), dtype)
	number := Add(MulScalar(before, c.Actions), previous)
	going := ExpandDims(OneMinus(reset), -1)
	pair := Mul(OneHot(number, c.States*c.Actions, dtype), going)
	return Concatenate([]*Node{
		Mul(AddScalar(pair, -1/float64(c.States*c.Actions)), going),
		Mul(pair, ExpandDims(MulScalar(reward, c.Scale), -1)),
		AddScalar(OneHot(state, c.States, dtype), -1/float64(c.States)), ExpandDims(reset, -1),
	}, -1), reset
}

// apply builds logits [T, B, A] and values [T, B] from tokens, see inputs, and states [B, P], and the states after.
func (c Config) apply(params *Node, tokens []*Node, states number) (logits, values *Node, after number) {
	take := parts(params)
	through := func(x *Node, layers []dense) *Node {
		for i, d := range layers {
			w, b := take(d.in, d.out), take(d.out)
			x = Add(Einsum("tbi,io->tbo", x, w), ExpandDims(b, 0, 0))
			if i < len(layers)-1 {
				x = Max(x, MulScalar(x, .01)) // leaky ReLU
			}
		}
		return x
	}
	encoder, actor, critic := c.layers()
	x, reset := c.inputs(tokens[0], tokens[1], tokens[2], tokens[3])
	x, after = c.s5(take, through(x, encoder), reset, states)
	now := ExpandDims(OneHot(tokens[3], c.States, x.DType()), -1)
	own := func(x *Node, outputs int) *Node { // the row of the state now, of those of all states
		shape := x.Shape().Dimensions
		return ReduceSum(Mul(Reshape(x, shape[0], shape[1], c.States, outputs), now), 2)
	}
	logits = own(through(x, actor), c.Actions)
	return logits, Squeeze(own(through(x, critic), 1), -1), after
}

// Loss implements train.Trainable: PPO's on rows [B, T] that begin with new lives, as rollouts.batch has them.
func (c Config) Loss(params *Node, _, batch []*Node) *Node {
	turned := make([]*Node, len(batch)) // [T, B]
	for i, x := range batch {
		turned[i] = Transpose(x, 0, 1)
	}
	action, logBefore, advantage, target, value := turned[4], turned[5], turned[6], turned[7], turned[8]
	none := Zeros(params.Graph(), shapes.Make(params.DType(), action.Shape().Dimensions[1], c.State/2))
	logits, values, _ := c.apply(params, turned[:4], number{none, none})
	logp := LogSoftmax(logits, -1)
	taken := ReduceSum(Mul(OneHot(action, c.Actions, logp.DType()), logp), -1)
	ratio := Exp(Sub(taken, logBefore))
	gain := ReduceAllMean(Min(Mul(ratio, advantage), Mul(ClipScalar(ratio, 1-c.Ratio, 1+c.Ratio), advantage)))
	near := Add(value, ClipScalar(Sub(values, value), -c.Ratio, c.Ratio))
	critic := MulScalar(ReduceAllMean(Max(Square(Sub(values, target)), Square(Sub(near, target)))), .5)
	entropy := Neg(ReduceAllMean(ReduceSum(Mul(Exp(logp), logp), -1)))
	return Sub(MulScalar(critic, c.Value), Add(gain, MulScalar(entropy, c.Entropy)))
}

// A layer of S5 (Smith et al., arXiv 2208.04933) with the resets of Lu et al. is a linear recurrence over complex
// numbers, run along a sequence in logarithmic depth, in which a flag clears the state at the beginning of an
// episode. A state of N numbers is diagonalized; its eigenvalues come in conjugate pairs, so half of them, P = N/2,
// are kept. With Δ a number for each,
//
//	x_t = (1 − reset_t) Λ̄ x_{t−1} + B̄ u_t,   y_t = 2 Re(C x_t) + D u_t,
//	Λ̄ = exp(ΛΔ),   B̄ = (Λ̄ − 1)/Λ · B   (zero-order hold),
//
// and the layer returns u_t + W₁g_t ⊙ σ(W₂g_t) with g = GELU(y), each W with a bias.

// shapes are those of a layer's parameters, which lie one after the other: the real and the imaginary part of Λ and
// log Δ [P], of B [P, H], of C [H, P], D, and of both W [H, H], from outputs to inputs, and their biases.
func (c Config) shapes() [][]int {
	h, p := c.Width, c.State/2
	return [][]int{{p}, {p}, {p}, {p, h}, {p, h}, {h, p}, {h, p}, {h}, {h, h}, {h}, {h, h}, {h}}
}

// size is the number of entries of an array.
func size(shape []int) int { return transformer.Tensor{Shape: shape}.Size() }

// diagonalize returns, of the normal part S = A + PPᵀ [n, n] of HiPPO-LegS, the eigenvalues Λ [n/2] with negative
// imaginary part, by falling size of it, and their unit eigenvectors V, V[j] [n] that of Λ[j]. The others are the
// conjugates. With A as −√((2i+1)(2j+1)) below the diagonal, −(i+1) on it and 0 above, and P_i = √(i+½), S
// is −½ on the diagonal and otherwise skew-symmetric.
func diagonalize(n int) (lambda []complex128, v [][]complex128) {
	// The real form of the Hermitian matrix −i(S + ½): each eigenvalue comes twice, with a + ib and with i(a + ib).
	double := mat.NewSymDense(2*n, nil)
	for i := range n {
		for j := range i {
			half := math.Sqrt((float64(i) + .5) * (float64(j) + .5))
			double.SetSym(i, n+j, -half)
			double.SetSym(j, n+i, half)
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(double, true) {
		panic(fmt.Sprintf("s5rl: no eigenvalues of the HiPPO matrix of size %d were found", n))
	}
	values := eigen.Values(nil) // ascending
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	for k := 0; k < n; k += 2 {
		vector := make([]complex128, n)
		for i := range vector {
			vector[i] = complex(vectors.At(i, k), vectors.At(n+i, k))
		}
		lambda, v = append(lambda, complex(-.5, values[k])), append(v, vector)
	}
	return lambda, v
}

// layer draws a layer's parameters: Λ and V of the blocks' matrices S along a diagonal, with the mean of S's diagonal,
// −½, as real part; B real with Lecun's normal distribution, as VᴴB; C complex with the same, as CV, times Out; D
// standard normal, times Skip; log Δ uniform between the logarithms of .001 and .1; W with Lecun's, biases 0.
func (c Config) layer(rng *rand.Rand) []float64 {
	const minStep, maxStep = .001, .1
	lambda, v := diagonalize(c.State / c.Blocks)
	h, p, size := c.Width, c.State/2, len(v[0])
	parts := make([][]float64, len(c.shapes())) // see shapes
	for j := range p {
		x := lambda[j%len(lambda)]
		parts[0], parts[1] = append(parts[0], real(x)), append(parts[1], imag(x))
		parts[2] = append(parts[2], math.Log(minStep)+rng.Float64()*math.Log(maxStep/minStep))
	}
	b := baseline.Normal(c.State*h, 1, rng)
	for j := range p { // in block j/len(v)
		for k := range h {
			sum := 0i
			for i, x := range v[j%len(v)] {
				sum += cmplx.Conj(x) * complex(b[(j/len(v)*size+i)*h+k]/math.Sqrt(float64(h)), 0)
			}
			parts[3], parts[4] = append(parts[3], real(sum)), append(parts[4], imag(sum))
		}
	}
	for range h {
		row := baseline.Normal(2*c.State, 1/math.Sqrt(float64(c.State)), rng)
		for j := range p {
			sum := 0i
			for i, x := range v[j%len(v)] {
				at := 2 * (j/len(v)*size + i)
				sum += complex(row[at], row[at+1]) * x
			}
			parts[5], parts[6] = append(parts[5], c.Out*real(sum)), append(parts[6], c.Out*imag(sum))
		}
	}
	parts[7] = baseline.Normal(h, c.Skip, rng)
	for _, w := range []int{8, 10} {
		parts[w], parts[w+1] = baseline.Normal(h*h, 1, rng), make([]float64, h)
		for i := range parts[w] {
			parts[w][i] /= math.Sqrt(float64(h))
		}
	}
	return slices.Concat(parts...)
}

// number is an array of complex numbers as two of reals: GoMLX's pure-Go backend has no complex ones.
type number struct{ re, im *Node }

func (a number) times(b number) number {
	return number{Sub(Mul(a.re, b.re), Mul(a.im, b.im)), Add(Mul(a.re, b.im), Mul(a.im, b.re))}
}

// each applies f to both parts.
func (a number) each(f func(*Node) *Node) number { return number{f(a.re), f(a.im)} }

// slice is a range of the first axis.
func slice(x *Node, from, to int) *Node { return SliceAxis(x, 0, AxisRange(from, to)) }

// parts takes arrays off a flat vector, one after the other.
func parts(params *Node) func(shape ...int) *Node {
	at := 0
	return func(shape ...int) *Node {
		at += size(shape)
		return Reshape(slice(params, at-size(shape), at), shape...)
	}
}

// scan returns x_t = keep_t Λ̄ x_{t−1} + b_t, x_{−1} = 0, for Λ̄ [1, 1, P], keep [T, B, 1] and b [T, B, P], in
// ⌈log₂T⌉ rounds: what stands at t stands for steps t−s+1 … t, and is joined with that of t−s to stand for
// twice as many: (a, b)∘(a′, b′) = (a a′, a b′ + b). Each a is Λ̄ˢ, for all t, times the steps' keep.
func scan(decay number, keep *Node, b number) number {
	length := b.re.Shape().Dimensions[0]
	for s := 1; s < length; s *= 2 {
		kept := slice(keep, s, length)
		before := decay.times(b.each(func(x *Node) *Node { return slice(x, 0, length-s) }))
		join := func(b, before *Node) *Node {
			return Concatenate([]*Node{slice(b, 0, s), Add(Mul(kept, before), slice(b, s, length))}, 0)
		}
		b = number{join(b.re, before.re), join(b.im, before.im)}
		keep = Concatenate([]*Node{slice(keep, 0, s), Mul(kept, slice(keep, 0, length-s))}, 0)
		decay = decay.times(decay)
	}
	return b
}

// s5 builds a layer on inputs u [T, B, H] with reset [T, B], 1 where an episode begins at step t and else 0, from
// states x [B, P]; take yields its parameters by their shapes. It returns the outputs [T, B, H] and the last states.
//
// A reset multiplies Λ̄ by zero, which drops what lies before it, as the operator of Lu et al. does (section 3.2).
func (c Config) s5(take func(shape ...int) *Node, u, reset *Node, x number) (out *Node, last number) {
	var p []*Node
	for _, shape := range c.shapes() {
		p = append(p, take(shape...))
	}
	row := func(x *Node) *Node { return ExpandDims(x, 0, 0) }
	decay, gain := hold(p[0], p[1], p[2])
	input := gain.each(row).times(number{Einsum("tbh,ph->tbp", u, p[3]), Einsum("tbh,ph->tbp", u, p[4])})
	keep := ExpandDims(OneMinus(reset), -1) // [T, B, 1]
	// The state comes before the first step as its input.
	keep = Concatenate([]*Node{ZerosLike(slice(keep, 0, 1)), keep}, 0)
	states := scan(decay.each(row), keep, number{
		Concatenate([]*Node{ExpandDims(x.re, 0), input.re}, 0), Concatenate([]*Node{ExpandDims(x.im, 0), input.im}, 0),
	}).each(func(x *Node) *Node { return SliceAxis(x, 0, AxisRange(1)) })
	y := MulScalar(Sub(Einsum("tbp,hp->tbh", states.re, p[5]), Einsum("tbp,hp->tbh", states.im, p[6])), 2)
	g := gelu(Add(y, Mul(u, row(p[7]))))
	value := Add(Einsum("tbk,hk->tbh", g, p[8]), row(p[9]))
	gate := Add(Einsum("tbk,hk->tbh", g, p[10]), row(p[11]))
	last = states.each(func(x *Node) *Node { return Squeeze(SliceAxis(x, 0, AxisElem(-1)), 0) })
	return Add(u, Mul(value, Sigmoid(gate))), last
}

// hold builds Λ̄ and (Λ̄ − 1)/Λ [P].
func hold(re, im, logStep *Node) (decay, gain number) {
	step := Exp(logStep)
	size, angle := Exp(Mul(re, step)), Mul(im, step)
	decay = number{Mul(size, Cos(angle)), Mul(size, Sin(angle))}
	// 1/Λ is its conjugate over its squared size.
	square := Add(Square(re), Square(im))
	return decay, number{AddScalar(decay.re, -1), decay.im}.times(number{Div(re, square), Neg(Div(im, square))})
}

// gelu builds x·Φ(x) by the approximation with tanh that jax.nn.gelu has, without GoMLX's power function.
func gelu(x *Node) *Node {
	inner := MulScalar(Add(x, MulScalar(Mul(x, Square(x)), .044715)), math.Sqrt(2/math.Pi))
	return Mul(MulScalar(x, .5), OnePlus(Tanh(inner)))
}
