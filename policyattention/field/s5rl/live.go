package s5rl

import (
	"fmt"
	"math"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
)

// compile compiles the network, with the parameters as an input.
func (c Config) compile(on compute.Backend) (*Exec, error) {
	return NewExec(on, func(in []*Node) []*Node {
		logits, values, after := c.apply(in[0], in[1:5], number{in[5], in[6]})
		return []*Node{logits, values, after.re, after.im}
	})
}

// token is what the network sees at a step: the state, the action and the reward before, and the state now.
type token struct {
	before, previous int32
	reward           float32
	state            int32
}

// at is the token of step t of a history.
func at(h *baseline.History, t int) (x token) {
	x.previous, x.reward, x.state = h.At(t)
	if t > 0 {
		_, _, x.before = h.At(t - 1)
	}
	return x
}

// arrays are tokens by their numbers.
func arrays(token func(i int) token, dims ...int) []*tensors.Tensor {
	n := size(dims)
	before, previous, reward, state := make([]int32, n), make([]int32, n), make([]float32, n), make([]int32, n)
	for i := range n {
		x := token(i)
		before[i], previous[i], reward[i], state[i] = x.before, x.previous, x.reward, x.state
	}
	return []*tensors.Tensor{
		tensors.FromFlatDataAndDimensions(before, dims...), tensors.FromFlatDataAndDimensions(previous, dims...),
		tensors.FromFlatDataAndDimensions(reward, dims...), tensors.FromFlatDataAndDimensions(state, dims...),
	}
}

// agents are lives that go through a network, as baseline.Lives.
type agents struct {
	Config
	exec      *Exec
	params    *tensors.Tensor
	histories []*baseline.History
	re, im    *tensors.Tensor // the layers' states [Layers, lives, P]
	pending   int             // the step of the pending tokens
	values    []float32       // of the tokens shown last
	cleared   bool            // before each round
	first     bool            // the pending token is shown as the first of a life
}

// lives returns lives before their first step.
func (c Config) lives(exec *Exec, params []float32, histories []*baseline.History, cleared bool) *agents {
	zero := func() *tensors.Tensor {
		n, p := len(histories), c.State/2
		return tensors.FromFlatDataAndDimensions(make([]float32, c.Layers*n*p), c.Layers, n, p)
	}
	return &agents{
		Config: c, exec: exec, params: tensors.FromFlatDataAndDimensions(params, len(params)), histories: histories,
		re: zero(), im: zero(), cleared: cleared,
	}
}

// controller deploys a network, see [baseline.InContext].
func (c Config) controller(exec *Exec, params []float32, root uint64, cleared bool) baseline.InContext {
	return baseline.InContext{
		Name: name, States: c.States, Actions: c.Actions, Root: root,
		Lives: func(h []*baseline.History) baseline.Lives { return c.lives(exec, params, h, cleared) },
	}
}

// see shows each of n lives k tokens [k, n], and returns the distributions [k, A] of the actions of each. With keep
// the lives go on after them.
func (a *agents) see(token func(i int) token, k int, keep bool) (p []*mat.Dense, err error) {
	n, inputs := len(a.histories), []any{a.params}
	for _, x := range arrays(token, k, n) {
		inputs = append(inputs, x)
	}
	out, err := a.exec.Call(append(inputs, a.re, a.im)...)
	if err != nil {
		return nil, fmt.Errorf("s5rl: %w", err)
	}
	logits, err := tensors.CopyFlatData[float32](out[0])
	if err == nil {
		a.values, err = tensors.CopyFlatData[float32](out[1])
	}
	if err != nil {
		return nil, err
	}
	for i := range n {
		p = append(p, mat.NewDense(k, a.Actions, nil))
		for j := range k {
			row := p[i].RawRowView(j)
			for b := range row {
				row[b] = float64(logits[(j*n+i)*len(row)+b])
			}
			pmd.Softmax(row)
		}
	}
	if keep {
		a.re, out[2], a.im, out[3] = out[2], a.re, out[3], a.im
	}
	for _, x := range out {
		if err := x.FinalizeAll(); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// Begin implements baseline.Lives.
func (a *agents) Begin() error {
	a.first = a.cleared
	return nil
}

// Take implements baseline.Lives.
func (a *agents) Take(k int) ([]*mat.Dense, error) {
	n := len(a.histories)
	p, err := a.see(func(i int) token {
		x := at(a.histories[i%n], a.pending+i/n)
		if a.first && i < n {
			x.previous = baseline.None
		}
		return x
	}, k, true)
	a.pending, a.first = a.pending+k, false
	return p, err
}

// Policies implements baseline.Lives.
func (a *agents) Policies() ([]*mat.Dense, error) {
	policies := make([]*mat.Dense, len(a.histories))
	for s := range a.States {
		p, err := a.see(func(i int) token {
			x := at(a.histories[i], a.pending)
			x.state = int32(s)
			return x
		}, 1, false)
		if err != nil {
			return nil, err
		}
		for i, row := range p {
			if s == 0 {
				policies[i] = mat.NewDense(a.States, a.Actions, nil)
			}
			policies[i].SetRow(s, row.RawRowView(0))
		}
	}
	return policies, nil
}

// rollouts are the lives of the network in training, as train.Rollouts. A rollout is a function of its number and of
// the weights.
type rollouts struct {
	c    Config
	exec *Exec
	at   int // the step before which the lives were lived
	// What was seen, [Life+1] of each row; and [Rows·Life] of the action after each token: its logarithm of
	// probability, its advantage, what the critic is to say, and what it has said.
	histories                      []*baseline.History
	logp, advantage, target, value []float32
}

// Data implements train.Batches.
func (r *rollouts) Data() ([]*tensors.Tensor, error) { return nil, nil }

// Every implements train.Rollouts.
func (r *rollouts) Every() int { return r.c.every() }

// Collect implements train.Rollouts.
func (r *rollouts) Collect(on compute.Backend, step int, params []float32) (err error) {
	if r.exec == nil {
		if r.exec, err = r.c.compile(on); err != nil {
			return err
		}
	}
	c, k := r.c, step/r.c.every()
	root := seed.New(c.Seed, "s5rl", "problems", k).Uint64() // a digest: no evaluation root
	problems, err := mdp.Random.Draw(root, c.States, c.Actions, c.Rows)
	if err != nil {
		return err
	}
	*r = rollouts{c: c, exec: r.exec, at: step}
	for _, x := range []*[]float32{&r.logp, &r.advantage, &r.target, &r.value} {
		*x = make([]float32, c.Rows*c.Life)
	}
	chains := make([]*baseline.Chain, c.Rows)
	for i, p := range problems {
		chains[i] = baseline.NewChain(p.MDP, seed.New(c.Seed, "s5rl", "life", k, 0, i))
		h := &baseline.History{}
		h.See(nil, chains[i].State)
		r.histories = append(r.histories, h)
	}
	alive := c.lives(r.exec, params, r.histories, false)
	for t := range c.Life + 1 {
		p, err := alive.Take(1)
		if err != nil {
			return err
		}
		for i, chain := range chains {
			if t == c.Life {
				r.estimate(i, alive.values[i])
				continue
			}
			at, a := i*c.Life+t, chain.Choose(p[i].RawRowView(0))
			r.logp[at], r.value[at] = float32(math.Log(p[i].At(0, a))), alive.values[i]
			made := chain.Step(a)
			r.histories[i].See(&made, made.Next)
		}
	}
	return nil
}

// estimate fills in advantages and targets of the critic of a row's life, by generalized advantage estimation (arXiv
// 1506.02438). A life is cut off after its last step: what would have come is worth next.
func (r *rollouts) estimate(row int, next float32) {
	sum, after := 0., float64(next)
	for t := r.c.Life - 1; t >= 0; t-- {
		at := row*r.c.Life + t
		delta := float64(r.histories[row].Reward[t+1]) + r.c.Gamma*after - float64(r.value[at])
		sum, after = delta+r.c.Gamma*r.c.Lambda*sum, float64(r.value[at])
		r.advantage[at], r.target[at] = float32(sum), float32(sum)+r.value[at]
	}
}

// Batch implements train.Batches: the rows of a minibatch, with advantages normalized over them.
func (r *rollouts) Batch(step int) ([]*tensors.Tensor, error) {
	c, length := r.c, r.c.Life
	if step < r.at || step >= r.at+c.every() || r.histories == nil {
		return nil, fmt.Errorf("s5rl: no rollout for step %d", step+1)
	}
	order, rows := seed.New(c.Seed, "s5rl", "order", step/c.Minibatches).Perm(c.Rows), c.Rows/c.Minibatches
	order = order[step%c.Minibatches*rows:][:rows]
	all := arrays(func(i int) token { return at(r.histories[order[i/length]], i%length) }, rows, length)
	var action []int32
	var advantage []float64
	var reals [4][]float32
	for _, row := range order {
		action = append(action, r.histories[row].Previous[1:]...)
		for _, x := range r.advantage[row*length:][:length] {
			advantage = append(advantage, float64(x))
		}
		for i, x := range [][]float32{0: r.logp, 2: r.target, 3: r.value} {
			if x != nil {
				reals[i] = append(reals[i], x[row*length:][:length]...)
			}
		}
	}
	mean, variance := stat.PopMeanVariance(advantage, nil)
	for _, x := range advantage {
		reals[1] = append(reals[1], float32((x-mean)/(math.Sqrt(variance)+1e-8)))
	}
	all = append(all, tensors.FromFlatDataAndDimensions(action, rows, length))
	for _, x := range reals {
		all = append(all, tensors.FromFlatDataAndDimensions(x, rows, length))
	}
	return all, nil
}
