package control

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
)

// proof evaluates the statements of a proof on trajectories. Sides are in units of Q.
type proof struct {
	mdp          *mdp.MDP
	star         *mat.Dense         // Q*
	closest      map[string]float64 // of each inequality, the largest left side as a share of the right one
	held, failed map[string]int
}

func newProof() *proof {
	return &proof{closest: map[string]float64{}, held: map[string]int{}, failed: map[string]int{}}
}

// slack enters a statement that holds where slack ≥ 0 up to rounding: 1e-11 of the larger side, and
// of 1, which is some thousand times the error of the exact solves at γ = .99.
func (p *proof) slack(says string, slack, left, right float64) {
	if slack >= -1e-11*(1+max(math.Abs(left), math.Abs(right))) {
		p.held[says]++
	} else {
		p.failed[says]++
	}
}

func (p *proof) atMost(says string, left, right float64) {
	p.slack(says, right-left, left, right)
	if left > 1e-6 {
		p.closest[says] = max(p.closest[says], left/right)
	}
}

func (p *proof) equal(says string, left, right *mat.Dense) {
	p.slack(says, -mdp.MaxAbsDiff(left, right), norm(left), norm(right))
}

func (p *proof) everyState(says string, left, right []float64) {
	for s := range left {
		p.atMost(says, left[s], right[s])
	}
}

// measure returns the rounds of a trajectory with critic tables.
func (p *proof) measure(t testing.TB, problem mdp.Problem, x Trajectory) []*Round {
	scale := testkit.Must(NewScale(problem))(t)
	rounds := testkit.Must(scale.rounds(x))(t)
	p.mdp, p.star = problem.MDP, scale.Optimum.Q
	return rounds
}

// printed is (20) as the paper has it, with ḡ_{T−1} at every state. The greedy defect of a
// state may exceed the lifted one, which is a mean over next states. The proof needs it with
// g_{T−1}(s), or lifted; both hold, and so does the theorem.
const printed = "(20) as printed: max_a Q* − ⟨π, Q*⟩ ≤ ḡ_{T−1} + 2E_{T−1} at every state"

// theorem walks the proof of Theorem 2 (Appendix A, Section 4.1): the decomposition of
// Q* − Q_{k+1} and the bound of each part, the recursion of E_k = ‖Q* − Q_k‖∞, its unrolled form, the
// Bellman resolvent of the policy returned, the next-state inequality, and the theorem; and in
// every round the price of greediness, equations (12) and (23).
func (p *proof) theorem(t testing.TB, problem mdp.Problem, x Trajectory) {
	rounds := p.measure(t, problem, x)
	for i, k := range rounds {
		p.price(t, k)
		if i+1 < len(rounds) {
			p.recursion(k)
		}
	}
	m, gamma, last := p.mdp, p.mdp.Gamma, rounds[len(rounds)-1]
	T, e := len(rounds), mdp.MaxAbsDiff(p.star, last.Q)
	e0 := mdp.MaxAbsDiff(p.star, rounds[0].Q)
	unrolled := math.Pow(gamma, float64(T-1)) * e0
	var delta, defect []float64
	for k, r := range rounds {
		if k < T-1 {
			unrolled += math.Pow(gamma, float64(T-2-k))*r.Delta + math.Pow(gamma, float64(T-1-k))*r.Defect
			delta = append(delta, r.Delta)
		}
		defect = append(defect, r.Defect)
	}
	p.atMost("(11) E_{T−1} ≤ γ^{T−1}E_0 + Σγ^{T−2−k}δ_k + Σγ^{T−1−k}ḡ_k", e, unrolled)
	p.resolvent(t, last.NextPi, testkit.Must(m.PolicyValue(last.NextPi))(t))
	lost, own := pmd.GreedyDefect(last.NextPi, p.star), pmd.GreedyDefect(last.NextPi, last.Q)
	floats.AddConst(2*e, own)
	p.everyState("(20) max_a Q* − ⟨π, Q*⟩ ≤ g_{T−1}(s) + 2E_{T−1} at every state s", lost, own)
	p.atMost(printed, floats.Max(lost), last.Defect+2*e)
	p.atMost("(20) ‖P(max_a Q* − ⟨π, Q*⟩)‖ ≤ ḡ_{T−1} + 2E_{T−1}",
		pmd.LiftedDefect(m, lost), last.Defect+2*e)
	p.atMost("(21) ‖Q* − Q^π̂_T‖ ≤ 2γE_{T−1}/(1−γ) + γḡ_{T−1}/(1−γ)",
		last.Distance, gamma*(2*e+last.Defect)/(1-gamma))
	bound := testkit.Must(pmd.ReturnedPolicyBound(gamma, e0, delta, defect, T))(t)
	p.atMost("(8)–(9) Theorem 2, without δ_{T−1}", last.Distance, bound.Total())
}

// price enters what greediness costs PMD in round k, (12) = (22), by the prior-mass price
// D_k(s) = −log π_k(G|s) of the greedy actions G of Q_k, and what the actor's residual adds, (23), for
// B = max(R_max/(1−γ), ‖Q_k‖∞).
func (p *proof) price(t testing.TB, k *Round) {
	if k.Eta == 0 {
		return // the right sides are infinite
	}
	exact := testkit.Must(pmd.PMD.Next(pmd.Policy{Pi: k.Pi, Log: k.LogPi}, k.Q, k.Eta))(t)
	price := make([]float64, p.mdp.States()) // D_k/η
	for s := range price {
		values, greedy := k.Q.RawRowView(s), 0.0 // the mass of greedy actions
		for a, v := range values {
			if v == slices.Max(values) {
				greedy += k.Pi.At(s, a)
			}
		}
		price[s] = -math.Log(greedy) / k.Eta
	}
	p.everyState("(12) max_a Q_k − ⟨PMD, Q_k⟩ ≤ D_k/η", pmd.GreedyDefect(exact.Pi, k.Q), price)
	floats.AddConst(max(p.mdp.Bound(), norm(k.Q))*k.Zeta, price)
	p.everyState("(23) g_k ≤ D_k/η + Bζ_k", pmd.GreedyDefect(k.NextPi, k.Q), price)
}

// recursion enters how round k takes E_k to E_{k+1}.
func (p *proof) recursion(k *Round) {
	m, gamma := p.mdp, p.mdp.Gamma
	e, next := mdp.MaxAbsDiff(p.star, k.Q), mdp.MaxAbsDiff(p.star, k.NextQ)
	backup, own := m.OptimalityBackup(k.Q), m.EvaluationBackup(k.NextPi, k.Q)
	first, second, third := minus(m.OptimalityBackup(p.star), backup), minus(backup, own), minus(k.NextQ, own)
	var sum, lifted mat.Dense
	sum.Add(first, second)
	sum.Sub(&sum, third)
	g := pmd.GreedyDefect(k.NextPi, k.Q)
	lifted.Apply(func(s, a int, _ float64) float64 { return gamma * m.Expect(s, a, g) }, m.R)
	p.equal("(15) Q* − Q_{k+1} = (FQ* − FQ_k) + (FQ_k − F^π̂Q_k) − (Q_{k+1} − F^π̂Q_k)",
		minus(p.star, k.NextQ), &sum)
	p.atMost("(16) ‖FQ* − FQ_k‖ ≤ γE_k", norm(first), gamma*e)
	p.equal("(16) FQ_k − F^π̂Q_k = γPg_k", second, &lifted)
	p.atMost("(16) ‖FQ_k − F^π̂Q_k‖ ≤ γḡ_k", norm(second), gamma*k.Defect)
	p.atMost("(16) ‖Q_{k+1} − F^π̂Q_k‖ ≤ δ_k", norm(third), k.Delta)
	p.atMost("(17) E_{k+1} ≤ γE_k + δ_k + γḡ_k", next, gamma*e+k.Delta+gamma*k.Defect)
}

// resolvent enters (19) for the policy pi [S, A] with values [S, A]: the matrix
// I − γP^π [SA, SA] is inverted explicitly.
func (p *proof) resolvent(t testing.TB, pi, value *mat.Dense) {
	m := p.mdp
	states, actions := pi.Dims()
	n := states * actions
	system, transitions := mat.NewDense(n, n, nil), m.DenseP()
	system.Apply(func(i, j int, _ float64) float64 {
		v := -m.Gamma * transitions.At(i, j/actions) * pi.At(j/actions, j%actions)
		if i == j {
			v++
		}
		return v
	}, system)
	var inverse mat.Dense
	testkit.Check(t, inverse.Inverse(system))
	gap := minus(m.OptimalityBackup(p.star), m.EvaluationBackup(pi, p.star))
	var solved mat.VecDense
	solved.MulVec(&inverse, mat.NewVecDense(n, gap.RawMatrix().Data))
	p.equal("(19) Q* − Q^π = (I − γP^π)⁻¹(FQ* − F^πQ*)", minus(p.star, value),
		mat.NewDense(states, actions, solved.RawVector().Data))
	p.atMost("(19) no entry of the inverse is negative", 0, mat.Min(&inverse))
	for i := range n {
		sum := mat.Sum(inverse.RowView(i))
		p.slack("(19) its rows sum to 1/(1−γ)", -math.Abs(sum-1/(1-m.Gamma)), sum, 0)
	}
}

// mixture walks to equation (10) on a trajectory whose actor mixed in the uniform policy
// with weight phi: every policy after the first round lies at φ/A or above, so with
// θ = log(A/φ)/η its greedy defect is at most θ + Bζ. δ and ζ are the largest residuals of
// the trajectory and B = max(R_max/(1−γ), ‖Q_k‖∞).
func (p *proof) mixture(t testing.TB, problem mdp.Problem, x Trajectory, phi float64) {
	rounds := p.measure(t, problem, x)
	actions := float64(p.mdp.Actions())
	theta := math.Log(actions/phi) / x.Eta[0]
	b, delta, zeta := p.mdp.Bound(), 0.0, 0.0
	for _, k := range rounds {
		b, zeta = max(b, norm(k.Q)), max(zeta, k.Zeta)
		delta = max(delta, k.Delta) // 0 in the last round, which has no critic call
	}
	for _, k := range rounds {
		p.atMost("(29) φ/A ≤ π̂_{k+1}", phi/actions, mat.Min(k.NextPi))
		if k.Round == 0 {
			p.atMost("(10) ḡ_0 ≤ 2B", k.Defect, 2*b)
		} else {
			p.atMost("(10) ḡ_k ≤ θ + Bζ, k ≥ 1", k.Defect, theta+b*zeta)
		}
	}
	bound := pmd.MixtureBound(p.mdp.Gamma, mdp.MaxAbsDiff(p.star, x.Q[0]), b, delta, zeta, theta, len(rounds))
	distance := rounds[len(rounds)-1].Distance
	p.slack("(10) ‖Q* − Q^π̂_T‖ ≤ (2E_0+4B)γ^T/(1−γ) + 2γ/(1−γ)²(δ + Bζ + θ)",
		bound-distance, distance, bound)
}

func minus(x, y *mat.Dense) *mat.Dense {
	var d mat.Dense
	d.Sub(x, y)
	return &d
}

// norm returns ‖x‖∞.
func norm(x *mat.Dense) float64 { return math.Max(mat.Max(x), -mat.Min(x)) }

// TestProve walks the proof on trajectories at random, and expects every statement to hold but
// the printed form of (20), which fails on some. It would notice a wrong side: each inequality
// comes within a factor of ten of equality somewhere.
func TestProve(t *testing.T) {
	p := newProof()
	const phi = .02
	for i := range 400 {
		problem, trajectory := erratic(t, seed.New(30, "prove", i))
		p.theorem(t, problem, trajectory)
		rng := seed.New(33, "mixture", i)
		eta := math.Log(float64(problem.MDP.Actions())/phi) / (.1 + 4*rng.Float64())
		p.mixture(t, problem, disturbed(t, rng, problem, eta, phi), phi)
	}
	if n := p.failed[printed]; n == 0 || p.held[printed] == 0 {
		t.Errorf("(20) as printed fails on %d trajectories and holds on %d", n, p.held[printed])
	}
	delete(p.failed, printed)
	for says, n := range p.failed {
		t.Errorf("%s fails %d times", says, n)
	}
	for says, ratio := range p.closest {
		if ratio < .1 {
			t.Errorf("%s: the left side is at most %.3f of the right", says, ratio)
		}
	}
	if len(p.closest) != 15 || len(p.held) != 21 {
		t.Errorf("%d statements, %d inequalities", len(p.held), len(p.closest))
	}
}

// TestPrintedNextState is the smallest case in which (20) fails as it is printed: the policy is
// wrong in a state that no action leads to.
func TestPrintedNextState(t *testing.T) {
	m := testkit.Must(mdp.New(.9, mat.NewDense(4, 2, []float64{1, 0, 1, 0, 1, 0, 1, 0}),
		mat.NewDense(2, 2, []float64{1, 0, 1, 0})))(t)
	optimum := testkit.Must(m.Optimal())(t)
	wrong := mat.NewDense(2, 2, []float64{1, 0, 0, 1})
	problem := mdp.Problem{MDP: m, Pi0: m.Uniform()}
	p := newProof()
	p.theorem(t, problem, Trajectory{Policies: []*mat.Dense{problem.Pi0, wrong}, Q: []*mat.Dense{optimum.Q},
		Eta: []float64{1}})
	if len(p.failed) != 1 || p.failed[printed] != 1 {
		t.Errorf("these fail: %v", p.failed)
	}
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
	x := Trajectory{Policies: []*mat.Dense{problem.Pi0}, Q: []*mat.Dense{noise()}}
	for k := range 1 + rng.IntN(8) {
		if k > 0 {
			next := m.EvaluationBackup(x.Policies[k], x.Q[k-1])
			mix(next, noise())
			x.Q = append(x.Q, next)
		}
		pi := testkit.Must(pmd.Step(x.Policies[k], x.Q[k], eta))(t)
		mix(pi, mdp.RandomPolicy(rng, s, a))
		x.Policies, x.Eta = append(x.Policies, testkit.Must(pmd.Mix(pi, phi))(t)), append(x.Eta, eta)
	}
	return x
}
