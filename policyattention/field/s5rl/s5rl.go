// Package s5rl is in-context reinforcement learning with structured state space models (Lu et al., arXiv 2303.03982;
// public code luchris429/popjaxrl): an actor and a critic on layers of S5, trained online by proximal policy
// optimization (PPO, arXiv 1707.06347) on problems that are drawn anew all the time. Within a life it sees one problem;
// what it learns of it is in the layers' state, and its weights stay.
//
// At a step the network sees which pair of state and action came before and the reward of that pair (zeros at the first
// step of a life), the state now, and a flag at the first step, which also clears the layers' state. It writes logits
// and a value for every state, of which the state now picks its own.
package s5rl

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
	"icrl/policyattention/train"
	"icrl/policyattention/transformer"
)

// Config is everything that trained weights depend on, but for the backend's arithmetic.
type Config struct {
	Method  string `json:"method"` // always "s5rl"
	Seed    uint64 `json:"seed"`   // root of problems, lives, weights and order
	States  int    `json:"states"`
	Actions int    `json:"actions"`

	Width  int `json:"width"`  // of the S5 layers
	State  int `json:"state"`  // of each of them: N, of which half is kept
	Blocks int `json:"blocks"` // of HiPPO matrices that the state begins with
	Layers int `json:"layers"` // S5 layers: 1
	Hidden int `json:"hidden"` // units of the two layers before either output

	Steps       int `json:"steps"`       // of the optimizer
	Rows        int `json:"rows"`        // environments side by side
	Lives       int `json:"lives"`       // of a row in a rollout: 1
	Life        int `json:"life"`        // steps of a life
	Epochs      int `json:"epochs"`      // passes over a rollout
	Minibatches int `json:"minibatches"` // of rows, in an epoch

	Gamma     float64           `json:"gamma"`   // discount of what the actor maximizes
	Lambda    float64           `json:"lambda"`  // of generalized advantage estimation
	Ratio     float64           `json:"ratio"`   // how far a probability may move: its factor is clipped to 1 ± Ratio
	Entropy   float64           `json:"entropy"` // weight of the policy's entropy
	Value     float64           `json:"value"`   // weight of the critic's loss
	Scale     float64           `json:"scale"`   // of rewards in the input
	Out       float64           `json:"out"`     // C is so many times the source's at first
	Skip      float64           `json:"skip"`    // and D
	Norm      float64           `json:"norm"`    // largest norm of a gradient
	Optimizer transformer.AdamW `json:"optimizer"`
}

const name = "s5rl"

// block is the size of the HiPPO matrices: of two pairs of eigenvalues both are slow enough to sum
// up what a life shows, while of 32 pairs all but a few turn around within some steps.
const block = 4

// CPU is the recipe for a core of a CPU; docs/field.md says what it changes of the source's (run_popgym.py), and why.
func CPU(seed uint64, states int) Config {
	const steps = 2_560
	return Config{Method: name, Seed: seed, States: states, Actions: mdp.Actions,
		Width: 64, State: 8 * states, Blocks: 8 * states / block, Layers: 1, Hidden: 64,
		Steps: steps, Rows: 32, Lives: 1, Life: 800, Epochs: 2, Minibatches: 8,
		Gamma: .5, Lambda: .5, Ratio: .2, Entropy: .05, Value: 1, Scale: 2, Out: 20, Skip: 0, Norm: .5,
		Optimizer: transformer.AdamW{LearningRate: 4e-3, Beta1: .9, Beta2: .999, Epsilon: 1e-5, Cosine: steps}}
}

// every is how many steps are made with a rollout.
func (c Config) every() int { return c.Epochs * c.Minibatches }

// Validate reports the first field that makes no sense.
func (c Config) Validate() error {
	bad := func(format string, args ...any) error { return fmt.Errorf("s5rl: "+format, args...) }
	numbers := []float64{c.Ratio, c.Entropy, c.Value, c.Norm, c.Scale, c.Out, c.Skip}
	switch {
	case c.Method != name:
		return bad("method is %q, want %q", c.Method, name)
	case c.States < 2 || c.Actions < 2:
		return bad("S=%d states and A=%d actions, want at least two of each", c.States, c.Actions)
	case min(c.Hidden, c.Width, c.Blocks, c.State) < 1 || max(c.Hidden, c.Width, c.State) > 1<<12 ||
		c.State%(2*c.Blocks) != 0 || c.Layers != 1:
		const format = "%d and %d units, %d layers of state %d, %d blocks, want ≤ 4096, one layer, an even state each"
		return bad(format, c.Width, c.Hidden, c.Layers, c.State, c.Blocks)
	case min(c.Steps, c.Rows, c.Epochs, c.Minibatches) < 1 || c.Lives != 1 || c.Life < 2:
		return bad("%d steps, %d rows of %d lives of %d steps, %d epochs of %d minibatches, want one life of two steps",
			c.Steps, c.Rows, c.Lives, c.Life, c.Epochs, c.Minibatches)
	case c.Steps%c.every() != 0 || c.Rows%c.Minibatches != 0:
		return bad("%d steps and %d rows, want multiples of the %d steps of a rollout and of its %d minibatches",
			c.Steps, c.Rows, c.every(), c.Minibatches)
	case !(c.Gamma >= 0 && c.Gamma < 1 && c.Lambda >= 0 && c.Lambda <= 1):
		return bad("γ = %v and λ = %v, want numbers in [0, 1), and in [0, 1]", c.Gamma, c.Lambda)
	case slices.ContainsFunc(numbers, func(x float64) bool { return !(x >= 0 && x < 1e6) }):
		return bad("ratio, entropy, value, norm, scale, out and skip are %v, want finite numbers ≥ 0", numbers)
	}
	return c.Optimizer.Validate()
}

// Method is S5RL among the methods. Its recipes are
//
//	cpu          the budget for a core of a CPU
//	cpu-cleared  its control: the same weights, with the state cleared before each round
//
// With equal information it is the network on a walk, which is what it was trained on. It has no free numbers.
var Method = method.Method{
	Name: name, Label: "S5RL",
	Informed: method.Informed{method.ByWindow: method.Walking(name, "cpu", "cpu")},
	Deploy: func(s method.Setting) (method.Deployment, error) {
		base, cleared := strings.CutSuffix(s.Recipe, "-cleared")
		if base != "cpu" {
			return nil, fmt.Errorf("no recipe %q of S5RL", s.Recipe)
		}
		c := CPU(s.Identity.Model, s.States)
		c.Actions = s.Actions
		s.Limits.Bound("steps", &c.Steps)
		s.Limits.Bound("rows", &c.Rows)
		s.Limits.Bound("life", &c.Life)
		s.Limits.Bound("width", &c.Width, &c.State, &c.Hidden)
		c.Blocks = min(c.Blocks, c.State/block)
		c.Optimizer.Cosine = c.Steps
		return &method.InContext[Config]{Training: c, States: c.States, Actions: c.Actions, Root: s.Identity.Model,
			Cleared: cleared, Open: open}, nil
	},
}

// open reads the network of a deployment, whose program is compiled when it is first called.
func open(m *method.Models, d *method.InContext[Config]) (func(lives int) baseline.Reader, error) {
	type reading = func(lives int, cleared bool) baseline.Reader
	read, err := method.Make(m, method.Last(d.Training), func(params []float32) (reading, error) {
		on, err := m.Backend()
		if err != nil {
			return nil, err
		}
		exec, err := d.Training.compile(on)
		return func(lives int, cleared bool) baseline.Reader {
			return d.Training.reader(exec, params, lives, cleared)
		}, err
	})
	return func(lives int) baseline.Reader { return read(lives, d.Cleared) }, err
}

// Key, Name, Seconds and Job implement method.Training.
func (c Config) Key() string  { return name }
func (c Config) Name() string { return fmt.Sprintf("%s-S%d-%d", name, c.States, c.Seed) }
func (c Config) Seconds() float64 {
	const perParameter = 4.5e-10 // and step of a life, forwards and back
	steps := float64(c.Steps/c.every()*c.Rows*c.Life) * (float64(c.Epochs) + .5)
	return perParameter * float64(len(c.Init())) * steps
}

func (c Config) Job() (train.Job, error) {
	r := &rollouts{Config: c}
	batches := train.Batches{Arrays: r.batch, Collect: r.collect, Every: c.every()}
	job := train.Job{Config: c, Model: c, Batches: batches, Optimizer: c.Optimizer, Clip: c.Norm, Steps: c.Steps}
	return job, c.Validate()
}

// compile makes the program of the network, with the parameters as an input.
func (c Config) compile(on compute.Backend) (*Exec, error) {
	return NewExec(on, func(in []*Node) []*Node {
		logits, values, after := c.apply(in[0], in[1:5], number{in[5], in[6]})
		return []*Node{logits, values, after.re, after.im}
	})
}

// reader implements baseline.Reader.
type reader struct {
	Config
	exec    *Exec
	params  *tensors.Tensor
	lives   int
	re, im  *tensors.Tensor // the layer's states [lives, P]
	values  []float32       // of the tokens read last
	cleared bool            // before each round
	first   bool            // the next token is read as the first of a life
}

// reader returns one that has read nothing.
func (c Config) reader(exec *Exec, params []float32, lives int, cleared bool) *reader {
	none := func() *tensors.Tensor { return tensors.FromScalarAndDimensions(float32(0), lives, c.State/2) }
	return &reader{Config: c, exec: exec, params: tensors.FromFlatDataAndDimensions(params, len(params)), lives: lives,
		re: none(), im: none(), cleared: cleared}
}

// Begin implements baseline.Reader.
func (r *reader) Begin() int {
	r.first = r.cleared
	return 0
}

// Read implements baseline.Reader.
func (r *reader) Read(k int, alternatives bool, token func(life, j int) baseline.Token) ([]*mat.Dense, error) {
	p, together := make([]*mat.Dense, r.lives), k // tokens of a life in one call
	for i := range p {
		p[i] = mat.NewDense(k, r.Actions, nil)
	}
	if alternatives {
		together = 1
	}
	for from := 0; from < k; from += together {
		inputs := []any{r.params}
		for _, x := range baseline.Arrays(func(i int) baseline.Token {
			x := token(i%r.lives, from+i/r.lives)
			if r.first && !alternatives && i < r.lives {
				x.Previous = baseline.None
			}
			return x
		}, together, r.lives) {
			inputs = append(inputs, x)
		}
		out, err := r.exec.Call(append(inputs, r.re, r.im)...)
		if err != nil {
			return nil, fmt.Errorf("s5rl: %w", err)
		}
		logits, err := tensors.CopyFlatData[float32](out[0])
		if err == nil {
			r.values, err = tensors.CopyFlatData[float32](out[1])
		}
		if err != nil {
			return nil, fmt.Errorf("s5rl: %w", err)
		}
		for i := range together * r.lives {
			row := p[i%r.lives].RawRowView(from + i/r.lives)
			for a := range row {
				row[a] = float64(logits[i*len(row)+a])
			}
			pmd.Softmax(row)
		}
		if !alternatives {
			r.first, r.re, out[2], r.im, out[3] = false, out[2], r.re, out[3], r.im
		}
		for _, x := range out {
			if err := x.FinalizeAll(); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// rollouts are the lives of the network in training. A rollout is a function of its number and of the weights.
type rollouts struct {
	Config
	exec      *Exec
	at        int                // the step before which the lives were lived
	histories [][]baseline.Token // what was seen, [Life+1] of each row
	steps     [][]step           // [Life] of each row
}

// step is about the action after a token: log p, its advantage, what the critic is to say, and what it has said.
type step struct{ logp, advantage, target, value float32 }

// collect lives, see train.Batches.
func (r *rollouts) collect(on compute.Backend, at int, params []float32) (err error) {
	if r.exec == nil {
		if r.exec, err = r.compile(on); err != nil {
			return err
		}
	}
	k := at / r.every()
	root := seed.New(r.Seed, "s5rl", "problems", k).Uint64() // a digest: no evaluation root
	problems, err := mdp.Random.Draw(root, r.States, r.Actions, r.Rows)
	if err != nil {
		return err
	}
	chains := make([]*baseline.Chain, r.Rows)
	r.steps = make([][]step, r.Rows)
	for i, p := range problems {
		chains[i] = baseline.NewChain(p.MDP, seed.New(r.Seed, "s5rl", "life", k, 0, i))
		r.steps[i] = make([]step, r.Life)
	}
	reader := r.reader(r.exec, params, r.Rows, false)
	lives := baseline.NewLives(reader, chains)
	r.at, r.histories = at, lives.Histories
	err = lives.Act(r.Life, func(t, i int, p float64) {
		r.steps[i][t] = step{logp: float32(math.Log(p)), value: reader.values[i]}
	})
	if err != nil {
		return err
	}
	_, err = lives.Take(1)
	for i, next := range reader.values {
		r.estimate(i, next)
	}
	return err
}

// estimate fills in advantages and targets of the critic of a row's life, by generalized advantage estimation (arXiv
// 1506.02438). A life is cut off after its last step: what would have come is worth next.
func (r *rollouts) estimate(row int, next float32) {
	sum, after := 0., float64(next)
	for t := r.Life - 1; t >= 0; t-- {
		x := &r.steps[row][t]
		delta := float64(r.histories[row][t+1].Reward) + r.Gamma*after - float64(x.value)
		sum, after = delta+r.Gamma*r.Lambda*sum, float64(x.value)
		x.advantage, x.target = float32(sum), float32(sum)+x.value
	}
}

// batch returns the rows of a minibatch, with advantages normalized over them.
func (r *rollouts) batch(at int) ([]*tensors.Tensor, error) {
	if at < r.at || at >= r.at+r.every() || r.histories == nil {
		return nil, fmt.Errorf("s5rl: no rollout for step %d", at+1)
	}
	length, rows := r.Life, r.Rows/r.Minibatches
	order := seed.New(r.Seed, "s5rl", "order", at/r.Minibatches).Perm(r.Rows)[at%r.Minibatches*rows:][:rows]
	var advantage []float64
	reals := make([][]float32, 4)
	for _, row := range order {
		for _, x := range r.steps[row] {
			advantage = append(advantage, float64(x.advantage))
			for i, v := range []float32{x.logp, x.advantage, x.target, x.value} {
				reals[i] = append(reals[i], v)
			}
		}
	}
	mean, variance := stat.PopMeanVariance(advantage, nil)
	for i, x := range advantage {
		reals[1][i] = float32((x - mean) / (math.Sqrt(variance) + 1e-8))
	}
	life := func(i int) []baseline.Token { return r.histories[order[i/length]][i%length:] }
	all := baseline.Lived(life, rows, length)
	for _, x := range reals {
		all = append(all, tensors.FromFlatDataAndDimensions(x, rows, length))
	}
	return all, nil
}
