package s5rl

import (
	"fmt"
	"math"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/stat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/mdp"
	"icrl/policyattention/seed"
)

// rollouts are the lives of the network in training, as train.Rollouts. A rollout is a function of its number and of
// the weights.
type rollouts struct {
	c     Config
	on    compute.Backend
	exec  *Exec // compiled on it
	model *Model
	last  sample
	at    int // the step before which last was collected
}

// sample is a rollout of Rows lives, one after the other: what the network saw, did and thought, and
// what came of it.
type sample struct {
	shown           // to the network
	action          []int32
	logp, advantage []float32 // of the action; the advantage is normalized by batch
	target, value   []float32 // of the critic
	earned          []float32 // by the action
}

// Data implements train.Batches.
func (r *rollouts) Data() ([]*tensors.Tensor, error) { return nil, nil }

// Every implements train.Rollouts.
func (r *rollouts) Every() int { return r.c.every() }

// Collect implements train.Rollouts.
func (r *rollouts) Collect(on compute.Backend, step int, params []float32) (err error) {
	if r.exec == nil || r.on != on {
		if r.exec, err = r.c.compile(on); err != nil {
			return err
		}
		r.on = on
	}
	r.model = newModel(r.c, r.exec, params)
	r.at = step
	r.last, err = r.live(step / r.c.every())
	return err
}

// live returns rollout number k.
func (r *rollouts) live(k int) (sample, error) {
	c := r.c
	root := seed.New(c.Seed, "s5rl", "problems", k).Uint64() // a digest: no evaluation root
	problems, err := mdp.Random.Draw(root, c.States, c.Actions, c.Rows)
	if err != nil {
		return sample{}, err
	}
	n := c.Rows
	all := sample{shown: newShown(n * c.Life), action: make([]int32, n*c.Life)}
	for _, x := range []*[]float32{&all.logp, &all.advantage, &all.target, &all.value, &all.earned} {
		*x = make([]float32, n*c.Life)
	}
	now, alive := newShown(n), r.model.begin(n)
	chains := make([]*baseline.Chain, n)
	for i, p := range problems {
		chains[i] = baseline.NewChain(p.MDP, seed.New(c.Seed, "s5rl", "life", k, 0, i))
		now.before[i], now.previous[i], now.reward[i], now.state[i] = 0, baseline.None, 0, int32(chains[i].State)
	}
	for t := range c.Life + 1 {
		p, value, err := alive.see(now, 1, true)
		if err != nil {
			return sample{}, err
		}
		for i, chain := range chains {
			if t == c.Life {
				c.estimate(all, i*c.Life, value[i])
				continue
			}
			at, a := i*c.Life+t, chain.Choose(p[i].RawRowView(0))
			all.before[at], all.previous[at] = now.before[i], now.previous[i]
			all.reward[at], all.state[at] = now.reward[i], now.state[i]
			all.action[at], all.logp[at], all.value[at] = int32(a), float32(math.Log(p[i].At(0, a))), value[i]
			step := chain.Step(a)
			all.earned[at] = float32(step.Reward)
			now.before[i], now.previous[i] = int32(step.State), int32(a)
			now.reward[i], now.state[i] = float32(step.Reward), int32(step.Next)
		}
	}
	return all, nil
}

// estimate fills in advantages and targets of the critic of the life that begins at from, by generalized advantage
// estimation (arXiv 1506.02438). A life is cut off after its last step: what would have come is worth next.
func (c Config) estimate(s sample, from int, next float32) {
	sum, after := 0., float64(next)
	for t := from + c.Life - 1; t >= from; t-- {
		delta := float64(s.earned[t]) + c.Gamma*after - float64(s.value[t])
		sum, after = delta+c.Gamma*c.Lambda*sum, float64(s.value[t])
		s.advantage[t], s.target[t] = float32(sum), float32(sum)+s.value[t]
	}
}

// Batch implements train.Batches: the rows of a minibatch.
func (r *rollouts) Batch(step int) ([]*tensors.Tensor, error) {
	c, s, length := r.c, r.last, r.c.Life
	if step < r.at || step >= r.at+c.every() || s.action == nil {
		return nil, fmt.Errorf("s5rl: no rollout for step %d", step+1)
	}
	order, rows := seed.New(c.Seed, "s5rl", "order", step/c.Minibatches).Perm(c.Rows), c.Rows/c.Minibatches
	order = order[step%c.Minibatches*rows:][:rows]
	var x []float64
	for _, a := range pick(s.advantage, order, length) {
		x = append(x, float64(a))
	}
	mean, variance := stat.PopMeanVariance(x, nil)
	normalized := make([]float32, len(x))
	for i := range x {
		normalized[i] = float32((x[i] - mean) / (math.Sqrt(variance) + 1e-8))
	}
	integers := func(all []int32) *tensors.Tensor {
		return tensors.FromFlatDataAndDimensions(pick(all, order, length), rows, length)
	}
	reals := func(all []float32) *tensors.Tensor {
		return tensors.FromFlatDataAndDimensions(pick(all, order, length), rows, length)
	}
	return []*tensors.Tensor{
		integers(s.before), integers(s.previous), reals(s.reward), integers(s.state), integers(s.action),
		reals(s.logp), tensors.FromFlatDataAndDimensions(normalized, rows, length), reals(s.target), reals(s.value),
	}, nil
}

// pick returns some rows of all [·, length].
func pick[T int32 | float32](all []T, rows []int, length int) (some []T) {
	for _, i := range rows {
		some = append(some, all[i*length:][:length]...)
	}
	return some
}
