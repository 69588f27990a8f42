// Package train trains the learned actor and critic of PolicyAttention and deploys them in the closed loop.
//
// A [Config] says everything that the weights depend on; its [Config.Job] is the training run; Load
// reads the weights back as a control.Actor or a control.Critic.
//
// The trainer is open to other methods. A [Job] is a training run of any [Trainable], a model that
// says which parameters it has and builds its loss, on [Batches]: indices into a fixed set, or rollouts
// that the current weights make. A [Session] makes its steps; [Job.Run] makes them all, so that a run that is killed
// goes on and ends in the same bytes.
//
// The paper leaves open how contexts are drawn, how π enters a token and how logits are read out: see Recipe.
package train

import (
	"cmp"
	"fmt"
	"slices"

	. "github.com/gomlx/gomlx/core/graph"

	"icrl/policyattention/mdp"
	"icrl/policyattention/seed"
	"icrl/policyattention/transformer"
)

// Objective names what a network is trained to minimize. Actor objectives are means over states and examples.
type Objective string

const (
	// Proximal is ℓ_prox(p) = KL(p‖π) − η⟨p,Q⟩ (Section 5), the paper's: it never sees the exact PMD row.
	Proximal Objective = "proximal"
	// PMDTarget is KL(q‖p) with q = PMD_η(π,Q): direct supervision. Its gradient
	// is that of the cross-entropy; the divergence has minimum 0.
	PMDTarget Objective = "pmd-target"
	// RewardOnly is −η⟨p,Q⟩, the proximal objective without its KL term and otherwise its exact pair: same
	// contexts, inputs and scale. The paper does not define it; its minimizer is the greedy policy of Q.
	RewardOnly Objective = "reward-only"
	// Critic is the mean squared error to the exact one-step backup F^π̂ Q_k, given sampled transitions. The exact
	// backup is the mean of sampled targets, so the minimizer is the same as with those, at lower variance.
	Critic Objective = "critic"
)

// Objectives lists all objectives.
var Objectives = []Objective{Proximal, PMDTarget, RewardOnly, Critic}

// Readout names what the network's output is added to.
type Readout string

const (
	NetworkReadout Readout = "network" // takes the output as it is: logits of π̂, or Q
	PriorReadout   Readout = "prior"   // adds log π to an actor's logits, the part that needs no learning
)

// Attention names which tokens see each other: an ablation, not in the paper.
type Attention string

const (
	Everything  Attention = ""      // the paper's: a token sees itself and all before it
	WithinState Attention = "state" // a pair sees pairs of its own state only
	None        Attention = "none"  // a pair sees itself only: the network is a function of each token
	// Equivariant lets a pair see all pairs, and no pair is told which action it is of: actions in another
	// order, in any state, have their outputs in that order.
	Equivariant Attention = "equivariant"
)

// Recipe names the choices that the paper leaves open.
type Recipe struct {
	Name string `json:"name"`
	// Policy is how π enters an actor's tokens: "raw", as it is, so that the network has to learn its logarithm.
	Policy  string  `json:"policy"`
	Readout Readout `json:"readout"`
	// Contexts is the distribution of training contexts (π, Q, η): "pmd-trajectories", rounds of exact PMD runs. Each
	// example is a run of its own: π_0 from Dirichlet(1), Q_0 = Q^{π_0}, η uniform from EtaMin to EtaMax and
	// constant in the run, stopped after a random number of rounds. These are the contexts that deployment
	// visits; late in a run policies are nearly deterministic, which no random policy is.
	Contexts string `json:"contexts"`
	// A run is stopped after a number of rounds uniform on 0, …, Rounds in one half of the examples and on
	// 0, …, Early in the other. Early rounds hold the undecided rows, on which small errors of the logits add up in
	// the loop; late ones the nearly deterministic rows, which must stay so.
	Rounds int `json:"rounds"`
	Early  int `json:"early"`
	// Relabel names states and actions anew in each example. The distribution of problems is the same under every
	// naming; without it a network can tell the few training MDPs apart and learn their greedy actions by heart.
	Relabel bool    `json:"relabel"`
	EtaMin  float64 `json:"eta_min"`
	EtaMax  float64 `json:"eta_max"`
	Average bool    `json:"average"` // release the average over the steps, see Job.Average
}

// Plain stands for the paper: π enters as it is and the network alone writes the logits. Its distribution of contexts
// and the averaging were chosen on calibration problems.
func Plain() Recipe {
	return Recipe{Name: "plain", Policy: "raw", Readout: NetworkReadout, Contexts: "pmd-trajectories", Rounds: 40,
		Early: 7, Relabel: true, EtaMin: 0.4, EtaMax: 1.2, Average: true}
}

// Prior is Plain with log π added to the logits, so that the network has to
// learn the product ηQ only. It is reported beside Plain, never in its place.
func Prior() Recipe {
	r := Plain()
	r.Name, r.Readout = "prior", PriorReadout
	return r
}

// Config is everything that trained weights depend on, but for the backend's arithmetic.
type Config struct {
	Objective Objective         `json:"objective"`
	Recipe    Recipe            `json:"recipe"`
	Seed      uint64            `json:"seed"`     // identity of the run: its weights, contexts and order of examples
	Task      uint64            `json:"task"`     // root of the training MDPs
	Sizes     []int             `json:"sizes"`    // S alone
	Slots     int               `json:"slots"`    // width of the state one-hot: S
	Actions   int               `json:"actions"`  // A
	MDPs      int               `json:"mdps"`     // training MDPs of each size
	Examples  int               `json:"examples"` // contexts, drawn once
	Samples   int               `json:"samples"`  // m, a critic's transitions per state-action pair
	Batch     int               `json:"batch"`
	Steps     int               `json:"steps"`
	Snapshots []int             `json:"snapshots,omitempty"` // steps after which weights are kept, ascending
	Layers    int               `json:"layers"`
	Heads     int               `json:"heads"`
	Width     int               `json:"width"`
	Hidden    int               `json:"hidden"`
	Attention Attention         `json:"attention,omitempty"` // of an actor
	Optimizer transformer.AdamW `json:"optimizer"`
}

// Standard returns the paper's configuration for one size: 24 training MDPs, 2,048 examples, batch 64, 51,200 steps.
// Training MDPs come from the root that the seed names; set Task for another.
func Standard(objective Objective, recipe Recipe, seed uint64, states int) Config {
	network := transformer.Standard(1)
	return Config{Objective: objective, Recipe: recipe, Seed: seed, Task: seed, Sizes: []int{states}, Slots: states,
		Actions: mdp.Actions, MDPs: 24, Examples: 2048, Samples: 6, Batch: 64, Steps: 51_200, Layers: network.Layers,
		Heads: network.Heads, Width: network.Width, Hidden: network.Hidden, Optimizer: transformer.StandardAdamW()}
}

// States returns S.
func (c Config) States() int { return c.Slots }

// Network returns the shape of the network that the configuration trains.
func (c Config) Network() transformer.Config {
	features := c.States() + c.Actions + 3 // see examples.go
	if c.Objective == Critic {
		features += c.States()
	}
	group := map[Attention]int{None: 1, WithinState: c.Actions}[c.Attention]
	return transformer.Config{Features: features, Layers: c.Layers, Heads: c.Heads, Width: c.Width, Hidden: c.Hidden,
		Outputs: 1, Group: group, Unordered: c.Attention == Equivariant}
}

// Beyond these no run fits a machine, and products of numbers could overflow.
const (
	widest = 1 << 14 // states, actions
	most   = 1 << 24 // MDPs, examples, rounds, samples
)

// Validate reports the first field that makes no sense.
func (c Config) Validate() error {
	bad := func(format string, args ...any) error { return fmt.Errorf("train: "+format, args...) }
	r := c.Recipe
	switch {
	case !slices.Contains(Objectives, c.Objective):
		return bad("unknown objective %q, want one of %q", c.Objective, Objectives)
	case r.Policy != Plain().Policy || r.Contexts != Plain().Contexts:
		return bad("recipe %q: unknown policy input %q or distribution of contexts %q", r.Name, r.Policy, r.Contexts)
	case r.Readout != NetworkReadout && r.Readout != PriorReadout || r.Readout == PriorReadout && c.Objective == Critic:
		return bad("recipe %q: no readout %q of objective %q", r.Name, r.Readout, c.Objective)
	case r.Rounds < 0 || r.Early < 0 || max(r.Rounds, r.Early) > most:
		return bad("recipe %q: at most %d rounds, early %d: want 0 to %d of each", r.Name, r.Rounds, r.Early, most)
	case !(0 < r.EtaMin && r.EtaMin <= r.EtaMax && r.EtaMax < 1e6):
		return bad("recipe %q: η from %v to %v, want a positive range", r.Name, r.EtaMin, r.EtaMax)
	case !slices.Contains([]Attention{Everything, WithinState, None, Equivariant}, c.Attention):
		return bad("unknown attention %q, want %q, %q or %q", c.Attention, None, WithinState, Equivariant)
	case c.Attention != Everything && c.Objective == Critic:
		return bad("attention %q of a critic, whose queries see transitions", c.Attention)
	case len(c.Sizes) != 1 || c.Sizes[0] < 2 || c.Sizes[0] != c.Slots:
		return bad("sizes %v in %d slots, want one size of at least 2, in as many slots", c.Sizes, c.Slots)
	case c.Actions < 2 || max(c.Slots, c.Actions) > widest:
		return bad("%d slots, want at most %d; %d actions, want 2 to %d", c.Slots, widest, c.Actions, widest)
	case min(c.MDPs, c.Examples, c.Batch, c.Steps) < 1 || max(c.MDPs, c.Examples) > most || c.Steps > 1<<30:
		return bad("%d MDPs, %d examples, batch %d, %d steps: want 1 or more, at most %d MDPs and examples, 2^30 steps",
			c.MDPs, c.Examples, c.Batch, c.Steps, most)
	case c.Batch > c.Examples:
		return bad("batches of %d from %d examples", c.Batch, c.Examples)
	case c.Objective == Critic && (c.Samples < 1 || c.Samples > most):
		return bad("a critic needs 1 to %d samples per state-action pair, got %d", most, c.Samples)
	case !slices.IsSorted(c.Snapshots) || len(c.Snapshots) > 0 &&
		(c.Snapshots[0] < 1 || c.Snapshots[len(c.Snapshots)-1] > c.Steps):
		return bad("snapshots %v, want ascending steps up to %d", c.Snapshots, c.Steps)
	}
	return cmp.Or(c.Optimizer.Validate(), c.Network().Validate())
}

// taskRoot is what Task names among roots. It is a 64-bit digest of a named stream, so it coincides with no root that a
// person writes down: training problems differ from those of every calibration and evaluation root.
func (c Config) taskRoot() uint64 { return seed.New(c.Task, "train", "mdps").Uint64() }

// CalibrationRoot returns the root of the problems on which choices are made before any evaluation. Like the training
// root it is a digest of a named stream, so it coincides with no evaluation root.
func CalibrationRoot(id uint64) uint64 { return seed.New(id, "calibration").Uint64() }

// Job returns the training run of c.
func (c Config) Job() (Job, error) {
	names := []string{"tokens", "prior", "gain"}
	if c.Objective == Critic {
		names = []string{"tokens", "exact"}
	}
	return Job{Config: c, Model: Transformer{c.Network(), c.start, c.loss},
		Batches: Batches{Names: names, Data: c.data, Index: c.order()}, Optimizer: c.Optimizer, Steps: c.Steps,
		Snapshots: c.Snapshots, Average: c.Recipe.Average}, c.Validate()
}

// start draws the initial parameters.
func (c Config) start() []float32 { return c.Network().Init(seed.New(c.Seed, "train", "init")) }

// order gives the examples [Batch] of a step, counted from 0: a new permutation an epoch, read on without a seam. It is
// a pure function of the seed and the step, which keeps the last permutation.
func (c Config) order() func(step int) []int32 {
	last, permutation := -1, []int(nil)
	return func(step int) []int32 {
		index := make([]int32, c.Batch)
		for i := range index {
			at := step*c.Batch + i
			if epoch := at / c.Examples; epoch != last {
				last, permutation = epoch, seed.New(c.Seed, "train", "order", epoch).Perm(c.Examples)
			}
			index[i] = int32(permutation[at%c.Examples])
		}
		return index
	}
}

// loss returns the scalar objective of a batch.
func (c Config) loss(network Outputs, data, batch []*Node) *Node {
	part := func(i int) *Node { return Gather(data[i], batch[0]) }
	tokens := part(0)
	if c.Objective == Critic { // the mean squared error of the last tokens' outputs to the exact backup
		exact := part(1)
		values := Squeeze(network(tokens, exact.Shape().Dimensions[1]), -1)
		return ReduceAllMean(Square(Sub(values, exact)))
	}
	prior, gain := part(1), part(2)
	logits := Reshape(network(tokens, tokens.Shape().Dimensions[1]), prior.Shape().Dimensions...)
	if c.Recipe.Readout == PriorReadout {
		logits = Add(logits, prior)
	}
	return ReduceAllMean(c.Objective.rows(LogSoftmax(logits, -1), prior, gain))
}

// rows returns an actor objective per state [B, S], from log p, log π and ηQ, each [B, S, A].
func (o Objective) rows(logp, prior, gain *Node) *Node {
	p := Exp(logp)
	switch o {
	case PMDTarget:
		logq := LogSoftmax(Add(prior, gain), -1)
		return ReduceSum(Mul(Exp(logq), Sub(logq, logp)), -1)
	case RewardOnly:
		return Neg(ReduceSum(Mul(p, gain), -1))
	default:
		return ReduceSum(Mul(p, Sub(Sub(logp, prior), gain)), -1)
	}
}

// Rates of one core of a current x86 server (AVX-512): a training step of a Transformer costs about so many seconds a
// token of its batch, and a little more the longer the context, for attention. Within a factor of two elsewhere.
const (
	SecondsPerToken   = 8e-6
	SecondsPerContext = 1e-8 // a token and token of context
)

// usual are budgets of the presets smoke and paper, which names leave out.
var usual = []int{10, 51_200, 6_400}

// Key, Name and Seconds are what the experiments ask of a training run, see method.Training. Name is like
// objective-recipe-S8-18100, with the steps before the size where they are not usual.
func (c Config) Key() string { return "training" }
func (c Config) Name() string {
	name := fmt.Sprintf("%s-%s", c.Objective, c.Recipe.Name)
	if !slices.Contains(usual, c.Steps) {
		name += fmt.Sprintf("-%d", c.Steps)
	}
	return fmt.Sprintf("%s-S%d-%d", name, c.States(), c.Seed)
}
func (c Config) Seconds() float64 {
	tokens := float64(c.ContextTokens())
	return float64(c.Steps*c.Batch) * tokens * (SecondsPerToken + SecondsPerContext*tokens)
}
