// Package exercise checks the exercises of the notebooks. Each check returns nil for a
// solution, and otherwise an error that says what the attempt does wrong, without the
// solution.
//
// Rows of policies are slices [A] that sum to one, and Q is a slice [A] of the same
// length; η ≥ 0.
package exercise

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/control"
	"icrl/policyattention/decoder"
	"icrl/policyattention/decoder/network"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
	"icrl/policyattention/stats"
)

// stream returns the random numbers of a check.
func stream(name string) *rand.Rand { return seed.New(1, "exercise", name) }

// row draws a policy row [a] and values [a], uniform on [−scale, scale].
func row(rng *rand.Rand, a int, scale float64) (pi, q []float64) {
	pi = mdp.RandomPolicy(rng, 1, a).RawRowView(0)
	for range a {
		q = append(q, scale*(2*rng.Float64()-1))
	}
	return pi, q
}

func near(x, y float64) bool { return math.Abs(x-y) <= 1e-9*(1+math.Abs(y)) }

// rows compares a row with the wanted one.
func rows(name string, got, want []float64) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s has %d entries, want %d", name, len(got), len(want))
	}
	for a := range want {
		if !near(got[a], want[a]) {
			return fmt.Errorf("%s is %.4f, want %.4f", name, got, want)
		}
	}
	return nil
}

// Median checks a median of a list that it leaves as it is.
func Median(f func(x []float64) float64) error {
	rng := stream("median")
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

// Step checks the policy mirror descent update of a row, equation (1).
func Step(f func(pi, q []float64, eta float64) []float64) error {
	rng := stream("step")
	for i := range 20 {
		scale := 1.0
		if i >= 10 {
			scale = 2000 // e^2000 is no float64
		}
		pi, q := row(rng, 3, scale)
		want := must(pmd.Step(mat.NewDense(1, 3, slices.Clone(pi)), mat.NewDense(1, 3, slices.Clone(q)),
			.8)).RawRowView(0)
		if err := rows(fmt.Sprintf("the row for π = %.3f, Q = %.3g, η = 0.8", pi, q),
			f(slices.Clone(pi), slices.Clone(q), .8), want); err != nil {
			return err
		}
	}
	return nil
}

// Minimum checks the least proximal loss of a row, that of its PMD row.
func Minimum(f func(pi, q []float64, eta float64) float64) error {
	rng := stream("minimum")
	for range 20 {
		pi, q := row(rng, 4, 10)
		p, v := mat.NewDense(1, 4, slices.Clone(pi)), mat.NewDense(1, 4, slices.Clone(q))
		want := pmd.ProximalLoss(must(pmd.Step(p, v, .8)), p, v, .8)
		if got := f(slices.Clone(pi), slices.Clone(q), .8); !near(got, want) {
			return fmt.Errorf("for π = %.3f, Q = %.3f, η = 0.8 the least loss came out as %.6f; PMD's row has %.6f",
				pi, q,
				got, want)
		}
	}
	return nil
}

// Schedule checks step sizes η_0 … η_19 that sum to at most 16, as twenty steps of 0.8
// do: exact PMD with them must have a lower median loss at T = 20.
func Schedule(eta func(round int) float64) error {
	const rounds, budget = 20, 20 * control.NominalStep
	sum := 0.0
	for k := range rounds {
		if err := pmd.CheckStep(eta(k)); err != nil {
			return fmt.Errorf("round %d: %w", k, err)
		}
		sum += eta(k)
	}
	if sum > budget*(1+1e-9) {
		return fmt.Errorf("the step sizes sum to %.3f, want at most %g", sum, float64(budget))
	}
	problems := must(mdp.Random.Draw(2, 8, 3, 64))
	median := func(loop control.Loop) float64 {
		var last []float64
		for _, s := range must(control.Score(problems, must(loop.Run(problems, rounds)))) {
			last = append(last, s.Loss[rounds])
		}
		return stats.Median(last)
	}
	constant := control.ExactPMD(control.NominalStep)
	scheduled := constant
	scheduled.Actor = control.ActorFunc(func(c control.Context) (*mat.Dense,
		error) {
		return pmd.Step(c.Pi, c.Q, eta(c.Round))
	})
	if x, y := median(scheduled), median(constant); x >= y {
		return fmt.Errorf("median loss at T = 20: %.5f with this schedule, %.5f with η = 0.8 in every round", x, y)
	}
	return nil
}

// Forget checks a change of one weight that makes the fixed decoder's actor forget the
// policy that it is given: it then returns softmax(ηQ), outside of its certificate.
func Forget(change func(n *network.Network, l *decoder.Layout)) error {
	caps := decoder.Lecture.Caps
	d, whole := must(decoder.New(caps)), must(decoder.New(caps))
	change(d.Network, d.Layout)
	changed := 0
	before := whole.Network.Matrices()
	for i, w := range d.Network.Matrices() {
		for r := range w.Rows {
			for c := range w.Cols {
				if w.Matrix.At(r, c) != before[i].Matrix.At(r, c) {
					changed++
				}
			}
		}
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
		r := mat.NewDense(1, caps.Actions, got)
		at := func(x *mat.Dense) *mat.Dense { return mat.NewDense(1, caps.Actions, x.RawRowView(s)) }
		if away := pmd.MaxRowL1(r, at(pmdRow)); away <= d.Zeta {
			return fmt.Errorf("in state %d the row is still within ζ = %.2g of PMD's", s, d.Zeta)
		}
		if away := pmd.MaxRowL1(r, at(forgetful)); away > .01 {
			return fmt.Errorf("in state %d the row is %.3f, and softmax(ηQ) is %.3f", s, got, forgetful.RawRowView(s))
		}
	}
	return nil
}

// Ratio checks the summary of a trained run: the ratio of median losses.
func Ratio(f func(learned, exact []float64) float64) error {
	rng := stream("ratio")
	for n := 3; n < 9; n++ {
		x, y := mdp.RandomPolicy(rng, 1, n).RawRowView(0), mdp.RandomPolicy(rng, 1, n).RawRowView(0)
		if got, want := f(slices.Clone(x), slices.Clone(y)), stats.Median(x)/stats.Median(y); !near(got, want) {
			return fmt.Errorf("for losses %.2f and %.2f the ratio came out as %.4f, want %.4f", x, y, got, want)
		}
	}
	return nil
}

// Advantage checks the temporal-difference error of one sampled transition, from which
// an actor–critic learns: r + γ Q(s',a') − Q(s,a).
func Advantage(f func(q [][]float64, s, a int, r float64, next, action int, gamma float64) float64) error {
	rng := stream("advantage")
	for range 20 {
		var q [][]float64
		for range 3 {
			_, values := row(rng, 2, 1)
			q = append(q, values)
		}
		s, a, next, action, r := rng.IntN(3), rng.IntN(2), rng.IntN(3), rng.IntN(2), rng.Float64()
		if got, want := f(q, s, a, r, next, action, .9), r+.9*q[next][action]-q[s][a]; !near(got, want) {
			return fmt.Errorf(
				"for Q = %.2f and the transition (s, a, r, s', a') = (%d, %d, %.2f, %d, %d) the error came "+
					"out as %.4f, want %.4f", q, s, a, r, next, action, got, want)
		}
	}
	return nil
}

// LockUp checks an update of a row [A] that is within 0.02 of PMD, in L1, in every round
// of every problem, and still leaves the loop of one of them with more than half of the
// initial loss after 200 rounds.
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

// TwoWay checks how a lead is taken apart. Losses stand in a two-way table: of another
// method (x) and of PolicyAttention (p), on the walk and with the model. The lead is
// xWalk − pModel; the part of the update rule is the mean of the differences between the
// methods, that of information the mean of those between walk and model.
func TwoWay(f func(xWalk, xModel, pWalk, pModel float64) (update, information float64)) error {
	rng := stream("two-way")
	for range 10 {
		_, x := row(rng, 4, 1)
		update, information := f(x[0], x[1], x[2], x[3])
		if !near(update+information, x[0]-x[3]) {
			return fmt.Errorf("for the losses %.2f the parts %.3f and %.3f add up to %.3f, the lead is %.3f", x, update,
				information, update+information, x[0]-x[3])
		}
		if want := (x[0] - x[2] + x[1] - x[3]) / 2; !near(update, want) {
			return fmt.Errorf("for the losses %.2f the part of the update rule came out as %.3f", x, update)
		}
	}
	return nil
}

// must is for calls whose arguments are those of a check, never a reader's.
func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
