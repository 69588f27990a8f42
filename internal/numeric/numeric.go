// Package numeric holds the two transcendental functions that the decoder and the mirror-descent oracle need, and the
// dot product, written so that every platform returns the same bits; and Parallel, which shares work out.
//
// The standard library's Exp and Log use assembly on some architectures and portable Go on others, and the Go compiler
// may fuse x*y+z into one rounding (it does on arm64, not on amd64 or WebAssembly). Here each product that feeds a sum
// is rounded by an explicit float64 conversion, which the language specification says prevents fusing. So native and
// in-browser runs can be compared bit by bit.
package numeric

import (
	"math"
	"runtime"

	"golang.org/x/sync/errgroup"
)

// LayerNormEpsilon is added to the variance in LayerNorm, in GoMLX and without it.
const LayerNormEpsilon = 1e-5

const (
	ln2Hi = 0x1.62e42feep-01      // leading 32 bits of ln 2: k·ln2Hi is exact for |k| < 2²¹
	ln2Lo = 0x1.a39ef35793c76p-33 // ln 2 − ln2Hi
	inv   = 32 / math.Ln2
	shift = 0x1.8p52 // adding it leaves the nearest integer in the low bits of the sum

	// Underflow is the largest x whose Exp is 0: 2⁻¹⁰⁷⁵, half the smallest subnormal, is exp(−745.1332…).
	Underflow = -0x1.74910d52d3052p+09
	overflow  = 0x1.62e42fefa39efp+09 // the largest x whose Exp is finite
)

// Exp returns eˣ, the same bits on every platform, with an error below 0.55 ulp where the result is normal and 1.03
// ulp where it is subnormal (measured against math/big). Exp(−Inf) = 0, Exp(+Inf) = +Inf, Exp(NaN) = NaN.
//
// With x = k·ln2/32 + r and |r| ≤ ln2/64 it is 2^⌊k/32⌋ · 2^((k mod 32)/32) · eʳ: the second factor is
// tabulated, the third is a Taylor polynomial whose remainder r⁷/7! is below 4·10⁻¹⁸.
func Exp(x float64) float64 {
	if !(x > -690 && x < 709) {
		return expEdge(x)
	}
	k, m, p := reduce(x)
	scale := math.Float64frombits(m + k>>5<<52)
	return scale + float64(scale*p)
}

// expEdge is Exp where the argument is not finite, or the result or its correction scale·p may not be normal.
func expEdge(x float64) float64 {
	switch {
	case x != x:
		return x
	case x > overflow:
		return math.Inf(1)
	case x <= Underflow:
		return 0
	}
	k, m, p := reduce(x)
	scale := math.Float64frombits(m)
	return math.Ldexp(scale+float64(scale*p), int(int32(uint32(k)<<15)>>20)) // bits 5…16 of k, signed
}

// reduce splits x: the low 17 bits of k hold the integer nearest to 32x/ln2; m are the bits of 2^((k mod 32)/32), and
// eʳ = 1 + p.
func reduce(x float64) (k, m uint64, p float64) {
	t := float64(x*inv) + shift
	k = math.Float64bits(t)
	n := t - shift
	r := (x - float64(n*(ln2Hi/32))) - float64(n*(ln2Lo/32))
	e := &exp2[k&31]
	r2 := float64(r * r)
	tail := (1./6 + float64(r*(1./24))) + float64(r2*(1./120+float64(r*(1./720))))
	return k, e.bits, r + (e.tail + float64(r2*(0.5+float64(r*tail))))
}

// Log returns the natural logarithm of x, the same bits on every platform, with an error below 1 ulp (measured in the
// tests). Log(0) = −Inf, Log(x < 0) = NaN, Log(+Inf) = +Inf, Log(NaN) = NaN.
//
// With x = 2ᵏ(1+f) and √½ ≤ 1+f < √2 it is k·ln2 + 2·atanh(s), s = f/(2+f), and
// 2·atanh(s) = f − s·(f − R(s²)) where R is a Taylor series in s² ≤ 0.0295 cut after twelve terms.
func Log(x float64) float64 {
	switch {
	case x != x || x > math.MaxFloat64:
		return x
	case x < 0:
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	}
	m, e := math.Frexp(x)
	if m < math.Sqrt2/2 {
		m, e = 2*m, e-1
	}
	f, k := m-1, float64(e)
	s := f / (2 + f)
	z := float64(s * s)
	r := 0.
	for n := 25.; n >= 3; n -= 2 {
		r = float64(z * (2/n + r))
	}
	h := float64(0.5 * float64(f*f))
	return float64(k*ln2Hi) - ((h - (float64(s*(h+r)) + float64(k*ln2Lo))) - f)
}

// exp2 tabulates 2^(j/32) for j = 0…31: the bits of the nearest float64 and
// the relative remainder. A test recomputes it by repeated square roots.
var exp2 = [32]struct {
	bits uint64
	tail float64
}{
	{0x3ff0000000000000, 0x0p+00}, {0x3ff059b0d3158574, 0x1.cd2523567f613p-55},
	{0x3ff0b5586cf9890f, 0x1.79aa65d837b6cp-54}, {0x3ff11301d0125b51, -0x1.556522a2fbd0ep-54},
	{0x3ff172b83c7d517b, -0x1.01b15eaa59348p-55}, {0x3ff1d4873168b9aa, 0x1.aecf73e3a2f5fp-54},
	{0x3ff2387a6e756238, 0x1.68efde3a8a893p-54}, {0x3ff29e9df51fdee1, 0x1.2f7e16d09ab31p-55},
	{0x3ff306fe0a31b715, 0x1.34d754db0abb6p-55}, {0x3ff371a7373aa9cb, -0x1.24aedcc4b5069p-54},
	{0x3ff3dea64c123422, 0x1.59f48a72a4c6cp-55}, {0x3ff44e086061892d, 0x1.363ed60c2ac11p-59},
	{0x3ff4bfdad5362a27, 0x1.690cebb7aafbp-56}, {0x3ff5342b569d4f82, -0x1.8dec6bd0f386p-56},
	{0x3ff5ab07dd485429, 0x1.063e1e21c5409p-54}, {0x3ff6247eb03a5585, -0x1.c33c53bef4da8p-55},
	{0x3ff6a09e667f3bcd, -0x1.3b3efbf5e2229p-54}, {0x3ff71f75e8ec5f74, -0x1.81f647e5a3ecfp-56},
	{0x3ff7a11473eb0187, -0x1.b32dcb94da51dp-56}, {0x3ff82589994cce13, -0x1.369b6f13b3734p-54},
	{0x3ff8ace5422aa0db, 0x1.db72fc1f0eab4p-55}, {0x3ff93737b0cdc5e5, -0x1.da9b88b6c1e29p-58},
	{0x3ff9c49182a3f090, 0x1.1affc2b91ce27p-56}, {0x3ffa5503b23e255d, -0x1.1bbd1d3bcbb15p-54},
	{0x3ffae89f995ad3ad, 0x1.c1a7792cb3386p-55}, {0x3ffb7f76f2fb5e47, -0x1.8d6f438ad9334p-57},
	{0x3ffc199bdd85529c, 0x1.36eae30af0cb3p-56}, {0x3ffcb720dcef9069, 0x1.76b2c6c921968p-57},
	{0x3ffd5818dcfba487, 0x1.4a385a63d07a7p-56}, {0x3ffdfc97337b9b5f, -0x1.2d52107b43e1fp-55},
	{0x3ffea4afa2a490da, -0x1.ff7128fd391f1p-55}, {0x3fff50765b6e4540, 0x1.a64a931d185edp-55},
}

// Dot returns Σ x_i y_i, summed from the first. It panics if y is shorter than x.
func Dot(x, y []float64) float64 {
	sum := 0.0
	for i, v := range x {
		sum += float64(v * y[i])
	}
	return sum
}

// Parallel calls f for the numbers below n, as many at a time as GOMAXPROCS says, and returns one of their errors.
func Parallel(n int, f func(i int) error) error {
	var all errgroup.Group
	all.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		all.Go(func() error { return f(i) })
	}
	return all.Wait()
}
