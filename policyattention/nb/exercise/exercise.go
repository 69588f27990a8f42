// Package exercise checks the exercises of the notebooks. Each check returns nil for a solution, and otherwise an error
// that says what the attempt does wrong, without the solution.
//
// Rows of policies are slices [A] that sum to one, and Q is a slice [A] of the same length; η ≥ 0.
package exercise

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/control"
	"icrl/policyattention/decoder"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
	"icrl/policyattention/stats"
)

// row draws a policy row [a] and values [a], uniform on [−scale, scale].
func row(rng *rand.Rand, a int, scale float64) (pi, q []float64) {
	pi = mdp.RandomPolicy(rng, 1, a).RawRowView(0)
	for range a {
		q = append(q, scale*(2*rng.Float64()-1))
	}
	return pi, q
}

func near(x, y float64) bool { return math.Abs(x-y) <= 1e-9*(1+math.Abs(y)) }

// differ returns an error where what is got is not what is wanted, but for the rounding of a number or a row.
func differ(asked string, got, want any) error {
	format := "%s came out as %v, want %v"
	switch want := want.(type) {
	case float64:
		if near(got.(float64), want) {
			return nil
		}
		format = "%s came out as %.4f, want %.4f"
	case []float64:
		if row := got.([]float64); len(row) != len(want) {
			return fmt.Errorf("%s has %d entries, want %d", asked, len(row), len(want))
		} else if floats.EqualFunc(row, want, near) {
			return nil
		}
		format = "%s is %.4f, want %.4f"
	default:
		if fmt.Sprint(got) == fmt.Sprint(want) {
			return nil
		}
	}
	return fmt.Errorf(format, asked, got, want)
}

// each asks n questions, each with what is got and what is wanted.
func each[T any](name string, n int, ask func(rng *rand.Rand, i int) (asked string, got, want T)) error {
	rng := seed.New(1, "exercise", name)
	for i := range n {
		asked, got, want := ask(rng, i)
		if err := differ(asked, got, want); err != nil {
			return err
		}
	}
	return nil
}

// Mean checks a mean of integers.
func Mean(f func(x []int) float64) error {
	return each("mean", 7, func(rng *rand.Rand, i int) (string, float64, float64) {
		x, sum := make([]int, i+1), 0
		for i := range x {
			x[i] = rng.IntN(10)
			sum += x[i]
		}
		return fmt.Sprintf("the mean of %d", x), f(x), float64(sum) / float64(len(x))
	})
}

// Median checks a median of a list that it leaves as it is.
func Median(f func(x []float64) float64) error {
	rng := seed.New(1, "exercise", "median")
	for n := 1; n < 8; n++ {
		_, x := row(rng, n, 1)
		before := slices.Clone(x)
		if got, want := f(x), stats.Median(x); !near(got, want) {
			return fmt.Errorf("the median of %.2f came out as %.2f, want %.2f", before, got, want)
		}
		if !slices.Equal(x, before) {
			return fmt.Errorf("the list %.2f was changed to %.2f", before, x)
		}
	}
	return nil
}

// Best checks the index of the largest value, the first of equal ones, and an error for no values.
func Best(f func(q []float64) (int, error)) error {
	rng := seed.New(1, "exercise", "best")
	for n := range 8 {
		_, q := row(rng, max(n, 1), 1)
		q = q[:n]
		for i := range q {
			q[i] = math.Round(3*q[i]) - 4
		}
		switch got, err := f(slices.Clone(q)); {
		case n == 0 && err == nil:
			return errors.New("an empty list has no largest value, and there was no error")
		case n > 0 && err != nil:
			return fmt.Errorf("for %g there was an error: %w", q, err)
		case n > 0 && got != slices.Index(q, slices.Max(q)):
			return fmt.Errorf("the index of the largest of %g came out as %d", q, got)
		}
	}
	return nil
}

// KL checks the divergence of two rows, of which the first has zeros.
func KL(f func(p, q []float64) float64) error {
	return each("kl", 20, func(rng *rand.Rand, i int) (string, float64, float64) {
		p, _ := row(rng, 4, 1)
		q, _ := row(rng, 4, 1)
		if i%2 == 1 {
			p = []float64{p[0] / (p[0] + p[1]), p[1] / (p[0] + p[1]), 0, 0}
		}
		got := f(slices.Clone(p), slices.Clone(q))
		return fmt.Sprintf("the divergence for p = %.3f, q = %.3f", p, q), got, pmd.KL(p, q)
	})
}

// Step checks the policy mirror descent update of a row, equation (1).
func Step(f func(pi, q []float64, eta float64) []float64) error {
	return each("step", 20, func(rng *rand.Rand, i int) (string, []float64, []float64) {
		scale := 1.0
		if i >= 10 {
			scale = 2000 // e^2000 is no float64
		}
		pi, q := row(rng, 3, scale)
		got := f(slices.Clone(pi), slices.Clone(q), .8)
		return fmt.Sprintf("the row for π = %.3f, Q = %.3g, η = 0.8", pi, q), got, step(pi, q, .8)
	})
}

// Crossing checks after which round of PMD the better of two actions, always by gap, has more than half of the mass.
func Crossing(f func(mass, gap, eta float64) int) error {
	return each("crossing", 20, func(rng *rand.Rand, _ int) (string, int, int) {
		mass, gap, eta := math.Pow(10, -.5-4*rng.Float64()), .5+rng.Float64(), .4+rng.Float64()
		want, p := 0, []float64{mass, 1 - mass}
		for ; p[0] <= .5; want++ {
			p = step(p, []float64{gap, 0}, eta)
		}
		asked := fmt.Sprintf("from mass %.2g, with a gap of %.3f and η = %.3f, it", mass, gap, eta)
		return asked, f(mass, gap, eta), want
	})
}

// Parameters checks how many weights the learned network has.
func Parameters(f func(states, actions, layers, width, hidden int) int) error {
	return each("parameters", 3, func(_ *rand.Rand, i int) (string, int, int) {
		x := [][]int{{4, 3, 1, 64, 128}, {8, 3, 4, 64, 128}, {5, 2, 2, 32, 80}}[i]
		return fmt.Sprintf("for S = %d, A = %d, %d layers of width %d with %d hidden units it", x[0], x[1], x[2], x[3],
			x[4]), f(x[0], x[1], x[2], x[3], x[4]), []int{34_369, 135_041, 19_617}[i]
	})
}

// Minimum checks the least proximal loss of a row, that of its PMD row.
func Minimum(f func(pi, q []float64, eta float64) float64) error {
	return each("minimum", 20, func(rng *rand.Rand, _ int) (string, float64, float64) {
		pi, q := row(rng, 4, 10)
		want := pmd.ProximalLoss(matrix(step(pi, q, .8)), matrix(pi), matrix(q), .8)
		return fmt.Sprintf("the least loss for π = %.3f, Q = %.3f, η = 0.8, that of PMD's row,", pi, q),
			f(slices.Clone(pi), slices.Clone(q), .8), want
	})
}

// Gradient checks the derivative of the proximal loss of a row by its logits z [A].
func Gradient(f func(z, logPi, etaQ []float64) []float64) error {
	return each("gradient", 20, func(rng *rand.Rand, _ int) (string, []float64, []float64) {
		pi, z := row(rng, 3, 2)
		_, etaQ := row(rng, 3, 2)
		logPi, p, mean := make([]float64, 3), slices.Clone(z), 0.0
		pmd.Softmax(p)
		want := make([]float64, 3)
		for a := range p {
			logPi[a] = math.Log(pi[a])
			want[a] = math.Log(p[a]) - logPi[a] - etaQ[a]
			mean += p[a] * want[a]
		}
		for a := range p {
			want[a] = p[a] * (want[a] - mean)
		}
		return fmt.Sprintf("the gradient at z = %.3f, log π = %.3f, ηQ = %.3f", z, logPi, etaQ),
			f(slices.Clone(z), slices.Clone(logPi), slices.Clone(etaQ)), want
	})
}

// Behind checks which problems end more than .05 behind.
func Behind(f func(learned, exact []float64) []int) error {
	return each("behind", 10, func(rng *rand.Rand, _ int) (string, []int, []int) {
		learned, exact, want := make([]float64, 6), make([]float64, 6), []int(nil)
		for i := range learned {
			exact[i] = rng.Float64()
			learned[i] = math.Abs(exact[i] + .2*rng.NormFloat64())
			if learned[i] > exact[i]+.05 {
				want = append(want, i)
			}
		}
		return fmt.Sprintf("for losses %.3f and %.3f the list", learned, exact), f(learned, exact), want
	})
}

// LocksUp checks whether an actor that drops what PMD leaves below floor loses the better of two actions.
func LocksUp(f func(mass, gap, eta, floor float64) bool) error {
	return each("locks-up", 40, func(rng *rand.Rand, _ int) (string, bool, bool) {
		mass, gap, eta, floor := .4*rng.Float64(), .5+rng.Float64(), .8, .02+.4*rng.Float64()
		p := step([]float64{mass, 1 - mass}, []float64{gap, 0}, eta)[0]
		return fmt.Sprintf("from mass %.4f, with a gap of %.3f and η = %g, PMD's first row has %.4f; with a floor of "+
			"%.4f it", mass, gap, eta, p, floor), f(mass, gap, eta, floor), p < floor
	})
}

// Packets checks the number of transitions a pair that keeps the sampling error of equation (7) below a tolerance.
func Packets(f func(b, tolerance, alpha float64, states, actions, rounds int) int) error {
	for _, x := range []struct {
		b, tolerance, alpha     float64
		states, actions, rounds int
	}{{10, 1, .05, 3, 2, 40}, {10, .1, .05, 8, 3, 40}, {2, .5, .01, 4, 3, 20}} {
		delta := func(m int) float64 {
			pairs := float64(x.states * x.actions * x.rounds)
			return x.b * math.Sqrt(2*math.Log(2*pairs/x.alpha)/float64(m))
		}
		got := f(x.b, x.tolerance, x.alpha, x.states, x.actions, x.rounds)
		if got < 1 || delta(got) > x.tolerance {
			return fmt.Errorf("%d packets leave an error of %.4f, want at most %g", got, delta(max(got, 1)),
				x.tolerance)
		}
		if delta(got-1) <= x.tolerance {
			return fmt.Errorf("%d packets are more than a tolerance of %g needs", got, x.tolerance)
		}
	}
	return nil
}

// Forget checks a change of one weight that makes the fixed decoder's actor forget the
// policy that it is given: it then returns softmax(ηQ), outside of its certificate.
func Forget(change func(n *decoder.Network, l *decoder.Layout)) error {
	caps := decoder.Lecture.Caps
	d, whole := must(decoder.New(caps)), must(decoder.New(caps))
	if err := d.Edit(func(n *decoder.Network) { change(n, d.Layout) }); err != nil {
		return err
	}
	changed := 0
	before := whole.Network.Matrices()
	for i, w := range d.Network.Matrices() {
		var by mat.Dense
		by.Sub(w.Matrix, before[i].Matrix)
		changed += floats.Count(func(v float64) bool { return v != 0 }, by.RawMatrix().Data)
	}
	if changed != 1 {
		return fmt.Errorf("%d weights were changed, want one", changed)
	}
	problem := must(mdp.Random.Draw(decoder.Lecture.Root, caps.States, caps.Actions, 1))[0]
	q := must(problem.MDP.PolicyValue(problem.Pi0))
	call, err := d.TraceActor(problem.Pi0, q, caps.EtaMax)
	if err != nil {
		return err
	}
	pmdRow := must(pmd.Step(problem.Pi0, q, caps.EtaMax))
	forgetful := must(pmd.Step(problem.MDP.Uniform(), q, caps.EtaMax))
	for s, got := range call.Results {
		if pmd.MaxRowL1(matrix(got), matrix(pmdRow.RawRowView(s))) <= d.Zeta {
			return fmt.Errorf("in state %d the row is still within ζ = %.2g of PMD's", s, d.Zeta)
		}
		if pmd.MaxRowL1(matrix(got), matrix(forgetful.RawRowView(s))) > .01 {
			return fmt.Errorf("in state %d the row is %.3f, and softmax(ηQ) is %.3f", s, got, forgetful.RawRowView(s))
		}
	}
	return nil
}

// Lookup checks what the first packet of a critic call copies from q [S][A] for its successor, with what leaks.
func Lookup(f func(q [][]float64, next, action int, tau float64) float64) error {
	caps := decoder.Lecture.Caps
	caps.Routing = .1 // so that what leaks to the packet itself is seen
	d := must(decoder.New(caps))
	problem := must(mdp.Random.Draw(decoder.Lecture.Root, caps.States, caps.Actions, 1))[0]
	q := must(problem.MDP.PolicyValue(problem.Pi0))
	for i := range 3 {
		packets := decoder.Sample(problem.MDP, problem.Pi0, caps.Packets, seed.New(uint64(i), "lookup"))
		call, err := d.TraceCritic(problem.Pi0, q, packets)
		if err != nil {
			return err
		}
		p, want := packets[0], call.Blocks[0].Output[caps.States*caps.Actions][d.Layout.Looked.Offset]
		if got := f(mdp.ToRows(q), p.NextState, p.NextAction, d.Tau1); math.Abs(got-want) > 1e-9 {
			return fmt.Errorf("for (s', a') = (%d, %d) it came out as %.6f, the decoder looks up %.6f", p.NextState,
				p.NextAction, got, want)
		}
	}
	return nil
}

// Ratio checks the summary of a trained run: the ratio of median losses.
func Ratio(f func(learned, exact []float64) float64) error {
	return each("ratio", 6, func(rng *rand.Rand, i int) (string, float64, float64) {
		x, y := mdp.RandomPolicy(rng, 1, i+3).RawRowView(0), mdp.RandomPolicy(rng, 1, i+3).RawRowView(0)
		got := f(slices.Clone(x), slices.Clone(y))
		return fmt.Sprintf("the ratio for losses %.2f and %.2f", x, y), got, stats.Median(x) / stats.Median(y)
	})
}

// Paired checks the median over runs of the median difference over problems.
func Paired(f func(learned [][]float64, exact []float64) float64) error {
	return each("paired", 10, func(rng *rand.Rand, _ int) (string, float64, float64) {
		exact, _ := row(rng, 5, 1)
		var learned [][]float64
		var medians []float64
		for range 3 {
			run, _ := row(rng, 5, 1)
			difference := floats.SubTo(make([]float64, 5), run, exact)
			learned, medians = append(learned, run), append(medians, stats.Median(difference))
		}
		got, want := f(mdp.ToRows(matrix(learned...)), slices.Clone(exact)), stats.Median(medians)
		return fmt.Sprintf("the difference for losses %.2f and %.2f", learned, exact), got, want
	})
}

// Holm checks how many of some p-values Holm's method keeps at a level.
func Holm(f func(p []float64, level float64) int) error {
	return each("holm", 40, func(rng *rand.Rand, _ int) (string, int, int) {
		p := make([]float64, 6)
		for i := range p {
			p[i] = math.Pow(rng.Float64(), 6)
		}
		want := floats.Count(func(adjusted float64) bool { return adjusted <= .05 }, stats.Holm(p))
		return fmt.Sprintf("how many of %.4f it keeps at the level .05", p), f(slices.Clone(p), .05), want
	})
}

// Advantage checks the temporal-difference error of a transition, an actor–critic's: r + γ Q(s',a') − Q(s,a).
func Advantage(f func(q [][]float64, s, a int, r float64, next, action int, gamma float64) float64) error {
	return each("advantage", 20, func(rng *rand.Rand, _ int) (string, float64, float64) {
		var q [][]float64
		for range 3 {
			_, values := row(rng, 2, 1)
			q = append(q, values)
		}
		s, a, next, action, r := rng.IntN(3), rng.IntN(2), rng.IntN(3), rng.IntN(2), rng.Float64()
		return fmt.Sprintf("the error for Q = %.2f and the transition (s, a, r, s', a') = (%d, %d, %.2f, %d, %d)", q, s,
			a, r, next, action), f(q, s, a, r, next, action, .9), r + .9*q[next][action] - q[s][a]
	})
}

// Frequencies checks the frequencies of the next states of a pair in transitions (s, a, s').
func Frequencies(f func(seen [][3]int, s, a, states int) []float64) error {
	return each("frequencies", 20, func(rng *rand.Rand, _ int) (string, []float64, []float64) {
		count, n := make([]float64, 3), 0.0
		var seen [][3]int
		for range rng.IntN(12) {
			t := [3]int{rng.IntN(2), rng.IntN(2), rng.IntN(3)}
			seen = append(seen, t)
			if t[0] == 0 && t[1] == 1 {
				count[t[2]]++
				n++
			}
		}
		if n == 0 {
			count, n = []float64{1, 1, 1}, 3
		}
		floats.Scale(1/n, count)
		return fmt.Sprintf("the row of (0, 1) after %d", seen), f(seen, 0, 1, 3), count
	})
}

// Corridor checks a row of transitions of a corridor whose moves (left, stay, right) fail with probability slip.
func Corridor(f func(s, a, states int, slip float64) []float64) error {
	return each("corridor", 12, func(_ *rand.Rand, i int) (string, []float64, []float64) {
		s, a, want := i/3, i%3, make([]float64, 4)
		want[s] = .2
		want[min(max(s+a-1, 0), 3)] += .8
		return fmt.Sprintf("the row of s = %d, a = %d of 4 states, slip 0.2", s, a), f(s, a, 4, .2), want
	})
}

// Mixed checks an update of a row mixed with the uniform row, equation (10).
func Mixed(f func(pi, q []float64, eta, phi float64) []float64) error {
	return each("mixed", 20, func(rng *rand.Rand, _ int) (string, []float64, []float64) {
		pi, q := row(rng, 3, 5)
		return fmt.Sprintf("the row for π = %.3f, Q = %.3g, η = 0.8, φ = 0.1", pi, q),
			f(slices.Clone(pi), slices.Clone(q), .8, .1), must(pmd.Mix(matrix(step(pi, q, .8)), .1)).RawRowView(0)
	})
}

// Backups checks a critic of n backups that leaves the values it begins with as they are.
func Backups(f func(c control.Context, n int) *mat.Dense) error {
	problem := must(mdp.Random.Draw(4, 4, 3, 1))[0]
	q := must(problem.MDP.PolicyValue(problem.Pi0))
	pi := must(pmd.Step(problem.Pi0, q, 5))
	for n := 1; n < 4; n++ {
		want := q
		for range n {
			want = problem.MDP.EvaluationBackup(pi, want)
		}
		given := mat.DenseCopyOf(q)
		got := f(control.Context{MDP: problem.MDP, Pi: pi, Q: given, Eta: 5}, n)
		if got == nil || !mat.EqualApprox(got, want, 1e-9) {
			return fmt.Errorf("after %d backups the values differ from the library's", n)
		}
		if !mat.Equal(given, q) {
			return errors.New("c.Q was changed")
		}
	}
	return nil
}

// LockUp checks an update of a row [A] that is within 0.02 of PMD, in L1, in every round of every problem, and still
// leaves the loop of one of them with more than half of the initial loss after 200 rounds.
func LockUp(f func(pi, q []float64, eta float64) []float64) error {
	const allowed = .02
	problem := must(pmd.LockUp(allowed/2, control.NominalStep, mdp.Discount))
	loop := control.ExactPMD(control.NominalStep)
	loop.Actor = control.ActorFunc(func(c control.Context) (*mat.Dense, error) {
		for s := range c.Pi.RawMatrix().Rows {
			copy(c.Pi.RawRowView(s), f(slices.Clone(c.Pi.RawRowView(s)), c.Q.RawRowView(s), c.Eta))
		}
		return c.Pi, nil
	})
	problems := append(must(mdp.Random.Draw(3, 4, 2, 16)), problem)
	for i, p := range problems {
		trajectories, err := loop.Run([]mdp.Problem{p}, 200)
		if err != nil {
			return err
		}
		scored := must(control.Score([]mdp.Problem{p}, trajectories))[0]
		if away := slices.Max(scored.Zeta); away > allowed {
			return fmt.Errorf("problem %d: a row is %.4f away from PMD's, want at most %g", i, away, allowed)
		}
		if loss := scored.Loss[200]; i == len(problems)-1 && loss <= .5 {
			return fmt.Errorf("the problem with little mass on the good action: its loss falls to %.4f", loss)
		}
	}
	return nil
}

// TwoWay checks how a lead is taken apart. Losses stand in a two-way table: of another method (x) and of
// PolicyAttention (p), on the walk and with the model. The lead is xWalk − pModel; the part of the update rule is the
// mean of the differences between the methods, that of information the mean of those between walk and model.
func TwoWay(f func(xWalk, xModel, pWalk, pModel float64) (update, information float64)) error {
	return each("two-way", 10, func(rng *rand.Rand, _ int) (string, []float64, []float64) {
		_, x := row(rng, 4, 1)
		update, information := f(x[0], x[1], x[2], x[3])
		return fmt.Sprintf("the pair of parts for the losses %.2f", x), []float64{update, information},
			[]float64{(x[0] - x[2] + x[1] - x[3]) / 2, (x[0] - x[1] + x[2] - x[3]) / 2}
	})
}

// step is the policy mirror descent update of a row.
func step(pi, q []float64, eta float64) []float64 {
	return must(pmd.Step(matrix(pi), matrix(q), eta)).RawRowView(0)
}

// matrix returns a matrix with these rows.
func matrix(rows ...[]float64) *mat.Dense {
	return mat.NewDense(len(rows), len(rows[0]), slices.Concat(rows...))
}

// must is for calls whose arguments are those of a check, never a reader's.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
