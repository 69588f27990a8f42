package s5rl

import (
	"fmt"
	"math"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/policyattention/baseline"
	"icrl/policyattention/baseline/incontext"
	"icrl/policyattention/mdp"
	"icrl/policyattention/seed"
)

// rollouts are the lives of the network in training, as train.Rollouts. A rollout is a function of
// its number and of the weights.
type rollouts struct {
	c    Config
	on   compute.Backend
	step *stepper
	last sample
	at   int // the step before which last was collected
}

// sample is a rollout of Rows rows of length() steps each, row by row: what the network saw, did
// and thought, and what came of it.
type sample struct {
	shown           // to the network
	action          []int32
	logp, advantage []float32 // of the action; the advantage is normalized by batch
	target, value   []float32 // of the critic
	earned          []float32 // by the action
}

// stepper takes tokens of lives through a network one step at a time.
type stepper struct {
	c      Config
	exec   *Exec
	params *tensors.Tensor
	re, im *tensors.Tensor // [Layers, lives, P]
}

// newStepper compiles the step.
func newStepper(on compute.Backend, c Config) (*stepper, error) {
	exec, err := NewExec(on, func(in []*Node) []*Node {
		logits, values, re, im := network{c}.apply(in[0], tokens{in[1], in[2], in[3], in[4]}, in[5], in[6])
		return []*Node{logits, values, re, im}
	})
	return &stepper{c: c, exec: exec}, err
}

// clear puts n lives before their first step.
func (s *stepper) clear(n int) {
	zero := func() *tensors.Tensor {
		return tensors.FromFlatDataAndDimensions(make([]float32, s.c.Layers*n*s.c.kept()), s.c.Layers, n, s.c.kept())
	}
	s.re, s.im = zero(), zero()
}

// shown are tokens, see tokens.
type shown struct {
	before, previous []int32
	reward           []float32
	state            []int32
}

func newShown(n int) shown {
	return shown{make([]int32, n), make([]int32, n), make([]float32, n), make([]int32, n)}
}

// set makes token i that of step t of a history, or the first token if no step came before.
func (s shown) set(i int, h *incontext.History, t int) {
	s.previous[i], s.reward[i], s.state[i] = h.At(t)
	s.before[i] = 0
	if t > 0 {
		_, _, s.before[i] = h.At(t - 1)
	}
}

// see shows each of n lives k tokens [k, n], and returns logits [k, n, A] and values [k, n]. With
// keep the lives go on after them.
func (s *stepper) see(t shown, k int, keep bool) (logits, values []float32, err error) {
	n := len(t.state) / k
	out, err := s.exec.Call(s.params, tensors.FromFlatDataAndDimensions(t.before, k, n), tensors.FromFlatDataAndDimensions(t.previous, k, n),
		tensors.FromFlatDataAndDimensions(t.reward, k, n), tensors.FromFlatDataAndDimensions(t.state, k, n), s.re, s.im)
	if err != nil {
		return nil, nil, fmt.Errorf("s5rl: %w", err)
	}
	if logits, err = tensors.CopyFlatData[float32](out[0]); err != nil {
		return nil, nil, err
	}
	if values, err = tensors.CopyFlatData[float32](out[1]); err != nil {
		return nil, nil, err
	}
	drop := []*tensors.Tensor{out[0], out[1], out[2], out[3]}
	if keep {
		drop = []*tensors.Tensor{out[0], out[1], s.re, s.im}
		s.re, s.im = out[2], out[3]
	}
	for _, x := range drop {
		if err := x.FinalizeAll(); err != nil {
			return nil, nil, err
		}
	}
	return logits, values, nil
}

// Data implements train.Batches.
func (r *rollouts) Data() ([]*tensors.Tensor, error) { return nil, nil }

// Every implements train.Rollouts.
func (r *rollouts) Every() int { return r.c.every() }

// Collect implements train.Rollouts.
func (r *rollouts) Collect(on compute.Backend, step int, params []float32) (err error) {
	if r.step == nil || r.on != on {
		if r.step, err = newStepper(on, r.c); err != nil {
			return err
		}
		r.on = on
	}
	r.step.params = tensors.FromFlatDataAndDimensions(params, len(params))
	r.at = step
	r.last, err = r.live(step / r.c.every())
	return err
}

// live returns rollout number k.
func (r *rollouts) live(k int) (sample, error) {
	c := r.c
	root := seed.New(c.Seed, "s5rl", "problems", k).Uint64() // a digest: no evaluation root
	problems, err := mdp.Random.Draw(root, c.States, c.Actions, c.Rows*c.Lives)
	if err != nil {
		return sample{}, err
	}
	n, length := c.Rows, c.length()
	all := newSample(n * length)
	chains := make([]*baseline.Chain, n)
	now := newShown(n)
	values := make([]float32, n*(length+c.Lives)) // with one after the last step of each life
	r.step.clear(n)
	for life := range c.Lives {
		for i := range n {
			chains[i] = baseline.NewChain(problems[life*n+i].MDP, seed.New(c.Seed, "s5rl", "life", k, life, i))
			now.before[i], now.previous[i], now.reward[i], now.state[i] = 0, incontext.None, 0, int32(chains[i].State)
		}
		for t := range c.Life + 1 {
			logits, value, err := r.step.see(now, 1, true)
			if err != nil {
				return sample{}, err
			}
			for i, chain := range chains {
				values[i*(length+c.Lives)+life*(c.Life+1)+t] = value[i]
				if t == c.Life {
					continue
				}
				at := i*length + life*c.Life + t
				p := softmax(logits[i*c.Actions:][:c.Actions])
				a := chain.Choose(p)
				all.before[at], all.previous[at], all.reward[at], all.state[at] = now.before[i], now.previous[i], now.reward[i], now.state[i]
				all.action[at], all.logp[at], all.value[at] = int32(a), float32(math.Log(p[a])), value[i]
				step := chain.Step(a)
				all.earned[at] = float32(step.Reward)
				now.before[i], now.previous[i], now.reward[i], now.state[i] = int32(step.State), int32(a), float32(step.Reward), int32(step.Next)
			}
		}
	}
	for i := range n {
		for life := range c.Lives {
			from := i*length + life*c.Life
			c.estimate(all.earned[from:][:c.Life], values[i*(length+c.Lives)+life*(c.Life+1):][:c.Life+1], all.advantage[from:][:c.Life], all.target[from:][:c.Life])
		}
	}
	return all, nil
}

func newSample(n int) sample {
	return sample{
		newShown(n), make([]int32, n),
		make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n),
	}
}

// estimate fills in advantages [T] and targets of the critic [T] from rewards [T] and values [T+1],
// by generalized advantage estimation (arXiv 1506.02438). A life is cut off after its last step:
// what would have come is the last value.
func (c Config) estimate(reward, value, advantage, target []float32) {
	sum := 0.
	for t := len(reward) - 1; t >= 0; t-- {
		delta := float64(reward[t]) + c.Gamma*float64(value[t+1]) - float64(value[t])
		sum = delta + c.Gamma*c.Lambda*sum
		advantage[t], target[t] = float32(sum), float32(sum)+value[t]
	}
}

// softmax returns the distribution of logits.
func softmax(logits []float32) []float64 {
	top := logits[0]
	for _, x := range logits {
		top = max(top, x)
	}
	p, sum := make([]float64, len(logits)), 0.
	for i, x := range logits {
		p[i] = math.Exp(float64(x - top))
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}

// Batch implements train.Batches: the rows of a minibatch.
func (r *rollouts) Batch(step int) ([]*tensors.Tensor, error) {
	c := r.c
	if step < r.at || step >= r.at+c.every() || r.last.action == nil {
		return nil, fmt.Errorf("s5rl: no rollout for step %d", step+1)
	}
	order := seed.New(c.Seed, "s5rl", "order", step/c.Minibatches).Perm(c.Rows)
	size := c.Rows / c.Minibatches
	rows := order[step%c.Minibatches*size:][:size]
	s, length := r.last, c.length()
	return []*tensors.Tensor{
		pick(s.before, rows, length), pick(s.previous, rows, length), pick(s.reward, rows, length), pick(s.state, rows, length), pick(s.action, rows, length),
		pick(s.logp, rows, length), normalized(s.advantage, rows, length), pick(s.target, rows, length), pick(s.value, rows, length),
	}, nil
}

// pick returns some rows of all [rows, length].
func pick[T int32 | float32](all []T, rows []int, length int) *tensors.Tensor {
	var some []T
	for _, i := range rows {
		some = append(some, all[i*length:][:length]...)
	}
	return tensors.FromFlatDataAndDimensions(some, len(rows), length)
}

// normalized is pick with the mean 0 and the standard deviation 1.
func normalized(all []float32, rows []int, length int) *tensors.Tensor {
	mean, square := 0., 0.
	for _, i := range rows {
		for _, x := range all[i*length:][:length] {
			mean += float64(x)
			square += float64(x) * float64(x)
		}
	}
	n := float64(len(rows) * length)
	mean /= n
	deviation := math.Sqrt(max(0, square/n-mean*mean)) + 1e-8
	scaled := make([]float32, 0, len(rows)*length)
	for _, i := range rows {
		for _, x := range all[i*length:][:length] {
			scaled = append(scaled, float32((float64(x)-mean)/deviation))
		}
	}
	return tensors.FromFlatDataAndDimensions(scaled, len(rows), length)
}
