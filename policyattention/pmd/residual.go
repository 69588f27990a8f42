package pmd

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/numeric"
	"icrl/policyattention/mdp"
)

// mustMatch panics when two tables differ in shape.
func mustMatch(x, y *mat.Dense) {
	rows, cols := x.Dims()
	if r, c := y.Dims(); r != rows || c != cols {
		panic(fmt.Sprintf("pmd: tables are [%d, %d] and [%d, %d], want one shape", rows, cols, r, c))
	}
}

// MaxRowL1 returns max_s ‖p(·|s) − q(·|s)‖₁ in [0, 2]: the actor residual ζ of equation (4), where
// p is the policy that an actor returned and q that of Step. It panics when p and q [S, A] differ in shape.
func MaxRowL1(p, q *mat.Dense) float64 { return slices.Max(l1(p, q)) }

// RowL1 returns the mean over states of ‖p(·|s) − q(·|s)‖₁, for p and q [S, A] as in MaxRowL1.
func RowL1(p, q *mat.Dense) float64 {
	total := 0.0
	for _, x := range l1(p, q) {
		total += x
	}
	return total / float64(p.RawMatrix().Rows)
}

// l1 returns ‖p(·|s) − q(·|s)‖₁ for each state [S].
func l1(p, q *mat.Dense) []float64 {
	mustMatch(p, q)
	sums := make([]float64, p.RawMatrix().Rows)
	for s := range sums {
		sums[s] = floats.Distance(p.RawRowView(s), q.RawRowView(s), 1)
	}
	return sums
}

// Delta returns the critic residual of equation (5), δ = ‖Q_{k+1} − F^π̂ Q_k‖∞, where pi is the policy
// π̂_{k+1} just returned. It panics when a table is not [S, A].
func Delta(m *mdp.MDP, next, pi, q *mat.Dense) float64 {
	mustMatch(next, q)
	return mdp.MaxAbsDiff(next, m.EvaluationBackup(pi, q))
}

// GreedyDefect returns g(s) = max_a Q(s,a) − ⟨next(·|s), Q(s,·)⟩ for each state [S]: what the returned policy
// loses against acting greedily on Q_k. It panics when next and q [S, A] differ in shape.
func GreedyDefect(next, q *mat.Dense) []float64 {
	mustMatch(next, q)
	g := make([]float64, next.RawMatrix().Rows)
	for s := range g {
		values := q.RawRowView(s)
		top := slices.Max(values)
		// Summing the non-negative differences keeps g from rounding below zero.
		for a, p := range next.RawRowView(s) {
			if p > 0 { // a value without mass may be −Inf
				g[s] += float64(p * (top - values[a]))
			}
		}
	}
	return g
}

// LiftedDefect returns ḡ = max_{s,a} E_{S'|s,a} g(S') for g [S] of GreedyDefect, as the critic's recursion sees it.
func LiftedDefect(m *mdp.MDP, g []float64) float64 {
	top := 0.0
	for s := range m.States() {
		for a := range m.Actions() {
			top = math.Max(top, m.Expect(s, a, g))
		}
	}
	return top
}

// Bound is the right-hand side of the returned-policy theorem, equations (8) and (9), by terms in units of Q.
type Bound struct {
	Initial float64 `json:"initial"` // 2γ^T E₀/(1−γ)
	Critic  float64 `json:"critic"`  // 2/(1−γ) Σ_{k=0}^{T−2} γ^{T−1−k} δ_k
	Greedy  float64 `json:"greedy"`  // 2/(1−γ) Σ_{k=0}^{T−2} γ^{T−k} ḡ_k
	Last    float64 `json:"last"`    // γ/(1−γ) ḡ_{T−1}
}

// Total returns the bound on ‖Q* − Q^{π̂_T}‖∞.
func (b Bound) Total() float64 { return b.Initial + b.Critic + b.Greedy + b.Last }

// StartBound is the bound at horizon 0, from E₀ = ‖Q* − Q_0‖∞. At γ = 1 it and all that follow are infinite.
func StartBound(gamma, e0 float64) Bound {
	if gamma == 1 {
		return Bound{Initial: math.Inf(1)}
	}
	return Bound{Initial: 2 * e0 / (1 - gamma)}
}

// Next returns the bound at horizon T+1 from that at T, by the critic residual δ_{T−1}, 0 at first, and ḡ_T.
func (b Bound) Next(gamma, delta, defect float64) Bound {
	if gamma == 1 {
		return b
	}
	return Bound{
		Initial: gamma * b.Initial, Critic: gamma * (b.Critic + 2*delta/(1-gamma)),
		Greedy: gamma * (b.Greedy + 2*b.Last), Last: gamma * defect / (1 - gamma),
	}
}

// ReturnedPolicyBound returns the bound of Theorem 2 for the policy π̂_T of horizon T ≥ 1, from the discount gamma,
// the initial critic error e0 = ‖Q* − Q_0‖∞, the critic residuals δ_0, …, δ_{T−2} in delta and the lifted
// defects ḡ_0, …, ḡ_{T−1} in defect. Longer slices are read only so far: π̂_T is formed from Q_{T−1}, so
// δ_{T−1} would charge a backup that is not used.
func ReturnedPolicyBound(gamma, e0 float64, delta, defect []float64, horizon int) (Bound, error) {
	if horizon < 1 || len(delta) < horizon-1 || len(defect) < horizon {
		return Bound{}, fmt.Errorf("pmd: a bound at horizon T=%d ≥ 1 needs T−1 critic residuals and T defects, "+
			"got %d and %d", horizon, len(delta), len(defect))
	}
	if !(gamma >= 0 && gamma < 1) {
		return Bound{}, fmt.Errorf("pmd: discount gamma is %v, want 0 ≤ gamma < 1", gamma)
	}
	b := StartBound(gamma, e0).Next(gamma, 0, defect[0])
	for k := 1; k < horizon; k++ {
		b = b.Next(gamma, delta[k-1], defect[k])
	}
	return b, nil
}

// MixtureBound returns the right-hand side of equation (10), which bounds ‖Q* − Q^{π̂_T}‖∞ under the uniform
// mixture with the constant step η = log(A/φ)/θ, which makes every greedy defect after the first round at most
// θ + Bζ (Section 4): a geometric transient plus 2γ/(1−γ)² (δ + Bζ + θ), for caps delta and zeta on residuals
// and B = R_max/(1−γ). It holds for 0 ≤ γ < 1, T ≥ 1 and finite other arguments ≥ 0: none is checked.
func MixtureBound(gamma, e0, bound, delta, zeta, theta float64, horizon int) float64 {
	transient := (2*e0 + 4*bound) * math.Pow(gamma, float64(horizon)) / (1 - gamma)
	return transient + 2*gamma/((1-gamma)*(1-gamma))*(delta+bound*zeta+theta)
}

// Update is one observed policy update, for FitStep.
type Update struct {
	Pi, Q, Next *mat.Dense // each [S, A]
}

// FitStep returns the effective step size of observed updates: the η on the grid lo, lo+by, …, hi that minimizes the
// mean row-L1 distance between Next and PMD_η(Pi, Q), the smallest such η. It returns an error if there are no
// updates, if the grid is empty or has over a million steps, if Step does, or if a Next is not finite or not [S, A].
func FitStep(updates []Update, lo, hi, by float64) (eta, distance float64, err error) {
	if len(updates) == 0 || !(by > 0) || !(lo >= 0 && lo <= hi) || !((hi-lo)/by <= 1e6) {
		return 0, 0, fmt.Errorf("pmd: fitting a step needs updates and a grid, got %d updates and %v:%v:%v",
			len(updates), lo, by, hi)
	}
	for i, u := range updates {
		states, actions := u.Pi.Dims()
		if err := mdp.CheckTable("the next policy", u.Next, states, actions); err != nil {
			return 0, 0, fmt.Errorf("%w (update %d)", err, i)
		}
	}
	distance = math.Inf(1)
	for i := 0; ; i++ {
		candidate := lo + float64(i)*by
		if candidate > hi+by/1e6 {
			return eta, distance, nil
		}
		mean := 0.0
		for i, u := range updates {
			next, err := Step(u.Pi, u.Q, candidate)
			if err != nil {
				return 0, 0, fmt.Errorf("%w (update %d)", err, i)
			}
			mean += RowL1(u.Next, next) / float64(len(updates))
			if mean >= distance { // the others add to it
				break
			}
		}
		if mean < distance {
			eta, distance = candidate, mean
		}
	}
}

// ProximalLoss returns ℓ(p) = KL(p‖π) − η⟨p,Q⟩ averaged over states (Section 5), which PMD_η(π,Q)
// minimizes: by equation (13) it exceeds the minimum by the mean of KL(p ‖ PMD_η(π,Q)). It is +Inf where p has mass
// and π none. It panics when p, pi and q [S, A] differ in shape.
func ProximalLoss(p, pi, q *mat.Dense, eta float64) float64 {
	mustMatch(p, pi)
	mustMatch(p, q)
	rows, _ := p.Dims()
	total := 0.0
	for s := range rows {
		prior, values := pi.RawRowView(s), q.RawRowView(s)
		total += KL(p.RawRowView(s), prior)
		for a, w := range p.RawRowView(s) {
			if w > 0 {
				total -= eta * w * values[a]
			}
		}
	}
	return total / float64(rows)
}

// KL returns the Kullback–Leibler divergence of two distributions in nats; it is +Inf where p has mass and q none.
func KL(p, q []float64) float64 {
	sum := 0.0
	for a, w := range p {
		switch {
		case w == 0:
		case q[a] == 0:
			return math.Inf(1)
		default:
			sum += w * (numeric.Log(w) - numeric.Log(q[a]))
		}
	}
	return sum
}
