package definition

import (
	"math"

	. "github.com/gomlx/gomlx/core/graph"

	"icrl/policyattention/transformer"
)

// Step returns parameters and moments after one update; all have the shape
// [n]. The scalar step counts updates from 1 (any number type): it is 1 in
// the first call, when both moments are zero. The rate is LearningRate, whatever Cosine says.
func Step(o transformer.AdamW, params, grad, m, v, step *Node) (newParams, newM, newV *Node) {
	newM = Add(MulScalar(m, o.Beta1), MulScalar(grad, 1-o.Beta1))
	newV = Add(MulScalar(v, o.Beta2), MulScalar(Square(grad), 1-o.Beta2))
	// 1 − βᵗ by expm1, which keeps all digits where βᵗ is close to 1.
	count := ConvertDType(step, params.DType())
	correction := func(beta float64) *Node { return Neg(Expm1(MulScalar(count, math.Log(beta)))) }
	update := Div(
		Div(newM, correction(o.Beta1)),
		AddScalar(Sqrt(Div(newV, correction(o.Beta2))), o.Epsilon))
	update = Add(update, MulScalar(params, o.WeightDecay))
	return Sub(params, MulScalar(update, o.LearningRate)), newM, newV
}
