package critic

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/numeric"
	"icrl/policyattention/control"
	"icrl/policyattention/pmd"
)

// anchor is what the table of the first round says of the rows of P.
type anchor struct {
	values []float64 // v_0 [S], scaled to [−½, ½]
	means  []float64 // of the values under P, of each pair
}

// newAnchor returns the anchor of the context of round 0 and the rewards r of each pair; nil
// where the table says nothing, as γ is 0 or all values are equal.
func newAnchor(x control.Context, rewards []float64) *anchor {
	states, actions := x.Pi.Dims()
	pi0 := mat.NewDense(states, actions, nil)
	for s := range states {
		before := pi0.RawRowView(s) // log π_0 and then π_0
		for b, p := range x.Pi.RawRowView(s) {
			if before[b] = math.Inf(-1); p > 0 {
				before[b] = numeric.Log(p) - float64(x.Eta*x.Q.At(s, b))
			}
		}
		pmd.Softmax(before)
	}
	a := &anchor{values: x.MDP.StateValues(pi0, x.Q), means: make([]float64, states*actions)}
	least, most := slices.Min(a.values), slices.Max(a.values)
	if x.MDP.Gamma == 0 || !(most > least) {
		return nil
	}
	scaled := func(v float64) float64 { return (v-least)/(most-least) - .5 }
	for s, v := range a.values {
		a.values[s] = scaled(v)
	}
	for pair, r := range rewards {
		a.means[pair] = scaled((x.Q.RawMatrix().Data[pair] - r) / x.MDP.Gamma)
	}
	return a
}

// steepest is the largest θ in size. A mean that is out of a row's reach is met as nearly as it
// allows.
const steepest = 60

// tilt makes p [S] the row of p(s') exp(θ v(s')) with the anchor's mean, by Newton's method
// between bounds.
func (a *anchor) tilt(pair int, p []float64) {
	theta, low, high := 0., -float64(steepest), float64(steepest)
	w := make([]float64, len(p))
	for range 200 {
		sum, mean, square := 0., 0., 0.
		for s, v := range a.values {
			w[s] = p[s] * numeric.Exp(float64(theta*v))
			sum += w[s]
			mean += float64(w[s] * v)
			square += float64(float64(w[s]*v) * v)
		}
		mean /= sum
		off := a.means[pair] - mean
		for s := range w {
			w[s] /= sum
		}
		if math.Abs(off) < 1e-15 || high-low < 1e-13 {
			break
		}
		if off > 0 {
			low = theta
		} else {
			high = theta
		}
		if theta += off / (square/sum - float64(mean*mean)); !(theta > low && theta < high) {
			theta = (low + high) / 2
		}
	}
	copy(p, w)
}
