package exercise

import (
	"errors"
	"math"
	"slices"
	"sort"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"icrl/policyattention/control"
	"icrl/policyattention/decoder"
	"icrl/policyattention/stats"
)

func packets(b, tolerance, alpha float64, states, actions, rounds int) int {
	return int(math.Ceil(2 * b * b / (tolerance * tolerance) *
		math.Log(2*float64(states*actions*rounds)/alpha)))
}

func lookup(q [][]float64, next, action int, tau float64) float64 {
	sum, total := 0.0, 1.0
	for s, row := range q {
		for a, value := range row {
			agree := 1.
			if s == next {
				agree++
			}
			if a == action {
				agree++
			}
			sum, total = sum+math.Exp(tau*agree)*value, total+math.Exp(tau*agree)
		}
	}
	return sum / total
}

// leaked is the weight of the packet itself in lookup.
func leaked(q [][]float64, tau float64) float64 {
	ones := [][]float64{}
	for _, row := range q {
		ones = append(ones, slices.Repeat([]float64{1}, len(row)))
	}
	return 1 - lookup(ones, 0, 0, tau)
}

func identity(pi, q []float64, eta float64) []float64 { return pi }

// attempts are nearly solutions, by check. Solutions are those of the notebooks, whose execution has them accepted.
var attempts = map[string][]error{
	"Median": {
		Median(func(x []float64) float64 { return x[0] }),
		Median(func(x []float64) float64 { sort.Float64s(x); return (x[(len(x)-1)/2] + x[len(x)/2]) / 2 }),
		// changes its list
	},
	"Mean": {Mean(func(x []int) float64 {
		sum := 0
		for _, v := range x {
			sum += v
		}
		return float64(sum / len(x))
	})},
	"Best": {
		Best(func(q []float64) (int, error) { return 0, nil }),
		Best(func(q []float64) (int, error) { return floats.MaxIdx(append(q, math.Inf(-1))), nil }),
		Best(func(q []float64) (int, error) { // begins at 0, and takes the last of equal ones
			at, most := 0, 0.
			for i, v := range q {
				if v >= most {
					at, most = i, v
				}
			}
			return at, errors.New("none")
		}),
	},
	"KL": {
		KL(func(p, q []float64) float64 { return stat.KullbackLeibler(q, p) }),
		KL(func(p, q []float64) (sum float64) {
			for a := range p {
				sum += p[a] * math.Log(p[a]/q[a]) // 0 times −Inf
			}
			return sum
		}),
	},
	"Crossing": {
		Crossing(func(mass, gap, eta float64) int { return int(math.Log((1-mass)/mass) / (eta * gap)) }),
		Crossing(func(mass, gap, eta float64) int { return int(math.Ceil(math.Log(1/mass) / eta)) }),
	},
	"Parameters": {Parameters(func(states, actions, layers, width, hidden int) int {
		return layers * (4*width*width + 2*width*hidden)
	})},
	"Gradient": {Gradient(func(z, logPi, etaQ []float64) []float64 { return etaQ })},
	"Behind": {
		Behind(func(learned, exact []float64) []int { return nil }),
		Behind(func(learned, exact []float64) (list []int) {
			for i := range learned {
				if math.Abs(learned[i]-exact[i]) > .05 {
					list = append(list, i)
				}
			}
			return list
		}),
	},
	"LocksUp": {
		LocksUp(func(mass, gap, eta, floor float64) bool { return mass < floor }),
		LocksUp(func(mass, gap, eta, floor float64) bool { return false }),
		LocksUp(func(mass, gap, eta, floor float64) bool { return mass*math.Exp(eta*gap) < floor }), // not normalized
	},
	"Packets": {
		Packets(func(b, tolerance, alpha float64, states, actions, rounds int) int {
			return packets(b, tolerance, alpha, states, actions, rounds) - 1
		}),
		Packets(func(b, tolerance, alpha float64, states, actions, rounds int) int { return 1 << 30 }),
		Packets(func(b, tolerance, alpha float64, states, actions, rounds int) int { return 0 }),
	},
	"Lookup": {
		Lookup(func(q [][]float64, next, action int, tau float64) float64 { return q[next][action] }),
		Lookup(func(q [][]float64, next, action int, tau float64) float64 { // without the packet itself
			return lookup(q, next, action, tau) / (1 - leaked(q, tau))
		}),
	},
	"Paired": {Paired(func(learned [][]float64, exact []float64) float64 {
		var runs []float64
		for _, run := range learned {
			runs = append(runs, stats.Median(run)-stats.Median(exact))
		}
		return stats.Median(runs)
	})},
	"Holm": {
		Holm(func(p []float64, level float64) int {
			return floats.Count(func(v float64) bool { return v <= level }, p)
		}),
		Holm(func(p []float64, level float64) int { // Bonferroni
			return floats.Count(func(v float64) bool { return v <= level/float64(len(p)) }, p)
		}),
	},
	"Frequencies": {Frequencies(func(seen [][3]int, s, a, states int) []float64 {
		p, n := make([]float64, states), 1e-9 // which leaves 0 where nothing was seen
		for _, t := range seen {
			if t[0] == s && t[1] == a {
				p[t[2]]++
				n++
			}
		}
		floats.Scale(1/n, p)
		return p
	})},
	"Corridor": {Corridor(func(s, a, states int, slip float64) []float64 {
		row := make([]float64, states)
		row[min(max(s+a-1, 0), states-1)] = 1 - slip
		row[s] = slip // at the ends too
		return row
	})},
	"Mixed": {Mixed(func(pi, q []float64, eta, phi float64) []float64 { return step(pi, q, eta) })},
	"Backups": {
		Backups(func(c control.Context, n int) *mat.Dense { return c.MDP.EvaluationBackup(c.Pi, c.Q) }),
		Backups(func(c control.Context, n int) *mat.Dense {
			for range n {
				c.Q.Copy(c.MDP.EvaluationBackup(c.Pi, c.Q))
			}
			return c.Q
		}),
		Backups(func(c control.Context, n int) *mat.Dense { return nil }),
	},
	"Step": {
		Step(identity),
		Step(func(pi, q []float64, eta float64) []float64 { // overflows
			for a := range pi {
				pi[a] *= math.Exp(eta * q[a])
			}
			floats.Scale(1/floats.Sum(pi), pi)
			return pi
		}),
	},
	"Minimum": {Minimum(func(pi, q []float64, eta float64) float64 { return 0 })},
	"Forget": {
		Forget(func(*decoder.Network, *decoder.Layout) {}),
		Forget(func(n *decoder.Network, l *decoder.Layout) {
			n.Blocks[0].Heads[0].K.Set(l.SlotZ.Offset, l.Value.Offset, 0)
		}),
		Forget(func(n *decoder.Network, l *decoder.Layout) { n.Blocks[0].Heads[0].K.Zero() }),
	},
	"Ratio": {Ratio(func(x, y []float64) float64 { return x[0] / y[0] })},
	"Advantage": {Advantage(func(q [][]float64, s, a int, r float64, next, action int, gamma float64) float64 {
		return r - q[s][a]
	})},
	"LockUp": {LockUp(identity), LockUp(step)},
	"TwoWay": {
		TwoWay(func(xw, xm, pw, pm float64) (float64, float64) { return xw - pw, pw - pm }),
		TwoWay(func(xw, xm, pw, pm float64) (float64, float64) { return (xw - pw + xm - pm) / 2, xw - xm }),
	},
}

// Every check refuses attempts that are nearly solutions.
func TestChecks(t *testing.T) {
	for name, all := range attempts {
		for i, err := range all {
			if err == nil {
				t.Errorf("%s: wrong attempt %d is accepted", name, i)
			} else {
				t.Logf("%s: %v", name, err)
			}
		}
	}
}
