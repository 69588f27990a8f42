//go:build amd64 && goexperiment.simd

package avx512

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// Weights against those in float64, for scores near each other and far apart: an exponent of
// up to 100 has an error of 100 · 2⁻²⁴, which is one of the weight, and 2⁻²⁴ for each of the
// other roundings. Keys that a lane does not see do not count, and rows around are left alone.
func TestSoftmax(t *testing.T) {
	available(t)
	rng := rand.New(rand.NewPCG(3, 4))
	const stride, scale = 19, .25
	for _, spread := range []float64{1, 30, 1e6} {
		for _, keys := range [][2]int{{1, 0}, {1, 15}, {1, 11}, {24, 0}, {9, 15}, {17, 4}} {
			t.Run(fmt.Sprint(spread, keys), func(t *testing.T) {
				seen, n := keys[0], keys[0]+keys[1]
				x := normal(rng, (n+1)*stride)
				for i := range x {
					x[i] *= float32(spread)
				}
				got := append([]float32(nil), x...)
				Softmax(Start(got), stride, seen, keys[1], scale)
				for lane := range Lanes {
					total, top := 0., math.Inf(-1)
					sees := min(n, seen+lane)
					for i := range sees {
						top = max(top, float64(x[i*stride+lane]))
					}
					for i := range sees {
						total += math.Exp(scale * (float64(x[i*stride+lane]) - top))
					}
					for i := range n {
						want, at := 0., i*stride+lane
						if i < sees {
							want = math.Exp(scale*(float64(x[at])-top)) / total
						}
						exponent := 4 * scale * spread * math.Abs(float64(x[at]))
						if d := math.Abs(float64(got[at]) - want); !(d <= (10+min(exponent, 1e3))*0x1p-24*want+1e-30) {
							t.Fatalf("lane %d, key %d: %v, want %v", lane, i, got[at], want)
						}
					}
				}
				for i := range x {
					if row, lane := i/stride, i%stride; (row >= n || lane >= Lanes) && got[i] != x[i] {
						t.Fatalf("entry %d of row %d was written", lane, row)
					}
				}
			})
		}
	}
	scores := normal(rng, Lanes)
	scores[3] = float32(math.NaN())
	Softmax(Start(scores), Lanes, 1, 0, 1)
	if scores[3] == scores[3] || scores[2] != 1 {
		t.Errorf("the weights of one key are %v and %v, want 1 and NaN", scores[2], scores[3])
	}
}
