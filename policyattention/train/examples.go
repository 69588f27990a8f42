package train

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/numeric"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
	"icrl/policyattention/transformer/engine"
)

// Contexts draws the contexts on which c trains, in the order of its examples: a pure function of the configuration.
func (c Config) Contexts() ([]control.Context, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	problems, err := mdp.Random.Draw(c.taskRoot(), c.States(), c.Actions, c.MDPs)
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	contexts := make([]control.Context, c.Examples)
	for i := range contexts {
		if contexts[i], err = c.context(i, problems); err != nil {
			return nil, fmt.Errorf("train: context %d: %w", i, err)
		}
	}
	return contexts, nil
}

// context draws one context on one of the problems. A critic's runs have the mean of its sampled targets in place of
// the exact backup: at deployment it reads tables with sampling errors, and must not learn to expect none.
func (c Config) context(example int, problems []mdp.Problem) (x control.Context, err error) {
	rng := seed.New(c.Seed, "train", "context", example)
	x.MDP = problems[rng.IntN(len(problems))].MDP
	if c.Recipe.Relabel {
		if x.MDP, err = relabel(x.MDP, rng.Perm(c.States()), rng.Perm(c.Actions)); err != nil {
			return x, err
		}
	}
	x.Pi = mdp.RandomPolicy(rng, c.States(), c.Actions)
	if x.Q, err = x.MDP.PolicyValue(x.Pi); err != nil {
		return x, err
	}
	x.Eta = c.Recipe.EtaMin + (c.Recipe.EtaMax-c.Recipe.EtaMin)*rng.Float64()
	most := []int{c.Recipe.Rounds, c.Recipe.Early}[example%2]
	for range rng.IntN(most + 1) {
		before := x.Q
		if x, err = next(x); err != nil {
			return x, err
		}
		if c.Objective == Critic {
			x.Q = c.sample(rng, x.MDP, x.Pi, before).mean
		}
	}
	return x, nil
}

// relabel returns the MDP with state s called states[s] and action a called actions[a].
func relabel(m *mdp.MDP, states, actions []int) (*mdp.MDP, error) {
	p, r := m.DenseP(), mat.DenseCopyOf(m.R)
	for s, toState := range states {
		for a, toAction := range actions {
			row := p.RawRowView(toState*len(actions) + toAction)
			for t, probability := range m.Next(s, a) {
				row[states[t]] = probability
			}
			r.Set(toState, toAction, m.R.At(s, a))
		}
	}
	return mdp.New(m.Gamma, p, r)
}

// next returns the context one exact round later.
func next(x control.Context) (control.Context, error) {
	pi, err := pmd.Step(x.Pi, x.Q, x.Eta)
	if err != nil {
		return control.Context{}, err
	}
	return control.Context{MDP: x.MDP, Pi: pi, Q: x.MDP.EvaluationBackup(pi, x.Q), Eta: x.Eta, Round: x.Round + 1}, nil
}

// actorTokens writes the tokens [S·A, features] of a context, one per state-action pair in row-major order:
//
//	[ one-hot of s (S) | one-hot of a (A), 0 if Equivariant | π | Q | η ]
func (c Config) actorTokens(x control.Context, tokens []float32) {
	features := c.Network().Features
	for s := range c.States() {
		for a := range c.Actions {
			token := tokens[(s*c.Actions+a)*features:][:features]
			token[s] = 1
			if c.Attention != Equivariant {
				token[c.States()+a] = 1
			}
			scalars := token[c.States()+c.Actions:]
			scalars[0], scalars[1], scalars[2] = float32(x.Pi.At(s, a)), float32(x.Q.At(s, a)), float32(x.Eta)
		}
	}
}

// criticTokens writes a critic's tokens [ContextTokens, features] from transitions that were sampled for the returned
// policy π̂: m transitions of every state-action pair, then a query for every pair, each in row-major order of pairs:
//
//	[ one-hot of s | one-hot of a | one-hot of s' | r | v' | query ]
//
// A transition carries the successor s' ~ P(·|s,a), the reward r = r(s,a) and v' = ⟨π̂(·|s'),Q_k(s',·)⟩, the
// successor's value under the returned policy; a query carries the flag 1. Other fields are zero. The expectation over
// a' is known without sampling, since π̂ and Q_k are given; what is sampled is the environment. Queries are not told
// Q_k(s,a): from exact runs, whose Q_k hardly changes late, a network learns to repeat it, and in the loop its own
// errors then never leave Q.
func (c Config) criticTokens(tokens []float32, sampled samples) {
	features, states := c.Network().Features, c.States()
	token := func(i, pair int) (successor, scalars []float32) {
		t := tokens[i*features:][:features]
		t[pair/c.Actions] = 1
		t[states+pair%c.Actions] = 1
		return t[states+c.Actions:], t[2*states+c.Actions:]
	}
	for i, state := range sampled.successors {
		pair := i / c.Samples
		successor, scalars := token(i, pair)
		successor[state] = 1
		scalars[0], scalars[1] = float32(sampled.rewards[pair]), float32(sampled.values[state])
	}
	for pair := range states * c.Actions {
		_, scalars := token(len(sampled.successors)+pair, pair)
		scalars[2] = 1
	}
}

// ContextTokens is the number of tokens of a context.
func (c Config) ContextTokens() int {
	pairs := c.States() * c.Actions
	if c.Objective == Critic {
		return (c.Samples + 1) * pairs
	}
	return pairs
}

// samples are m generative transitions of every state-action pair.
type samples struct {
	successors []int      // s' [S·A·m]
	rewards    []float64  // r(s,a) of each pair [S·A], −Inf where there is no action
	values     []float64  // ⟨π̂(·|s),Q_k(s,·)⟩ of each state [S]
	mean       *mat.Dense // mean target r + γv' of each pair [S, A]
}

// sample draws transitions of m for a critic shown the returned policy pi and Q_k.
func (c Config) sample(rng *rand.Rand, m *mdp.MDP, pi, q *mat.Dense) samples {
	out := samples{rewards: m.R.RawMatrix().Data, values: m.StateValues(pi, q), mean: mat.DenseCopyOf(m.R)}
	mean := out.mean.RawMatrix().Data
	for pair := range mean {
		for i := 0; i < c.Samples && m.Exists(pair/c.Actions, pair%c.Actions); i++ {
			_, successor := m.Transition(rng, pair/c.Actions, pair%c.Actions)
			out.successors = append(out.successors, successor)
			mean[pair] += m.Gamma * out.values[successor] / float64(c.Samples)
		}
	}
	return out
}

// SampleMean is a critic without a network. From as many transitions of every pair as a learned critic sees, and the
// same ones below the same root, it returns the mean sampled target r + γ⟨π̂(·|s'),Q_k(s',·)⟩.
type SampleMean struct {
	Samples int // m
	Root    uint64
}

// Evaluate implements control.Critic.
func (s SampleMean) Evaluate(batch []control.Context) ([]*mat.Dense, error) {
	if s.Samples < 1 {
		return nil, fmt.Errorf("train: %d samples of every pair, want at least one", s.Samples)
	}
	return control.CriticFunc(func(x control.Context) (*mat.Dense, error) {
		if x.MDP == nil {
			return nil, fmt.Errorf("train: the context of problem %d has no MDP to sample from", x.Problem)
		}
		c := Config{Actions: x.MDP.Actions(), Samples: s.Samples}
		return c.sample(seed.New(s.Root, "critic", x.Problem, x.Round), x.MDP, x.Pi, x.Q).mean, nil
	}).Evaluate(batch)
}

// data draws and encodes the training set.
//
// Actors: tokens [N, S·A, features], clipped log π and ηQ, both [N, S, A].
//
// Critics: tokens [N, ContextTokens, features] and the exact backup [N, S·A].
func (c Config) data() ([]*tensors.Tensor, error) {
	contexts, err := c.Contexts()
	if err != nil {
		return nil, err
	}
	tokens, rows := []int{c.ContextTokens(), c.Network().Features}, []int{c.States(), c.Actions}
	shapes := [][]int{tokens, rows, rows}
	if c.Objective == Critic {
		shapes = [][]int{tokens, {c.States() * c.Actions}}
	}
	return Arrays(len(contexts), func(i int) ([][]float32, error) {
		x, into := contexts[i], make([]float32, tokens[0]*tokens[1])
		if c.Objective == Critic {
			rng := seed.New(c.Seed, "train", "example", i)
			rng.Perm(c.States()) // once named the states; without it, others would be sampled
			after, err := next(x)
			if err != nil {
				return nil, err
			}
			c.criticTokens(into, c.sample(rng, x.MDP, after.Pi, x.Q))
			var exact []float32
			for _, q := range after.Q.RawMatrix().Data {
				exact = append(exact, float32(q))
			}
			return [][]float32{into, exact}, nil
		}
		c.actorTokens(x, into)
		var prior, gain []float32
		for pair, q := range x.Q.RawMatrix().Data {
			prior = append(prior, float32(math.Max(numeric.Log(x.Pi.RawMatrix().Data[pair]), control.LogFloor)))
			gain = append(gain, float32(x.Eta*q))
		}
		return [][]float32{into, prior, gain}, nil
	}, shapes...)
}

// Arrays returns numbers of n training examples, of which each has one list an array: arrays [n, …] of the shapes of
// the lists. It returns the errors of numbers, and one for a number that is not finite in float32, from which training
// could not recover. It panics on a list of another length.
func Arrays[F engine.Float](n int, numbers func(i int) ([][]F, error), shapes ...[]int) ([]*tensors.Tensor, error) {
	values, all := make([][]float32, len(shapes)), make([]*tensors.Tensor, len(shapes))
	for i := range n {
		lists, err := numbers(i)
		if err != nil {
			return nil, fmt.Errorf("train: example %d: %w", i, err)
		}
		for k, list := range lists {
			for _, v := range list {
				if x := float64(float32(v)); math.IsNaN(x) || math.IsInf(x, 0) {
					return nil, fmt.Errorf("train: example %d holds %v", i, v)
				}
				values[k] = append(values[k], float32(v))
			}
		}
	}
	for k, shape := range shapes {
		all[k] = tensors.FromFlatDataAndDimensions(values[k], append([]int{n}, shape...)...)
	}
	return all, nil
}
