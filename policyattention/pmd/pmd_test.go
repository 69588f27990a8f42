package pmd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"icrl/internal/testkit"
	"icrl/policyattention/mdp"
	"icrl/policyattention/seed"
)

func randomTable(rng *rand.Rand, s, a int, scale float64) *mat.Dense {
	x := mat.NewDense(s, a, nil)
	x.Apply(func(_, _ int, _ float64) float64 { return scale * (2*rng.Float64() - 1) }, x)
	return x
}

// TestStepAgainstProduct compares the log-sum-exp form with the product form of
// equation (1), which is accurate where nothing overflows. Both round a handful
// of operations on numbers of order one.
func TestStepAgainstProduct(t *testing.T) {
	rng := seed.New(1, "step")
	for range 200 {
		s, a := 1+rng.IntN(5), 2+rng.IntN(5)
		pi, q, eta := mdp.RandomPolicy(rng, s, a), randomTable(rng, s, a, 10), 1.2*rng.Float64()
		next := testkit.Must(Step(pi, q, eta))(t)
		for i := range s {
			sum := 0.0
			for j := range a {
				sum += pi.At(i, j) * math.Exp(eta*q.At(i, j))
			}
			for j := range a {
				want := pi.At(i, j) * math.Exp(eta*q.At(i, j)) / sum
				if d := math.Abs(next.At(i, j) - want); d > 2e-14 {
					t.Fatalf("π(%d|%d) = %v, product form %v", j, i, next.At(i, j), want)
				}
			}
		}
	}
}

func TestStepEdges(t *testing.T) {
	row := func(v ...float64) *mat.Dense { return mat.NewDense(1, len(v), v) }
	for _, test := range []struct {
		name  string
		pi, q *mat.Dense
		eta   float64
		want  []float64
	}{
		{"zero mass stays zero", row(0, 0.5, 0.5), row(1e6, 0, 0), 1, []float64{0, 0.5, 0.5}},
		{"huge values do not overflow", row(0.5, 0.5), row(1e300, -1e300), 1, []float64{1, 0}},
		{"a huge step changes nothing without values", row(0.25, 0.75), row(0, 0), 1e308, []float64{0.25, 0.75}},
		{"a tiny prior is kept", row(1e-300, 1), row(0, 0), 1, []float64{1e-300, 1}},
		{"a tiny prior can win", row(1e-300, 1-1e-300), row(1000, 0), 1, []float64{1, 0}},
		{"eta zero is the identity", row(0.3, 0.7), row(5, -5), 0, []float64{0.3, 0.7}},
	} {
		next, err := Step(test.pi, test.q, test.eta)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		for a, want := range test.want {
			if got := next.At(0, a); math.Abs(got-want) > 1e-13*want+1e-300 && math.Abs(got-want) > 1e-15 {
				t.Errorf("%s: action %d has %v, want %v", test.name, a, got, want)
			}
		}
	}
	for _, test := range []struct {
		pi, q *mat.Dense
		eta   float64
		want  string
	}{
		{row(0.5, 0.6), row(0, 0), 1, "sums to 1.1"},
		{row(0, 0), row(0, 0), 1, "sums to 0"},
		{row(math.NaN(), 1), row(0, 0), 1, "NaN"},
		{row(0.5, 0.5), row(0, math.Inf(-1)), 1, "Q(s=0,a=1) is -Inf"},
		{row(0.5, 0.5), row(0, 0, 0), 1, "Q is [1, 3]"},
		{row(0.5, 0.5), row(0, 0), -1, "eta is -1"},
		{row(0.5, 0.5), row(0, 0), math.NaN(), "eta is NaN"},
		{row(0.5, 0.5), row(1e300, 0), 1e300, "overflows"},
		{nil, row(0, 0), 1, "missing"},
		{row(0.5, 0.5), nil, 1, "missing"},
		{new(mat.Dense), new(mat.Dense), 1, "empty"},
	} {
		for _, rule := range Rules {
			if _, err := rule.Update(test.pi, test.q, test.eta); err == nil ||
				!strings.Contains(err.Error(), test.want) {
				t.Errorf("%s: error %v, want one with %q", rule, err, test.want)
			}
		}
	}
}

// TestHugeValues asks every rule for a policy where numbers are large.
func TestHugeValues(t *testing.T) {
	pi := mat.NewDense(1, 3, []float64{0.2, 0.3, 0.5})
	for _, top := range []float64{1e8, 1e15, 1e17, 1e300, math.MaxFloat64} {
		for _, values := range [][]float64{{top, top, top}, {top, top, 0}, {top, -top, 0}, {-top, -top, -top},
			{-top, 0, top / 3}} {
			for _, rule := range Rules {
				next := testkit.Must(rule.Update(pi, mat.NewDense(1, 3, values), 1))(t)
				if err := mdp.CheckRows(string(rule), next); err != nil {
					t.Errorf("values %v: %v", values, err)
				}
			}
		}
	}
}

// TestRulesMinimize holds each rule against the objective it minimizes, at
// random competitors of the same row: a formulation apart from the code's.
func TestRulesMinimize(t *testing.T) {
	rng := seed.New(2, "rules")
	objective := map[Rule]func(p, pi, q []float64, eta float64) float64{
		PMD: func(p, pi, q []float64, eta float64) float64 { return KL(p, pi) - eta*floats.Dot(p, q) },
		AdditiveProjected: func(p, pi, q []float64, eta float64) float64 {
			d := 0.0
			for a := range p {
				d += (p[a] - pi[a] - eta*q[a]) * (p[a] - pi[a] - eta*q[a])
			}
			return d
		},
		Identity:   func(p, pi, _ []float64, _ float64) float64 { return KL(p, pi) },
		Boltzmann:  func(p, _, q []float64, eta float64) float64 { return -stat.Entropy(p) - eta*floats.Dot(p, q) },
		RewardOnly: func(p, _, q []float64, _ float64) float64 { return -floats.Dot(p, q) },
	}
	for _, rule := range Rules {
		for range 50 {
			a := 2 + rng.IntN(4)
			pi, q, eta := mdp.RandomPolicy(rng, 1, a), randomTable(rng, 1, a, 2), 0.1+rng.Float64()
			next := testkit.Must(rule.Update(pi, q, eta))(t)
			testkit.Check(t, mdp.CheckRows(string(rule), next))
			f := func(p *mat.Dense) float64 {
				return objective[rule](p.RawRowView(0), pi.RawRowView(0), q.RawRowView(0), eta)
			}
			best := f(next)
			for range 50 {
				other := mdp.RandomPolicy(rng, 1, a)
				for _, step := range []float64{1, 1e-3} { // far away and nearby
					var near mat.Dense
					near.Scale(1-step, next)
					scaled := mat.DenseCopyOf(other)
					scaled.Scale(step, scaled)
					near.Add(&near, scaled)
					if f(&near) < best-1e-12 {
						t.Fatalf("%s: objective %v at its own update, %v at another row", rule, best, f(&near))
					}
				}
			}
		}
	}
	if _, err := Rule("no-such").Update(mdp.RandomPolicy(rng, 1, 2), randomTable(rng, 1, 2, 1), 1); err == nil {
		t.Error("an unknown rule was applied")
	}
}

// TestStepsAddUp takes two steps for one of the summed values, PMD(PMD(π,Q),Q') =
// PMD(π,Q+Q'), where the first leaves less mass than a float64 can say.
func TestStepsAddUp(t *testing.T) {
	rng := seed.New(7, "add")
	for range 500 {
		a := 2 + rng.IntN(4)
		eta := math.Pow(10, 12*rng.Float64()-6)
		first, second := randomTable(rng, 1, a, 1e4), randomTable(rng, 1, a, 1e4)
		start := mdp.RandomPolicy(rng, 1, a)
		SetShare(start.RawRowView(0), 0, math.Pow(10, -300*rng.Float64()))
		var sum mat.Dense
		sum.Add(first, second)
		twice := testkit.Must(PMD.Next(Policy{Pi: start}, first, eta))(t)
		twice = testkit.Must(PMD.Next(twice, second, eta))(t)
		once := testkit.Must(PMD.Next(Policy{Pi: start}, &sum, eta))(t)
		for j := range a { // logits of size η·10⁴ round by some ulps
			if got, want := twice.Log.At(0, j), once.Log.At(0, j); !(math.Abs(got-want) <= 1e-15*(1e3+5e4*eta)) {
				t.Fatalf("η = %v: log π is %v after two steps, %v after one", eta, got, want)
			}
		}
	}
}

// TestMissingActions gives values of −Inf to actions that do not exist.
func TestMissingActions(t *testing.T) {
	pi, q := mat.NewDense(1, 3, []float64{.4, 0, .6}), mat.NewDense(1, 3, []float64{1, math.Inf(-1), 2})
	for _, rule := range Rules {
		for _, eta := range []float64{0, .8} {
			next := testkit.Must(rule.Next(Policy{Pi: pi}, q, eta))(t)
			if err := mdp.CheckRows(string(rule), next.Pi); err != nil || next.Pi.At(0, 1) != 0 ||
				!math.IsInf(next.Log.At(0, 1), -1) {
				t.Errorf("%s at η = %v returns %v, %v", rule, eta, next.Pi.RawRowView(0), err)
			}
		}
	}
	if g := GreedyDefect(pi, q)[0]; math.Abs(g-.4) > 1e-15 {
		t.Errorf("the greedy defect is %v, want .4", g)
	}
	if excess := excess(t, pi, pi, q, .8); !(excess > 0 && excess < 1) {
		t.Errorf("the proximal excess is %v", excess)
	}
}

func TestFitStep(t *testing.T) {
	rng := seed.New(4, "fit")
	var updates []Update
	for range 20 {
		pi, q := mdp.RandomPolicy(rng, 3, 3), randomTable(rng, 3, 3, 2)
		next := testkit.Must(Step(pi, q, 0.735))(t)
		updates = append(updates, Update{pi, q, next})
	}
	eta, distance, err := FitStep(updates, 0.4, 1.2, 0.005)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(eta-0.735) > 1e-9 || distance > 1e-12 {
		t.Errorf("fitted %v at distance %v, want 0.735 at 0", eta, distance)
	}
	if _, _, err := FitStep(nil, 0, 1, 0.1); err == nil {
		t.Error("no updates were fitted")
	}
	for name, next := range map[string]*mat.Dense{
		"nil": nil, "shape": mat.NewDense(3, 2, nil),
		"NaN": mat.NewDense(3, 3, slices.Repeat([]float64{math.NaN()}, 9)),
	} {
		bad := Update{updates[0].Pi, updates[0].Q, next}
		if _, _, err := FitStep([]Update{updates[1], bad}, 0, 1, 0.1); err == nil ||
			!strings.Contains(err.Error(), "(update 1)") {
			t.Errorf("next %s: error %v", name, err)
		}
	}
	bad := Update{updates[0].Pi, mat.NewDense(2, 3, nil), updates[0].Next}
	if _, _, err := FitStep([]Update{updates[1], bad}, 0, 1, 0.1); err == nil ||
		!strings.Contains(err.Error(), "(update 1)") {
		t.Errorf("Q of another shape: error %v", err)
	}
	if _, _, err := FitStep(updates, 0, 1, 1e-300); err == nil {
		t.Error("a grid without end was walked")
	}
}

func TestMix(t *testing.T) {
	mixed := testkit.Must(Mix(mat.NewDense(1, 4, []float64{1, 0, 0, 0}), 0.1))(t)
	// Floor φ/A and row-L1 bias 2φ(A−1)/A, Section 4.
	if got := mixed.At(0, 1); math.Abs(got-0.025) > 1e-16 {
		t.Errorf("floor %v, want 0.025", got)
	}
	if got := MaxRowL1(mixed, mat.NewDense(1, 4, []float64{1, 0, 0, 0})); math.Abs(got-2*0.1*3/4) > 1e-15 {
		t.Errorf("bias %v, want 0.15", got)
	}
	if _, err := Mix(mixed, 1.5); err == nil {
		t.Error("phi = 1.5 was accepted")
	}
}

// TestReturnedPolicyBound works one bound by hand; the theorem itself is held by the proof in package control.
func TestReturnedPolicyBound(t *testing.T) {
	// Two rounds worked by hand at γ = 1/2: 2γ²E₀/(1−γ) = 4, critic 2γδ₀/(1−γ) = 6,
	// greedy 2γ²ḡ₀/(1−γ) = 5, last γḡ₁/(1−γ) = 7. δ₁ = 99 must not be read.
	bound := testkit.Must(ReturnedPolicyBound(0.5, 4, []float64{3, 99}, []float64{5, 7}, 2))(t)
	if want := (Bound{Initial: 4, Critic: 6, Greedy: 5, Last: 7}); bound != want {
		t.Errorf("bound %+v, want %+v", bound, want)
	}
	if _, err := ReturnedPolicyBound(0.5, 4, nil, []float64{5, 7}, 2); err == nil {
		t.Error("a missing δ_0 went unnoticed")
	}
}

func ExampleStep() {
	pi := mat.NewDense(1, 2, []float64{0.5, 0.5})
	q := mat.NewDense(1, 2, []float64{math.Log(3), 0})
	next, err := Step(pi, q, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%.2f\n", next.RawRowView(0))
	// Output: [0.75 0.25]
}

// excess returns ℓ(p) − ℓ(PMD_η(π,Q)), by which p misses the minimum of the proximal loss.
func excess(t *testing.T, p, pi, q *mat.Dense, eta float64) float64 {
	best := testkit.Must(Step(pi, q, eta))(t)
	return ProximalLoss(p, pi, q, eta) - ProximalLoss(best, pi, q, eta)
}

// TestProximalExcess holds (13) and the price of the mixture (Section 4), for policies some of which hold zeros. Both
// sides of (29) come near each other in some case, so that a wrong one would show.
func TestProximalExcess(t *testing.T) {
	price, floor := math.Inf(1), math.Inf(1) // by how much the sides of (29) differ at least
	for i := range 2000 {
		rng := seed.New(40, "step", i)
		s, a, eta, phi := 1+rng.IntN(6), 2+rng.IntN(5), 3*rng.Float64(), rng.Float64()
		pi, p, q := mdp.RandomPolicy(rng, s, a), mdp.RandomPolicy(rng, s, a), randomTable(rng, s, a, 10)
		for k := 0; k < s && i%2 == 0; k++ { // an action that nothing chooses
			SetShare(pi.RawRowView(k), 0, 0)
			SetShare(p.RawRowView(k), 0, 0)
		}
		best, divergence := testkit.Must(Step(pi, q, eta))(t), 0.0
		for k := range s {
			divergence += KL(p.RawRowView(k), best.RawRowView(k)) / float64(s)
		}
		// Losses of size ηB + log 1/π are subtracted.
		if x := excess(t, p, pi, q, eta); !(math.Abs(x-divergence) <= 1e-12*(1+divergence)) || x < -1e-12 {
			t.Errorf("case %d: ℓ(p) − ℓ(PMD) = %v, KL(p‖PMD) = %v", i, x, divergence)
		}
		mixed := testkit.Must(Mix(p, phi))(t)
		price = min(price, 2*phi*float64(a-1)/float64(a)-MaxRowL1(mixed, p))
		floor = min(floor, mat.Min(mixed)-phi/float64(a))
	}
	if price < -1e-14 || price > .1 || floor < -1e-16 || floor > .1 {
		t.Errorf("‖p̂ − p‖₁ is at least %v below 2φ(A−1)/A, p̂ at least %v above φ/A", price, floor)
	}
}
