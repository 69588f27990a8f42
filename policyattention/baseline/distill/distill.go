// Package distill is the baseline Algorithm Distillation (Laskin et al. 2023, arXiv 2210.14215): a causal Transformer
// is trained to predict the actions in learning histories of a source algorithm, and then learns in its context alone.
//
// The source is tabular actor–critic, started from the uniform policy, with one update every [baseline.Window]
// transitions. A token is what an agent has just seen: the action and reward before (zeros at first) and the state
// now, with its position in the context. From the token of step t and those before it the network predicts a_t.
package distill

import (
	"fmt"
	"math"

	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/internal/numeric"
	"icrl/policyattention/baseline"
	"icrl/policyattention/mdp"
	"icrl/policyattention/seed"
	"icrl/policyattention/train"
	"icrl/policyattention/transformer"
)

// Config is everything that trained weights depend on, but for the backend's arithmetic.
type Config struct {
	Method    string             `json:"method"` // always "algorithm-distillation"
	Seed      uint64             `json:"seed"`   // root of histories, weights and order
	States    int                `json:"states"`
	Actions   int                `json:"actions"`
	Source    baseline.StepSizes `json:"source"`    // step sizes of the source algorithm
	Histories int                `json:"histories"` // one MDP each
	Length    int                `json:"length"`    // transitions a history
	Context   int                `json:"context"`   // tokens that the network sees
	Batch     int                `json:"batch"`     // windows of Context tokens a step
	Steps     int                `json:"steps"`
	Layers    int                `json:"layers"`
	Heads     int                `json:"heads"`
	Width     int                `json:"width"`
	Hidden    int                `json:"hidden"`
	Optimizer transformer.AdamW  `json:"optimizer"`
}

const name = "algorithm-distillation"

// Paper is the paper's recipe after its one repair: 2,000 histories of 1,000 steps, context 200, batch 128, 40,000
// steps. The paper gives the number of parameters, 1.14M, without the shape; this one has 1,138,467 at S=8. Its source
// actor rate is 4; the critic's rate is ours, the source hardly depends on it.
func Paper(seed uint64, states int) Config {
	return Config{Method: name, Seed: seed, States: states, Actions: mdp.Actions,
		Source: baseline.StepSizes{Alpha: 4, Beta: 0.2}, Histories: 2000, Length: 1000,
		Context: 200, Batch: 128, Steps: 40_000, Layers: 4, Heads: 4, Width: 160, Hidden: 536,
		Optimizer: transformer.StandardAdamW()}
}

// FirstAttempt is the recipe with which the paper's first qualification failed: context 800, batch 32, 20,000 steps.
func FirstAttempt(seed uint64, states int) Config {
	c := Paper(seed, states)
	c.Context, c.Batch, c.Steps = 800, 32, 20_000
	return c
}

// CPU is a budget for machines without a GPU. It differs from Paper in what decides whether in-context learning sets in
// at all within some thousand small steps: a context of three rounds instead of ten, and a smaller network at a larger
// learning rate. A source that learns faster helps too, and is the caller's choice.
func CPU(seed uint64, states int) Config {
	c := Paper(seed, states)
	c.Histories, c.Context, c.Batch, c.Steps = 1000, 60, 32, 3000
	c.Layers, c.Width, c.Hidden = 2, 64, 64
	c.Optimizer.LearningRate = 2e-3
	return c
}

// ShortContext is a recipe's control, which remembers nothing between rounds: a context of one round and the query
// after it.
func (c Config) ShortContext() Config {
	c.Context = baseline.Window + 1
	return c
}

// Validate reports the first field that makes no sense.
func (c Config) Validate() error {
	bad := func(format string, args ...any) error { return fmt.Errorf("distill: "+format, args...) }
	switch {
	case c.Method != name:
		return bad("method is %q, want %q", c.Method, name)
	case c.States < 2 || c.Actions < 2:
		return bad("S=%d states and A=%d actions, want at least two of each", c.States, c.Actions)
	case !(c.Source.Alpha >= 0 && c.Source.Alpha < 1e6 && c.Source.Beta >= 0 && c.Source.Beta < 1e6):
		return bad("source step sizes %+v, want finite numbers ≥ 0", c.Source)
	case c.Context <= baseline.Window:
		return bad("context of %d tokens, want more than the %d of a round", c.Context, baseline.Window)
	case c.Length%baseline.Window != 0 || c.Length < c.Context:
		return bad("histories of %d steps, want a multiple of %d and ≥ %d", c.Length, baseline.Window, c.Context)
	case c.Histories < 1 || c.Batch < 1 || c.Steps < 1:
		return bad("%d histories, batch %d, %d steps, want at least one of each", c.Histories, c.Batch, c.Steps)
	case c.Histories*c.Length > 1<<30:
		return bad("%d histories of %d steps are more than 2³⁰ tokens", c.Histories, c.Length)
	}
	if err := c.Optimizer.Validate(); err != nil {
		return bad("%w", err)
	}
	return c.Network().Validate()
}

// Network returns the shape of the network. Its features are one-hots of the previous action, of the state and of the
// position, and the previous reward; the embedding of the position one-hot is a learned positional embedding.
func (c Config) Network() transformer.Config {
	return transformer.Config{Features: c.Actions + 1 + c.States + c.Context,
		Layers: c.Layers, Heads: c.Heads, Width: c.Width, Hidden: c.Hidden, Outputs: c.Actions}
}

// histories runs the source algorithm for Length steps: a token more. History i is a function of the seed and i alone.
func (c Config) histories() ([][]baseline.Token, error) {
	root := seed.New(c.Seed, "distill", "mdps").Uint64() // a digest: no evaluation root
	problems, err := mdp.Random.Draw(root, c.States, c.Actions, c.Histories)
	if err != nil {
		return nil, err
	}
	histories := make([][]baseline.Token, c.Histories)
	return histories, numeric.Parallel(len(problems), func(i int) (err error) {
		if histories[i], err = c.history(problems[i].MDP, i); err != nil {
			err = fmt.Errorf("distill: history %d: %w", i, err)
		}
		return err
	})
}

func (c Config) history(m *mdp.MDP, i int) ([]baseline.Token, error) {
	learner, err := baseline.NewActorCritic(m.Uniform())
	if err != nil {
		return nil, err
	}
	chain := baseline.NewChain(m, seed.New(c.Seed, "distill", "history", i))
	h := []baseline.Token{baseline.First(chain.State)}
	for range c.Length / baseline.Window {
		pi := learner.Policy()
		window := chain.Walk(nil, pi, baseline.Window)
		for _, t := range window {
			h = append(h, t.Token())
		}
		if err := learner.Step(learner.Increment(window, pi, m.Gamma, c.Source)); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// Job returns the training run of c.
func (c Config) Job() (train.Job, error) {
	model := train.Transformer{Network: c.Network(), Start: c.start, Objective: c.loss}
	data := train.Batches{Names: []string{"previous", "reward", "state", "action"}, Data: c.data, Index: c.batch}
	return train.Job{Config: c, Model: model, Batches: data, Optimizer: c.Optimizer, Steps: c.Steps}, c.Validate()
}

// start draws the initial parameters. The embeddings of positions start as sinusoids of the size of the other
// embeddings instead. Their frequencies are spread evenly, so that the codes of different positions are nearly
// orthogonal and the step from one to the next is the same rotation everywhere: to find where a reward was earned, a
// head has to look one token back.
func (c Config) start() []float32 {
	params := c.Network().Init(seed.New(c.Seed, "distill", "init"))
	embed := c.Network().Layout()[0] // "embed.weight" [Features, Width]
	amplitude := math.Sqrt(2 / float64(embed.Shape[0]))
	for p := range c.Context {
		row := params[embed.Offset+(embed.Shape[0]-c.Context+p)*c.Width:][:c.Width]
		for i := range row {
			frequency := math.Pi * (float64(i/2) + 0.5) / float64((c.Width+1)/2)
			row[i] = float32(amplitude * math.Sin(frequency*float64(p)+float64(i%2)*math.Pi/2))
		}
	}
	return params
}

// data is all histories on end, [Histories·Length, 1] each: tokens, and the action at each, which the next one has.
func (c Config) data() ([]*tensors.Tensor, error) {
	histories, err := c.histories()
	if err != nil {
		return nil, err
	}
	life := func(i int) []baseline.Token { return histories[i/c.Length][i%c.Length:] }
	return baseline.Lived(life, c.Histories*c.Length, 1)[1:], nil
}

// batch says where in the data the windows [Batch] of a step begin. A window's place in its history is uniform, but the
// first stands for all that would begin up to Context tokens earlier: a controller's first rounds look like it.
func (c Config) batch(step int) []int32 {
	rng := seed.New(c.Seed, "distill", "batch", step)
	start := make([]int32, c.Batch)
	for i := range start {
		offset := max(0, rng.IntN(c.Length+1)-c.Context)
		start[i] = int32(rng.IntN(c.Histories)*c.Length + offset)
	}
	return start
}

// loss is the mean negative log-likelihood of the actions in the windows.
func (c Config) loss(network train.Outputs, data, in []*Node) *Node {
	start := in[0]
	batch := start.Shape().Dimensions[0]
	dims := []int{batch, c.Context}
	position := Iota(start.Graph(), shapes.Make(dtypes.Int32, dims...), 1)
	index := InsertAxes(Add(position, start), -1)
	part := func(i int) *Node { return Reshape(Gather(data[i], index), dims...) }
	logits := network(c.tokens(part(0), part(1), part(2), position), c.Context)
	taken := OneHot(part(3), c.Actions, logits.DType())
	return Neg(DivScalar(ReduceAllSum(Mul(taken, LogSoftmax(logits, -1))), float64(batch*c.Context)))
}

// tokens builds the input [B, T, Features] from previous actions, rewards, states and positions, each [B, T].
func (c Config) tokens(previous, reward, state, position *Node) *Node {
	dtype := reward.DType()
	return Concatenate([]*Node{OneHot(previous, c.Actions, dtype), InsertAxes(reward, -1),
		OneHot(state, c.States, dtype), OneHot(position, c.Context, dtype)}, -1)
}
