//go:build amd64 && goexperiment.simd

package avx512

import (
	"fmt"
	"math"
	"math/rand/v2"
	"simd/archsimd"
	"slices"
	"testing"

	"icrl/internal/usage"
)

// available skips a test where the processor has no AVX-512.
func available(t testing.TB) {
	t.Helper()
	if !archsimd.X86.AVX512() {
		t.Skip("no AVX-512 here")
	}
}

// room is how many entries are read, at most, after the last one of a matrix in a test.
const room = 1 << 13

func normal(rng *rand.Rand, n int) []float32 {
	x := make([]float32, n+room)
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return x
}

// Products against sums in float64: k roundings of 2⁻²⁴ of sums about √k. What lies around C
// stays as it was.
func TestProduct(t *testing.T) {
	available(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		m, n, k := 1+rng.IntN(40), 1+rng.IntN(200), 1+rng.IntN(300)
		transposed, packed, add, relu, bias := rng.IntN(2) == 0, rng.IntN(3), rng.IntN(2) == 0, rng.IntN(2) == 0, rng.IntN(2) == 0
		t.Run(fmt.Sprint(m, n, k, transposed, packed, add, relu, bias), func(t *testing.T) {
			a, b, c, shift := normal(rng, m*k), normal(rng, k*n), normal(rng, m*(n+3)), normal(rng, n)
			before := append([]float32(nil), c...)
			p := Product{M: m, N: n, K: k, A: Start(a), RowA: k, StepA: 1, B: Start(b), StrideB: n, C: Start(c), StrideC: n + 3, Add: add, ReLU: relu}
			if transposed {
				p.RowA, p.StepA = 1, m
			}
			entryB := func(i, j int) float64 { return float64(b[i*n+j]) }
			into := make([]float32, PackedSize(k, n))
			switch packed {
			case 1:
				Pack(Start(into), Start(b), n, k, n)
				p.B, p.StrideB = Start(into), Packed
			case 2:
				PackTransposed(Start(into), Start(b), k, k, n)
				p.B, p.StrideB = Start(into), Packed
				entryB = func(i, j int) float64 { return float64(b[j*k+i]) }
			}
			if bias {
				p.Bias = Start(shift)
			}
			p.Run()
			for i := range m {
				for j := range n + 3 {
					at := i*(n+3) + j
					want := 0.
					if j >= n {
						if c[at] != before[at] {
							t.Fatalf("entry %d, %d outside of the result was written", i, j)
						}
						continue
					}
					for l := range k {
						want += float64(a[i*p.RowA+l*p.StepA]) * entryB(l, j)
					}
					if bias {
						want += float64(shift[j])
					}
					if add {
						want += float64(before[at])
					}
					if relu {
						want = max(want, 0)
					}
					if got := float64(c[at]); !(math.Abs(got-want) <= 2e-6*math.Sqrt(float64(k+4))*4) {
						t.Fatalf("entry %d, %d is %v, want %v", i, j, got, want)
					}
				}
			}
		})
	}
}

// A product without rows ends, and writes nothing.
func TestProductWithoutRows(t *testing.T) {
	available(t)
	for _, n := range []int{1, 17, 33, 64, 100} {
		c := normal(rand.New(rand.NewPCG(1, 2)), 64)
		before := slices.Clone(c)
		a := make([]float32, room)
		(&Product{N: n, K: 3, A: Start(a), RowA: 3, StepA: 1, B: Start(a), StrideB: n, C: Start(c), StrideC: n}).Run()
		if !slices.Equal(c, before) {
			t.Errorf("%d columns: C was written", n)
		}
	}
}

// The products of a training step at S = 8: forward, for the slopes of inputs, and of weights.
func BenchmarkProduct(b *testing.B) {
	available(b)
	rng := rand.New(rand.NewPCG(1, 2))
	for _, s := range []struct {
		name    string
		m, n, k int
		product func(p *Product)
	}{
		{"forward", 128, 64, 64, func(p *Product) { p.RowA, p.StepA, p.StrideB = 64, 1, Packed }},
		{"up", 128, 128, 64, func(p *Product) { p.RowA, p.StepA, p.StrideB = 64, 1, Packed }},
		{"down", 128, 64, 128, func(p *Product) { p.RowA, p.StepA, p.StrideB = 144, 1, Packed }},
		{"weights", 64, 64, 128, func(p *Product) { p.RowA, p.StepA, p.StrideB = 1, 64, 64 }},
		{"weights of up", 64, 128, 128, func(p *Product) { p.RowA, p.StepA, p.StrideB, p.Add = 1, 64, 144, true }},
		{"scores", 12, 24, 16, func(p *Product) { p.RowA, p.StepA, p.StrideB = 64, 1, 32 }},
		{"values", 12, 16, 24, func(p *Product) { p.RowA, p.StepA, p.StrideB = 32, 1, 64 }},
		{"keys", 12, 16, 24, func(p *Product) { p.RowA, p.StepA, p.StrideB = 1, 32, 64 }},
	} {
		b.Run(s.name, func(b *testing.B) {
			p := Product{M: s.m, N: s.n, K: s.k, A: Start(normal(rng, 1<<15)), B: Start(normal(rng, 1<<15)), C: Start(normal(rng, 1<<15)), StrideC: s.n}
			s.product(&p)
			before := usage.Processor()
			for b.Loop() {
				p.Run()
			}
			b.ReportMetric(2*float64(s.m*s.n*s.k)*float64(b.N)/(usage.Processor()-before).Seconds()/1e9, "GFLOP/CPU-s")
		})
	}
}
