package control

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
)

// TestProve walks the proof on trajectories at random, and expects every step to
// hold but the printed form of (20), which fails on some. It would notice a wrong
// side: each inequality comes within a factor of ten of equality somewhere.
func TestProve(t *testing.T) {
	closest, equations, failed, cases := map[string]float64{}, map[string]bool{}, 0, 0
	for i := range 400 {
		problem, trajectory := erratic(t, seed.New(30, "prove", i))
		steps := testkit.Must(Prove(problem, trajectory))(t)
		const phi = .02
		rng := seed.New(33, "mixture", i)
		eta := math.Log(float64(problem.MDP.Actions())/phi) / (.1 + 4*rng.Float64())
		mixed := disturbed(t, rng, problem, eta, phi)
		for _, s := range testkit.Must(ProveMixture(problem, mixed, phi))(t) {
			if equations[s.Equation] = true; !s.Holds() {
				t.Errorf("mixture %d, γ = %v: %+v", i, problem.MDP.Gamma, s)
			}
		}
		for _, s := range steps {
			equations[s.Equation] = true
			switch {
			case s.Aside:
				cases++
				if !s.Holds() {
					failed++
				}
			case !s.Holds():
				t.Errorf("trajectory %d, γ = %v: %+v", i, problem.MDP.Gamma, s)
			case !s.Identity && s.Left > 1e-6:
				closest[s.Equation+" "+s.Says] = max(closest[s.Equation+" "+s.Says], s.Left/s.Right)
			}
		}
	}
	t.Logf("(20) as printed fails on %d of %d trajectories", failed, cases)
	if failed == 0 || failed == cases {
		t.Errorf("(20) as printed fails on %d of %d trajectories", failed, cases)
	}
	for says, ratio := range closest {
		t.Logf("largest left/right %.3f: %s", ratio, says)
		if ratio < .1 {
			t.Errorf("%s: the left side is at most %.3f of the right", says, ratio)
		}
	}
	if len(closest) < 10 || len(equations) < 11 {
		t.Errorf("%d inequalities of equations %v, want at least 10 of 11", len(closest), equations)
	}
}

// TestPrintedNextState is the smallest case in which (20) fails as it is printed:
// the policy is wrong in a state that no action leads to.
func TestPrintedNextState(t *testing.T) {
	m := testkit.Must(mdp.New(.9, mat.NewDense(4, 2, []float64{1, 0, 1, 0, 1, 0, 1, 0}),
		mat.NewDense(2, 2, []float64{1, 0, 1, 0})))(t)
	optimum := testkit.Must(m.Optimal())(t)
	wrong := mat.NewDense(2, 2, []float64{1, 0, 0, 1})
	problem := mdp.Problem{MDP: m, Pi0: m.Uniform()}
	steps := testkit.Must(Prove(problem,
		Trajectory{Policies: []*mat.Dense{problem.Pi0, wrong}, Q: []*mat.Dense{optimum.Q}, Eta: 1}))(t)
	seen := false
	for _, s := range steps {
		if s.Aside {
			seen = true
			if math.Abs(s.Left-1) > 1e-12 || math.Abs(s.Right) > 1e-12 {
				t.Errorf("%+v, want 1 ≤ 0", s)
			}
		} else if !s.Holds() {
			t.Errorf("%+v", s)
		}
	}
	if !seen {
		t.Error("the printed form is missing")
	}
}

// TestProveNotices spoils what a step is about and expects the step to fail.
func TestProveNotices(t *testing.T) {
	var problem mdp.Problem
	var trajectory Trajectory
	for i := 0; len(trajectory.Q) < 2 || problem.MDP.Gamma == 0; i++ {
		problem, trajectory = erratic(t, seed.New(30, "prove", i))
	}
	scale, rounds, err := measured(problem, trajectory)
	if err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(k *Round){
		"≤ δ_k":  func(k *Round) { k.Delta *= .99 },
		"≤ γḡ_k": func(k *Round) { k.Defect *= .99 },
	} {
		k := *rounds[0]
		spoil(&k)
		p := &proof{mdp: problem.MDP, star: scale.Optimum.Q}
		p.recursion(&k)
		noticed := false
		for _, s := range p.steps {
			noticed = noticed || strings.HasSuffix(s.Says, want) && !s.Holds()
		}
		if !noticed {
			t.Errorf("no step noticed that the right side of %q was spoiled", want)
		}
	}
	p := &proof{mdp: problem.MDP, star: scale.Optimum.Q}
	k := rounds[0]
	testkit.Check(t, p.resolvent(k.NextPi, problem.MDP.R, 0))
	if p.steps[0].Holds() {
		t.Error("a wrong Q^π satisfies (19)")
	}
}

func TestProveMixture(t *testing.T) {
	const phi, theta = .05, 2.
	least := math.Inf(1)
	for i, problem := range draw(t, 31, 4, 20) {
		loop := ExactPMD(math.Log(3/phi) / theta)
		loop.Actor = MixedActor{Actor: loop.Actor, Phi: phi}
		if i%2 == 1 { // an actor off by up to .2 in a row
			rng := seed.New(31, i)
			loop.Actor = MixedActor{Phi: phi, Actor: ActorFunc(func(c Context) (*mat.Dense, error) {
				next, err := pmd.Step(c.Pi, c.Q, c.Eta)
				if err == nil {
					err = stir(rng, next, .1)
				}
				return next, err
			})}
		}
		trajectories := testkit.Must(loop.Run([]mdp.Problem{problem}, 1+i))(t)
		steps := testkit.Must(ProveMixture(problem, trajectories[0], phi))(t)
		for _, s := range steps {
			if !s.Holds() {
				t.Errorf("problem %d: %+v", i, s)
			}
		}
		last := steps[len(steps)-1]
		least = min(least, last.Right/last.Left)
		// Without the mixture the floor is missed, and the walk says so.
		bare := testkit.Must(ExactPMD(10).Run([]mdp.Problem{problem}, 5))(t)
		steps = testkit.Must(ProveMixture(problem, bare[0], phi))(t)
		if steps[0].Equation != "(29)" || steps[0].Holds() {
			t.Errorf("problem %d: the floor of an unmixed actor: %+v", i, steps[0])
		}
	}
	t.Logf("(10) is at least %.3g times the distance", least)
}

// stir replaces the share of every row of pi by a random policy.
func stir(rng *rand.Rand, pi *mat.Dense, share float64) error {
	rows, cols := pi.Dims()
	noise := mdp.RandomPolicy(rng, rows, cols)
	pi.Scale(1-share, pi)
	noise.Scale(share, noise)
	pi.Add(pi, noise)
	return nil
}

// erratic draws a problem and a trajectory on it.
func erratic(t testing.TB, rng *rand.Rand) (mdp.Problem, Trajectory) {
	t.Helper()
	s, a := 2+rng.IntN(5), 2+rng.IntN(3)
	r := mat.NewDense(s, a, nil)
	r.Apply(func(_, _ int, _ float64) float64 { return 2*rng.Float64() - 1 }, r)
	gamma := []float64{0, .5, .9, .99}[rng.IntN(4)]
	p, pi := mdp.RandomPolicy(rng, s*a, s), mdp.RandomPolicy(rng, s, a)
	problem := testkit.Must(mdp.NewProblem(gamma, p, r, pi))(t)
	return problem, disturbed(t, rng, problem, 3*rng.Float64(), 0)
}

// disturbed returns a trajectory of 1 to 8 rounds of exact PMD from a random Q_0 in
// which every policy is mixed with a random one and every table with noise, in
// shares of their own; in the end every policy is mixed with the uniform one in the
// share phi.
func disturbed(t testing.TB, rng *rand.Rand, problem mdp.Problem, eta, phi float64) Trajectory {
	t.Helper()
	m := problem.MDP
	s, a := m.States(), m.Actions()
	noise := func() *mat.Dense {
		q := mat.NewDense(s, a, nil)
		q.Apply(func(_, _ int, _ float64) float64 { return m.Bound() * (2*rng.Float64() - 1) }, q)
		return q
	}
	mix := func(x, y *mat.Dense) {
		share := []float64{0, 1e-3, .1, 1}[rng.IntN(4)]
		x.Apply(func(i, j int, v float64) float64 { return (1-share)*v + share*y.At(i, j) }, x)
	}
	x := Trajectory{Policies: []*mat.Dense{problem.Pi0}, Q: []*mat.Dense{noise()}, Eta: eta}
	for k := range 1 + rng.IntN(8) {
		if k > 0 {
			next := m.EvaluationBackup(x.Policies[k], x.Q[k-1])
			mix(next, noise())
			x.Q = append(x.Q, next)
		}
		pi := testkit.Must(pmd.Step(x.Policies[k], x.Q[k], eta))(t)
		mix(pi, mdp.RandomPolicy(rng, s, a))
		x.Policies = append(x.Policies, testkit.Must(pmd.Mix(pi, phi))(t))
	}
	return x
}

func TestProveRefuses(t *testing.T) {
	problem := draw(t, 32, 3, 1)[0]
	good := Trajectory{Policies: []*mat.Dense{problem.Pi0, problem.Pi0}, Q: []*mat.Dense{problem.MDP.R}, Eta: 1}
	for want, f := range map[string]func() error{
		"critic tables": func() error {
			_, err := Prove(problem, Trajectory{Policies: []*mat.Dense{problem.Pi0}})
			return err
		},
		"does not begin": func() error {
			_, err := Prove(problem, Trajectory{Policies: []*mat.Dense{problem.MDP.Uniform(), problem.Pi0}, Q: good.Q})
			return err
		},
		"without an MDP": func() error { _, err := Prove(mdp.Problem{}, good); return err },
		"phi = 0":        func() error { _, err := ProveMixture(problem, good, 0); return err },
		"step size eta = 0": func() error {
			_, err := ProveMixture(problem, Trajectory{Policies: good.Policies, Q: good.Q}, .1)
			return err
		},
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
