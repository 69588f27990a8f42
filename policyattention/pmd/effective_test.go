package pmd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/mdp"
	"icrl/policyattention/seed"
)

// Learning in effective coordinates (Section 5 and Appendix D): a linear model of the logits that can represent PMD,
// its risk, and gradient descent and gradient flow on it, with the constants by which both contract. The proposition
// says nothing of a deep network's own parameters, nor do these tests.

// effective is a realizable linear model of effective logits: on row i the policy is q_ϑ = softmax(Φ_i ϑ), and the
// target is q_{ϑ*}. A row is one state of one context; all rows weigh the same.
type effective struct {
	features []*mat.Dense // Φ of each row [A, n], columns summing to zero
	target   []float64    // ϑ* [n]
}

// onPMD is the model with the centred features log π, ηQ and π, for which PMD is ϑ* = (1, 1, 0), on the 4 states
// of 6 problems with 3 actions. It fails where the model's target is not PMD.
func onPMD(t *testing.T) *effective {
	t.Helper()
	m := &effective{target: []float64{1, 1, 0}}
	for i, p := range testkit.Must(mdp.Random.Draw(14, 4, 3, 6))(t) {
		q, eta := testkit.Must(p.MDP.PolicyValue(p.Pi0))(t), .4+.16*float64(i)
		next := testkit.Must(Step(p.Pi0, q, eta))(t)
		for s := range 4 {
			phi := mat.NewDense(3, 3, nil)
			for a, mass := range p.Pi0.RawRowView(s) {
				phi.SetRow(a, []float64{math.Log(mass), eta * q.At(s, a), mass})
			}
			m.features = append(m.features, centred(phi))
			row := m.policy(len(m.features)-1, m.target)
			if !floats.EqualApprox(row, next.RawRowView(s), 1e-14) { // rounding of logits below 10
				t.Errorf("problem %d, state %d: %v, PMD %v", i, s, row, next.RawRowView(s))
			}
		}
	}
	return m
}

// atRandom draws a model with normal features, of 2 to 5 actions, and target.
func atRandom(rng *rand.Rand, rows, n int) *effective {
	m := &effective{target: testkit.Normal[float64](rng, n)}
	for i := range rows {
		actions := 2 + i%4
		m.features = append(m.features, centred(mat.NewDense(actions, n, testkit.Normal[float64](rng, actions*n))))
	}
	return m
}

// centred subtracts from every column of phi [A, n] its mean, which changes no softmax of phi·ϑ.
func centred(phi *mat.Dense) *mat.Dense {
	rows, cols := phi.Dims()
	for j := range cols {
		column := mat.Col(nil, j, phi)
		floats.AddConst(-floats.Sum(column)/float64(rows), column)
		phi.SetCol(j, column)
	}
	return phi
}

// within returns a point of the ball of the given radius around ϑ*.
func (m *effective) within(rng *rand.Rand, radius float64) []float64 {
	theta := slices.Clone(m.target)
	for i := range theta {
		theta[i] += radius * (2*rng.Float64() - 1) / math.Sqrt(float64(len(theta)))
	}
	return theta
}

// policy returns q_ϑ [A] of row i.
func (m *effective) policy(i int, theta []float64) []float64 {
	var z mat.VecDense
	z.MulVec(m.features[i], mat.NewVecDense(len(theta), theta))
	row := z.RawVector().Data
	Softmax(row)
	return row
}

// risk returns R(ϑ), the mean of KL(q_ϑ ‖ q_{ϑ*}), which equals the mean proximal excess.
func (m *effective) risk(theta []float64) (sum float64) {
	for i := range m.features {
		sum += KL(m.policy(i, theta), m.policy(i, m.target)) / float64(len(m.features))
	}
	return sum
}

// moment returns E[Φᵀ H Φ] [n, n], and its eigenvalues in ascending order, for a symmetric H of each row.
func (m *effective) moment(t *testing.T, of func(i int) mat.Matrix) (*mat.SymDense, []float64) {
	n := len(m.target)
	sum := mat.NewSymDense(n, nil)
	for i, phi := range m.features {
		var x mat.Dense
		x.Product(phi.T(), of(i), phi)
		for j := range n {
			for k := j; k < n; k++ {
				sum.SetSym(j, k, sum.At(j, k)+x.At(j, k)/float64(len(m.features)))
			}
		}
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(sum, false) {
		t.Fatal("the eigenvalues of a moment matrix did not converge")
	}
	return sum, eigen.Values(nil)
}

// matrix returns G(ϑ) = E[Φᵀ H(q_ϑ) Φ] [n, n] with H(q) = diag(q) − qqᵀ, and its eigenvalues.
func (m *effective) matrix(t *testing.T, theta []float64) (*mat.SymDense, []float64) {
	return m.moment(t, func(i int) mat.Matrix {
		q := m.policy(i, theta)
		h := mat.NewSymDense(len(q), nil)
		h.SymOuterK(-1, mat.NewDense(len(q), 1, q))
		for a, p := range q {
			h.SetSym(a, a, h.At(a, a)+p)
		}
		return h
	})
}

// gradient returns ∇R(ϑ) = G(ϑ)(ϑ − ϑ*) [n], equation (30).
//
// The identity is exact, with H at q_ϑ itself and no average over the way to ϑ*, because ϑ is in the first
// argument of the divergence: with z = Φϑ and A(z) = log Σ e^z,
//
//	KL(q‖q*) = ⟨q, z − z*⟩ − A(z) + A(z*),  ∂/∂z = H(q)(z − z*) + q − q = H(q)(z − z*).
func (m *effective) gradient(t *testing.T, theta []float64) []float64 {
	matrix, _ := m.matrix(t, theta)
	var g mat.VecDense
	g.MulVec(matrix, mat.NewVecDense(len(theta), m.offset(theta)))
	return g.RawVector().Data
}

// offset returns ϑ − ϑ*, distance its norm.
func (m *effective) offset(theta []float64) []float64 {
	return floats.SubTo(make([]float64, len(theta)), theta, m.target)
}

func (m *effective) distance(theta []float64) float64 { return floats.Norm(m.offset(theta), 2) }

// curvature returns the constants of the convergence claim on the ball of a radius around ϑ*: the constant p₀λ of
// strong monotonicity, equation (31), with p₀ a lower bound of action probabilities and λ the least eigenvalue of
// E[ΦᵀΦ], and L = λ_max(E[ΦᵀΦ])/2, which no eigenvalue of G exceeds as H ≤ 1/2. Gradient flow and steps
// of at most 1/L never leave the ball.
func (m *effective) curvature(t *testing.T, radius float64) (monotone, smooth float64) {
	_, values := m.moment(t, func(i int) mat.Matrix {
		rows, _ := m.features[i].Dims()
		return mat.NewDiagDense(rows, slices.Repeat([]float64{1}, rows))
	})
	p0 := 1.
	for i, phi := range m.features { // on the ball a logit moves by at most ‖φ_a‖·radius from its value at ϑ*
		longest := 0.0
		for a := range phi.RawMatrix().Rows {
			longest = max(longest, mat.Norm(phi.RowView(a), 2))
		}
		p0 = min(p0, floats.Min(m.policy(i, m.target))*math.Exp(-2*longest*radius))
	}
	return p0 * values[0], values[len(values)-1] / 2
}

// TestGradientOfRisk holds (30) against central differences of the risk (error of order 1e-9 for gonum's step), and
// (31) on the ball.
func TestGradientOfRisk(t *testing.T) {
	rng, models := seed.New(15), []*effective{onPMD(t)}
	for i := range 5 {
		models = append(models, atRandom(rng, 7, 1+i))
	}
	for _, m := range models {
		const radius = .5
		monotone, _ := m.curvature(t, radius)
		for range 50 {
			theta := m.within(rng, radius)
			got := m.gradient(t, theta)
			want := fd.Gradient(nil, m.risk, theta, &fd.Settings{Formula: fd.Central})
			if d := floats.Distance(got, want, math.Inf(1)); d > 1e-7*(1+floats.Norm(want, 2)) {
				t.Errorf("∇R(%v) = %v, finite difference %v", theta, got, want)
			}
			inner, d := floats.Dot(got, m.offset(theta)), m.distance(theta)
			if inner < monotone*d*d {
				t.Errorf("(ϑ−ϑ*)ᵀ∇R = %v, below p₀λ‖ϑ−ϑ*‖² = %v", inner, monotone*d*d)
			}
		}
	}
}

// TestFlowOfRisk holds gradient flow and descent against the contraction that is proved: a step multiplies
// ϑ − ϑ* by I − step·G, whose eigenvalues lie in [p₀λ, L]. Steps of 1/(16L) are Euler's of the flow, and
// never slower than its bound, as 1 − x ≤ exp(−x); steps of 1/L end at the rate of the matrix at ϑ*.
func TestFlowOfRisk(t *testing.T) {
	rng := seed.New(16)
	for trial := range 6 {
		m := onPMD(t)
		if trial > 0 {
			m = atRandom(rng, 9, 1+trial)
		}
		theta := m.within(rng, 1)
		monotone, smooth := m.curvature(t, m.distance(theta))
		step, start := 1/(16*smooth), m.distance(theta)
		for i := range 800 {
			if bound := math.Exp(-monotone*float64(i)*step) * start; m.distance(theta) > bound*(1+1e-9) {
				t.Fatalf("trial %d: after %d steps the distance is %v, bound %v", trial, i, m.distance(theta), bound)
			}
			floats.AddScaled(theta, -step, m.gradient(t, theta))
		}
	}
	m, theta, distances := onPMD(t), []float64{1.2, .8, .3}, []float64{}
	monotone, smooth := m.curvature(t, m.distance(theta))
	step := 1 / smooth
	for i := range 2001 {
		distances = append(distances, m.distance(theta))
		rate := max(math.Abs(1-step*monotone), math.Abs(1-step*smooth))
		if i > 0 && distances[i-1] > 1e-12 && distances[i] > rate*distances[i-1]*(1+1e-9) {
			t.Fatalf("step %d shrinks the distance by %v, bound %v", i, distances[i]/distances[i-1], rate)
		}
		floats.AddScaled(theta, -step, m.gradient(t, theta))
	}
	_, values := m.matrix(t, m.target) // the spectral radius of I − step·G(ϑ*)
	local := max(math.Abs(1-step*values[0]), math.Abs(1-step*values[len(values)-1]))
	if measured := math.Pow(distances[2000]/distances[1000], 1e-3); math.Abs(measured-local) > 1e-3*(1-local) {
		t.Errorf("measured rate %v, want %v", measured, local)
	}
}
