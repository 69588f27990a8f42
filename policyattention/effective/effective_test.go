package effective

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
)

// onPMD returns the model of 24 rows: 6 problems of 4 states and 3 actions.
func onPMD(t *testing.T) *Model {
	t.Helper()
	problems := testkit.Must(mdp.Random.Draw(14, 4, 3, 6))(t)
	var contexts []control.Context
	for i, p := range problems {
		q := testkit.Must(p.MDP.PolicyValue(p.Pi0))(t)
		contexts = append(contexts, control.Context{MDP: p.MDP, Pi: p.Pi0, Q: q, Eta: .4 + .16*float64(i)})
	}
	return testkit.Must(New(contexts))(t)
}

// atRandom draws a model with normal features, of 2 to 5 actions, and target.
func atRandom(rng *rand.Rand, rows, n int) *Model {
	normal := func(k int) []float64 {
		x := make([]float64, k)
		for i := range x {
			x[i] = rng.NormFloat64()
		}
		return x
	}
	var features []*mat.Dense
	for i := range rows {
		actions := 2 + i%4
		phi := mat.NewDense(actions, n, normal(actions*n))
		Centre(phi)
		features = append(features, phi)
	}
	return &Model{features, normal(n)}
}

// within returns a point of the ball of the given radius around ϑ*.
func within(rng *rand.Rand, m *Model, radius float64) []float64 {
	theta := slices.Clone(m.Target)
	for i := range theta {
		theta[i] += radius * (2*rng.Float64() - 1) / math.Sqrt(float64(len(theta)))
	}
	return theta
}

// TestTarget holds q_{ϑ*} against PMD.
func TestTarget(t *testing.T) {
	problems := testkit.Must(mdp.Random.Draw(14, 4, 3, 1))(t)
	p := problems[0]
	m := testkit.Must(New([]control.Context{{Pi: p.Pi0, Q: p.MDP.R, Eta: .7}}))(t)
	want := testkit.Must(pmd.Step(p.Pi0, p.MDP.R, .7))(t)
	for s := range 4 {
		if !floats.EqualApprox(m.Policy(s, m.Target), want.RawRowView(s), 1e-15) { // rounding
			t.Errorf("state %d: %v, PMD %v", s, m.Policy(s, m.Target), want.RawRowView(s))
		}
	}
}

// TestGradient holds (30) against central differences of the risk
// (error of order 1e-9 for gonum's step), and (31) on the ball. Averaged over the
// way to ϑ*, which is the gradient of the other divergence, the matrix would give
// something else: the test would notice.
func TestGradient(t *testing.T) {
	rng := seed.New(15)
	models := []*Model{onPMD(t)}
	for i := range 5 {
		models = append(models, atRandom(rng, 7, 1+i))
	}
	apart := 0.0
	for _, m := range models {
		const radius = .5
		curvature := testkit.Must(m.Curvature(radius))(t)
		for range 50 {
			theta := within(rng, m, radius)
			got := m.Gradient(theta)
			want := fd.Gradient(nil, m.Risk, theta, &fd.Settings{Formula: fd.Central})
			if d := floats.Distance(got, want, math.Inf(1)); d > 1e-7*(1+floats.Norm(want, 2)) {
				t.Errorf("∇R(%v) = %v, finite difference %v", theta, got, want)
			}
			average := make([]float64, len(theta)) // E[Φᵀ(q − q*)]
			for i, phi := range m.Features {
				q := m.Policy(i, theta)
				floats.Sub(q, m.Policy(i, m.Target))
				for a, p := range q {
					floats.AddScaled(average, p/float64(len(m.Features)), phi.RawRowView(a))
				}
			}
			m.checkCurvature(t, theta, curvature)
			apart = max(apart, floats.Distance(got, average, 2)/floats.Norm(got, 2))
			inner, d := floats.Dot(got, m.offset(theta)), m.Distance(theta)
			if inner < curvature.Monotone()*d*d {
				t.Errorf("(ϑ−ϑ*)ᵀ∇R = %v, below p₀λ‖ϑ−ϑ*‖² = %v", inner, curvature.Monotone()*d*d)
			}
		}
	}
	t.Logf("∇KL(q*‖q) is up to %.2g of ∇KL(q‖q*) away from it", apart)
	if apart < 1e-2 {
		t.Errorf("the gradients of the two divergences differ by %g only: the test cannot tell them apart", apart)
	}
}

// checkCurvature holds what (31) is made of at a point of the ball: every probability is at least p₀, and
// vᵀH(q)v, the variance of a centred v under q, at least min q·‖v‖². The slack is rounding of some hundred
// terms.
func (m *Model) checkCurvature(t *testing.T, theta []float64, c Curvature) {
	t.Helper()
	for i, phi := range m.Features {
		q := m.Policy(i, theta)
		var v mat.VecDense
		v.MulVec(phi, mat.NewVecDense(len(theta), m.offset(theta)))
		mean, variance, square := floats.Dot(q, v.RawVector().Data), 0.0, 0.0
		for a, p := range m.Policy(i, theta) {
			variance += p * (v.AtVec(a) - mean) * (v.AtVec(a) - mean)
			square += v.AtVec(a) * v.AtVec(a)
		}
		if least := floats.Min(q); least < c.P0 || variance < least*square-1e-12 {
			t.Errorf("row %d: least probability %v, p₀ %v; variance %v of a square %v", i, least, c.P0, variance,
				square)
		}
	}
}

// TestDescent compares the rate of gradient descent with the predicted ones: at
// no step above Rate, in the end at that of the matrix at ϑ*.
func TestDescent(t *testing.T) {
	m := onPMD(t)
	start := []float64{1.2, .8, .3}
	curvature := testkit.Must(m.Curvature(m.Distance(start)))(t)
	step := 1 / curvature.Smooth
	points := testkit.Must(m.Descend(start, step, 2000))(t)
	rate := curvature.Rate(step)
	for i := 1; i < len(points) && points[i].Distance > 1e-12; i++ {
		if points[i].Distance > rate*points[i-1].Distance*(1+1e-9) {
			t.Fatalf("step %d shrinks the distance by %v, bound %v", i, points[i].Distance/points[i-1].Distance, rate)
		}
	}
	values := testkit.Must(eigenvalues(m.Matrix(m.Target)))(t) // the spectral radius of I − step·G(ϑ*)
	local := max(math.Abs(1-step*values[0]), math.Abs(1-step*values[len(values)-1]))
	measured := math.Pow(points[2000].Distance/points[1000].Distance, 1e-3)
	t.Logf("rate measured %.6f, predicted at ϑ* %.6f, bound %.6f", measured, local, rate)
	if math.Abs(measured-local) > 1e-3*(1-local) {
		t.Errorf("measured rate %v, want %v", measured, local)
	}
}

// TestFlow holds gradient flow against the contraction that is proved, against the
// energy identity R(0) − R(t) = ∫‖∇R‖², by Simpson's rule over the points (the rule's
// error and the method's are of order four in the step: at 1/(16L) below 1e-6 of the
// risk), and the method against its own order.
func TestFlow(t *testing.T) {
	rng := seed.New(16)
	for trial := range 6 {
		m := onPMD(t)
		if trial > 0 {
			m = atRandom(rng, 9, 1+trial)
		}
		start := within(rng, m, 1)
		curvature := testkit.Must(m.Curvature(m.Distance(start)))(t)
		step := 1 / (16 * curvature.Smooth)
		points := testkit.Must(m.Flow(start, step, 800))(t)
		energy := 0.0
		for i, p := range points {
			weight := []float64{2, 4}[i%2]
			if i == 0 || i == len(points)-1 {
				weight = 1
			}
			g := m.Gradient(p.Theta)
			energy += weight * step / 3 * floats.Dot(g, g)
			if p.Distance > curvature.Flow(p.Time)*points[0].Distance*(1+1e-9) {
				t.Fatalf("trial %d: at time %v the distance is %v, bound %v", trial, p.Time, p.Distance,
					curvature.Flow(p.Time)*points[0].Distance)
			}
			if i > 0 && (p.Distance >= points[i-1].Distance || p.Risk > points[i-1].Risk+1e-16) {
				t.Fatalf("trial %d: at time %v distance or risk grows: %+v after %+v", trial, p.Time, p, points[i-1])
			}
		}
		if lost := points[0].Risk - points[800].Risk; math.Abs(lost-energy) > 1e-6*lost {
			t.Errorf("trial %d: the risk falls by %v, ∫‖∇R‖² is %v", trial, lost, energy)
		}
		var end [3][]float64
		for i := range end {
			n := 8 << i
			p := testkit.Must(m.Flow(start, 8/curvature.Smooth/float64(n), n))(t)
			end[i] = p[n].Theta
		}
		if ratio := floats.Distance(end[0], end[1], 2) / floats.Distance(end[1], end[2], 2); ratio < 8 || ratio > 32 {
			t.Errorf("trial %d: halving the step takes the error to 1/%.1f, want about 1/16", trial, ratio)
		}
	}
}

func TestRefuses(t *testing.T) {
	m := &Model{[]*mat.Dense{mat.NewDense(2, 1, []float64{1, -1})}, []float64{1}}
	problem := testkit.Must(mdp.Random.Draw(1, 2, 2, 1))(t)
	pi, q := problem[0].Pi0, problem[0].MDP.R
	for want, f := range map[string]func() error{
		"no contexts":                      func() error { _, err := New(nil); return err },
		"context 0: the policy is missing": func() error { _, err := New([]control.Context{{Q: q}}); return err },
		"Q is missing":                     func() error { _, err := New([]control.Context{{Pi: pi}}); return err },
		"a probability above 0": func() error {
			_, err := New([]control.Context{{Pi: mat.NewDense(2, 2, []float64{1, 0, .5, .5}), Q: q}})
			return err
		},
		"radius -1": func() error { _, err := m.Curvature(-1); return err },
		"2 entries": func() error { _, err := m.Flow([]float64{1, 2}, 1, 1); return err },
		"size 0":    func() error { _, err := m.Descend([]float64{1}, 0, 1); return err },
		"-1 steps":  func() error { _, err := m.Flow([]float64{1}, 1, -1); return err },
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

// Gradient flow from a wrong step size and a wrong weight of the prior: the distance
// to PMD falls at least as fast as is proved.
func ExampleModel_Flow() {
	problems, _ := mdp.Random.Draw(14, 4, 3, 6)
	var contexts []control.Context
	for _, p := range problems {
		q, _ := p.MDP.PolicyValue(p.Pi0)
		contexts = append(contexts, control.Context{Pi: p.Pi0, Q: q, Eta: .8})
	}
	m, _ := New(contexts)
	start := []float64{.5, .5, 0}
	curvature, _ := m.Curvature(m.Distance(start))
	points, _ := m.Flow(start, .1, 1000)
	for _, p := range []Point{points[0], points[100], points[1000]} {
		fmt.Printf("t = %3.0f: distance %.3f (at most %.3f), risk %.1e\n", p.Time, p.Distance,
			curvature.Flow(p.Time)*points[0].Distance, p.Risk)
	}
	// Output:
	// t =   0: distance 0.707 (at most 0.707), risk 6.8e-02
	// t =  10: distance 0.267 (at most 0.707), risk 2.0e-03
	// t = 100: distance 0.122 (at most 0.705), risk 1.5e-05
}
