package decoder

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/control"
	"icrl/policyattention/pmd"
)

// Effective is a realizable linear model of effective logits (Section 5 and
// Appendix D): on context x the policy is
// q_ϑ = softmax(Φ(x)ϑ), and PMD is q_{ϑ*}. A row of the population is one state
// of one context; all rows weigh the same.
type Effective struct {
	Features []*mat.Dense // Φ of each row [A, n], columns summing to zero
	Target   []float64    // ϑ* [n]
}

// NewEffective returns the model with the centred features log π, ηQ and π for
// each state of the contexts, for which PMD is ϑ* = (1, 1, 0). It errs where a
// policy holds a zero, whose logarithm is no feature.
func NewEffective(contexts []control.Context) (*Effective, error) {
	e := &Effective{Target: []float64{1, 1, 0}}
	for i, c := range contexts {
		if c.Pi == nil {
			return nil, fmt.Errorf("decoder: context %d: the policy is missing", i)
		}
		states, actions := c.Pi.Dims()
		if err := c.Check(states, actions); err != nil {
			return nil, fmt.Errorf("decoder: context %d: %w", i, err)
		}
		for s := range states {
			phi := mat.NewDense(actions, 3, nil)
			for a, p := range c.Pi.RawRowView(s) {
				if !(p > 0) {
					return nil, fmt.Errorf("decoder: context %d has π(a=%d|s=%d) = %v, want a probability above 0", i, a, s, p)
				}
				phi.SetRow(a, []float64{math.Log(p), c.Eta * c.Q.At(s, a), p})
			}
			for j := range 3 {
				mean := mat.Sum(phi.ColView(j)) / float64(actions)
				for a := range actions {
					phi.Set(a, j, phi.At(a, j)-mean)
				}
			}
			e.Features = append(e.Features, phi)
		}
	}
	if len(e.Features) == 0 {
		return nil, errors.New("decoder: an effective model needs contexts")
	}
	return e, nil
}

// policy returns q_ϑ of row i.
func (e *Effective) policy(i int, theta []float64) []float64 {
	var z mat.VecDense
	z.MulVec(e.Features[i], mat.NewVecDense(len(theta), theta))
	row := z.RawVector().Data
	pmd.Softmax(row)
	return row
}

// Risk returns R(ϑ), the mean of KL(q_ϑ ‖ q_{ϑ*}), which equals the mean
// proximal excess ℓ(q_ϑ) − ℓ(q_{ϑ*}).
func (e *Effective) Risk(theta []float64) float64 {
	sum := 0.0
	for i := range e.Features {
		sum += pmd.KL(e.policy(i, theta), e.policy(i, e.Target))
	}
	return sum / float64(len(e.Features))
}

// Matrix returns G(ϑ) = E[Φᵀ H(q_ϑ) Φ] [n, n] with H(q) = diag(q) − qqᵀ.
func (e *Effective) Matrix(theta []float64) *mat.SymDense {
	return e.moment(func(i int) mat.Matrix {
		q := e.policy(i, theta)
		h := mat.NewSymDense(len(q), nil)
		for a, p := range q {
			for b := a; b < len(q); b++ {
				v := -p * q[b]
				if a == b {
					v += p
				}
				h.SetSym(a, b, v)
			}
		}
		return h
	})
}

// moment returns E[Φᵀ M Φ] for a symmetric matrix M of each row.
func (e *Effective) moment(m func(i int) mat.Matrix) *mat.SymDense {
	n := len(e.Target)
	sum := mat.NewSymDense(n, nil)
	for i, phi := range e.Features {
		var left, x mat.Dense
		left.Mul(m(i), phi)
		x.Mul(phi.T(), &left)
		for j := range n {
			for k := j; k < n; k++ {
				sum.SetSym(j, k, sum.At(j, k)+x.At(j, k)/float64(len(e.Features)))
			}
		}
	}
	return sum
}

// Gradient returns ∇R(ϑ) = G(ϑ)(ϑ − ϑ*) [n], equation (30).
func (e *Effective) Gradient(theta []float64) []float64 {
	var g mat.VecDense
	g.MulVec(e.Matrix(theta), mat.NewVecDense(len(theta), e.offset(theta)))
	return g.RawVector().Data
}

func (e *Effective) offset(theta []float64) []float64 {
	d := make([]float64, len(theta))
	for i, v := range theta {
		d[i] = v - e.Target[i]
	}
	return d
}

// Distance returns ‖ϑ − ϑ*‖.
func (e *Effective) Distance(theta []float64) float64 {
	return mat.Norm(mat.NewVecDense(len(theta), e.offset(theta)), 2)
}

// Curvature holds the constants of the convergence claim on the ball of a given
// radius around ϑ*.
type Curvature struct {
	P0     float64 // least action probability on the ball, a lower bound
	Lambda float64 // λ, least eigenvalue of E[ΦᵀΦ]
	Smooth float64 // L = λ_max(E[ΦᵀΦ])/2 ≥ every eigenvalue of G, as H ≤ 1/2
}

// Monotone returns the constant p₀λ of strong monotonicity, equation (31),
// (ϑ−ϑ*)ᵀ∇R(ϑ) ≥ p₀λ‖ϑ−ϑ*‖² on the ball.
func (c Curvature) Monotone() float64 { return c.P0 * c.Lambda }

// Rate returns the factor by which a gradient step of the given size shrinks
// ‖ϑ−ϑ*‖ at least: a step multiplies it by I − step·G, and the eigenvalues of G
// lie in [p₀λ, L].
func (c Curvature) Rate(step float64) float64 {
	return math.Max(math.Abs(1-step*c.Monotone()), math.Abs(1-step*c.Smooth))
}

// Curvature returns the constants for the ball of the given radius.
func (e *Effective) Curvature(radius float64) (Curvature, error) {
	gram := e.moment(func(i int) mat.Matrix {
		n := e.Features[i].RawMatrix().Rows
		one := mat.NewDiagDense(n, nil)
		for j := range n {
			one.SetDiag(j, 1)
		}
		return one
	})
	values, err := eigenvalues(gram)
	if err != nil {
		return Curvature{}, err
	}
	c := Curvature{P0: 1, Lambda: values[0], Smooth: values[len(values)-1] / 2}
	// On the ball a logit moves by at most ‖φ_a‖·radius from its value at ϑ*.
	for i, phi := range e.Features {
		longest := 0.0
		for a := range phi.RawMatrix().Rows {
			longest = math.Max(longest, mat.Norm(phi.RowView(a), 2))
		}
		for _, p := range e.policy(i, e.Target) {
			c.P0 = math.Min(c.P0, p*math.Exp(-2*longest*radius))
		}
	}
	return c, nil
}

// LocalRate returns the factor by which gradient descent with the given step
// shrinks the distance in the end: the spectral radius of I − step·G(ϑ*).
func (e *Effective) LocalRate(step float64) (float64, error) {
	values, err := eigenvalues(e.Matrix(e.Target))
	if err != nil {
		return 0, err
	}
	return math.Max(math.Abs(1-step*values[0]), math.Abs(1-step*values[len(values)-1])), nil
}

// eigenvalues returns the eigenvalues of m in ascending order.
func eigenvalues(m *mat.SymDense) ([]float64, error) {
	var eig mat.EigenSym
	if !eig.Factorize(m, false) {
		return nil, errors.New("decoder: the eigenvalues of a moment matrix did not converge")
	}
	return eig.Values(nil), nil
}

// Descend returns ‖ϑ_t − ϑ*‖ for t = 0…steps of gradient descent from theta.
func (e *Effective) Descend(theta []float64, step float64, steps int) []float64 {
	theta = append([]float64(nil), theta...)
	distance := []float64{e.Distance(theta)}
	for range steps {
		for i, g := range e.Gradient(theta) {
			theta[i] -= step * g
		}
		distance = append(distance, e.Distance(theta))
	}
	return distance
}
