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
)

// histories runs the source algorithm for Length steps, so that each history has a token more. History i is a function
// of the seed and i alone.
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
	window := make([]baseline.Transition, baseline.Window)
	h := []baseline.Token{baseline.First(chain.State)}
	for range c.Length / baseline.Window {
		pi := learner.Policy()
		chain.Walk(pi, window)
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
	return train.Job{
		Config:  c,
		Model:   train.Transformer{Network: c.Network(), Start: c.start, Objective: c.loss},
		Batches: train.Batches{Names: []string{"previous", "reward", "state", "action"}, Data: c.data, Index: c.batch},

		Optimizer: c.Optimizer, Steps: c.Steps,
	}, c.Validate()
}

// start draws the initial parameters. The embeddings of positions start as
// sinusoids of the size of the other embeddings instead. Their frequencies are
// spread evenly, so that the codes of different positions are nearly orthogonal
// and the step from one to the next is the same rotation everywhere: to find the
// state in which a reward was earned, a head has to look one token back.
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

// batch says where in the data the windows [Batch] of a step begin. A window's
// place in its history is uniform, but the first one stands for all that would
// begin up to Context tokens earlier: a controller's first rounds look like the
// beginning of a history.
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

// tokens returns the network's input [B, T, Features] from previous actions,
// rewards, states and positions, each [B, T].
func (c Config) tokens(previous, reward, state, position *Node) *Node {
	dtype := reward.DType()
	return Concatenate([]*Node{
		OneHot(previous, c.Actions, dtype),
		InsertAxes(reward, -1),
		OneHot(state, c.States, dtype),
		OneHot(position, c.Context, dtype),
	}, -1)
}
