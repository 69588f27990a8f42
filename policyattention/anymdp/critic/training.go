//go:build !js

package critic

import (
	_ "embed" // the released weights
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/stat/distuv"

	"icrl/internal/numeric"
	"icrl/policyattention/anymdp"
	"icrl/policyattention/mdp"
	"icrl/policyattention/seed"
	"icrl/policyattention/train"
	"icrl/policyattention/transformer"
)

// Config is everything that trained weights depend on, but for the backend's arithmetic. The network is trained by
// regression on sampled transitions.
//
// An answer is p̂·v. Its error against a fresh transition s' of the same pair is v(s') − p̂·v, and for values v
// that are independent of each other with one variance, the mean of its square over v is that variance times the
// squared distance of p̂ and the frequencies of fresh transitions. So the loss is this distance, and no value is
// drawn. It is multiplied by N, as the error of the mean of N samples falls with N: memories of all ages count alike.
type Config struct {
	Recipe    string            `json:"recipe"`   // "memory-critic"
	Seed      uint64            `json:"seed"`     // identity: weights, problems, order of examples
	Problems  int               `json:"problems"` // drawn once; four pairs of each are examples
	Batch     int               `json:"batch"`
	Steps     int               `json:"steps"`
	Optimizer transformer.AdamW `json:"optimizer"`
}

// Standard is the configuration of the released identities: steps are as the actor's.
func Standard(identity uint64) Config {
	const steps = 6000
	o := transformer.StandardAdamW()
	o.LearningRate, o.Beta2, o.Cosine = 2e-3, .99, steps
	return Config{Recipe: name, Seed: identity, Problems: 1 << 14, Batch: 64, Steps: steps, Optimizer: o}
}

const name = "memory-critic"

// Validate reports the first invalid field.
func (c Config) Validate() error {
	switch {
	case c.Recipe != name:
		return fmt.Errorf("critic: %q, want %q", c.Recipe, name)
	case min(c.Problems, c.Batch, c.Steps) < 1 || max(c.Problems, c.Steps) > 1<<20:
		return fmt.Errorf("critic: %d problems, batch %d, %d steps: want 1 to 2^20", c.Problems, c.Batch, c.Steps)
	case c.Batch > rowsOf*c.Problems:
		return fmt.Errorf("critic: batches of %d from %d examples", c.Batch, rowsOf*c.Problems)
	case max(c.Optimizer.LearningRate, c.Optimizer.WeightDecay) >= 1:
		return errors.New("critic: the optimizer's rates are not in [0, 1)")
	}
	return c.Optimizer.Validate()
}

// Network is the shape of the network.
func (c Config) Network() transformer.Config { return Shape() }

// Job is the training run, for [train.Job.Run].
func (c Config) Job() (train.Job, error) {
	start := func() []float32 { return c.Network().Init(seed.New(c.Seed, "memory critic", "init")) }
	return train.Job{Config: c, Model: train.Transformer{Network: c.Network(), Start: start, Objective: loss},
		Batches: train.Batches{Data: c.data, Index: c.batch}, Optimizer: c.Optimizer, Steps: c.Steps}, c.Validate()
}

// batch returns the examples [Batch] of a step, drawn one by one.
func (c Config) batch(step int) []int32 {
	rng := seed.New(c.Seed, "memory critic", "batch", step)
	index := make([]int32, c.Batch)
	for i := range index {
		index[i] = int32(rng.IntN(rowsOf * c.Problems))
	}
	return index
}

// data is tokens [n, Slots, Features], counts [n, Slots], targets [n, Slots], which slots are
// states [n, Slots] and totals [n, 1] of all examples.
func (c Config) data() ([]*tensors.Tensor, error) {
	examples, slots := c.Examples(), []int{Slots}
	return train.Arrays(len(examples), func(i int) ([][]float64, error) {
		x, states := examples[i], make([]float64, Slots)
		for s := range x.States {
			states[s] = 1
		}
		return [][]float64{slices.Concat(x.Tokens...), x.Counts, x.Target, states, {float64(x.Total)}}, nil
	}, []int{Slots, Features}, slots, slots, slots, []int{1})
}

// loss is the mean of N ‖p̂ − frequencies of fresh transitions‖².
func loss(network train.Outputs, data, batch []*Node) *Node {
	part := func(i int) *Node { return Gather(data[i], batch[0]) }
	tokens, counts, targets, states, totals := part(0), part(1), part(2), part(3), part(4)
	outputs := Squeeze(network(tokens, Slots), -1)
	mass := Add(counts, Mul(states, Exp(MulScalar(Tanh(DivScalar(outputs, Most)), Most))))
	p := Div(mass, ReduceAndKeep(mass, ReduceSum, -1))
	distance := ReduceAndKeep(Square(Sub(p, targets)), ReduceSum, -1)
	return ReduceAllMean(Mul(totals, distance))
}

// Key, Name and Seconds are what the experiments ask of a training run, see method.Training.
func (c Config) Key() string  { return "memory_critic" }
func (c Config) Name() string { return fmt.Sprintf("%s-%d", name, c.Seed) }
func (c Config) Seconds() float64 {
	const drawn, perToken = 1e-3, 4e-6
	return drawn*float64(c.Problems) + perToken*float64(c.Steps*c.Batch*16)
}

// rowsOf is how many pairs of a problem are examples.
const rowsOf = 4

// Example is a pair with memory, and a target that is sampled too.
type Example struct {
	Tokens [][]float64 // [Slots][Features]
	Counts []float64   // n [Slots], 0 where there is no state
	Target []float64   // frequencies of fresh transitions of the same pair [Slots]
	States int
	Total  int // N
}

// Examples draws what c trains on. Nothing is drawn from the problems that anything is
// evaluated on: a problem here is rows of P alone, of 2 to 16 states and 4 to 64 pairs.
//
//   - Its rows are from Dirichlet(α, …, α), with one α from .03 to 30 for all, log-uniform.
//   - In a third of the problems the rows have 1 to S successors, drawn anew for each; in another third they are mixed
//     with the uniform row, with one weight from 0 to 1 for all.
//   - Every pair has N transitions in memory, from 1 to 1,000, log-uniform.
//
// The target is as many fresh transitions, at least 64.
func (c Config) Examples() (all []Example) {
	for i := range c.Problems {
		all = append(all, draw(seed.New(c.Seed, "memory critic", "problem", i))...)
	}
	return all
}

func draw(rng *rand.Rand) []Example {
	between := func(least, most float64) float64 {
		return least * numeric.Exp(rng.Float64()*numeric.Log(most/least))
	}
	states := 2 + rng.IntN(Slots-1)
	alpha, pairs, total := between(.03, 30), int(between(4, 65)), int(between(1, 1001))
	kind, weight := rng.IntN(3), rng.Float64()
	counts := Counts{States: states, Total: total}
	var laws [][]float64
	for range pairs {
		successors := rng.Perm(states)
		if kind == 1 {
			successors = successors[:1+rng.IntN(states)]
		}
		law := dirichlet(rng, alpha, states, successors)
		if kind == 2 {
			for s := range law {
				law[s] = float64(weight*law[s]) + (1-weight)/float64(states)
			}
		}
		laws, counts.Next = append(laws, law), append(counts.Next, sample(rng, law, total))
	}
	examples := make([]Example, rowsOf)
	for pair, tokens := range counts.tokens(rowsOf) {
		fresh := max(64, total)
		target := sample(rng, laws[pair], fresh)
		for s := range target {
			target[s] /= float64(fresh)
		}
		pad := make([]float64, Slots-states)
		examples[pair] = Example{Tokens: tokens, States: states, Total: total,
			Counts: append(counts.Next[pair], pad...), Target: append(target, pad...)}
	}
	return examples
}

// dirichlet draws a row [states] from Dirichlet(α, …, α) over its successors.
func dirichlet(rng *rand.Rand, alpha float64, states int, successors []int) []float64 {
	row, sum := make([]float64, states), 0.0
	gamma := distuv.Gamma{Alpha: alpha, Beta: 1, Src: rng}
	for _, s := range successors {
		row[s] = gamma.Rand()
		sum += row[s]
	}
	if sum == 0 { // all have underflowed, as happens with small α: one has all mass
		row[successors[0]], sum = 1, 1
	}
	for s := range row {
		row[s] /= sum
	}
	return row
}

// sample counts where n transitions lead [S].
func sample(rng *rand.Rand, law []float64, n int) []float64 {
	counts := make([]float64, len(law))
	for range n {
		counts[mdp.Sample(rng, law)]++
	}
	return counts
}

//go:embed weights.safetensors
var released []byte

// Released returns the released network in plain Go, as an estimator: see the model card, MODEL.md, beside its weights.
var Released = sync.OnceValues(func() (Estimator, error) {
	forward, err := anymdp.Plain(Shape(), released)
	if err != nil {
		return nil, fmt.Errorf("critic: the released weights: %w", err)
	}
	return Learned(forward), nil
})
