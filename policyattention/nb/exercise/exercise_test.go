package exercise

import (
	"math"
	"slices"
	"sort"
	"testing"

	"icrl/policyattention/decoder"
	"icrl/policyattention/decoder/network"
)

func softmax(z []float64) []float64 {
	top, sum := slices.Max(z), 0.0
	for a := range z {
		z[a] = math.Exp(z[a] - top)
		sum += z[a]
	}
	for a := range z {
		z[a] /= sum
	}
	return z
}

func step(pi, q []float64, eta float64) []float64 {
	for a := range pi {
		pi[a] = math.Log(pi[a]) + eta*q[a]
	}
	return softmax(pi)
}

func median(x []float64) float64 {
	x = slices.Clone(x)
	sort.Float64s(x)
	n := len(x)
	return (x[(n-1)/2] + x[n/2]) / 2
}

func identity(pi, q []float64, eta float64) []float64 { return pi }

// checks has for each check what it says of a solution and of attempts that are nearly one.
var checks = map[string]struct {
	right error
	wrong []error
}{
	"Median": {Median(median), []error{
		Median(func(x []float64) float64 { return x[0] }),
		Median(func(x []float64) float64 { sort.Float64s(x); return (x[(len(x)-1)/2] + x[len(x)/2]) / 2 }),
		// changes its list
	}},
	"Step": {Step(step), []error{
		Step(identity),
		Step(func(pi, q []float64, eta float64) []float64 { // overflows
			sum := 0.0
			for a := range pi {
				pi[a] *= math.Exp(eta * q[a])
				sum += pi[a]
			}
			for a := range pi {
				pi[a] /= sum
			}
			return pi
		}),
	}},
	"Minimum": {Minimum(func(pi, q []float64, eta float64) float64 {
		sum := 0.0
		for a := range pi {
			sum += pi[a] * math.Exp(eta*q[a])
		}
		return -math.Log(sum)
	}), []error{Minimum(func(pi, q []float64, eta float64) float64 { return 0 })}},
	"Schedule": {Schedule(func(k int) float64 { return 1.6 * float64(k) / 19 }), []error{
		Schedule(func(int) float64 { return .8 }),
		Schedule(func(int) float64 { return 2 }),
		Schedule(func(k int) float64 { return 1.6 * float64(19-k) / 19 }),
	}},
	"Forget": {Forget(func(n *network.Network, l *decoder.Layout) {
		n.Blocks[0].Heads[0].K.Set(l.SlotY.Offset, l.LogPolicy.Offset, 0)
	}), []error{
		Forget(func(*network.Network, *decoder.Layout) {}),
		Forget(func(n *network.Network, l *decoder.Layout) {
			n.Blocks[0].Heads[0].K.Set(l.SlotZ.Offset, l.Value.Offset, 0)
		}),
		Forget(func(n *network.Network, l *decoder.Layout) { n.Blocks[0].Heads[0].K.Zero() }),
	}},
	"Ratio": {Ratio(func(x, y []float64) float64 { return median(x) / median(y) }), []error{
		Ratio(func(x, y []float64) float64 { return x[0] / y[0] }),
	}},
	"Advantage": {Advantage(func(q [][]float64, s, a int, r float64, next, action int, gamma float64) float64 {
		return r + gamma*q[next][action] - q[s][a]
	}), []error{Advantage(func(q [][]float64, s, a int, r float64, next, action int, gamma float64) float64 {
		return r - q[s][a]
	})}},
	"LockUp": {LockUp(func(pi, q []float64, eta float64) []float64 {
		next := step(slices.Clone(pi), q, eta)
		away := 0.0
		for a := range pi {
			away += math.Abs(next[a] - pi[a])
		}
		if away <= .02 {
			return pi
		}
		return next
	}), []error{LockUp(identity), LockUp(step)}},
	"TwoWay": {TwoWay(func(xw, xm, pw, pm float64) (float64, float64) {
		return (xw - pw + xm - pm) / 2, (xw - xm + pw - pm) / 2
	}), []error{
		TwoWay(func(xw, xm, pw, pm float64) (float64, float64) { return xw - pw, pw - pm }),
		TwoWay(func(xw, xm, pw, pm float64) (float64, float64) { return (xw - pw + xm - pm) / 2, xw - xm }),
	}},
}

// Every check accepts a solution and refuses attempts that are nearly one.
func TestChecks(t *testing.T) {
	for name, c := range checks {
		if c.right != nil {
			t.Errorf("%s: the solution is refused: %v", name, c.right)
		}
		for i, err := range c.wrong {
			if err == nil {
				t.Errorf("%s: wrong attempt %d is accepted", name, i)
			} else {
				t.Logf("%s: %v", name, err)
			}
		}
	}
}
