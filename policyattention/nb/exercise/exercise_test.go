package exercise

import (
	"errors"
	"math"
	"slices"
	"sort"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"icrl/policyattention/control"
	"icrl/policyattention/decoder"
	"icrl/policyattention/decoder/network"
	"icrl/policyattention/transformer"
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

func best(q []float64) (int, error) {
	if len(q) == 0 {
		return 0, errors.New("no values")
	}
	return floats.MaxIdx(q), nil
}

// numerical is a derivative by differences of the fourth order.
func numerical(z, logPi, etaQ []float64) []float64 {
	loss := func(z []float64) (sum float64) {
		for a, p := range softmax(slices.Clone(z)) {
			sum += p * (math.Log(p) - logPi[a] - etaQ[a])
		}
		return sum
	}
	const h = 1e-3
	return fd.Gradient(nil, loss, z, &fd.Settings{Formula: fd.Formula{Derivative: 1, Step: h, Stencil: []fd.Point{
		{Loc: -2, Coeff: 1. / 12}, {Loc: -1, Coeff: -2. / 3}, {Loc: 1, Coeff: 2. / 3}, {Loc: 2, Coeff: -1. / 12},
	}}})
}

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

func frequencies(seen [][3]int, s, a, states int, unseen float64) []float64 {
	p, n := make([]float64, states), 0.0
	for _, t := range seen {
		if t[0] == s && t[1] == a {
			p[t[2]]++
			n++
		}
	}
	for next := range p {
		if p[next] /= n; n == 0 {
			p[next] = unseen
		}
	}
	return p
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
	"Mean": {Mean(func(x []int) float64 {
		sum := 0.0
		for _, v := range x {
			sum += float64(v)
		}
		return sum / float64(len(x))
	}), []error{Mean(func(x []int) float64 {
		sum := 0
		for _, v := range x {
			sum += v
		}
		return float64(sum / len(x))
	})}},
	"Best": {Best(best), []error{
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
	}},
	"KL": {KL(func(p, q []float64) (sum float64) {
		for a := range p {
			if p[a] > 0 {
				sum += p[a] * math.Log(p[a]/q[a])
			}
		}
		return sum
	}), []error{
		KL(func(p, q []float64) float64 { return stat.KullbackLeibler(q, p) }),
		KL(func(p, q []float64) (sum float64) {
			for a := range p {
				sum += p[a] * math.Log(p[a]/q[a]) // 0 times −Inf
			}
			return sum
		}),
	}},
	"Crossing": {Crossing(func(mass, gap, eta float64) int {
		return int(math.Ceil(math.Log((1-mass)/mass) / (eta * gap)))
	}), []error{
		Crossing(func(mass, gap, eta float64) int { return int(math.Log((1-mass)/mass) / (eta * gap)) }),
		Crossing(func(mass, gap, eta float64) int { return int(math.Ceil(math.Log(1/mass) / eta)) }),
	}},
	"Parameters": {Parameters(func(states, actions, layers, width, hidden int) int {
		return transformer.Config{Features: states + actions + 3, Layers: layers, Heads: 1, Width: width,
			Hidden: hidden, Outputs: 1}.Size()
	}), []error{Parameters(func(states, actions, layers, width, hidden int) int {
		return layers * (4*width*width + 2*width*hidden)
	})}},
	"Gradient": {Gradient(func(z, logPi, etaQ []float64) []float64 { return numerical(z, logPi, etaQ) }),
		[]error{Gradient(func(z, logPi, etaQ []float64) []float64 { return etaQ })}},
	"Behind": {Behind(func(learned, exact []float64) (list []int) {
		for i := range learned {
			if learned[i] > exact[i]+.05 {
				list = append(list, i)
			}
		}
		return list
	}), []error{
		Behind(func(learned, exact []float64) []int { return nil }),
		Behind(func(learned, exact []float64) (list []int) {
			for i := range learned {
				if math.Abs(learned[i]-exact[i]) > .05 {
					list = append(list, i)
				}
			}
			return list
		}),
	}},
	"LocksUp": {LocksUp(func(mass, gap, eta, floor float64) bool {
		odds := mass / (1 - mass) * math.Exp(eta*gap)
		return odds/(1+odds) < floor
	}), []error{
		LocksUp(func(mass, gap, eta, floor float64) bool { return mass < floor }),
		LocksUp(func(mass, gap, eta, floor float64) bool { return false }),
		LocksUp(func(mass, gap, eta, floor float64) bool { return mass*math.Exp(eta*gap) < floor }), // not normalized
	}},
	"Packets": {Packets(packets), []error{
		Packets(func(b, tolerance, alpha float64, states, actions, rounds int) int {
			return packets(b, tolerance, alpha, states, actions, rounds) - 1
		}),
		Packets(func(b, tolerance, alpha float64, states, actions, rounds int) int { return 1 << 30 }),
		Packets(func(b, tolerance, alpha float64, states, actions, rounds int) int { return 0 }),
	}},
	"Lookup": {Lookup(lookup), []error{
		Lookup(func(q [][]float64, next, action int, tau float64) float64 { return q[next][action] }),
		Lookup(func(q [][]float64, next, action int, tau float64) float64 { // without the packet itself
			x := lookup(q, next, action, tau)
			return x / (1 - leaked(q, tau))
		}),
	}},
	"Paired": {Paired(func(learned [][]float64, exact []float64) float64 {
		var runs []float64
		for _, run := range learned {
			runs = append(runs, median(floats.SubTo(make([]float64, len(run)), run, exact)))
		}
		return median(runs)
	}), []error{Paired(func(learned [][]float64, exact []float64) float64 {
		var runs []float64
		for _, run := range learned {
			runs = append(runs, median(run)-median(exact))
		}
		return median(runs)
	})}},
	"Holm": {Holm(func(p []float64, level float64) int {
		sort.Float64s(p)
		for k, v := range p {
			if v > level/float64(len(p)-k) {
				return k
			}
		}
		return len(p)
	}), []error{
		Holm(func(p []float64, level float64) int {
			return floats.Count(func(v float64) bool { return v <= level }, p)
		}),
		Holm(func(p []float64, level float64) int { // Bonferroni
			return floats.Count(func(v float64) bool { return v <= level/float64(len(p)) }, p)
		}),
	}},
	"Frequencies": {Frequencies(func(seen [][3]int, s, a, states int) []float64 {
		return frequencies(seen, s, a, states, 1/float64(states))
	}), []error{Frequencies(func(seen [][3]int, s, a, states int) []float64 {
		return frequencies(seen, s, a, states, 0)
	})}},
	"Corridor": {Corridor(func(s, a, states int, slip float64) []float64 {
		row := make([]float64, states)
		row[min(max(s+a-1, 0), states-1)] += 1 - slip
		row[s] += slip
		return row
	}), []error{Corridor(func(s, a, states int, slip float64) []float64 {
		row := make([]float64, states)
		row[min(max(s+a-1, 0), states-1)] = 1 - slip
		row[s] = slip // at the ends too
		return row
	})}},
	"Mixed": {Mixed(func(pi, q []float64, eta, phi float64) []float64 {
		row := step(pi, q, eta)
		for a := range row {
			row[a] = (1-phi)*row[a] + phi/float64(len(row))
		}
		return row
	}), []error{Mixed(func(pi, q []float64, eta, phi float64) []float64 { return step(pi, q, eta) })}},
	"Backups": {Backups(func(c control.Context, n int) *mat.Dense {
		q := c.Q
		for range n {
			q = c.MDP.EvaluationBackup(c.Pi, q)
		}
		return q
	}), []error{
		Backups(func(c control.Context, n int) *mat.Dense { return c.MDP.EvaluationBackup(c.Pi, c.Q) }),
		Backups(func(c control.Context, n int) *mat.Dense {
			for range n {
				c.Q.Copy(c.MDP.EvaluationBackup(c.Pi, c.Q))
			}
			return c.Q
		}),
		Backups(func(c control.Context, n int) *mat.Dense { return nil }),
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
