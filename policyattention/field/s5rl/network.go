package s5rl

import (
	"slices"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"

	"icrl/policyattention/baseline"
	"icrl/policyattention/seed"
	"icrl/policyattention/transformer"
)

// dense is a layer x ↦ xW + b, at first with W a multiple of orthonormal rows or columns (Saxe et al., arXiv
// 1312.6120) and b = 0.
type dense struct {
	name    string
	in, out int
	gain    float64
}

// layers are the dense layers: the encoder, and the heads with the source's gains, which have a row for each state.
func (c Config) layers() (encoder, actor, critic []dense) {
	head := func(name string, outputs int, gain float64) []dense {
		in, last := dense{name + "0", c.Width, c.Hidden, 2}, dense{name + "2", c.Hidden, outputs, gain}
		return []dense{in, {name + "1", c.Hidden, c.Hidden, 2}, last}
	}
	encoder = []dense{{"encoder", 2*c.States*c.Actions + c.States + 1, c.Width, 1}}
	return encoder, head("actor", c.States*c.Actions, .01), head("critic", c.States, 1)
}

// parameters draws all parameters, and says where each is.
func (c Config) parameters() (layout []transformer.Tensor, params []float32) {
	add := func(name string, values []float64, shape ...int) {
		layout = append(layout, transformer.Tensor{Name: name, Shape: shape, Offset: len(params)})
		for _, x := range values {
			params = append(params, float32(x))
		}
	}
	encoder, actor, critic := c.layers()
	for i, d := range slices.Concat(encoder, actor, critic) {
		if i == len(encoder) {
			x := c.layer(seed.New(c.Seed, "s5rl", "init", "s5", 0))
			add("s5.0", x, len(x))
		}
		w := baseline.OrthogonalMatrix(d.in, d.out, seed.New(c.Seed, "s5rl", "init", d.name))
		w.Scale(d.gain, w)
		add(d.name+".weight", w.RawMatrix().Data, d.in, d.out)
		add(d.name+".bias", make([]float64, d.out), d.out)
	}
	return layout, params
}

// Layout implements train.Trainable.
func (c Config) Layout() []transformer.Tensor { layout, _ := c.parameters(); return layout }

// Init implements train.Trainable.
func (c Config) Init() []float32 { _, params := c.parameters(); return params }

// inputs builds the features [T, B, features] and the resets [T, B] from tokens, each [T, B]: the state, the action and
// the reward before, and the state now. They are a one-hot of the pair of state and action before, less 1/SA, and the
// one-hot times its reward, both zero at the first step of a life, which has no action before; a one-hot of the state
// now, less 1/S; the flag of a first step. What the layer sums up is then what differs from pair to pair.
func (c Config) inputs(before, previous, reward, state *Node) (features, reset *Node) {
	dtype := reward.DType()
	reset = ConvertDType(Equal(previous, Const(previous.Graph(), int32(baseline.None))), dtype)
	number := Add(MulScalar(before, c.Actions), previous)
	going := ExpandDims(OneMinus(reset), -1)
	pair := Mul(OneHot(number, c.States*c.Actions, dtype), going)
	return Concatenate([]*Node{
		Mul(AddScalar(pair, -1/float64(c.States*c.Actions)), going),
		Mul(pair, ExpandDims(MulScalar(reward, c.Scale), -1)),
		AddScalar(OneHot(state, c.States, dtype), -1/float64(c.States)), ExpandDims(reset, -1),
	}, -1), reset
}

// apply builds logits [T, B, A] and values [T, B] from tokens, see inputs, and states [B, P], and the states after.
func (c Config) apply(params *Node, tokens []*Node, states number) (logits, values *Node, after number) {
	take := parts(params)
	through := func(x *Node, layers []dense) *Node {
		for i, d := range layers {
			w, b := take(d.in, d.out), take(d.out)
			x = Add(Einsum("tbi,io->tbo", x, w), ExpandDims(b, 0, 0))
			if i < len(layers)-1 {
				x = Max(x, MulScalar(x, .01)) // leaky ReLU
			}
		}
		return x
	}
	encoder, actor, critic := c.layers()
	x, reset := c.inputs(tokens[0], tokens[1], tokens[2], tokens[3])
	x, after = c.s5(take, through(x, encoder), reset, states)
	now := ExpandDims(OneHot(tokens[3], c.States, x.DType()), -1)
	own := func(x *Node, outputs int) *Node { // the row of the state now, of those of all states
		shape := x.Shape().Dimensions
		return ReduceSum(Mul(Reshape(x, shape[0], shape[1], c.States, outputs), now), 2)
	}
	logits = own(through(x, actor), c.Actions)
	return logits, Squeeze(own(through(x, critic), 1), -1), after
}

// Loss implements train.Trainable: PPO's on rows [B, T] that begin with new lives. The arrays of a batch are those of
// rollouts.batch.
func (c Config) Loss(params *Node, _, batch []*Node) *Node {
	turned := make([]*Node, len(batch)) // [T, B]
	for i, x := range batch {
		turned[i] = Transpose(x, 0, 1)
	}
	action, logBefore, advantage, target, value := turned[4], turned[5], turned[6], turned[7], turned[8]
	none := Zeros(params.Graph(), shapes.Make(params.DType(), action.Shape().Dimensions[1], c.State/2))
	logits, values, _ := c.apply(params, turned[:4], number{none, none})
	logp := LogSoftmax(logits, -1)
	taken := ReduceSum(Mul(OneHot(action, c.Actions, logp.DType()), logp), -1)
	ratio := Exp(Sub(taken, logBefore))
	gain := ReduceAllMean(Min(Mul(ratio, advantage), Mul(ClipScalar(ratio, 1-c.Ratio, 1+c.Ratio), advantage)))
	near := Add(value, ClipScalar(Sub(values, value), -c.Ratio, c.Ratio))
	critic := MulScalar(ReduceAllMean(Max(Square(Sub(values, target)), Square(Sub(near, target)))), .5)
	entropy := Neg(ReduceAllMean(ReduceSum(Mul(Exp(logp), logp), -1)))
	return Sub(MulScalar(critic, c.Value), Add(gain, MulScalar(entropy, c.Entropy)))
}
