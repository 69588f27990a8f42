package s5rl

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/seed"
	"icrl/policyattention/transformer"
)

// network is the network of a configuration, as a train.Trainable: the encoder, the S5 layers, actor and critic.
type network struct{ Config }

// dense is a layer x ↦ xW + b, at first with W a multiple of orthonormal rows or columns (Saxe et al., arXiv
// 1312.6120) and b = 0.
type dense struct {
	name    string
	in, out int
	gain    float64
}

// The dense layers: the encoder, and the heads with the source's gains. A head has a row for each state.
func (c Config) encoder() dense {
	return dense{"encoder", 2*c.States*c.Actions + c.States + 1, c.Width, 1}
}
func (c Config) actor() []dense  { return c.head("actor", c.States*c.Actions, .01) }
func (c Config) critic() []dense { return c.head("critic", c.States, 1) }

func (c Config) head(name string, outputs int, gain float64) []dense {
	return []dense{
		{name + "0", c.Width, c.Hidden, 2}, {name + "1", c.Hidden, c.Hidden, 2}, {name + "2", c.Hidden, outputs, gain},
	}
}

// piece is a tensor of parameters, as they are at first.
type piece struct {
	transformer.Tensor
	values []float64
}

// pieces draws all parameters in their order.
func (c Config) pieces() (all []piece) {
	at := 0
	add := func(name string, values []float64, shape ...int) {
		all = append(all, piece{transformer.Tensor{Name: name, Shape: shape, Offset: at}, values})
		at += len(values)
	}
	several := func(layers ...dense) {
		for _, d := range layers {
			w := orthogonal(seed.New(c.Seed, "s5rl", "init", d.name), d.in, d.out)
			w.Scale(d.gain, w)
			add(d.name+".weight", w.RawMatrix().Data, d.in, d.out)
			add(d.name+".bias", make([]float64, d.out), d.out)
		}
	}
	several(c.encoder())
	for i := range c.Layers {
		x := c.layer(seed.New(c.Seed, "s5rl", "init", "s5", i))
		add(fmt.Sprintf("s5.%d", i), x, len(x))
	}
	several(slices.Concat(c.actor(), c.critic())...)
	return all
}

// Layout implements train.Trainable.
func (n network) Layout() (all []transformer.Tensor) {
	for _, p := range n.pieces() {
		all = append(all, p.Tensor)
	}
	return all
}

// Init implements train.Trainable.
func (n network) Init() (params []float32) {
	for _, p := range n.pieces() {
		for _, x := range p.values {
			params = append(params, float32(x))
		}
	}
	return params
}

// orthogonal draws a matrix [rows, cols] with orthonormal rows or columns, whichever are fewer: the Q of a QR
// decomposition of a normal matrix with signs such that R's diagonal is positive.
func orthogonal(rng *rand.Rand, rows, cols int) *mat.Dense {
	long, short := max(rows, cols), min(rows, cols)
	normal := mat.NewDense(long, short, nil)
	normal.Apply(func(_, _ int, _ float64) float64 { return rng.NormFloat64() }, normal)
	var qr mat.QR
	qr.Factorize(normal)
	var q, r mat.Dense
	qr.QTo(&q)
	qr.RTo(&r)
	normal.Apply(func(i, j int, _ float64) float64 { return math.Copysign(q.At(i, j), q.At(i, j)*r.At(j, j)) }, normal)
	if rows < cols {
		return mat.DenseCopyOf(normal.T())
	}
	return normal
}

// inputs builds the features [T, B, features] and the resets [T, B] from what the network sees, each [T, B]: the state,
// the action and the reward before, and the state now. At the first step of a life there is no action before, and the
// others are not looked at. They are a one-hot of the pair of state and action before, less 1/SA, and the one-hot times
// its reward, both zero at the first step of a life; a one-hot of the state now, less 1/S; the flag of a first step.
// What the layers sum up is then what differs from pair to pair, and not what is the same at each step.
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

// apply builds logits [T, B, A] and values [T, B] from tokens, see inputs, and states [Layers, B, P], and the states
// after.
func (c Config) apply(params *Node, tokens []*Node, states number) (logits, values *Node, after number) {
	take := parts(params)
	through := func(x *Node, layers ...dense) *Node {
		for i, d := range layers {
			w, b := take(d.in, d.out), take(d.out)
			x = Add(Einsum("tbi,io->tbo", x, w), ExpandDims(b, 0, 0))
			if i < len(layers)-1 {
				x = Max(x, MulScalar(x, .01)) // leaky ReLU
			}
		}
		return x
	}
	x, reset := c.inputs(tokens[0], tokens[1], tokens[2], tokens[3])
	x = through(x, c.encoder())
	var res, ims []*Node
	for i := range c.Layers {
		before := states.each(func(x *Node) *Node { return Squeeze(SliceAxis(x, 0, AxisElem(i)), 0) })
		var last number
		x, last = c.s5(take, x, reset, before)
		res, ims = append(res, last.re), append(ims, last.im)
	}
	// The row of the state now, of those of all states.
	state := tokens[3]
	own := func(x *Node, dims ...int) *Node {
		shape := state.Shape().Dimensions
		rows := Reshape(x, append([]int{shape[0], shape[1], c.States}, dims...)...)
		now := OneHot(state, c.States, x.DType())
		for range dims {
			now = ExpandDims(now, -1)
		}
		return ReduceSum(Mul(rows, now), 2)
	}
	logits = own(through(x, c.actor()...), c.Actions)
	values = own(through(x, c.critic()...))
	return logits, values, number{Stack(res, 0), Stack(ims, 0)}
}

// Loss implements train.Trainable: PPO's on rows [B, T] that begin with new lives. The arrays of a batch are those of
// rollouts.Batch.
func (n network) Loss(params *Node, _, batch []*Node) *Node {
	turned := make([]*Node, len(batch)) // [T, B]
	for i, x := range batch {
		turned[i] = Transpose(x, 0, 1)
	}
	action, logBefore, advantage, target, value := turned[4], turned[5], turned[6], turned[7], turned[8]
	none := Zeros(params.Graph(), shapes.Make(params.DType(), n.Layers, action.Shape().Dimensions[1], n.State/2))
	logits, values, _ := n.apply(params, turned[:4], number{none, none})
	logp := LogSoftmax(logits, -1)
	taken := ReduceSum(Mul(OneHot(action, n.Actions, logp.DType()), logp), -1)
	ratio := Exp(Sub(taken, logBefore))
	gain := ReduceAllMean(Min(Mul(ratio, advantage), Mul(ClipScalar(ratio, 1-n.Ratio, 1+n.Ratio), advantage)))
	near := Add(value, ClipScalar(Sub(values, value), -n.Ratio, n.Ratio))
	critic := MulScalar(ReduceAllMean(Max(Square(Sub(values, target)), Square(Sub(near, target)))), .5)
	entropy := Neg(ReduceAllMean(ReduceSum(Mul(Exp(logp), logp), -1)))
	return Sub(MulScalar(critic, n.Value), Add(gain, MulScalar(entropy, n.Entropy)))
}
