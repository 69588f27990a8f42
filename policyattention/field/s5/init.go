package s5

import (
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// The range of the steps Δ at first.
const (
	minStep = .001
	maxStep = .1
)

// normalPart returns S = A + PPᵀ [n, n], the normal part of HiPPO-LegS: A is −√((2i+1)(2j+1)) below
// the diagonal, −(i+1) on it and 0 above, P_i = √(i+½). So S is −½ on the diagonal and
// otherwise skew-symmetric.
func normalPart(n int) *mat.Dense {
	s := mat.NewDense(n, n, nil)
	for i := range n {
		s.Set(i, i, -.5)
		for j := range i {
			half := math.Sqrt((float64(i) + .5) * (float64(j) + .5))
			s.Set(i, j, -half)
			s.Set(j, i, half)
		}
	}
	return s
}

// diagonalize returns the eigenvalues Λ [P] of S with negative imaginary part, by falling size
// of it, and their unit eigenvectors V, V[j] [n] that of Λ[j]. The others are the conjugates.
func diagonalize(n int) (lambda []complex128, v [][]complex128, err error) {
	// The real form of the Hermitian matrix −i(S + ½): an eigenvector (a, b) of it is
	// a + ib, each eigenvalue comes twice, with a + ib and with i(a + ib).
	s := normalPart(n)
	double := mat.NewSymDense(2*n, nil)
	for i := range n {
		for j := range n {
			if i != j {
				double.SetSym(i, n+j, s.At(i, j))
			}
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(double, true) {
		return nil, nil, fmt.Errorf("s5: the HiPPO matrix of size %d has no eigenvalues", n)
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
	return lambda, v, nil
}

// Init draws parameters: Λ and V of Blocks matrices S along a diagonal, with the mean of S's
// diagonal, −½, as real part; B real with Lecun's normal distribution, as VᴴB; C complex with the
// same, as CV; D standard normal; log Δ uniform between the logarithms of .001 and .1; W with
// Lecun's normal distribution, biases 0.
func (l Layer) Init(rng *rand.Rand) ([]float64, error) {
	if err := l.Validate(); err != nil {
		return nil, err
	}
	lambda, v, err := diagonalize(l.State / l.Blocks)
	if err != nil {
		return nil, err
	}
	p, size := l.parts()
	params := make([]float64, size)
	for j := range l.kept() {
		x := lambda[j%len(lambda)]
		p.lambdaRe.of(params)[j], p.lambdaIm.of(params)[j] = real(x), imag(x)
		p.logStep.of(params)[j] = math.Log(minStep) + rng.Float64()*math.Log(maxStep/minStep)
	}
	l.drawB(p, params, v, rng)
	l.drawC(p, params, v, rng)
	for i := range l.Width {
		p.d.of(params)[i] = rng.NormFloat64()
	}
	for _, w := range []part{p.out1, p.out2} {
		for i := range w.size() {
			w.of(params)[i] = rng.NormFloat64() / math.Sqrt(float64(l.Width))
		}
	}
	return params, nil
}

// Scale multiplies parameters C by read and D by skip.
func (l Layer) Scale(params []float64, read, skip float64) {
	p, _ := l.parts()
	floats.Scale(read, p.cRe.of(params))
	floats.Scale(read, p.cIm.of(params))
	floats.Scale(skip, p.d.of(params))
}

// drawB sets VᴴB for a real B [N, H] of variance 1/H, with the eigenvectors v of each block.
func (l Layer) drawB(p parts, params []float64, v [][]complex128, rng *rand.Rand) {
	b := make([]float64, l.State*l.Width)
	for i := range b {
		b[i] = rng.NormFloat64() / math.Sqrt(float64(l.Width))
	}
	for j := range l.kept() {
		first := j / len(v) * 2 * len(v) // row of the block
		for h := range l.Width {
			sum := 0i
			for i, x := range v[j%len(v)] {
				sum += cmplx.Conj(x) * complex(b[(first+i)*l.Width+h], 0)
			}
			p.bRe.of(params)[j*l.Width+h], p.bIm.of(params)[j*l.Width+h] = real(sum), imag(sum)
		}
	}
}

// drawC sets CV for a complex C [H, N] whose parts have the variance 1/N each.
func (l Layer) drawC(p parts, params []float64, v [][]complex128, rng *rand.Rand) {
	c := make([]complex128, l.State)
	deviation := 1 / math.Sqrt(float64(l.State))
	for h := range l.Width {
		for i := range c {
			c[i] = complex(deviation*rng.NormFloat64(), deviation*rng.NormFloat64())
		}
		for j := range l.kept() {
			first := j / len(v) * 2 * len(v)
			sum := 0i
			for i, x := range v[j%len(v)] {
				sum += c[first+i] * x
			}
			p.cRe.of(params)[h*l.kept()+j], p.cIm.of(params)[h*l.kept()+j] = real(sum), imag(sum)
		}
	}
}
