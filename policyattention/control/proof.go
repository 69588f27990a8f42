package control

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
)

// ProofStep is one statement of a proof, evaluated on a trajectory. Sides are in
// units of Q.
type ProofStep struct {
	Equation string // its number in the paper
	Says     string
	Round    int  // k; T−1 for statements about the policy returned
	Identity bool // else Left ≤ Right
	// Left and Right are the two sides, of an identity between tables their maximum
	// norms. A statement for every state is that of the state with the least slack.
	Left, Right float64
	// Slack is Right − Left, or minus the largest difference of two tables.
	Slack float64
	// Aside says that the proof does not need the statement, and that it may fail.
	Aside bool
}

// Holds says whether the statement is true up to rounding: 1e-11 of the larger side,
// and of 1, which is some thousand times the error of the exact solves at γ = .99.
func (p ProofStep) Holds() bool { return p.Slack >= -p.allowed() }

func (p ProofStep) allowed() float64 {
	return 1e-11 * (1 + math.Max(math.Abs(p.Left), math.Abs(p.Right)))
}

// proof collects the steps of one trajectory.
type proof struct {
	mdp   *mdp.MDP
	star  *mat.Dense // Q*
	steps []ProofStep
}

func (p *proof) atMost(equation, says string, round int, left, right float64) {
	p.steps = append(p.steps, ProofStep{Equation: equation, Says: says, Round: round, Left: left, Right: right,
		Slack: right - left})
}

func (p *proof) equal(equation, says string, round int, left, right *mat.Dense) {
	p.steps = append(p.steps, ProofStep{
		Equation: equation, Says: says, Round: round, Identity: true,
		Left: norm(left), Right: norm(right), Slack: -mdp.MaxAbsDiff(left, right),
	})
}

// everyState enters left(s) ≤ right(s) by the state with the least slack.
func (p *proof) everyState(equation, says string, round int, left, right []float64) {
	worst := 0
	for s := range left {
		if right[s]-left[s] < right[worst]-left[worst] {
			worst = s
		}
	}
	p.atMost(equation, says, round, left[worst], right[worst])
}

// Prove walks the proof of Theorem 2 (Appendix A, Section 4.1) on a trajectory of
// T ≥ 1 rounds: the decomposition of Q* − Q_{k+1} and the bound of each part, the
// recursion of E_k = ‖Q* − Q_k‖∞, its unrolled form, the Bellman resolvent of the
// policy returned, the next-state inequality, and the theorem; and in every round
// the price of greediness, equations (12) and (23).
//
// Equation (20) is printed with ḡ_{T−1} at every state. The greedy defect of a single
// state may exceed the lifted one, which is a mean over next states, so this fails on
// some trajectories (the step is an Aside). The proof needs it with g_{T−1}(s), or
// lifted; both hold, and so does the theorem.
//
// It returns an error as Score does, and if the trajectory has no critic tables.
func Prove(problem mdp.Problem, t Trajectory) ([]ProofStep, error) {
	scale, rounds, err := measured(problem, t)
	if err != nil {
		return nil, err
	}
	p := &proof{mdp: problem.MDP, star: scale.Optimum.Q}
	for _, k := range rounds {
		p.price(k)
	}
	for _, k := range rounds[:len(rounds)-1] {
		p.recursion(k)
	}
	return p.steps, p.returned(rounds)
}

// measured returns the rounds of a trajectory with critic tables.
func measured(problem mdp.Problem, t Trajectory) (*Scale, []*Round, error) {
	scale, err := NewScale(problem)
	if err != nil {
		return nil, nil, fmt.Errorf("control: %w", err)
	}
	if len(t.Q) == 0 {
		return nil, nil, errors.New("control: a proof needs a trajectory of at least one round with critic tables")
	}
	if err := t.check(problem); err != nil {
		return nil, nil, fmt.Errorf("control: %w", err)
	}
	rounds, _, err := scale.rounds(t)
	if err != nil {
		return nil, nil, fmt.Errorf("control: %w", err)
	}
	return scale, rounds, nil
}

// price enters what greediness costs PMD in round k, (12) = (22), and what the
// actor's residual adds, (23), for B = max(R_max/(1−γ), ‖Q_k‖∞).
func (p *proof) price(k *Round) {
	prior := pmd.Policy{Pi: k.Pi, Log: k.LogPi}
	exact, err := pmd.PMD.Next(prior, k.Q, k.Eta)
	if err != nil || k.Eta == 0 {
		return // with η = 0 the right sides are infinite
	}
	price := pmd.PriorMassPrice(prior, k.Q)
	floats.Scale(1/k.Eta, price)
	p.everyState("(12)", "max_a Q_k − ⟨PMD, Q_k⟩ ≤ D_k/η", k.Index, pmd.GreedyDefect(exact.Pi, k.Q), price)
	floats.AddConst(max(p.mdp.Bound(), norm(k.Q))*k.Zeta, price)
	p.everyState("(23)", "g_k ≤ D_k/η + Bζ_k", k.Index, pmd.GreedyDefect(k.NextPi, k.Q), price)
}

// recursion enters how round k takes E_k to E_{k+1}.
func (p *proof) recursion(k *Round) {
	m, gamma := p.mdp, p.mdp.Gamma
	e, next := mdp.MaxAbsDiff(p.star, k.Q), mdp.MaxAbsDiff(p.star, k.NextQ)
	backup, own := m.OptimalityBackup(k.Q), m.EvaluationBackup(k.NextPi, k.Q)
	first, second, third := minus(m.OptimalityBackup(p.star), backup), minus(backup, own), minus(k.NextQ, own)
	var sum mat.Dense
	sum.Add(first, second)
	sum.Sub(&sum, third)
	p.equal("(15)–(16)", "Q* − Q_{k+1} = (FQ* − FQ_k) + (FQ_k − F^π̂Q_k) − (Q_{k+1} − F^π̂Q_k)",
		k.Index, minus(p.star, k.NextQ), &sum)
	p.atMost("(15)–(16)", "‖FQ* − FQ_k‖ ≤ γE_k", k.Index, norm(first), gamma*e)
	p.equal("(15)–(16)", "FQ_k − F^π̂Q_k = γPg_k", k.Index, second, p.lift(pmd.GreedyDefect(k.NextPi, k.Q)))
	p.atMost("(15)–(16)", "‖FQ_k − F^π̂Q_k‖ ≤ γḡ_k", k.Index, norm(second), gamma*k.Defect)
	p.atMost("(15)–(16)", "‖Q_{k+1} − F^π̂Q_k‖ ≤ δ_k", k.Index, norm(third), k.Delta)
	p.atMost("(17)", "E_{k+1} ≤ γE_k + δ_k + γḡ_k", k.Index, next, gamma*e+k.Delta+gamma*k.Defect)
}

// returned enters the statements about π̂_T.
func (p *proof) returned(rounds []*Round) error {
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
	p.atMost("(11)", "E_{T−1} ≤ γ^{T−1}E_0 + Σγ^{T−2−k}δ_k + Σγ^{T−1−k}ḡ_k", T-1, e, unrolled)

	pi := last.NextPi
	value, err := m.PolicyValue(pi)
	if err != nil {
		return err
	}
	if err := p.resolvent(pi, value, T-1); err != nil {
		return err
	}
	lost, g := pmd.GreedyDefect(pi, p.star), pmd.GreedyDefect(pi, last.Q)
	own, printed := make([]float64, len(g)), make([]float64, len(g))
	for s := range g {
		own[s], printed[s] = g[s]+2*e, last.Defect+2*e
	}
	p.everyState("(20)", "max_a Q* − ⟨π, Q*⟩ ≤ g_{T−1}(s) + 2E_{T−1} at every state s", T-1, lost, own)
	p.everyState("(20)", "as printed: max_a Q* − ⟨π, Q*⟩ ≤ ḡ_{T−1} + 2E_{T−1} at every state s", T-1, lost, printed)
	p.steps[len(p.steps)-1].Aside = true
	p.atMost("(20)", "lifted: ‖P(max_a Q* − ⟨π, Q*⟩)‖ ≤ ḡ_{T−1} + 2E_{T−1}",
		T-1, pmd.LiftedDefect(m, lost), last.Defect+2*e)
	p.atMost("(21)", "‖Q* − Q^π̂_T‖ ≤ 2γE_{T−1}/(1−γ) + γḡ_{T−1}/(1−γ)",
		T-1, last.Distance, gamma*(2*e+last.Defect)/(1-gamma))
	bound, err := pmd.ReturnedPolicyBound(gamma, e0, delta, defect, T)
	if err != nil {
		return err
	}
	p.atMost("(8)–(9)", "Theorem 2, without δ_{T−1}", T-1, last.Distance, bound.Total())
	return nil
}

// resolvent enters (19) for the policy pi [S, A] with values [S, A]: the matrix
// I − γP^π [SA, SA] is inverted explicitly.
func (p *proof) resolvent(pi, value *mat.Dense, round int) error {
	m := p.mdp
	states, actions := pi.Dims()
	n := states * actions
	system, transitions := mat.NewDense(n, n, nil), m.DenseP()
	for i := range n {
		for j := range n {
			v := -m.Gamma * transitions.At(i, j/actions) * pi.At(j/actions, j%actions)
			if i == j {
				v++
			}
			system.Set(i, j, v)
		}
	}
	var inverse mat.Dense
	if err := inverse.Inverse(system); err != nil {
		return fmt.Errorf("control: the resolvent of the policy returned: %w", err)
	}
	gap := minus(m.OptimalityBackup(p.star), m.EvaluationBackup(pi, p.star))
	var solved mat.VecDense
	solved.MulVec(&inverse, mat.NewVecDense(n, gap.RawMatrix().Data))
	p.equal("(19)", "Q* − Q^π = (I − γP^π)⁻¹(FQ* − F^πQ*)", round, minus(p.star, value),
		mat.NewDense(states, actions, solved.RawVector().Data))
	p.atMost("(19)", "no entry of the inverse is negative", round, 0, mat.Min(&inverse))
	sums, want := mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
	for i := range n {
		sums.Set(i, 0, mat.Sum(inverse.RowView(i)))
		want.Set(i, 0, 1/(1-m.Gamma))
	}
	p.equal("(19)", "its rows sum to 1/(1−γ)", round, sums, want)
	return nil
}

// lift returns γPg [S, A].
func (p *proof) lift(g []float64) *mat.Dense {
	out := mat.NewDense(p.mdp.States(), p.mdp.Actions(), nil)
	out.Apply(func(s, a int, _ float64) float64 { return p.mdp.Gamma * p.mdp.Expect(s, a, g) }, out)
	return out
}

// ProveMixture walks to equation (10) on a trajectory whose actor mixed in the
// uniform policy with weight phi in (0, 1]: every policy after the first round lies at
// φ/A or above, so with θ = log(A/φ)/η its greedy defect is at most θ + Bζ. δ and ζ
// are the largest residuals of the trajectory and B = max(R_max/(1−γ), ‖Q_k‖∞). It
// returns an error as Prove does, and if phi or the step size is not above 0.
func ProveMixture(problem mdp.Problem, t Trajectory, phi float64) ([]ProofStep, error) {
	if !(phi > 0 && phi <= 1) || !(t.Eta > 0) || t.Etas != nil {
		return nil, fmt.Errorf(
			"control: a mixture of weight phi = %v with step size eta = %v, want 0 < phi ≤ 1 and a constant eta "+
				"above 0", phi, t.Eta)
	}
	scale, rounds, err := measured(problem, t)
	if err != nil {
		return nil, err
	}
	m := problem.MDP
	p := &proof{mdp: m, star: scale.Optimum.Q}
	actions := float64(m.Actions())
	theta := math.Log(actions/phi) / t.Eta
	b, delta, zeta := m.Bound(), 0.0, 0.0
	for _, k := range rounds {
		b, zeta = max(b, norm(k.Q)), max(zeta, k.Zeta)
		delta = max(delta, k.Delta) // 0 in the last round, which has no critic call
	}
	for _, k := range rounds {
		p.atMost("(29)", "φ/A ≤ π̂_{k+1}", k.Index, phi/actions, mat.Min(k.NextPi))
		if k.Index == 0 {
			p.atMost("(10)", "ḡ_0 ≤ 2B", 0, k.Defect, 2*b)
		} else {
			p.atMost("(10)", "ḡ_k ≤ θ + Bζ, k ≥ 1", k.Index, k.Defect, theta+b*zeta)
		}
	}
	last := rounds[len(rounds)-1]
	e0 := mdp.MaxAbsDiff(p.star, t.Q[0])
	p.atMost("(10)", "‖Q* − Q^π̂_T‖ ≤ (2E_0+4B)γ^T/(1−γ) + 2γ/(1−γ)²(δ + Bζ + θ)", last.Index, last.Distance,
		pmd.MixtureBound(m.Gamma, e0, b, delta, zeta, theta, len(rounds)))
	return p.steps, nil
}

func minus(x, y *mat.Dense) *mat.Dense {
	var d mat.Dense
	d.Sub(x, y)
	return &d
}

// norm returns ‖x‖∞.
func norm(x *mat.Dense) float64 { return math.Max(mat.Max(x), -mat.Min(x)) }
