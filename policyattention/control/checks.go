package control

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
)

// Checks walks the proofs of Theorem 2 and of equation (10) on the given number of
// trajectories at random and returns each statement with its cases: (8)–(12),
// (15)–(21), (23). Problems have 2 to 6 states, 2 to 4 actions and γ from 0 to .99;
// policies and tables are exact PMD's, disturbed from not at all to entirely.
func Checks(root uint64, trajectories int) ([]pmd.Check, error) {
	var tally pmd.Tally
	for i := range trajectories {
		problem, t, err := erratic(seed.New(root, "proof", i))
		if err != nil {
			return nil, err
		}
		steps, err := Prove(problem, t)
		if err != nil {
			return nil, err
		}
		const phi = .02
		rng := seed.New(root, "mixture", i)
		mixed, err := disturbed(rng, problem, math.Log(float64(problem.MDP.Actions())/phi)/(.1+4*rng.Float64()), phi)
		if err != nil {
			return nil, err
		}
		more, err := ProveMixture(problem, mixed, phi)
		if err != nil {
			return nil, err
		}
		for _, s := range append(steps, more...) {
			tally.Add(pmd.Check{Equation: s.Equation, Says: s.Says, Slack: s.Slack, Aside: s.Aside}, s.allowed())
		}
	}
	return tally, nil
}

// erratic draws a problem and a trajectory on it.
func erratic(rng *rand.Rand) (mdp.Problem, Trajectory, error) {
	s, a := 2+rng.IntN(5), 2+rng.IntN(3)
	r := mat.NewDense(s, a, nil)
	r.Apply(func(_, _ int, _ float64) float64 { return 2*rng.Float64() - 1 }, r)
	gamma := []float64{0, .5, .9, .99}[rng.IntN(4)]
	problem, err := mdp.NewProblem(gamma, mdp.RandomPolicy(rng, s*a, s), r, mdp.RandomPolicy(rng, s, a))
	if err != nil {
		return mdp.Problem{}, Trajectory{}, err
	}
	t, err := disturbed(rng, problem, 3*rng.Float64(), 0)
	return problem, t, err
}

// disturbed returns a trajectory of 1 to 8 rounds of exact PMD from a random Q_0 in
// which every policy is mixed with a random one and every table with noise, in
// shares of their own; in the end every policy is mixed with the uniform one in the
// share phi.
func disturbed(rng *rand.Rand, problem mdp.Problem, eta, phi float64) (Trajectory, error) {
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
	t := Trajectory{Policies: []*mat.Dense{problem.Pi0}, Q: []*mat.Dense{noise()}, Eta: eta}
	for k := range 1 + rng.IntN(8) {
		if k > 0 {
			next := m.EvaluationBackup(t.Policies[k], t.Q[k-1])
			mix(next, noise())
			t.Q = append(t.Q, next)
		}
		pi, err := pmd.Step(t.Policies[k], t.Q[k], eta)
		if err != nil {
			return Trajectory{}, err
		}
		mix(pi, mdp.RandomPolicy(rng, s, a))
		if pi, err = pmd.Mix(pi, phi); err != nil {
			return Trajectory{}, err
		}
		t.Policies = append(t.Policies, pi)
	}
	return t, nil
}
