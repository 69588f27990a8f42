package baseline

import (
	"fmt"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"
)

// Features says what the parameters of a learner multiply: log π(a|s) is
// x(s,a)ᵀθ up to a constant, and V(s) is f(s)ᵀw.
type Features string

const (
	OneHot Features = ""      // tabular: a parameter for each pair and each state
	Dense  Features = "dense" // numbers uniform on [0, 1), S·A of them for each pair and S for each state
)

// kernel carries a tabular increment over to other features. With the rows of X
// as features, a gradient g with respect to the logits Xθ makes an increment
// Xᵀg of θ, and so X Xᵀg of the logits; likewise F Fᵀ for the values. Learners
// are kept as logits and values, so that they need nothing else. Tabular ones
// have none.
type kernel struct{ pairs, states *mat.Dense } // X Xᵀ [SA, SA], F Fᵀ [S, S]

// kernel draws features for S states and A actions.
func (f Features) kernel(states, actions int, rng *rand.Rand) (*kernel, error) {
	switch f {
	case OneHot:
		return nil, nil
	case Dense:
		return &kernel{gram(states*actions, rng), gram(states, rng)}, nil
	}
	return nil, fmt.Errorf("baseline: features %q, want %q or %q", f, OneHot, Dense)
}

// gram returns X Xᵀ for a square X of numbers uniform on [0, 1).
func gram(n int, rng *rand.Rand) *mat.Dense {
	x := mat.NewDense(n, n, nil)
	for i := range x.RawMatrix().Data {
		x.RawMatrix().Data[i] = rng.Float64()
	}
	var k mat.Dense
	k.Mul(x, x.T())
	return &k
}

// carry replaces the increments of θ [S·A] and w [S].
func (k *kernel) carry(dTheta, dW []float64) {
	if k == nil {
		return
	}
	for _, part := range []struct {
		by *mat.Dense
		of []float64
	}{{k.pairs, dTheta}, {k.states, dW}} {
		v := mat.NewVecDense(len(part.of), part.of)
		v.MulVec(part.by, mat.VecDenseCopyOf(v))
	}
}
