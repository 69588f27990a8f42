package s5

import (
	"math"

	. "github.com/gomlx/gomlx/core/graph"
)

// number is an array of complex numbers as two of reals.
type number struct{ re, im *Node }

func (a number) times(b number) number {
	return number{Sub(Mul(a.re, b.re), Mul(a.im, b.im)), Add(Mul(a.re, b.im), Mul(a.im, b.re))}
}

func (a number) plus(b number) number { return number{Add(a.re, b.re), Add(a.im, b.im)} }

// slice is a range of the first axis.
func (a number) slice(from, to int) number {
	return number{SliceAxis(a.re, 0, AxisRange(from, to)), SliceAxis(a.im, 0, AxisRange(from, to))}
}

func join(a, b number) number {
	return number{Concatenate([]*Node{a.re, b.re}, 0), Concatenate([]*Node{a.im, b.im}, 0)}
}

// scan returns x_t = keep_t Λ̄ x_{t−1} + b_t, x_{−1} = 0, for Λ̄ [P], keep [T, B, 1] and b [T, B, P], in
// ⌈log₂T⌉ rounds: what stands at t stands for steps t−s+1 … t, and is joined with that of t−s to
// stand for twice as many: (a, b)∘(a′, b′) = (a a′, a b′ + b). Each a is the power Λ̄ˢ, which is
// the same for all t, times the product of the steps' keep.
func scan(decay number, keep *Node, b number) number {
	length := b.re.Shape().Dimensions[0]
	for s := 1; s < length; s *= 2 {
		rest := length - s
		kept := SliceAxis(keep, 0, AxisRange(s, length))
		before := decay.times(b.slice(0, rest))
		b = join(b.slice(0, s), number{Mul(kept, before.re), Mul(kept, before.im)}.plus(b.slice(s, length)))
		if 2*s < length {
			keep = Concatenate([]*Node{SliceAxis(keep, 0, AxisRange(0, s)), Mul(kept, SliceAxis(keep, 0, AxisRange(0, rest)))}, 0)
			decay = decay.times(decay)
		}
	}
	return b
}

// Apply builds the layer on inputs u [T, B, H] with reset [T, B], 1 where an episode begins at
// step t and else 0, from states of real parts re and imaginary parts im [B, P]. It returns
// the outputs [T, B, H] and the states after the last step. It panics on other shapes, as
// GoMLX does.
//
// A reset multiplies Λ̄ by zero, which is all that the operator of Lu et al. (their section 3.2)
// comes to: whatever lies before it drops out of the product.
func (l Layer) Apply(params, u, reset, re, im *Node) (out, nextRe, nextIm *Node) {
	p, _ := l.parts()
	get := func(p part) *Node {
		return Reshape(SliceAxis(params, 0, AxisRange(p.offset, p.offset+p.size())), p.shape...)
	}
	dims := u.Shape().Dimensions
	length, batch := dims[0], dims[1]
	decay, gain := l.hold(get(p.lambdaRe), get(p.lambdaIm), get(p.logStep))
	input := number{Einsum("tbh,ph->tbp", u, get(p.bRe)), Einsum("tbh,ph->tbp", u, get(p.bIm))}
	keep := ExpandDims(OneMinus(reset), -1) // [T, B, 1]
	row := func(x *Node) *Node { return ExpandDims(x, 0, 0) }
	// The state comes before the first step as its input.
	carried := number{ExpandDims(re, 0), ExpandDims(im, 0)}
	keep = Concatenate([]*Node{ZerosLike(SliceAxis(keep, 0, AxisRange(0, 1))), keep}, 0)
	b := join(carried, number{row(gain.re), row(gain.im)}.times(input))
	x := scan(number{row(decay.re), row(decay.im)}, keep, b).slice(1, length+1)
	y := MulScalar(Sub(Einsum("tbp,hp->tbh", x.re, get(p.cRe)), Einsum("tbp,hp->tbh", x.im, get(p.cIm))), 2)
	y = Add(y, Mul(u, row(get(p.d))))
	g := approximateGelu(y)
	value := Add(Einsum("tbk,hk->tbh", g, get(p.out1)), row(get(p.bias1)))
	gate := Add(Einsum("tbk,hk->tbh", g, get(p.out2)), row(get(p.bias2)))
	last := x.slice(length-1, length)
	return Add(u, Mul(value, Sigmoid(gate))), Reshape(last.re, batch, l.kept()), Reshape(last.im, batch, l.kept())
}

// hold builds Λ̄ and (Λ̄ − 1)/Λ [P].
func (l Layer) hold(lambdaRe, lambdaIm, logStep *Node) (decay, gain number) {
	step := Exp(logStep)
	size, angle := Exp(Mul(lambdaRe, step)), Mul(lambdaIm, step)
	decay = number{Mul(size, Cos(angle)), Mul(size, Sin(angle))}
	// 1/Λ is its conjugate over its squared size.
	square := Add(Square(lambdaRe), Square(lambdaIm))
	inverse := number{Div(lambdaRe, square), Neg(Div(lambdaIm, square))}
	return decay, number{AddScalar(decay.re, -1), decay.im}.times(inverse)
}

// approximateGelu is x·Φ(x) by the approximation with tanh.
func approximateGelu(x *Node) *Node {
	inner := MulScalar(Add(x, MulScalar(Mul(x, Square(x)), .044715)), math.Sqrt(2/math.Pi))
	return Mul(MulScalar(x, .5), OnePlus(Tanh(inner)))
}
