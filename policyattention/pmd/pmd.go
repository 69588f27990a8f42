// Package pmd holds negative-entropy policy mirror descent, the fixed update rules it is compared with, the residuals
// of an implemented update, and the bound that turns them into a guarantee for the returned policy.
//
// Policies π and action values Q are [S, A]; policies are row-stochastic, and Q is −Inf where no action exists.
package pmd

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/numeric"
	"icrl/policyattention/mdp"
)

// Policy is a stochastic policy π [S, A], row-stochastic, with its logarithm, which tells a probability below the
// smallest float64 from none: rounds of mirror descent that keep it never lose an action that has mass at the start.
type Policy struct {
	Pi  *mat.Dense
	Log *mat.Dense // log π, −Inf without mass; nil stands for the logarithm of Pi
}

// Clone returns a copy.
func (p Policy) Clone() Policy {
	own := Policy{Pi: mat.DenseCopyOf(p.Pi)}
	if p.Log != nil {
		own.Log = mat.DenseCopyOf(p.Log)
	}
	return own
}

// log returns log π [S, A] in a table of its own.
func (p Policy) log() *mat.Dense {
	if p.Log != nil {
		return mat.DenseCopyOf(p.Log)
	}
	log := mat.DenseCopyOf(p.Pi)
	logarithm(log.RawMatrix().Data, log.RawMatrix().Data)
	return log
}

// Step returns the policy mirror descent update [S, A] of equation (1),
//
//	PMD_η(π,Q)(a|s) = π(a|s) e^{ηQ(s,a)} / Σ_b π(b|s) e^{ηQ(s,b)},
//
// computed as a softmax of log π + ηQ shifted by its maximum, so no finite input overflows. An action without mass
// stays without mass, and its value may be −Inf, as of an action that does not exist. Step returns an error if a
// table is missing or empty, if their shapes differ, if a row of pi is not a probability distribution, if q or eta·q
// is not finite where pi has mass, or if eta is not a finite number ≥ 0.
func Step(pi, q *mat.Dense, eta float64) (*mat.Dense, error) { return PMD.Update(pi, q, eta) }

// Rule names a fixed policy update. The mechanism figure asks to which of them a learned actor is closest.
type Rule string

const (
	PMD               Rule = "pmd"                // softmax(log π + ηQ), see Step
	AdditiveProjected Rule = "additive-projected" // the projection of π + ηQ: mirror descent with the squared 2-norm
	Identity          Rule = "identity"           // π
	Boltzmann         Rule = "boltzmann-q"        // softmax(ηQ), which forgets π
	RewardOnly        Rule = "reward-only"        // maximal ⟨p, Q⟩, no proximal term: greedy, uniform over ties
)

// Rules lists the fixed rules, PMD first.
var Rules = []Rule{PMD, AdditiveProjected, Identity, Boltzmann, RewardOnly}

// Update returns the rule's next policy [S, A]. It returns an error if Step does, and if the rule is unknown.
func (r Rule) Update(pi, q *mat.Dense, eta float64) (*mat.Dense, error) {
	next, err := r.Next(Policy{Pi: pi}, q, eta)
	return next.Pi, err
}

// Next is Update for a policy whose logarithm is kept.
func (r Rule) Next(p Policy, q *mat.Dense, eta float64) (Policy, error) {
	if err := p.check(q, eta); err != nil {
		return Policy{}, err
	}
	next := Policy{Pi: mat.DenseCopyOf(p.Pi), Log: p.log()}
	for s := range next.Pi.RawMatrix().Rows {
		row, log, values := next.Pi.RawRowView(s), next.Log.RawRowView(s), q.RawRowView(s)
		switch r {
		case PMD, Boltzmann:
			for a, z := range log {
				if r == Boltzmann {
					z = 0
				}
				log[a] = logit(z, eta, values[a])
			}
			LogSoftmax(row, log)
		case Identity:
		case AdditiveProjected:
			for a := range row {
				row[a] = logit(row[a], eta, values[a])
			}
			projectSimplex(row)
			logarithm(log, row)
		case RewardOnly:
			top := slices.Max(values)
			ties := floats.Count(func(v float64) bool { return v == top }, values)
			clear(row)
			for a, v := range values {
				if v == top {
					row[a] = 1 / float64(ties)
				}
			}
			logarithm(log, row)
		default:
			return Policy{}, fmt.Errorf("pmd: unknown update rule %q, want one of %q", r, Rules)
		}
	}
	return next, nil
}

// logit returns z + ηQ, −Inf where one of the terms is, whatever η.
func logit(z, eta, q float64) float64 {
	if math.IsInf(z, -1) || math.IsInf(q, -1) {
		return math.Inf(-1)
	}
	return z + float64(eta*q)
}

// logarithm stores log p in log.
func logarithm(log, p []float64) {
	for a, v := range p {
		log[a] = numeric.Log(v)
	}
}

// projectSimplex replaces row by its Euclidean projection onto the probability simplex (Duchi et al. 2008, Figure 1). A
// common shift of all entries changes nothing; without their maximum, large ones leave 1 its digits in the sums.
func projectSimplex(row []float64) {
	floats.AddConst(-slices.Max(row), row)
	sum, shift := 0.0, 0.0
	for i, v := range slices.Backward(slices.Sorted(slices.Values(row))) {
		sum += v
		if t := (sum - 1) / float64(len(row)-i); v > t {
			shift = t
		}
	}
	for a, v := range row {
		row[a] = math.Max(0, v-shift)
	}
}

// LogSoftmax stores in row the softmax of the logits in log, and in log its logarithm: that of the rounded probability,
// whose absolute error is smaller, but where the probability has lost digits to underflow. It takes what Softmax takes.
func LogSoftmax(row, log []float64) {
	copy(row, log)
	shift := Softmax(row)
	for a, z := range log {
		switch {
		case row[a] >= 0x1p-1022: // a normal number
			log[a] = numeric.Log(row[a])
		case !math.IsInf(z, -1):
			log[a] = max(z-shift, -math.MaxFloat64)
		}
	}
}

// Softmax replaces the logits in row by their softmax and returns the logarithm of the sum of their exponentials. A
// logit -Inf gets no mass; at least one logit must be finite and none may be NaN or +Inf.
func Softmax(row []float64) float64 {
	top, sum := slices.Max(row), 0.0
	for a, z := range row {
		row[a] = numeric.Exp(z - top)
		sum += row[a]
	}
	for a := range row {
		row[a] /= sum
	}
	return top + numeric.Log(sum)
}

// check reports what is wrong with the inputs of an update.
func (p Policy) check(q *mat.Dense, eta float64) error {
	if p.Pi == nil || q == nil || p.Pi.IsEmpty() || q.IsEmpty() {
		return errors.New("pmd: a policy or Q is missing or empty")
	}
	rows, cols := p.Pi.Dims()
	for name, x := range map[string]*mat.Dense{"Q": q, "log π": p.Log} {
		if x == nil {
			continue
		}
		if r, c := x.Dims(); r != rows || c != cols {
			return fmt.Errorf("pmd: %s is [%d, %d], the policy is [%d, %d]", name, r, c, rows, cols)
		}
	}
	if err := mdp.CheckRows("policy", p.Pi); err != nil {
		return fmt.Errorf("pmd: %w", err)
	}
	if err := CheckStep(eta); err != nil {
		return err
	}
	for s := range rows {
		for a, v := range q.RawRowView(s) {
			mass := p.Pi.At(s, a) > 0
			if p.Log != nil {
				log := p.Log.At(s, a)
				if !(log <= mdp.Tolerance) || mass && math.IsInf(log, -1) {
					return fmt.Errorf("pmd: log π(a=%d|s=%d) is %v of the probability %v", a, s, log, p.Pi.At(s, a))
				}
				mass = !math.IsInf(log, -1)
			}
			switch {
			case math.IsInf(v, -1) && !mass:
			case math.IsNaN(v) || math.IsInf(v, 0):
				return fmt.Errorf("pmd: Q(s=%d,a=%d) is %v, want a finite number", s, a, v)
			case math.IsInf(eta*v, 0):
				return fmt.Errorf("pmd: eta·Q(s=%d,a=%d) = %v·%v overflows", s, a, eta, v)
			}
		}
	}
	return nil
}

// CheckStep reports a step size that is not finite and ≥ 0.
func CheckStep(eta float64) error {
	if !(eta >= 0) || math.IsInf(eta, 1) {
		return fmt.Errorf("pmd: step size eta is %v, want a finite number ≥ 0", eta)
	}
	return nil
}

// Mix returns the mixture (1−φ)π + φ/A [S, A] with the uniform policy (equation 29, Section 4), which floors every
// action at φ/A. It returns an error unless 0 ≤ phi ≤ 1.
func Mix(pi *mat.Dense, phi float64) (*mat.Dense, error) {
	_, actions := pi.Dims()
	return mix(pi, phi, func(int, int) float64 { return phi / float64(actions) })
}

// MixWith is the mixture (1−φ)π + φu with another policy u [S, A].
func MixWith(pi, u *mat.Dense, phi float64) (*mat.Dense, error) {
	return mix(pi, phi, func(s, a int) float64 { return float64(phi * u.At(s, a)) })
}

func mix(pi *mat.Dense, phi float64, share func(s, a int) float64) (*mat.Dense, error) {
	if !(phi >= 0 && phi <= 1) {
		return nil, fmt.Errorf("pmd: mixture weight phi is %v, want 0 ≤ phi ≤ 1", phi)
	}
	mixed := mat.DenseCopyOf(pi)
	mixed.Apply(func(s, a int, p float64) float64 { return float64((1-phi)*p) + share(s, a) }, mixed)
	return mixed, nil
}

// SuggestedSpan is how many nats one update with Q* separates two values by where a step is suggested. On Gymnasium's
// FrozenLake, CliffWalking and Taxi at γ = 0.9 it takes the loss of exact PMD below 1e-2 within 200 rounds; half of it
// does as well, at twice it little is gained.
const SuggestedSpan = 20

// AutoStep returns the step size at which, in the state where it takes longest, one update with Q* separates the
// optimal actions from the next best by SuggestedSpan nats: span over the least gap between actions that exist. Exact
// PMD with a large step is nearly value iteration, which a larger one does not slow down. It is 0.8, the paper's
// nominal step, where every action that a state has is optimal, and never less; nor so large that Q*'s rounding counts.
func AutoStep(o *mdp.Optimum) float64 {
	const nominal = 0.8
	least, size := math.Inf(1), 0.0
	for s, v := range o.V {
		size = max(size, math.Abs(v))
		for a, q := range o.Q.RawRowView(s) {
			if !o.Optimal(s, a) { // the gap of an action that does not exist is +Inf
				least = math.Min(least, v-q)
			}
		}
	}
	if !(least > 0) {
		return nominal
	}
	return min(max(nominal, min(SuggestedSpan/least, 1e15/size)), mostStep)
}

const mostStep = 1e300 // that is suggested

// Growing returns steps η_k = eta·10^k, up to where η times values of the given size comes near what a number
// holds. Exact PMD that evaluates each policy in full is then policy iteration but for what it remembers: a round
// outweighs all before it, so that not even a penalty of Q_0 that no later policy meets holds it up for long.
func Growing(eta, size float64) func(k int) float64 {
	most := max(eta, min(1e280/size, mostStep))
	return func(k int) float64 { return min(eta*math.Pow(10, float64(k)), most) }
}

// LockUp returns the paper's witness that one-step fidelity does not suffice (Appendix G): one state, a good action of
// reward 1 and a bad one of reward 0, both leading back. The prior puts so little mass p on the good action that exact
// PMD with any step up to etaMax moves by at most zeta in L1:
//
//	2p(1−p)(e^η−1)/(1+p(e^η−1)) ≤ 2p(e^η−1) ≤ ζ,
//
// since Q(good) − Q(bad) = 1 under every policy. An actor that never moves is then within ζ of PMD in every round,
// yet the loop stays at the prior for ever, and its proximal excess (equation 13) vanishes with ζ. LockUp returns an
// error unless 0 < zeta ≤ 2, 0 < etaMax and p is representable.
func LockUp(zeta, etaMax, gamma float64) (mdp.Problem, error) {
	p := math.Min(0.5, zeta/(2*math.Expm1(etaMax)))
	if !(zeta > 0 && zeta <= 2) || !(etaMax > 0) || !(p > math.SmallestNonzeroFloat64) {
		return mdp.Problem{}, fmt.Errorf("pmd: lock-up for ζ = %v and steps up to %v with the prior mass %v, want "+
			"0 < ζ ≤ 2 and a mass that is representable", zeta, etaMax, p)
	}
	env, err := mdp.New(gamma, mat.NewDense(2, 1, []float64{1, 1}), mat.NewDense(1, 2, []float64{1, 0}))
	if err != nil {
		return mdp.Problem{}, err
	}
	return mdp.Problem{MDP: env, Pi0: mat.NewDense(1, 2, []float64{p, 1 - p})}, nil
}

// SetShare gives entry i of a row of probabilities a share in [0, 1] and scales the others, equal where all were 0.
func SetShare(row []float64, i int, share float64) {
	others := 0.0
	for j, p := range row {
		if j != i {
			others += p
		}
	}
	for j := range row {
		if others > 0 {
			row[j] *= (1 - share) / others
		} else {
			row[j] = (1 - share) / float64(len(row)-1)
		}
	}
	row[i] = share
}
