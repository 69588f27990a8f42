package train

import (
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/numeric"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/seed"
)

// An actor's tokens, one per state-action pair in row-major order:
//
//	[ one-hot of s (Slots) | one-hot of a (A) | π or log π | Q | η ]
func actorFeatures(slots, actions int) int { return slots + actions + 3 }

// actorTokens writes the tokens [S·A, features] of a context. State s carries
// the one-hot of slot[s].
func (c Config) actorTokens(tokens []float32, slot []int, pi, q *mat.Dense, eta float64) {
	features := actorFeatures(c.Slots, c.Actions)
	for s := range slot {
		for a := range c.Actions {
			token := tokens[(s*c.Actions+a)*features:][:features]
			token[slot[s]] = 1
			token[c.Slots+a] = 1
			p := pi.At(s, a)
			if c.Recipe.Policy == LogPolicy {
				p = clippedLog(p)
			}
			scalars := token[c.Slots+c.Actions:]
			scalars[0], scalars[1], scalars[2] = float32(p), float32(q.At(s, a)), float32(eta)
		}
	}
}

// A critic's tokens: m transitions of every state-action pair, then a query for
// every pair, each in row-major order of pairs:
//
//	[ one-hot of s | one-hot of a | one-hot of s' | r | v' | query ]
//
// A transition carries the successor s' ~ P(·|s,a), the reward r = r(s,a) and
// v' = ⟨π̂(·|s'),Q_k(s',·)⟩, the successor's value under the returned policy; a
// query carries the flag 1. Other fields are zero. The expectation over a' is
// known without sampling, since π̂ and Q_k are given; what is sampled is the
// environment. Queries are not told Q_k(s,a): from exact runs, whose Q_k hardly
// changes late, a network learns to repeat it, and in the loop its own errors
// then never leave Q.
//
// With MemoryInput every token of a pair is told, and a query the mean sampled target
// too, in the place of r:
//
//	[ one-hot of s | one-hot of a | one-hot of s' | r | v' | Q_k(s,a) | query ]
//
// With TableInput the context begins with a token for every pair, which has π̂(a|s) in
// the place of v' and Q_k(s,a); transitions have s' and r alone.
func (c Config) criticFeatures() int {
	if c.Recipe.Input == ValueInput {
		return 2*c.Slots + c.Actions + 3
	}
	return 2*c.Slots + c.Actions + 4
}

// criticTokens writes the tokens [ContextTokens, features] of transitions that were
// sampled for the returned policy pi and Q_k.
func (c Config) criticTokens(tokens []float32, slot []int, pi, q *mat.Dense, sampled samples) {
	features := c.criticFeatures()
	pairs := len(slot) * c.Actions
	token := func(i, pair int) (oneHot, scalars []float32) {
		t := tokens[i*features:][:features]
		t[slot[pair/c.Actions]] = 1
		t[c.Slots+pair%c.Actions] = 1
		return t[c.Slots+c.Actions:], t[2*c.Slots+c.Actions:]
	}
	before := func(pair int) float32 { return float32(q.RawMatrix().Data[pair]) }
	at := 0
	if c.Recipe.Input == TableInput {
		for pair := range pairs {
			_, scalars := token(pair, pair)
			scalars[1], scalars[2] = float32(pi.RawMatrix().Data[pair]), before(pair)
		}
		at = pairs
	}
	for i, successor := range sampled.successors {
		pair := i / c.Samples
		next, scalars := token(at+i, pair)
		next[slot[successor]] = 1
		scalars[0] = float32(sampled.rewards[pair])
		if c.Recipe.Input != TableInput {
			scalars[1] = float32(sampled.values[successor])
		}
		if c.Recipe.Input == MemoryInput {
			scalars[2] = before(pair)
		}
	}
	at += len(sampled.successors)
	for pair := range pairs {
		_, scalars := token(at+pair, pair)
		scalars[len(scalars)-1] = 1
		if c.Recipe.Input == MemoryInput {
			scalars[0], scalars[2] = float32(sampled.mean.RawMatrix().Data[pair]), before(pair)
		}
	}
}

// ContextTokens is the number of tokens of a context with so many state-action pairs.
func (c Config) ContextTokens(pairs int) int {
	switch {
	case c.Objective != Critic:
		return pairs
	case c.Recipe.Input == TableInput:
		return (c.Samples + 2) * pairs
	}
	return (c.Samples + 1) * pairs
}

// runs is how many runs an example of a critic is drawn from, see Recipe.Spread.
func (c Config) runs() int {
	if c.Objective == Critic && c.Recipe.Spread > 0 {
		return 2
	}
	return 1
}

// samples are m generative transitions of every state-action pair.
type samples struct {
	successors []int      // s' [S·A·m]
	rewards    []float64  // r(s,a) of each pair [S·A]
	values     []float64  // ⟨π̂(·|s),Q_k(s,·)⟩ of each state [S]
	mean       *mat.Dense // mean target r + γv' of each pair [S, A]
}

// sample draws transitions of m for a critic shown the returned policy pi and
// Q_k.
func (c Config) sample(rng *rand.Rand, m *mdp.MDP, pi, q *mat.Dense) samples {
	out := samples{values: make([]float64, m.States()), mean: mat.NewDense(m.States(), m.Actions(), nil)}
	for s := range out.values {
		for a, p := range pi.RawRowView(s) {
			if p > 0 { // without, the action may not exist
				out.values[s] += p * q.At(s, a)
			}
		}
	}
	mean := out.mean.RawMatrix().Data
	for pair := range mean {
		if !m.Exists(pair/c.Actions, pair%c.Actions) {
			out.rewards, mean[pair] = append(out.rewards, math.Inf(-1)), math.Inf(-1)
			continue
		}
		for i := range c.Samples {
			reward, successor := m.Transition(rng, pair/c.Actions, pair%c.Actions)
			out.successors = append(out.successors, successor)
			if i == 0 {
				out.rewards = append(out.rewards, reward)
				mean[pair] = reward
			}
			mean[pair] += m.Gamma * out.values[successor] / float64(c.Samples)
		}
	}
	return out
}

// slots returns the slot of each state: the state itself, or slots drawn at
// random where the network is to run on several sizes.
func (c Config) slots(rng *rand.Rand, states int) []int {
	slot := rng.Perm(c.Slots)[:states]
	if c.Slots == c.Sizes[0] && len(c.Sizes) == 1 {
		for s := range slot {
			slot[s] = s
		}
	}
	return slot
}

// exampleRNG is the stream that names the states of example i and samples its
// transitions.
func (c Config) exampleRNG(i int) *rand.Rand { return seed.New(c.Seed, "train", "example", i) }

// identity returns the slots 0, …, states−1, which deployment uses.
func identity(states int) []int {
	slot := make([]int, states)
	for s := range slot {
		slot[s] = s
	}
	return slot
}

func clippedLog(p float64) float64 { return math.Max(numeric.Log(p), control.LogFloor) }

// examples are arrays whose leading axis counts training examples, in the order
// in which an objective takes them.
type examples struct {
	shapes [][]int // without the leading axis
	arrays [][]float32
}

// examples draws and encodes the training set.
//
// Actors: tokens [T, features], clipped log π [S, A], ηQ [S, A] and the weight
// of each state [S], where S is the largest size and T = S·A. A smaller problem
// is padded at the end: under the causal mask padding changes nothing before
// it, and its weight is zero.
//
// Critics: tokens [ContextTokens, features], the mean sampled target and the exact
// backup, both [S·A]; with Spread those of two runs, under a leading axis.
func (c Config) examples() (*examples, error) {
	if c.Objective == Critic {
		return c.criticExamples()
	}
	contexts, err := c.Contexts()
	if err != nil {
		return nil, err
	}
	states := 0
	for _, s := range c.Sizes {
		states = max(states, s)
	}
	pairs := states * c.Actions
	e := &examples{}
	add := func(shape ...int) []float32 { return e.add(len(contexts), shape...) }
	features := c.Network().Features
	tokens, prior, gain, weight := add(pairs, features), add(states, c.Actions), add(states, c.Actions), add(states)
	for i, x := range contexts {
		n := x.MDP.States()
		slot := c.slots(c.exampleRNG(i), n)
		c.actorTokens(tokens[i*pairs*features:][:n*c.Actions*features], slot, x.Pi, x.Q, x.Eta)
		for s := range n {
			weight[i*states+s] = 1 / float32(n)
			for a := range c.Actions {
				at := i*pairs + s*c.Actions + a
				prior[at] = float32(clippedLog(x.Pi.At(s, a)))
				gain[at] = float32(x.Eta * x.Q.At(s, a))
			}
		}
	}
	return e, e.check()
}

// add appends an array of n examples.
func (e *examples) add(n int, shape ...int) []float32 {
	for _, d := range shape {
		n *= d
	}
	e.shapes, e.arrays = append(e.shapes, shape), append(e.arrays, make([]float32, n))
	return e.arrays[len(e.arrays)-1]
}

// criticExamples is examples for critics.
func (c Config) criticExamples() (*examples, error) {
	pairs := c.Sizes[0] * c.Actions
	count, features := c.ContextTokens(pairs), c.Network().Features
	shape := func(dims ...int) []int {
		if c.runs() > 1 {
			return append([]int{c.runs()}, dims...)
		}
		return dims
	}
	e := &examples{}
	tokens := e.add(c.Examples, shape(count, features)...)
	mean, exact := e.add(c.Examples, shape(pairs)...), e.add(c.Examples, shape(pairs)...)
	for run := range c.runs() {
		contexts, err := c.contexts(run)
		if err != nil {
			return nil, err
		}
		for i, x := range contexts {
			rng := c.exampleRNG(i)
			if run > 0 {
				rng = seed.New(c.Seed, "train", "example", i, run)
			}
			slot := c.slots(rng, x.MDP.States())
			after, err := next(x)
			if err != nil {
				return nil, fmt.Errorf("train: context %d: %w", i, err)
			}
			sampled := c.sample(rng, x.MDP, after.Pi, x.Q)
			at := i*c.runs() + run
			c.criticTokens(tokens[at*count*features:][:count*features], slot, after.Pi, x.Q, sampled)
			for j, v := range after.Q.RawMatrix().Data {
				mean[at*pairs+j], exact[at*pairs+j] = float32(sampled.mean.RawMatrix().Data[j]), float32(v)
			}
		}
	}
	return e, e.check()
}

// check refuses numbers from which training could not recover.
func (e *examples) check() error {
	for k, array := range e.arrays {
		per := 1
		for _, d := range e.shapes[k] {
			per *= d
		}
		for i, v := range array {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				return fmt.Errorf("train: example %d holds %v", i/per, v)
			}
		}
	}
	return nil
}
