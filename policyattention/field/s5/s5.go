// Package s5 is the layer of S5 (Smith et al., arXiv 2208.04933) with the resets of Lu et al.
// (arXiv 2303.03982): a linear recurrence over complex numbers, run along a sequence in
// logarithmic depth, in which a flag clears the state at the beginning of an episode.
//
// A state of N numbers is diagonalized; its eigenvalues come in conjugate pairs, so half of
// them, P = N/2, are kept. With Δ a number for each,
//
//	x_t = (1 − reset_t) Λ̄ x_{t−1} + B̄ u_t,   y_t = 2 Re(C x_t) + D u_t,
//	Λ̄ = exp(ΛΔ),   B̄ = (Λ̄ − 1)/Λ · B   (zero-order hold),
//
// and the layer returns u_t + W₁g_t ⊙ σ(W₂g_t) with g = GELU(y), each W with a bias.
//
// init.go draws the parameters (HiPPO-LegS), graph.go builds the layer in GoMLX, and step.go is
// the recurrence in plain Go, one step at a time.
package s5

import "fmt"

// Layer is the shape of a layer.
type Layer struct {
	Width  int // H, of inputs and outputs
	State  int // N; P = N/2 complex states are kept
	Blocks int // HiPPO matrices of even size N/Blocks that the state begins with (blocks in Smith et al.'s code)
}

// Validate returns an error if there is no such layer.
func (l Layer) Validate() error {
	if l.Width < 1 || l.State < 2 || l.Blocks < 1 || l.State%(2*l.Blocks) != 0 {
		return fmt.Errorf("s5: width %d and state %d in %d blocks, want a width of at least 1 and at least one block, each of an even state of at least 2", l.Width, l.State, l.Blocks)
	}
	return nil
}

// kept is P.
func (l Layer) kept() int { return l.State / 2 }

// part is a range of the flat parameters.
type part struct {
	offset int
	shape  []int
}

func (p part) size() int {
	n := 1
	for _, d := range p.shape {
		n *= d
	}
	return n
}

func (p part) of(params []float64) []float64 { return params[p.offset:][:p.size()] }

// parts are the parameters; complex ones are two, real and imaginary.
type parts struct {
	lambdaRe, lambdaIm, logStep part // [P]
	bRe, bIm                    part // [P, H]
	cRe, cIm                    part // [H, P]
	d                           part // [H]
	out1, out2                  part // [H, H], from outputs to inputs
	bias1, bias2                part // [H]
}

func (l Layer) parts() (p parts, size int) {
	h, k := l.Width, l.kept()
	for _, add := range []struct {
		to    *part
		shape []int
	}{
		{&p.lambdaRe, []int{k}}, {&p.lambdaIm, []int{k}}, {&p.logStep, []int{k}},
		{&p.bRe, []int{k, h}}, {&p.bIm, []int{k, h}}, {&p.cRe, []int{h, k}}, {&p.cIm, []int{h, k}}, {&p.d, []int{h}},
		{&p.out1, []int{h, h}}, {&p.bias1, []int{h}}, {&p.out2, []int{h, h}}, {&p.bias2, []int{h}},
	} {
		*add.to = part{size, add.shape}
		size += add.to.size()
	}
	return p, size
}

// Size is the number of real parameters.
func (l Layer) Size() int {
	_, size := l.parts()
	return size
}

// Operations is the number of floating-point operations on an input, the discretization aside: a
// product of complex numbers has 6, a sum 2, and of a conjugate pair the real part alone is
// read out.
func (l Layer) Operations() int {
	h, k := l.Width, l.kept()
	state := k * (4*h + 6 + 6 + 2)    // Bu, times the gain, plus the decayed state
	output := h*(4*k+1) + 2*h         // 2 Re(Cx) + Du
	gate := 9*h + 2*2*h*h + 4*h + 2*h // GELU, W₁g and W₂g, the logistic function, product and residual sum
	return state + output + gate
}
