package mdp

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/numeric"
	"icrl/policyattention/seed"
)

// Problem is one evaluation fixture: an MDP and the policy π₀ [S, A] from which a controller starts.
type Problem struct {
	MDP *MDP
	Pi0 *mat.Dense
	// Number, if not 0, names the problem's random streams in a run, from 1, in place of its place
	// there: so some problems of a run can be run again alone.
	Number int
}

// Index is what names the problem's random streams where it is run at a place, from 0.
func (p Problem) Index(place int) int {
	if p.Number > 0 {
		return p.Number - 1
	}
	return place
}

// NewProblem returns the validated problem with discount gamma and copies of the transitions p [S·A, S], the rewards r
// [S, A] and the initial policy pi0 [S, A]; a nil pi0 stands for the uniform policy.
func NewProblem(gamma float64, p, r, pi0 *mat.Dense) (Problem, error) {
	m, err := New(gamma, p, r)
	if err != nil {
		return Problem{}, err
	}
	if pi0 == nil {
		pi0 = m.Uniform()
	}
	problem := Problem{MDP: m, Pi0: mat.DenseCopyOf(pi0)}
	if err := problem.Check(); err != nil {
		return Problem{}, err
	}
	return problem, nil
}

// Check reports a missing MDP, and a π₀ that is not one of its policies.
func (p Problem) Check() error {
	if p.MDP == nil {
		return errors.New("mdp: a problem without an MDP")
	}
	if err := p.MDP.CheckPolicy(p.Pi0); err != nil {
		return fmt.Errorf("initial policy pi0: %w", err)
	}
	return nil
}

// Family names a distribution of problems. The paper names the random family and four
// shift families without giving their distributions; the constants below state ours. All
// have γ = 0.9 and rows of π₀ drawn from Dirichlet(1,…,1).
type Family string

const (
	// Random has transition rows from Dirichlet(1,…,1) and rewards uniform on
	// [-1, 1]. This distribution reproduces the paper's exact-PMD medians.
	Random Family = "random"
	// SparseTransitions reaches at most two successors from a state-action pair,
	// drawn without replacement, with Dirichlet(1,1) weights.
	SparseTransitions Family = "sparse-transitions"
	// StrongMixing mixes each Dirichlet row with the uniform distribution, P = 0.1 Dirichlet(1,…,1) + 0.9 uniform, so
	// the chain forgets its state almost at once under every policy.
	StrongMixing Family = "strong-mixing"
	// SparseRewards keeps each reward with probability 1/4 and is zero
	// elsewhere; one pair, drawn uniformly, always keeps its reward.
	SparseRewards Family = "sparse-rewards"
	// Ring is one fixed MDP for all problems, which differ in π₀ alone: states on a circle; action j moves by j-1
	// states (back, stay, on, …) with probability 0.8 and slips to either neighbour of the start with probability 0.1
	// each. The reward of state s is cos(2πs/S)/4 under every action: the goal is to reach state 0 and to stay. With
	// larger rewards exact PMD is done within a few rounds, and a ratio to it would measure rounding.
	Ring Family = "ring"
)

// Shifts lists the four no-retraining shift families in the paper's order.
var Shifts = []Family{SparseTransitions, StrongMixing, SparseRewards, Ring}

// The γ of every family, and the number of actions A of the paper's harness.
const (
	Discount = 0.9
	Actions  = 3
)

// Draw returns n problems with s states and a actions. Problem i is a pure function of the family, root, s, a and i, so
// a longer list starts with the shorter one.
func (f Family) Draw(root uint64, s, a, n int) (problems []Problem, err error) {
	if n < 0 {
		return nil, fmt.Errorf("mdp: family %q asked for %d problems", f, n)
	}
	problems = make([]Problem, n)
	for i := range problems {
		if problems[i], err = f.one(root, s, a, i); err != nil {
			return nil, err
		}
	}
	return problems, nil
}

// Pick returns some of the problems that Draw returns, by their places, with these as their Numbers.
func (f Family) Pick(root uint64, s, a int, places []int32) (problems []Problem, err error) {
	problems = make([]Problem, len(places))
	for k, i := range places {
		if problems[k], err = f.one(root, s, a, int(i)); err != nil {
			return nil, err
		}
		problems[k].Number = int(i) + 1
	}
	return problems, nil
}

// one returns problem i.
func (f Family) one(root uint64, s, a, i int) (Problem, error) {
	switch {
	case s < 2 || a < 2:
		return Problem{}, fmt.Errorf("mdp: family %q needs at least 2 states and 2 actions, got S=%d, A=%d", f, s, a)
	case f != Random && !slices.Contains(Shifts, f):
		return Problem{}, fmt.Errorf("mdp: unknown family %q, want %q or one of %q", f, Random, Shifts)
	case i < 0:
		return Problem{}, fmt.Errorf("mdp: family %q has no problem %d", f, i)
	}
	m, err := f.drawMDP(seed.New(root, "mdp", string(f), s, a, i), s, a)
	return Problem{MDP: m, Pi0: RandomPolicy(seed.New(root, "pi0", string(f), s, a, i), s, a)}, err
}

func (f Family) drawMDP(rng *rand.Rand, s, a int) (*MDP, error) {
	p, r := mat.NewDense(s*a, s, nil), mat.NewDense(s, a, nil)
	if f == Ring {
		ring(p, r)
		return New(Discount, p, r)
	}
	for i := range s * a {
		row := p.RawRowView(i)
		if f == SparseTransitions {
			weights := make([]float64, 2)
			dirichlet(rng, weights)
			for k, t := range rng.Perm(s)[:2] {
				row[t] = weights[k]
			}
			continue
		}
		dirichlet(rng, row)
		if f == StrongMixing {
			for t := range row {
				row[t] = 0.1*row[t] + 0.9/float64(s)
			}
		}
	}
	rewards := r.RawMatrix().Data
	for i := range rewards {
		rewards[i] = 2*rng.Float64() - 1
	}
	if f == SparseRewards {
		always := rng.IntN(len(rewards))
		for i := range rewards {
			if keep := rng.Float64() < 0.25; !keep && i != always {
				rewards[i] = 0
			}
		}
	}
	return New(Discount, p, r)
}

// ring fills p [S·A, S] and r [S, A] with the fixed circle.
func ring(p, r *mat.Dense) {
	const success, slip = 0.8, 0.1
	s, a := r.Dims()
	for i := range s {
		reward := math.Cos(2*math.Pi*float64(i)/float64(s)) / 4
		for j := range a {
			row := p.RawRowView(i*a + j)
			row[(i+j-1+s)%s] += success
			row[(i+1)%s] += slip
			row[(i+s-1)%s] += slip
			r.Set(i, j, reward)
		}
	}
}

// RandomPolicy returns a policy [S, A] whose rows are independent Dirichlet(1,…,1) draws.
func RandomPolicy(rng *rand.Rand, s, a int) *mat.Dense {
	pi := mat.NewDense(s, a, nil)
	for i := range s {
		dirichlet(rng, pi.RawRowView(i))
	}
	return pi
}

// dirichlet fills row with one draw from Dirichlet(1,…,1): normalized
// exponential variates, by inversion so that the bits are the same everywhere.
func dirichlet(rng *rand.Rand, row []float64) {
	sum := 0.0
	for i := range row {
		row[i] = -numeric.Log(1 - rng.Float64())
		sum += row[i]
	}
	for i := range row {
		row[i] /= sum
	}
}

// Sample draws an index with the probabilities p, which sum to one up to rounding: what is missing goes to the last
// index that has any. It draws by inversion, so those who read the same numbers draw the same for as long as their
// probabilities nearly agree.
func Sample(rng *rand.Rand, p []float64) int {
	u, last := rng.Float64(), 0
	for i, w := range p {
		if w == 0 {
			continue
		}
		if last = i; u < w {
			return i
		}
		u -= w
	}
	return last
}
