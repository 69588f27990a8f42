package pmd

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/mdp"
)

// Zeta returns the actor residual of equation (5),
//
//	ζ = max_s ‖next(·|s) − PMD_η(π,Q)(·|s)‖₁, in [0, 2],
//
// of the policy next [S, A] that an actor returned from the context (pi, q, eta).
func Zeta(next, pi, q *mat.Dense, eta float64) (float64, error) {
	exact, err := Step(pi, q, eta)
	if err != nil {
		return 0, err
	}
	return MaxRowL1(next, exact), nil
}

// MaxRowL1 returns max_s ‖p(·|s) − q(·|s)‖₁.
func MaxRowL1(p, q *mat.Dense) float64 {
	top := 0.0
	for s := range p.RawMatrix().Rows {
		top = math.Max(top, l1(p.RawRowView(s), q.RawRowView(s)))
	}
	return top
}

// Delta returns the critic residual of equation (5), δ = ‖Q_{k+1} − F^π̂ Q_k‖∞,
// where pi is the policy π̂_{k+1} just returned.
func Delta(m *mdp.MDP, next, pi, q *mat.Dense) float64 {
	return mdp.MaxAbsDiff(next, m.EvaluationBackup(pi, q))
}

// GreedyDefect returns g(s) = max_a Q(s,a) − ⟨next(·|s), Q(s,·)⟩ for each state
// [S]: what the returned policy loses against acting greedily on Q_k.
func GreedyDefect(next, q *mat.Dense) []float64 {
	g := make([]float64, next.RawMatrix().Rows)
	for s := range g {
		values := q.RawRowView(s)
		top := slices.Max(values)
		// Summing the non-negative differences keeps g from rounding below zero.
		for a, p := range next.RawRowView(s) {
			g[s] += float64(p * (top - values[a]))
		}
	}
	return g
}

// LiftedDefect returns ḡ = max_{s,a} E_{S'|s,a} g(S'), the defect as the critic
// recursion sees it, for the defect g [S] of GreedyDefect.
func LiftedDefect(m *mdp.MDP, g []float64) float64 {
	top := 0.0
	for s := range m.States() {
		for a := range m.Actions() {
			top = math.Max(top, m.Expect(s, a, g))
		}
	}
	return top
}

// PriorMassPrice returns D(s) = −log π(G(s)|s) for each state [S], where G(s) is
// the set of greedy actions of q: what it costs PMD to become greedy from pi.
// It is +Inf where no greedy action has mass.
func PriorMassPrice(pi, q *mat.Dense) []float64 {
	d := make([]float64, pi.RawMatrix().Rows)
	for s := range d {
		values := q.RawRowView(s)
		top := slices.Max(values)
		mass := 0.0
		for a, v := range values {
			if v == top {
				mass += pi.At(s, a)
			}
		}
		d[s] = math.Max(0, -math.Log(mass))
	}
	return d
}

// Bound is the right-hand side of the returned-policy theorem, equation (9),
// term by term. All terms are in units of Q.
type Bound struct {
	Initial float64 `json:"initial"` // 2γ^T E₀/(1−γ)
	Critic  float64 `json:"critic"`  // 2/(1−γ) Σ_{k=0}^{T−2} γ^{T−1−k} δ_k
	Greedy  float64 `json:"greedy"`  // 2/(1−γ) Σ_{k=0}^{T−2} γ^{T−k} ḡ_k
	Last    float64 `json:"last"`    // γ/(1−γ) ḡ_{T−1}
}

// Total returns the bound on ‖Q* − Q^{π̂_T}‖∞.
func (b Bound) Total() float64 { return b.Initial + b.Critic + b.Greedy + b.Last }

// ReturnedPolicyBound returns the bound of Theorem 2 for the policy π̂_T of
// horizon T ≥ 1, from the discount gamma, the initial critic error
// e0 = ‖Q* − Q_0‖∞, the critic residuals δ_0, …, δ_{T−2} in delta and the lifted
// defects ḡ_0, …, ḡ_{T−1} in defect. Longer slices are read only so far:
// π̂_T is formed from Q_{T−1}, so δ_{T−1} would charge a backup that nobody uses.
func ReturnedPolicyBound(gamma, e0 float64, delta, defect []float64, horizon int) (Bound, error) {
	if horizon < 1 || len(delta) < horizon-1 || len(defect) < horizon {
		return Bound{}, fmt.Errorf("pmd: a bound at horizon T=%d needs T ≥ 1, T−1 critic residuals and T defects, got %d and %d", horizon, len(delta), len(defect))
	}
	if !(gamma >= 0 && gamma < 1) {
		return Bound{}, fmt.Errorf("pmd: discount gamma is %v, want 0 ≤ gamma < 1", gamma)
	}
	b := Bound{
		Initial: 2 * math.Pow(gamma, float64(horizon)) * e0 / (1 - gamma),
		Last:    gamma * defect[horizon-1] / (1 - gamma),
	}
	for k := range horizon - 1 {
		b.Critic += 2 / (1 - gamma) * math.Pow(gamma, float64(horizon-1-k)) * delta[k]
		b.Greedy += 2 / (1 - gamma) * math.Pow(gamma, float64(horizon-k)) * defect[k]
	}
	return b, nil
}

// MixtureBound returns the right-hand side of equation (10), which bounds
// ‖Q* − Q^{π̂_T}‖∞ under the uniform mixture with the constant step of
// MixtureStep: a geometric transient plus 2γ/(1−γ)² (δ + Bζ + θ), for uniform
// caps delta and zeta on the residuals and B = R_max/(1−γ).
func MixtureBound(gamma, e0, bound, delta, zeta, theta float64, horizon int) float64 {
	transient := (2*e0 + 4*bound) * math.Pow(gamma, float64(horizon)) / (1 - gamma)
	return transient + 2*gamma/((1-gamma)*(1-gamma))*(delta+bound*zeta+theta)
}
