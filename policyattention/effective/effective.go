// Package effective is learning in effective coordinates (Section 5 and Appendix
// D): a linear model of the logits that can represent PMD, its risk, and gradient
// descent and gradient flow on it, with the constants by which both contract. The
// proposition says nothing of a deep network's own parameters, nor does the package.
package effective

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/control"
	"icrl/policyattention/pmd"
)

// Model is a realizable linear model of effective logits: on row i the policy is
// q_ϑ = softmax(Φ_i ϑ), and the target is q_{ϑ*}. A row is one state of one context;
// all rows weigh the same. The fields are read-only. Methods panic on a ϑ that does not have n entries.
type Model struct {
	Features []*mat.Dense // Φ of each row [A, n], A ≥ 2, columns summing to zero: see Centre
	Target   []float64    // ϑ* [n]
}

// New returns the model with the centred features log π, ηQ and π for each state of
// the contexts, for which PMD is ϑ* = (1, 1, 0). It returns an error if there are no
// contexts, or one is invalid, or a policy holds a zero, whose logarithm is not
// finite.
func New(contexts []control.Context) (*Model, error) {
	if len(contexts) == 0 {
		return nil, errors.New("effective: no contexts")
	}
	m := &Model{Target: []float64{1, 1, 0}}
	for i, c := range contexts {
		if c.Pi == nil {
			return nil, fmt.Errorf("effective: context %d: the policy is missing", i)
		}
		states, actions := c.Pi.Dims()
		if err := c.Check(states, actions); err != nil {
			return nil, fmt.Errorf("effective: context %d: %w", i, err)
		}
		for s := range states {
			phi := mat.NewDense(actions, 3, nil)
			for a, p := range c.Pi.RawRowView(s) {
				if !(p > 0) {
					const format = "effective: context %d has π(a=%d|s=%d) = %v, want a probability above 0"
					return nil, fmt.Errorf(format, i, a, s, p)
				}
				phi.SetRow(a, []float64{math.Log(p), c.Eta * c.Q.At(s, a), p})
			}
			Centre(phi)
			m.Features = append(m.Features, phi)
		}
	}
	return m, nil
}

// Centre subtracts from every column of phi [A, n] its mean, in place: P_A phi with
// P_A = I − 11ᵀ/A, which changes no softmax of phi·ϑ.
func Centre(phi *mat.Dense) {
	rows, cols := phi.Dims()
	for j := range cols {
		mean := mat.Sum(phi.ColView(j)) / float64(rows)
		for a := range rows {
			phi.Set(a, j, phi.At(a, j)-mean)
		}
	}
}

// Policy returns q_ϑ [A] of row i.
func (m *Model) Policy(i int, theta []float64) []float64 {
	var z mat.VecDense
	z.MulVec(m.Features[i], mat.NewVecDense(len(theta), theta))
	row := z.RawVector().Data
	pmd.Softmax(row)
	return row
}

// Risk returns R(ϑ), the mean of KL(q_ϑ ‖ q_{ϑ*}), which equals the mean
// proximal excess ℓ(q_ϑ) − ℓ(q_{ϑ*}).
func (m *Model) Risk(theta []float64) float64 {
	sum := 0.0
	for i := range m.Features {
		sum += pmd.KL(m.Policy(i, theta), m.Policy(i, m.Target))
	}
	return sum / float64(len(m.Features))
}

// Matrix returns G(ϑ) = E[Φᵀ H(q_ϑ) Φ] [n, n] with H(q) = diag(q) − qqᵀ.
func (m *Model) Matrix(theta []float64) *mat.SymDense {
	return m.moment(func(i int) mat.Matrix {
		q := m.Policy(i, theta)
		h := mat.NewSymDense(len(q), nil)
		h.SymOuterK(-1, mat.NewDense(len(q), 1, q))
		for a, p := range q {
			h.SetSym(a, a, h.At(a, a)+p)
		}
		return h
	})
}

// moment returns E[Φᵀ M Φ] [n, n] for a symmetric matrix M = of(i) of each row.
func (m *Model) moment(of func(i int) mat.Matrix) *mat.SymDense {
	n := len(m.Target)
	sum := mat.NewSymDense(n, nil)
	for i, phi := range m.Features {
		var x mat.Dense
		x.Product(phi.T(), of(i), phi)
		for j := range n {
			for k := j; k < n; k++ {
				sum.SetSym(j, k, sum.At(j, k)+x.At(j, k)/float64(len(m.Features)))
			}
		}
	}
	return sum
}

// Gradient returns ∇R(ϑ) = G(ϑ)(ϑ − ϑ*) [n], equation (30).
//
// The identity is exact, with H at q_ϑ itself and no average over the way to ϑ*,
// because ϑ is in the first argument of the divergence: with z = Φϑ and A(z) =
// log Σ e^z,
//
//	KL(q‖q*) = ⟨q, z − z*⟩ − A(z) + A(z*),  ∂/∂z = H(q)(z − z*) + q − q = H(q)(z − z*).
//
// The divergence in the other direction, KL(q*‖q), has the gradient E[Φᵀ(q_ϑ − q*)],
// which is G averaged over the segment from ϑ* to ϑ, times ϑ − ϑ*.
func (m *Model) Gradient(theta []float64) []float64 {
	var g mat.VecDense
	g.MulVec(m.Matrix(theta), mat.NewVecDense(len(theta), m.offset(theta)))
	return g.RawVector().Data
}

// offset returns ϑ − ϑ*.
func (m *Model) offset(theta []float64) []float64 {
	return floats.SubTo(make([]float64, len(theta)), theta, m.Target)
}

// Distance returns ‖ϑ − ϑ*‖.
func (m *Model) Distance(theta []float64) float64 {
	return floats.Distance(theta, m.Target, 2)
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

// Flow returns the factor by which gradient flow shrinks ‖ϑ−ϑ*‖ at least within the
// given time: ½ d‖ϑ−ϑ*‖²/dt = −(ϑ−ϑ*)ᵀ∇R ≤ −p₀λ‖ϑ−ϑ*‖².
func (c Curvature) Flow(time float64) float64 { return math.Exp(-c.Monotone() * time) }

// Curvature returns the constants for the ball of the given radius ≥ 0. Gradient
// flow and steps of size at most 1/L never leave the ball.
func (m *Model) Curvature(radius float64) (Curvature, error) {
	if !(radius >= 0) || math.IsInf(radius, 1) {
		return Curvature{}, fmt.Errorf("effective: radius %v of a ball, want a finite number of at least 0", radius)
	}
	gram := m.moment(func(i int) mat.Matrix {
		rows, _ := m.Features[i].Dims()
		return mat.NewDiagDense(rows, slices.Repeat([]float64{1}, rows))
	})
	values, err := eigenvalues(gram)
	if err != nil {
		return Curvature{}, err
	}
	c := Curvature{P0: 1, Lambda: values[0], Smooth: values[len(values)-1] / 2}
	// On the ball a logit moves by at most ‖φ_a‖·radius from its value at ϑ*.
	for i, phi := range m.Features {
		longest := 0.0
		for a := range phi.RawMatrix().Rows {
			longest = math.Max(longest, mat.Norm(phi.RowView(a), 2))
		}
		for _, p := range m.Policy(i, m.Target) {
			c.P0 = math.Min(c.P0, p*math.Exp(-2*longest*radius))
		}
	}
	return c, nil
}

// eigenvalues returns the eigenvalues of m in ascending order.
func eigenvalues(m *mat.SymDense) ([]float64, error) {
	var eig mat.EigenSym
	if !eig.Factorize(m, false) {
		return nil, errors.New("effective: the eigenvalues of a moment matrix did not converge")
	}
	return eig.Values(nil), nil
}

// Point is a moment of gradient descent or gradient flow.
type Point struct {
	Time     float64   // the sum of step sizes so far, or the time of the flow
	Theta    []float64 // ϑ [n]
	Distance float64   // ‖ϑ − ϑ*‖
	Risk     float64   // R(ϑ)
}

func (m *Model) point(time float64, theta []float64) Point {
	return Point{time, slices.Clone(theta), m.Distance(theta), m.Risk(theta)}
}

// Descend returns the points 0…steps of gradient descent ϑ ← ϑ − step·∇R(ϑ) from
// theta [n]. It returns an error if theta has another length, or step is not a finite
// number above 0, or steps is below 0.
func (m *Model) Descend(theta []float64, step float64, steps int) ([]Point, error) {
	if err := m.check(theta, step, steps); err != nil {
		return nil, err
	}
	theta = slices.Clone(theta)
	points := []Point{m.point(0, theta)}
	for i := range steps {
		floats.AddScaled(theta, -step, m.Gradient(theta))
		points = append(points, m.point(float64(i+1)*step, theta))
	}
	return points, nil
}

// Flow returns the points 0…steps of gradient flow dϑ/dt = −∇R(ϑ) from theta [n],
// step apart in time, by the classic Runge–Kutta method of order four with one step
// from point to point: with half the step the error is a sixteenth. Steps of at most
// 1/L (Curvature.Smooth) are stable. It returns an error as Descend does.
func (m *Model) Flow(theta []float64, step float64, steps int) ([]Point, error) {
	if err := m.check(theta, step, steps); err != nil {
		return nil, err
	}
	theta = slices.Clone(theta)
	points := []Point{m.point(0, theta)}
	at := make([]float64, len(theta))
	for i := range steps {
		var sum [4][]float64
		for stage, share := range []float64{0, .5, .5, 1} {
			copy(at, theta)
			if stage > 0 {
				floats.AddScaled(at, -share*step, sum[stage-1])
			}
			sum[stage] = m.Gradient(at)
		}
		for stage, weight := range []float64{1, 2, 2, 1} {
			floats.AddScaled(theta, -weight*step/6, sum[stage])
		}
		points = append(points, m.point(float64(i+1)*step, theta))
	}
	return points, nil
}

func (m *Model) check(theta []float64, step float64, steps int) error {
	if len(theta) != len(m.Target) {
		return fmt.Errorf("effective: theta has %d entries, want %d", len(theta), len(m.Target))
	}
	if !(step > 0) || math.IsInf(step, 1) || steps < 0 {
		return fmt.Errorf("effective: %d steps of size %v, want a finite size above 0", steps, step)
	}
	return nil
}
