package s5rl

import (
	"fmt"
	"math"
	"math/rand/v2"

	. "github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/baseline/incontext"
	"icrl/policyattention/seed"
	"icrl/policyattention/transformer"
)

// network is the network of a configuration, as a train.Trainable.
type network struct{ Config }

// dense is a layer x ↦ xW + b, at first with W a multiple of orthonormal rows or columns
// (Saxe et al., arXiv 1312.6120) and b = 0.
type dense struct {
	name    string
	in, out int
	gain    float64
}

// The dense layers: the encoder, and the heads with the source's gains. A head has a row for each
// state.
func (c Config) encoder() []dense {
	return []dense{{"encoder", c.features(), c.Width, 1}}
}

func (c Config) head(name string, outputs int, gain float64) []dense {
	return []dense{{name + "0", c.Width, c.Hidden, 2}, {name + "1", c.Hidden, c.Hidden, 2}, {name + "2", c.Hidden, outputs, gain}}
}

func (c Config) actor() []dense  { return c.head("actor", c.States*c.Actions, .01) }
func (c Config) critic() []dense { return c.head("critic", c.States, 1) }

// Layout implements train.Trainable: the encoder, the S5 layers, actor and critic.
func (n network) Layout() []transformer.Tensor {
	var all []transformer.Tensor
	at := 0
	add := func(name string, shape ...int) {
		t := transformer.Tensor{Name: name, Shape: shape, Offset: at}
		all, at = append(all, t), at+t.Size()
	}
	several := func(layers []dense) {
		for _, d := range layers {
			add(d.name+".weight", d.in, d.out)
			add(d.name+".bias", d.out)
		}
	}
	several(n.encoder())
	for i := range n.Layers {
		add(fmt.Sprintf("s5.%d", i), n.layer().Size())
	}
	several(n.actor())
	several(n.critic())
	return all
}

// Init implements train.Trainable.
func (n network) Init() []float32 {
	var params []float32
	several := func(layers []dense) {
		for _, d := range layers {
			for _, x := range orthogonal(seed.New(n.Seed, "s5rl", "init", d.name), d.in, d.out) {
				params = append(params, float32(d.gain*x))
			}
			params = append(params, make([]float32, d.out)...)
		}
	}
	several(n.encoder())
	for i := range n.Layers {
		layer, err := n.layer().Init(seed.New(n.Seed, "s5rl", "init", "s5", i))
		if err != nil {
			panic(err) // Validate has refused such layers
		}
		n.layer().Scale(layer, n.Out, n.Skip)
		for _, x := range layer {
			params = append(params, float32(x))
		}
	}
	several(n.actor())
	several(n.critic())
	return params
}

// orthogonal draws a matrix [rows, cols] with orthonormal rows or columns, whichever are fewer:
// the Q of a QR decomposition of a normal matrix with signs such that R's diagonal is positive.
func orthogonal(rng *rand.Rand, rows, cols int) []float64 {
	long, short := max(rows, cols), min(rows, cols)
	normal := mat.NewDense(long, short, nil)
	for i := range normal.RawMatrix().Data {
		normal.RawMatrix().Data[i] = rng.NormFloat64()
	}
	var qr mat.QR
	qr.Factorize(normal)
	var q, r mat.Dense
	qr.QTo(&q)
	qr.RTo(&r)
	out := mat.NewDense(rows, cols, nil)
	for i := range long {
		for j := range short {
			x := math.Copysign(q.At(i, j), q.At(i, j)*r.At(j, j))
			if rows == long {
				out.Set(i, j, x)
			} else {
				out.Set(j, i, x)
			}
		}
	}
	return out.RawMatrix().Data
}

// tokens are what the network sees, each [T, B]: the state, the action and the reward before, and
// the state now. At the first step of a life there is no action before, and the others are not
// looked at.
type tokens struct{ before, previous, reward, state *Node }

// inputs builds the features [T, B, features] and the resets [T, B]: a one-hot of the pair of state
// and action before, less 1/SA, and the one-hot times its reward, both zero at the first step of a
// life; a one-hot of the state now, less 1/S; the flag of a first step. What the layers sum up is
// then what differs from pair to pair, and not what is the same at each step.
func (c Config) inputs(t tokens) (features, reset *Node) {
	dtype := t.reward.DType()
	reset = ConvertDType(Equal(t.previous, Const(t.previous.Graph(), int32(incontext.None))), dtype)
	number := Add(MulScalar(t.before, c.Actions), t.previous)
	going := ExpandDims(OneMinus(reset), -1)
	pair := Mul(OneHot(number, c.States*c.Actions, dtype), going)
	return Concatenate([]*Node{
		Mul(AddScalar(pair, -1/float64(c.States*c.Actions)), going), Mul(pair, ExpandDims(MulScalar(t.reward, c.Scale), -1)),
		AddScalar(OneHot(t.state, c.States, dtype), -1/float64(c.States)), ExpandDims(reset, -1),
	}, -1), reset
}

// apply builds logits [T, B, A] and values [T, B] from states [Layers, B, P] of real and imaginary
// parts, and the states after.
func (n network) apply(params *Node, t tokens, re, im *Node) (logits, values, nextRe, nextIm *Node) {
	at := 0
	take := func(shape ...int) *Node {
		size := 1
		for _, d := range shape {
			size *= d
		}
		at += size
		return Reshape(SliceAxis(params, 0, AxisRange(at-size, at)), shape...)
	}
	through := func(x *Node, layers []dense, last bool) *Node {
		for i, d := range layers {
			w, b := take(d.in, d.out), take(d.out)
			x = Add(Einsum("tbi,io->tbo", x, w), ExpandDims(b, 0, 0))
			if i < len(layers)-1 || last {
				x = leaky(x)
			}
		}
		return x
	}
	x, reset := n.inputs(t)
	x = through(x, n.encoder(), false)
	var res, ims []*Node
	for i := range n.Layers {
		state := func(x *Node) *Node { return Squeeze(SliceAxis(x, 0, AxisElem(i)), 0) }
		var a, b *Node
		x, a, b = n.layer().Apply(take(n.layer().Size()), x, reset, state(re), state(im))
		res, ims = append(res, a), append(ims, b)
	}
	// The row of the state now, of those of all states.
	own := func(x *Node, dims ...int) *Node {
		shape := t.state.Shape().Dimensions
		rows := Reshape(x, append([]int{shape[0], shape[1], n.States}, dims...)...)
		now := OneHot(t.state, n.States, x.DType())
		for range dims {
			now = ExpandDims(now, -1)
		}
		return ReduceSum(Mul(rows, now), 2)
	}
	logits = own(through(x, n.actor(), false), n.Actions)
	values = own(through(x, n.critic(), false))
	return logits, values, Stack(res, 0), Stack(ims, 0)
}

// leaky is the ReLU with the slope .01 below 0.
func leaky(x *Node) *Node { return Max(x, MulScalar(x, .01)) }
