package pmd

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/numeric"
	"icrl/policyattention/mdp"
)

// Rule names a fixed policy update. The mechanism figure asks to which of them a learned actor is closest.
type Rule string

const (
	// PMD is softmax(log π + ηQ), see Step.
	PMD Rule = "pmd"
	// AdditiveProjected is the Euclidean projection of π + ηQ onto the simplex,
	// row by row: policy mirror descent with the squared 2-norm.
	AdditiveProjected Rule = "additive-projected"
	// Identity returns π.
	Identity Rule = "identity"
	// Boltzmann is softmax(ηQ), which forgets π.
	Boltzmann Rule = "boltzmann-q"
	// RewardOnly maximises ⟨p, Q⟩ without a proximal term: the greedy policy, uniform over ties.
	RewardOnly Rule = "reward-only"
)

// Rules lists the fixed rules, PMD first.
var Rules = []Rule{PMD, AdditiveProjected, Identity, Boltzmann, RewardOnly}

// Update returns the rule's next policy [S, A] from pi and q [S, A] with step
// size eta. It returns an error if Step does, and if the rule is unknown.
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
	for i, v := range slices.SortedFunc(slices.Values(row), func(x, y float64) int { return cmp.Compare(y, x) }) {
		sum += v
		if t := (sum - 1) / float64(i+1); v > t {
			shift = t
		}
	}
	for a, v := range row {
		row[a] = math.Max(0, v-shift)
	}
}

// Update is one observed policy update, for FitStep.
type Update struct {
	Pi, Q, Next *mat.Dense // each [S, A]
}

// FitStep returns the effective step size of observed updates: the η on the grid lo, lo+by, …, hi that minimizes the
// mean row-L1 distance between Next and PMD_η(Pi, Q). Ties go to the smaller η. It returns an error if there are no
// updates, if the grid is empty or has more than a million steps, if Step returns one, or if a Next has another shape
// or an entry that is not finite.
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
