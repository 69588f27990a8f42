package decoder

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/numeric"
	"icrl/internal/testkit"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
)

func paperCaps(s, a, m int) Caps {
	return Caps{States: s, Actions: a, Gamma: .9, RMax: 1, EtaMin: .8, EtaMax: .8, Rounds: 40, Routing: 1e-6,
		Alpha: .05, Packets: m}
}

// walk returns what runs and measures the next round of the decoder on a problem from the values q0 [S, A].
func walk(d *Decoder, p mdp.Problem, q0 *mat.Dense, eta float64, source PacketSource) func() (*Round, error) {
	scale, err := control.NewScale(p)
	c, last := control.Context{MDP: p.MDP, Pi: p.Pi0, Q: q0, Eta: eta}, (*control.Round)(nil)
	return func() (*Round, error) {
		if err != nil {
			return nil, err
		}
		k, err := d.Round(scale, last, c, source)
		if err == nil {
			last, c = &k.Round, k.After(p.MDP, eta)
		}
		return k, err
	}
}

// TestConverges lets the margins grow, with exact expectations: the loop's
// policies approach those of exact PMD, and with the last margins they agree to
// 1e-12 in every entry, as do the losses at T = 20 and T = 40.
func TestConverges(t *testing.T) {
	problems := testkit.Must(mdp.Random.Draw(6, 8, 3, 4))(t)
	exact := testkit.Must(control.ExactPMD(.8).Run(problems, 40))(t)
	want := testkit.Must(control.Score(problems, exact))(t)
	for _, routing := range []float64{1e-3, 1e-6, 1e-9, 1e-16} {
		caps := paperCaps(8, 3, 6)
		caps.Routing = routing
		d := testkit.Must(New(caps))(t)
		got := testkit.Must(d.Controller(.8, Weighted()).Run(problems, 40))(t)
		scored := testkit.Must(control.Score(problems, got))(t)
		worst := 0.
		for i := range got {
			for k := range got[i].Policies {
				worst = max(worst, mdp.MaxAbsDiff(got[i].Policies[k], exact[i].Policies[k]))
			}
		}
		loss := 0.
		for i := range scored {
			loss = max(loss, math.Abs(scored[i].Loss[20]-want[i].Loss[20]),
				math.Abs(scored[i].Loss[40]-want[i].Loss[40]))
		}
		t.Logf("ε_r %g: κ %.1f, τ₁ %.1f, τ₂ %.1f: policies within %.2g, normalized losses at 20 and 40 within %.2g",
			routing, d.Kappa, d.Tau1, d.Tau2, worst, loss)
		// A round adds at most ζ to a policy row and δ_route to Q. The factor
		// 1000 stands for what forty rounds make of it; it was not derived.
		if limit := max(1e-12, 1000*(d.Zeta+d.DeltaRoute)); worst > limit || loss > limit {
			t.Errorf("ε_r %g: policies within %g, losses within %g, want %g", routing, worst, loss, limit)
		}
	}
}

// TestAudit checks Theorem 2 on 69,120 returned policies, the paper's count:
// 11,520 runs of the decoder at six horizons each.
func TestAudit(t *testing.T) {
	shapes := []struct{ s, a, m, runs int }{{2, 2, 2, 8000}, {3, 2, 2, 3000}, {4, 3, 6, 510}, {8, 3, 6, 10}}
	if testing.Short() {
		shapes = shapes[2:]
	}
	var slack, relative []float64
	for _, sh := range shapes {
		d := testkit.Must(New(paperCaps(sh.s, sh.a, sh.m)))(t)
		problems := testkit.Must(mdp.Random.Draw(8, sh.s, sh.a, sh.runs))(t)
		rounds := make([][]*Round, sh.runs)
		testkit.Check(t, numeric.Parallel(sh.runs, func(i int) error {
			q0, err := problems[i].MDP.PolicyValue(problems[i].Pi0)
			if err != nil {
				return err
			}
			step := walk(d, problems[i], q0, .8, Sampled(uint64(i)))
			for k := 1; k <= 40 && err == nil; k++ {
				var r *Round
				if r, err = step(); err == nil && slices.Contains([]int{1, 2, 5, 10, 20, 40}, k) {
					rounds[i] = append(rounds[i], r)
				}
			}
			return err
		}))
		for i := range rounds {
			for _, r := range rounds[i] {
				left := r.Bound.Total() - r.Distance
				if !(left >= -1e-9*(1+r.Distance)) { // rounding of the exact solves
					t.Errorf("S=%d A=%d run %d: %+v", sh.s, sh.a, i, r)
				}
				slack, relative = append(slack, left), append(relative, r.Bound.Total()/r.Distance)
			}
		}
	}
	slices.Sort(slack)
	slices.Sort(relative)
	n := len(slack)
	t.Logf("%d rows satisfied; slack: least %.4g, quartiles %.4g %.4g %.4g, greatest %.4g; least bound/loss %.4g",
		n, slack[0], slack[n/4], slack[n/2], slack[3*n/4], slack[n-1], relative[0])
	if n < 69120 && !testing.Short() {
		t.Errorf("%d audited rows, want 69,120", n)
	}
}

// TestCoverage counts, over independent audits of K rounds, how often any δ_k
// exceeds its bound: at most a share α of them may. Half the audits start from
// Q = ±B by state, where targets are almost coin flips and Hoeffding's
// inequality is nearly sharp.
func TestCoverage(t *testing.T) {
	const audits, alpha = 4000, .2
	caps := Caps{States: 2, Actions: 2, Gamma: .99, RMax: 1, EtaMax: .02, Rounds: 5, Routing: 1e-9, Alpha: alpha,
		Packets: 40}
	d := testkit.Must(New(caps))(t)
	half := mat.NewDense(4, 2, []float64{.5, .5, .5, .5, .5, .5, .5, .5})
	coin := testkit.Must(mdp.New(.99, half, mat.NewDense(2, 2, nil)))(t)
	extreme := mat.NewDense(2, 2, []float64{d.B, d.B, -d.B, -d.B})
	problems := testkit.Must(mdp.Random.Draw(10, 2, 2, audits))(t)
	closest := make([]float64, audits) // greatest δ/bound of an audit
	testkit.Check(t, numeric.Parallel(audits, func(i int) error {
		env, err := mdp.New(.99, problems[i].MDP.DenseP(), problems[i].MDP.R)
		if err != nil {
			return err
		}
		p, q := mdp.Problem{MDP: env, Pi0: problems[i].Pi0}, extreme
		if i%2 == 0 {
			p.MDP = coin
		}
		step := walk(d, p, q, .02, Sampled(uint64(i)))
		for range caps.Rounds {
			r, err := step()
			if err != nil {
				return err
			}
			closest[i] = max(closest[i], r.Delta/r.DeltaBound)
		}
		return nil
	}))
	failures := floats.Count(func(x float64) bool { return x > 1 }, closest)
	t.Logf("%d failures in %d audits of %d rounds, at most %g allowed; largest δ/bound %.3f", failures, audits,
		caps.Rounds, alpha*audits, slices.Max(closest))
	if float64(failures) > alpha*audits {
		t.Errorf("%d of %d audits failed, want at most a share of %g", failures, audits, alpha)
	}
}

// TestGolden runs 40 rounds and compares the bits of all policies and values
// with those of another platform. Q_0 is zero, so that nothing but this
// package's arithmetic enters.
func TestGolden(t *testing.T) {
	problems := testkit.Must(mdp.Random.Draw(11, 8, 3, 1))(t)
	env := problems[0].MDP
	caps := paperCaps(8, 3, 6)
	caps.Phi, caps.Floor = .01, 1e-9
	plain := testkit.Must(New(caps))(t)
	normalized := testkit.Must(NewNormalized(caps, 1e4))(t)
	for _, c := range []struct {
		name   string
		d      *Decoder
		rounds int
		want   string
	}{{"plain", plain, 40, "46192f6588d92c60"}, {"normalized", normalized, 5, "b82368e424e2f942"}} {
		h := fnv.New64a()
		pi, q := problems[0].Pi0, mat.NewDense(8, 3, nil)
		for k := range c.rounds {
			pi = testkit.Must(c.d.Improve(pi, q, .8))(t)
			q = testkit.Must(c.d.Backup(pi, q, Sample(env, pi, 6, seed.New(11, k))))(t)
			for _, x := range append(slices.Clone(pi.RawMatrix().Data), q.RawMatrix().Data...) {
				fmt.Fprintf(h, "%016x", math.Float64bits(x))
			}
		}
		if got := fmt.Sprintf("%x", h.Sum64()); got != c.want {
			t.Errorf("%s: %d rounds hash to %s, want %s", c.name, c.rounds, got, c.want)
		}
	}
}

// TestMissingActions holds the loop on a problem with a mask against exact PMD, and against the common harness,
// to the bit.
func TestMissingActions(t *testing.T) {
	none := math.Inf(-1)
	problem := testkit.Must(mdp.NewProblem(.5, mat.NewDense(6, 2, []float64{.5, .5, 0, 1, 1, 0, 1, 0, 0, 0, 0, 1}),
		mat.NewDense(2, 3, []float64{1, -.5, .25, .5, none, -1}), nil))(t)
	d := testkit.Must(New(Caps{States: 2, Actions: 3, Gamma: .5, RMax: 1, EtaMax: 3, Rounds: 10, Routing: 1e-9,
		Alpha: .05, Packets: 3}))(t)
	exact := testkit.Must(control.ExactPMD(3).Run([]mdp.Problem{problem}, 10))(t)
	for name, source := range map[string]PacketSource{"weighted": Weighted(), "sampled": Sampled(3)} {
		step := walk(d, problem, exact[0].Q[0], 3, source)
		same := testkit.Must(d.Controller(3, source).Run([]mdp.Problem{problem}, 10))(t)[0]
		for i := range 10 {
			k := testkit.Must(step())(t)
			if !mat.Equal(k.NextPi, same.Policies[i+1]) || !mat.Equal(k.Q, same.Q[i]) {
				t.Errorf("%s, round %d: the harness has another policy, or other values", name, i)
			}
			if k.Zeta > k.ZetaBound || k.Route > k.RouteBound+1e-14 || k.NextPi.At(1, 1) != 0 ||
				k.NextQ.At(1, 1) != none {
				t.Errorf("%s, round %d: ζ %v ≤ %v, route %v ≤ %v, π̂ %v", name, i, k.Zeta, k.ZetaBound, k.Route,
					k.RouteBound, k.NextPi.RawRowView(1))
			}
			if off := pmd.MaxRowL1(k.NextPi, exact[0].Policies[i+1]); name == "weighted" && off > 1e-7 {
				t.Errorf("round %d: exact PMD is %v away", i, off)
			}
		}
		call, err := d.TraceCritic(problem.Pi0, exact[0].Q[0], source.Packets(problem.MDP, problem.Pi0, 3, 0, 0))
		if err != nil || len(call.Results) != 5 {
			t.Errorf("%s: %d results of a traced call, %v", name, len(call.Results), err)
		}
	}
}
