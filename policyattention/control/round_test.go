package control

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
)

// plain evaluates by sums alone: sweeps of (F Q)(s,a) with the row of pi, or with
// the greatest action where pi is nil.
func plain(m *mdp.MDP, q, pi *mat.Dense, sweeps int) *mat.Dense {
	states, actions := m.R.Dims()
	transitions := m.DenseP()
	for range sweeps {
		next := mat.NewDense(states, actions, nil)
		for s := range states {
			for a := range actions {
				sum := m.R.At(s, a)
				for t := range states {
					v := math.Inf(-1)
					if pi != nil {
						v = 0
					}
					for b := range actions {
						if pi == nil {
							v = max(v, q.At(t, b))
						} else {
							v += pi.At(t, b) * q.At(t, b)
						}
					}
					sum += m.Gamma * transitions.At(s*actions+a, t) * v
				}
				next.Set(s, a, sum)
			}
		}
		q = next
	}
	return q
}

// TestMeasure holds every number of a round against sums written out here, on
// policies and tables at random. Both sides round sums of about ten terms of size
// 10, and 400 sweeps at γ = .9 leave 10·.9⁴⁰⁰ = 5e-18 of a value.
func TestMeasure(t *testing.T) {
	const tolerance = 1e-12
	rng := seed.New(20, "runner")
	for _, problem := range draw(t, 20, 4, 5) {
		m := problem.MDP
		table := func() *mat.Dense {
			q := mat.NewDense(4, 3, nil)
			for i := range q.RawMatrix().Data {
				q.RawMatrix().Data[i] = 10 * (2*rng.Float64() - 1)
			}
			return q
		}
		q0 := table()
		scale := testkit.Must(NewScale(problem))(t)
		star := plain(m, q0, nil, 400)
		near := func(name string, got, want float64) {
			t.Helper()
			if !(math.Abs(got-want) <= tolerance) {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
		e0 := mdp.MaxAbsDiff(star, q0)
		near("the gap", scale.Gap, mdp.MaxAbsDiff(star, plain(m, q0, problem.Pi0, 400)))
		var delta, defect []float64
		var k *Round
		c := Context{MDP: m, Pi: problem.Pi0, Q: q0, Eta: 0.3}
		for horizon := 1; horizon <= 3; horizon++ {
			k = testkit.Must(scale.Measure(k, c, pmd.Policy{Pi: mdp.RandomPolicy(rng, 4, 3)}, table()))(t)
			c = k.After(m, 0.3)
			if k.Round != horizon-1 {
				t.Errorf("round %d is called %d", horizon-1, k.Round)
			}
			zeta, mean := 0.0, 0.0
			g := make([]float64, 4)
			for s := range 4 {
				z := 0.0
				for a := range 3 {
					z += k.Pi.At(s, a) * math.Exp(0.3*k.Q.At(s, a))
				}
				row, top := 0.0, math.Inf(-1)
				for a := range 3 {
					row += math.Abs(k.NextPi.At(s, a) - k.Pi.At(s, a)*math.Exp(0.3*k.Q.At(s, a))/z)
					top = max(top, k.Q.At(s, a))
					g[s] -= k.NextPi.At(s, a) * k.Q.At(s, a)
				}
				g[s] += top
				zeta, mean = max(zeta, row), mean+row/4
			}
			lifted := 0.0
			for i := range 12 {
				lifted = max(lifted, mat.Dot(m.DenseP().RowView(i), mat.NewVecDense(4, g)))
			}
			near("ζ", k.Zeta, zeta)
			near("the mean row-L1", k.RowL1, mean)
			near("ḡ", k.Defect, lifted)
			near("δ", k.Delta, mdp.MaxAbsDiff(k.NextQ, plain(m, k.Q, k.NextPi, 1)))
			near("the distance", k.Distance, mdp.MaxAbsDiff(star, plain(m, k.Q, k.NextPi, 400)))

			// Theorem 2 by the recursion of its proof: E_{T−1}, then (21).
			e := e0
			for i := range delta {
				e = 0.9*e + delta[i] + 0.9*defect[i]
			}
			near("the bound", k.Bound.Total()/100, (2*0.9*e+0.9*lifted)/(1-0.9)/100)
			delta, defect = append(delta, k.Delta), append(defect, lifted)
		}
	}
}

// TestMeasureRefuses asks for rounds that cannot be measured.
func TestMeasureRefuses(t *testing.T) {
	problem := draw(t, 21, 4, 1)[0]
	scale := testkit.Must(NewScale(problem))(t)
	good, q0 := problem.Pi0, problem.MDP.R
	bad := mat.NewDense(4, 3, nil)
	short := mat.NewDense(2, 3, nil)
	infinite := mat.DenseCopyOf(q0)
	infinite.Set(1, 2, math.Inf(1))
	for _, test := range []struct {
		eta             float64
		pi, q, next, to *mat.Dense
		want            string
	}{
		{.8, good, q0, nil, q0, "policy is missing"},
		{.8, good, q0, bad, q0, "round 3: the policy returned"},
		{.8, good, q0, short, q0, "[2, 3]"},
		{.8, good, q0, good, short, "Q is [2, 3]"},
		{.8, good, q0, good, infinite, "Inf"},
		{.8, good, q0, good, q0, ""},
		{.8, good, q0, good, nil, ""},
		{.8, good, nil, good, q0, "round 3: mdp: Q is missing"},
		{.8, good, short, good, q0, "Q is [2, 3]"},
		{.8, bad, q0, good, q0, "sums to 0"},
		{math.NaN(), good, q0, good, q0, "step size"},
	} {
		c := Context{Round: 3, MDP: problem.MDP, Pi: test.pi, Q: test.q, Eta: test.eta}
		switch k, err := scale.Measure(nil, c, pmd.Policy{Pi: test.next}, test.to); {
		case test.want == "" && err != nil:
			t.Error(err)
		case test.want == "" && (k.NextQ == nil) != (k.Delta == 0):
			t.Errorf("δ = %v of a round with Q %v", k.Delta, k.NextQ)
		case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("error %v, want one with %q", err, test.want)
		}
	}
	if _, err := NewScale(mdp.Problem{Pi0: good}); err == nil || !strings.Contains(err.Error(), "MDP") {
		t.Errorf("a problem without an MDP: %v", err)
	}
}

// TestSolving holds every round of a loop that keeps none against Run and Score.
func TestSolving(t *testing.T) {
	for i, p := range draw(t, 3, 5, 4) {
		loop := ExactPMD(NominalStep)
		if i > 0 {
			loop.Start = func(p mdp.Problem) (*mat.Dense, error) { return p.MDP.R, nil }
		}
		loop.Critic = CriticFunc(func(c Context) (*mat.Dense, error) {
			q := c.MDP.EvaluationBackup(c.Pi, c.Q)
			q.Set(0, 0, q.At(0, 0)+.01)
			return q, nil
		})
		trajectories := testkit.Must(loop.Run([]mdp.Problem{p}, 30))(t)
		scored := testkit.Must(Score([]mdp.Problem{p}, trajectories))(t)
		scale := testkit.Must(NewScale(p))(t)
		s := testkit.Must(loop.Begin(scale))(t)
		for k := 1; k <= 30; k++ {
			s = testkit.Must(s.Step())(t)
			bound, _, err := scored[0].Bound(k)
			testkit.Check(t, err)
			distance := mdp.MaxAbsDiff(scale.Optimum.Q, testkit.Must(s.Values())(t))
			if !mat.Equal(s.Policy.Pi, trajectories[0].Policies[k]) || !mat.Equal(s.Q, trajectories[0].Q[k-1]) ||
				s.Theorem2 != bound ||
				distance/s.Normalizer != scored[0].Loss[k] {
				t.Fatalf("round %d: bound %+v, want %+v", k, s.Theorem2, bound)
			}
			if !(distance <= s.Proven()) || s.Proven() > bound.Total() {
				t.Errorf("round %d: distance %v, proven %v, Theorem 2 %v", k, distance, s.Proven(), bound.Total())
			}
		}
		if s.Round != 30 || s.Zeta != 0 || math.Abs(s.Delta-.01) > 1e-12 {
			t.Errorf("%d rounds, ζ = %v, δ = %v", s.Round, s.Zeta, s.Delta)
		}
	}
}

// Where the start is optimal there is nothing to lose, and nothing divides by
// zero: two equal actions, and no reward at all.
func TestBeginAtTheOptimum(t *testing.T) {
	for name, c := range map[string]struct{ reward, normalizer float64 }{"equal actions": {1, 2},
		"no rewards": {0, 1}} {
		m := testkit.Must(mdp.New(0.5, mat.NewDense(2, 1, []float64{1, 1}),
			mat.NewDense(1, 2, []float64{c.reward, c.reward})))(t)
		scale := testkit.Must(NewScale(mdp.Problem{MDP: m, Pi0: m.Uniform()}))(t)
		s := testkit.Must(ExactPMD(NominalStep).Begin(scale))(t)
		if s.Normalizer != c.normalizer || !(s.Proven() < 1e-15) { // rounding
			t.Errorf("%s: normalizer %v, proven %v", name, s.Normalizer, s.Proven())
		}
	}
}

// TestLost counts states in which the best action is out of reach: π_0 leaves it out, or the
// actor forgets it.
func TestLost(t *testing.T) {
	m := testkit.Must(mdp.New(.5, mat.NewDense(4, 2, []float64{1, 0, 1, 0, 0, 1, 0, 1}),
		mat.NewDense(2, 2, []float64{0, 1, 0, 1})))(t)
	scale := testkit.Must(NewScale(mdp.Problem{MDP: m, Pi0: mat.NewDense(2, 2, []float64{1, 0, .5, .5})}))(t)
	forgetful := ActorFunc(func(Context) (*mat.Dense, error) { return mat.NewDense(2, 2, []float64{1, 0, 1, 0}), nil })
	for name, c := range map[string]struct {
		actor Actor
		now   int
	}{"exact": {RuleActor(pmd.PMD), 1}, "forgetful": {forgetful, 2}} {
		s := testkit.Must(Loop{Actor: c.actor, Critic: ExactCritic{}, Eta: 1}.Begin(scale))(t)
		s = testkit.Must(s.Step())(t)
		if now, before := s.Lost(); now != c.now || before != 1 {
			t.Errorf("%s: %d states, %d at the start; want %d and 1", name, now, before, c.now)
		}
	}
}
