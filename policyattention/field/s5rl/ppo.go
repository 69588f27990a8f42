package s5rl

import (
	"github.com/gomlx/compute/shapes"
	. "github.com/gomlx/gomlx/core/graph"
)

// Loss implements train.Trainable: PPO's on rows [B, T] that begin with new lives. The arrays of a
// batch are those of sample.
func (n network) Loss(params *Node, _, batch []*Node) *Node {
	turned := make([]*Node, len(batch)) // [T, B]
	for i, x := range batch {
		turned[i] = Transpose(x, 0, 1)
	}
	t := tokens{turned[0], turned[1], turned[2], turned[3]}
	action, logBefore, advantage, target, value := turned[4], turned[5], turned[6], turned[7], turned[8]
	none := Zeros(params.Graph(), shapes.Make(params.DType(), n.Layers, action.Shape().Dimensions[1], n.kept()))
	logits, values, _, _ := n.apply(params, t, none, none)
	logp := LogSoftmax(logits, -1)
	taken := ReduceSum(Mul(OneHot(action, n.Actions, logp.DType()), logp), -1)
	ratio := Exp(Sub(taken, logBefore))
	gain := ReduceAllMean(Min(Mul(ratio, advantage), Mul(ClipScalar(ratio, 1-n.Ratio, 1+n.Ratio), advantage)))
	near := Add(value, ClipScalar(Sub(values, value), -n.Ratio, n.Ratio))
	critic := MulScalar(ReduceAllMean(Max(Square(Sub(values, target)), Square(Sub(near, target)))), .5)
	entropy := Neg(ReduceAllMean(ReduceSum(Mul(Exp(logp), logp), -1)))
	return Sub(MulScalar(critic, n.Value), Add(gain, MulScalar(entropy, n.Entropy)))
}
