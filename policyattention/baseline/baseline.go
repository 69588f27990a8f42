// Package baseline holds what baselines share, and the standard algorithms.
//
// Baselines that see transitions come in three kinds. An Agent returns policies of its own: tabular
// actor–critic, which is the teacher of Liang–Lai's attention block and the source algorithm of Algorithm
// Distillation, Q-learning, SARSA, certainty equivalence, posterior sampling. An Estimator returns action
// values, from which an actor of any kind makes the policy: see Sampled and Improved. InContext deploys
// networks that learn from the history that they are shown. None is handed the environment; Told is all
// that it knows beforehand. Algorithms with the model are a control.Loop of other parts: see
// PolicyIteration. A Recipe trains networks that evaluate policies, on Markov reward processes.
package baseline

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/numeric"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/rows"
	"icrl/policyattention/seed"
)

// Window is how many on-policy transitions a baseline sees a round.
const Window = 20

// Transition is one step (s, a, r, s′) of a chain.
type Transition struct {
	State, Action int
	Reward        float64
	Next          int
}

// Chain is an agent's walk through an MDP. It is never reset, so a round starts where the one before it ended.
type Chain struct {
	mdp   *mdp.MDP
	rng   *rand.Rand
	State int // the current state
}

// NewChain starts a walk in m from a state drawn uniformly. Each later action and successor takes a number from rng.
func NewChain(m *mdp.MDP, rng *rand.Rand) *Chain {
	return &Chain{mdp: m, rng: rng, State: rng.IntN(m.States())}
}

// Step takes the action a and moves to the successor.
func (c *Chain) Step(a int) Transition {
	t := Transition{State: c.State, Action: a}
	t.Reward, t.Next = c.mdp.Transition(c.rng, c.State, a)
	c.State = t.Next
	return t
}

// Walk appends the next n transitions under the policy pi [S, A] to window.
func (c *Chain) Walk(window []Transition, pi *mat.Dense, n int) []Transition {
	window = slices.Grow(window, n)
	for range n {
		window = append(window, c.Step(mdp.Sample(c.rng, pi.RawRowView(c.State))))
	}
	return window
}

// StepSizes are the step sizes of actor (α) and critic (β).
type StepSizes struct {
	Alpha float64 `json:"alpha"`
	Beta  float64 `json:"beta"`
}

// Start says at which policy a learner begins. Its losses are normalized by the problem's π₀ in either case.
type Start string

const (
	Initial Start = "initial" // the problem's: θ = log π₀
	Uniform Start = "uniform" // θ = 0
)

// Learner returns the learner of a problem with π₀ [S, A] before its first round.
func (s Start) Learner(pi0 *mat.Dense) (*ActorCritic, error) {
	switch s {
	case Initial:
		return NewActorCritic(pi0)
	case Uniform:
		return NewActorCritic(mdp.UniformPolicy(pi0.Dims()))
	}
	return nil, fmt.Errorf("baseline: start %q, want %q or %q", s, Initial, Uniform)
}

// ActorCritic is the state of tabular actor–critic: θ [S, A] of the policy softmax(θ), and state values w [S].
type ActorCritic struct {
	Theta *mat.Dense
	W     []float64
}

// NewActorCritic starts from the policy pi0 [S, A], θ = log π₀, and w = 0; an error where a probability is 0.
func NewActorCritic(pi0 *mat.Dense) (*ActorCritic, error) {
	s, a := pi0.Dims()
	theta := mat.NewDense(s, a, nil)
	for i := range s {
		for j, p := range pi0.RawRowView(i) {
			if !(p > 0) {
				return nil, fmt.Errorf("baseline: π₀(a=%d|s=%d) is %v, want a positive probability", j, i, p)
			}
			theta.Set(i, j, numeric.Log(p))
		}
	}
	return &ActorCritic{Theta: theta, W: make([]float64, s)}, nil
}

// Policy returns softmax(θ) [S, A].
func (l *ActorCritic) Policy() *mat.Dense {
	pi := mat.DenseCopyOf(l.Theta)
	for s := range pi.RawMatrix().Rows {
		pmd.Softmax(pi.RawRowView(s))
	}
	return pi
}

// Step adds an increment [S·A + S], that of θ, row-major, and behind it that of w. It returns an error when a
// parameter is no longer finite, as it happens with step sizes far too large.
func (l *ActorCritic) Step(increment []float64) error {
	theta := l.Theta.RawMatrix().Data
	floats.Add(theta, increment[:len(theta)])
	floats.Add(l.W, increment[len(theta):])
	if size := max(floats.Norm(theta, math.Inf(1)), floats.Norm(l.W, math.Inf(1))); !(size <= math.MaxFloat64) {
		return fmt.Errorf("baseline: actor–critic diverged, a parameter is of size %v", size)
	}
	return nil
}

// Increment returns the semi-gradient actor–critic increments on a window of n
// transitions, all drawn under pi = softmax(θ) [S, A],
//
//	Δθ = α/n Σ δ ∇log π(a|s),   Δw = β/n Σ δ φ(s),
//	δ = r + γ w(s′) − w(s),
//
// with one-hot features φ, so ∇log π(a|s) = e_{s,a} − Σ_b π(b|s) e_{s,b} (arXiv 2605.05755).
func (l *ActorCritic) Increment(window []Transition, pi *mat.Dense, gamma float64, steps StepSizes) []float64 {
	s, a := l.Theta.Dims()
	increment := make([]float64, s*a+s)
	for _, t := range window {
		delta := (t.Reward + gamma*l.W[t.Next] - l.W[t.State]) / float64(len(window))
		increment[s*a+t.State] += steps.Beta * delta
		row := increment[t.State*a:][:a]
		row[t.Action] += steps.Alpha * delta
		for b, p := range pi.RawRowView(t.State) {
			row[b] -= steps.Alpha * delta * p
		}
	}
	return increment
}

// Stepping is the agent with the parameters (θ, w) and the policy softmax(θ), which starts as start says, with w = 0.
// Each round it adds the increment of a tabular learner under pi = softmax(θ), carried to features drawn below root.
func Stepping(t Told, start Start, features Features, root uint64,
	increment func(l *ActorCritic, window []Transition, pi *mat.Dense) []float64) (Agent, error) {
	l, err := start.Learner(t.Pi0)
	if err != nil {
		return nil, err
	}
	carry, err := features.carry(t.States, t.Actions, seed.New(root, "baseline", "features", t.Problem))
	pi := l.Policy()
	return func(window []Transition) (policy, behaviour *mat.Dense, err error) {
		if len(window) > 0 {
			step := increment(l, window, pi)
			carry(step)
			err = l.Step(step)
			pi = l.Policy()
		}
		return pi, pi, err
	}, err
}

// Teacher is the controller that runs actor–critic itself: the teacher of Liang–Lai and, tabular, the source of
// Algorithm Distillation. Each round draws [Window] transitions. These and the features come from streams below root.
func Teacher(steps StepSizes, start Start, features Features, root uint64) Agents {
	return Agents{Source: Walk(Window, root), New: func(t Told) (Agent, error) {
		return Stepping(t, start, features, root, func(l *ActorCritic, window []Transition, pi *mat.Dense) []float64 {
			return l.Increment(window, pi, t.Gamma, steps)
		})
	}}
}

// Features says what a learner's parameters multiply: log π(a|s) is x(s,a)ᵀθ up to a constant, V(s) is f(s)ᵀw.
type Features string

const (
	OneHot Features = ""      // tabular: a parameter for each pair and each state
	Dense  Features = "dense" // numbers uniform on [0, 1), S·A of them for each pair and S for each state
)

// carry draws features for S states and A actions, and returns what carries tabular increments [S·A + S] of θ and w
// over to them. With the rows of X as features, a gradient g with respect to the logits Xθ makes an increment
// Xᵀg of θ, and so X Xᵀg of the logits; likewise F Fᵀ for the values. Learners are kept as logits and values.
func (f Features) carry(states, actions int, rng *rand.Rand) (func(increment []float64), error) {
	switch f {
	case OneHot:
		return func([]float64) {}, nil
	case Dense:
		pairs, values := gram(states*actions, rng), gram(states, rng)
		return func(increment []float64) {
			pairs(increment[:states*actions])
			values(increment[states*actions:])
		}, nil
	}
	return nil, fmt.Errorf("baseline: features %q, want %q or %q", f, OneHot, Dense)
}

// gram draws a square X of numbers uniform on [0, 1), and returns what multiplies a vector [n] by X Xᵀ.
func gram(n int, rng *rand.Rand) func(g []float64) {
	x, k := mat.NewDense(n, n, nil), new(mat.Dense)
	x.Apply(func(int, int, float64) float64 { return rng.Float64() }, x)
	k.Mul(x, x.T())
	return func(g []float64) {
		v := mat.NewVecDense(n, g)
		v.MulVec(k, mat.VecDenseCopyOf(v))
	}
}

// Horizons are the numbers of rounds T at which losses are tabulated and tunings scored.
var Horizons = []int{20, 40}

// Score returns the losses at [Horizons] of a learner with step sizes and a start.
func Score(trajectories []control.Trajectory, steps StepSizes, start Start, scales []*control.Scale) (
	all []rows.Tuned, err error) {
	for _, horizon := range Horizons {
		for i, scale := range scales {
			loss, err := scale.Loss(trajectories[i].Policies[horizon])
			if err != nil {
				return nil, fmt.Errorf("problem %d, round %d: %w", i, horizon, err)
			}
			all = append(all, rows.Tuned{Start: string(start), Alpha: steps.Alpha, Beta: steps.Beta,
				Problem: int32(i), Round: int32(horizon), Loss: rows.Single(loss)})
		}
	}
	return all, nil
}
