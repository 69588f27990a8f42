package mdp

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/seed"
)

// textbook factors I − γP^π by partial pivoting.
func textbook(m *MDP, pi *mat.Dense) (solver, error) {
	n, a := m.R.Dims()
	system := mat.NewDense(n, n, nil)
	for s := range n {
		row := system.RawRowView(s)
		for j := range a {
			for t, p := range m.Next(s, j) {
				row[t] -= m.Gamma * pi.At(s, j) * p
			}
		}
		row[s]++
	}
	var lu mat.LU
	lu.Factorize(system)
	return func(b []float64) {
		x := mat.NewVecDense(n, b)
		lu.SolveVecTo(x, false, x) //nolint:errcheck // its condition is judged by what refinement comes to
	}, nil
}

// TestSolvers holds three solvers that share nothing against each other, on problems above the
// size from which Optimal iterates.
func TestSolvers(t *testing.T) {
	for name, m := range map[string]*MDP{
		"scattered": scattered(t, 600, 2, 3, .99), "dense": scattered(t, 520, 2, 520, .999),
		"cycle":  cycle(t, 700, .9999),
		"forest": forest(t, 600, .96), "grid": grid(t, 25, .9999, false), "goal": grid(t, 25, .99, true),
		"swim": swim(t, 600, .999), "near 1": scattered(t, 600, 3, 3, 1-1e-9), "end": grid(t, 25, 1, true),
	} {
		pi := m.Uniform()
		values := map[string][]double{}
		zeros := make([]float64, m.States())
		for solver, prepare := range map[string]func() (solver, error){
			"factors":  func() (solver, error) { return m.factors(pi) },
			"textbook": func() (solver, error) { return textbook(m, pi) },
			"krylov":   func() (solver, error) { return m.solver(pi) },
		} {
			if solver == "textbook" && m.Gamma == 1 {
				continue // it does not know which states end
			}
			v := doubles(zeros)
			if last := m.refine(pi, testkit.Must(prepare())(t), v, 0x1p-60); !(last <= 0x1p-60) {
				t.Errorf("%s by %s: refined to %.2g only", name, solver, last)
			}
			values[solver] = v
		}
		for solver, v := range values {
			for s, x := range v {
				if want := values["factors"][s]; math.Abs(x.minus(want)) > 1e-15*math.Abs(want.hi) {
					t.Errorf("%s by %s: V^π(%d) = %v, by factors %v", name, solver, s, x, want)
				}
			}
		}
		// V* is a fixed point of the Bellman backup, and no policy is better.
		got := testkit.Must(m.Optimal())(t)
		if _, share := got.Uncertain(); !(share < 1e-12) {
			t.Errorf("%s: certain to %.2g only", name, share)
		}
		if d := MaxAbsDiff(m.OptimalityBackup(got.Q), got.Q); d > 1e-14*floats.Norm(got.V, math.Inf(1)) {
			t.Errorf("%s: Q* is %.2g from its own backup", name, d)
		}
		for s, v := range values["factors"] {
			if v.hi > got.V[s]+got.Error[s] {
				t.Errorf("%s: the uniform policy is worth %v in state %d, V* = %v", name, v.hi, s, got.V[s])
			}
		}
	}
}

// Where γ is near 1 in a large problem, the system of a policy that is nearly greedy has sums that cancel.
func TestLargeNearOne(t *testing.T) {
	m := grid(t, 71, 1-1e-9, false)
	q := testkit.Must(m.PolicyValue(m.Uniform()))(t)
	for _, phi := range []float64{1e-3, 1e-5} {
		pi := m.Uniform()
		pi.Scale(phi, pi)
		for s := range m.States() {
			best := floats.MaxIdx(q.RawRowView(s))
			pi.Set(s, best, 1-.75*phi)
		}
		_, plain := m.PolicyValue(pi)
		_, from := m.PolicyValueFrom(pi, q)
		if err := errors.Join(plain, from); err != nil {
			t.Errorf("φ = %v: %v", phi, err)
		}
	}
}

// TestEnds has problems at γ = 1: which are accepted, and what those are worth.
func TestEnds(t *testing.T) {
	line := func(step, wait float64, terminal ...int) Model { // 0 → 1 → 2, or wait
		model := Model{Gamma: 1, R: mat.NewDense(3, 2, []float64{step, wait, step, wait, 0, 0})}
		model.Terminal = terminal
		for s := range 3 {
			model.P.row(float64(min(s+1, 2)), 1)
			model.P.row(float64(s), 1)
		}
		return model
	}
	apart := line(-1, -1, 2)
	apart.P = Transitions{}
	for range 3 {
		apart.P.row(0, 1)
		apart.P.row(0, 1)
	}
	surely := line(3, 5, 2)
	surely.P = Transitions{}
	for s := range 6 {
		surely.P.row(float64(s/2), .5, 2, .5)
	}
	paid := line(-1, -2, 2)
	paid.R.Set(0, 1, 0)
	for _, c := range []struct {
		name  string
		model Model
		want  []float64
		err   string
	}{
		{name: "steps to the end", model: line(-1, -2, 2), want: []float64{-2, -1, 0}},
		{name: "an absorbing state is an end", model: line(-1, -2), want: []float64{-2, -1, 0}},
		{name: "ends in two steps on average, with rewards", model: surely, want: []float64{10, 10, 0}},
		{name: "waiting pays", model: line(-1, 1, 2),
			err: "through state 0 and action 1, which costs nothing: make its reward"},
		{name: "waiting is free", model: paid, err: "through state 0 and action 1"},
		{name: "no way out", model: apart, err: "from state 0 no policy surely reaches a terminal state"},
	} {
		m, err := c.model.Build()
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v, want %q", c.name, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := testkit.Must(m.Optimal())(t); !slices.Equal(got.V, c.want) {
			t.Errorf("%s: V* = %v, want %v", c.name, got.V, c.want)
		}
	}
	m := testkit.Must(line(-1, -2, 2).Build())(t)
	wait := mat.NewDense(3, 2, []float64{0, 1, 1, 0, 1, 0})
	if _, err := m.PolicyValue(wait); err == nil || !strings.Contains(err.Error(), "never ends an episode in state 0") {
		t.Errorf("a policy that never ends: %v", err)
	}
}

// TestMasked has Q* and Q^π of actions that do not exist, and refuses policies that take them.
func TestMasked(t *testing.T) {
	none := math.Inf(-1)
	r := mat.NewDense(2, 2, []float64{5, 10, -1, none})
	m := testkit.Must(New(.95, mat.NewDense(4, 2, []float64{.5, .5, 0, 1, 0, 1, 0, 0}), r))(t)
	got := testkit.Must(m.Optimal())(t)
	// Staying in state 1 costs 1 for ever: −20; state 0 by action 1: 10 − .95·20; by action 0:
	// V = 5 + .95(V − 20)/2.
	want := -4.5 / (1 - .475)
	if got.Q.At(1, 1) != none || math.Abs(got.V[1]+20) > 1e-13 || math.Abs(got.V[0]-want) > 1e-13 || got.Optimal(1, 1) {
		t.Errorf("Q* = %v, V* = %v, want −20 and %v", got.Q.RawMatrix().Data, got.V, want)
	}
	pi := m.Uniform()
	if !slices.Equal(pi.RawMatrix().Data, []float64{.5, .5, 1, 0}) {
		t.Errorf("the uniform policy is %v", pi.RawMatrix().Data)
	}
	q := testkit.Must(m.PolicyValue(pi))(t)
	if q.At(1, 1) != none || MaxAbsDiff(q, m.EvaluationBackup(pi, q)) > 1e-13 || m.RMax() != 10 {
		t.Errorf("Q^π = %v, R_max = %v", q.RawMatrix().Data, m.RMax())
	}
	err := m.CheckPolicy(UniformPolicy(2, 2))
	if err == nil || !strings.Contains(err.Error(), "action 1 in state 1, which does not have it") {
		t.Errorf("a policy that does what cannot be done: %v", err)
	}
	if m.CheckTable("Q", q) != nil || CheckTable("Q", q, 2, 2) == nil {
		t.Error("−∞ is a value of actions that do not exist, and of no others")
	}
	r.Set(1, 0, none)
	if _, err := New(.95, m.DenseP(), r); err == nil || !strings.Contains(err.Error(), "state 1 has no action") {
		t.Errorf("a state without actions: %v", err)
	}
}

// TestMeaning has what a problem says of itself.
func TestMeaning(t *testing.T) {
	model := func() Model {
		p := Transitions{
			Offset: []int{0, 2, 3, 4, 6}, State: []int32{1, 0, 1, 0, 0, 1}, P: []float64{.75, .25, 1, 1, .5, .5},
		}
		return Model{Gamma: .9, P: p, R: mat.NewDense(2, 2, []float64{1, 2, math.Inf(1), 4}), Meaning: Meaning{
			Minimize: true, Start: []float64{1, 0}, Rows: 1, Columns: 2,
			StateNames: []string{"a", "b"}, ActionNames: []string{"x", "y"},
		}}
	}
	m := testkit.Must(model().Build())(t)
	p := m.DenseP().RawMatrix().Data
	if m.R.At(1, 1) != -4 || m.Exists(1, 0) || !m.Masked() ||
		!slices.Equal(p, []float64{.25, .75, 0, 1, 0, 0, .5, .5}) {
		t.Errorf("r = %v, P = %v", m.R.RawMatrix().Data, m.DenseP().RawMatrix().Data)
	}
	ends := model()
	ends.Terminal = []int{1}
	m = testkit.Must(ends.Build())(t)
	if m.R.At(1, 1) != 0 || !slices.Equal(m.Next(1, 0), []float64{0, 1}) || m.Masked() {
		t.Error("a terminal state earns something, or leads on")
	}
	for _, c := range []struct {
		want   string
		change func(*Model)
	}{
		{"start distribution has 1 states", func(m *Model) { m.Start = []float64{1} }},
		{"start distribution sums to 0.5", func(m *Model) { m.Start = []float64{.5, 0} }},
		{"terminal state 2 does not exist", func(m *Model) { m.Terminal = []int{2} }},
		{"1 names of states, want 2", func(m *Model) { m.StateNames = []string{"a"} }},
		{"grid of 2 rows and 2 columns does not hold 2 states", func(m *Model) { m.Rows = 2 }},
		{"cost r(s=0,a=1) is -Inf", func(m *Model) { m.R.Set(0, 1, math.Inf(-1)) }},
		{"P(·|s=0,a=0) sums to 0: where the episode ends", func(m *Model) { m.P.P = make([]float64, 6) }},
		{"leads to state 7", func(m *Model) { m.P.State[0] = 7 }},
		{"P(·|s=0,a=0) has entry 1 equal to -0.25", func(m *Model) { m.P.P[0] = -.25 }},
		{"divide all rewards by a constant", func(m *Model) { m.R.Set(0, 0, 1e308) }},
	} {
		x := model()
		c.change(&x)
		if _, err := x.Build(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// TestShortfall holds the second loss of a policy that a penalty makes look good.
func TestShortfall(t *testing.T) {
	for _, penalty := range []float64{-1e3, -1e9} {
		// State 0 stays for 0 or goes for 1 to state 1, which goes back for 2; both may go for a
		// penalty to the sink, state 2.
		r := mat.NewDense(3, 3, []float64{0, 1, penalty, 2, 2, penalty, penalty, penalty, penalty})
		p := mat.NewDense(9, 3,
			[]float64{1, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0, 1})
		m := testkit.Must(New(.5, p, r))(t)
		o := testkit.Must(m.Optimal())(t)
		stay := mat.NewDense(3, 3, []float64{1, 0, 0, 1, 0, 0, 1, 0, 0})
		// V* = (1 + .5·2)/(1 − .25) = 8/3 and 2 + 4/3; staying is worth 0 and 2: 8/3 and 4/3 are lost,
		// and V* has a range of 2/3 over states 0 and 1.
		x := m.Shortfall(o, m.StateValues(stay, testkit.Must(m.PolicyValue(stay))(t)))
		if x.State != 0 || math.Abs(x.Relative()-4) > 1e-12 {
			t.Errorf("penalty %v: %+v", penalty, x)
		}
	}
	// Where all states are worth the same, the unit is that.
	one := testkit.Must(New(.5, mat.NewDense(2, 1, []float64{1, 1}), mat.NewDense(1, 2, []float64{1, 0})))(t)
	x := one.Shortfall(testkit.Must(one.Optimal())(t), []float64{1})
	if x.Relative() != .5 || !strings.Contains(x.Over, "size of V*") {
		t.Errorf("one state: %+v", x)
	}
	// With a start, only what it leads to counts.
	started := *scattered(t, 6, 2, 1, .9)
	started.Start = []float64{1, 0, 0, 0, 0, 0}
	o := testkit.Must(started.Optimal())(t)
	v := started.StateValues(started.Uniform(), testkit.Must(started.PolicyValue(started.Uniform()))(t))
	seen := started.reachable(func(int, int) bool { return true })
	if x := started.Shortfall(o, v); !seen[x.State] || !strings.Contains(x.Over, "from the start") {
		t.Errorf("%+v, reachable %v", x, seen)
	}
}

// row adds a row of P: successors and their probabilities in turn.
func (t *Transitions) row(successors ...float64) {
	for k := 0; k < len(successors); k += 2 {
		t.Add(int(successors[k]), successors[k+1])
	}
	t.EndRow()
}

// grid is a grid of side·side states with moves up, right, down and left that slip sideways
// with probability .1 each. Each step costs 1 where there is a goal, the last state, which ends;
// otherwise rewards are drawn.
func grid(t testing.TB, side int, gamma float64, goal bool) *MDP {
	t.Helper()
	s := side * side
	model := Model{Gamma: gamma, R: mat.NewDense(s, 4, nil), Meaning: Meaning{Rows: side, Columns: side}}
	rng := seed.New(5, "grid")
	moves := [4][2]int{{-1, 0}, {0, 1}, {1, 0}, {0, -1}}
	for i := range s {
		for a := range 4 {
			for turn, p := range map[int]float64{0: .8, 1: .1, 3: .1} {
				d := moves[(a+turn)%4]
				y, x := i/side+d[0], i%side+d[1]
				if y < 0 || y >= side || x < 0 || x >= side {
					y, x = i/side, i%side
				}
				model.P.Add(y*side+x, p)
			}
			model.P.EndRow()
			model.R.Set(i, a, -1)
			if !goal {
				model.R.Set(i, a, rng.Float64())
			}
		}
	}
	if goal {
		model.Terminal = []int{s - 1}
	}
	return testkit.Must(model.Build())(t)
}

// forest is the management of a forest that grows through s ages and burns with probability .1
// (Chadès et al., pymdptoolbox): wait or cut.
func forest(t testing.TB, s int, gamma float64) *MDP {
	t.Helper()
	model := Model{Gamma: gamma, R: mat.NewDense(s, 2, nil)}
	for i := range s {
		model.P.row(0, .1, float64(min(i+1, s-1)), .9)
		model.P.row(0, 1)
		if i > 0 {
			model.R.Set(i, 1, 1)
		}
	}
	model.R.Set(s-1, 0, 4)
	model.R.Set(s-1, 1, 2)
	return testkit.Must(model.Build())(t)
}

// scattered has so many successors a state-action pair, drawn uniformly.
func scattered(t testing.TB, s, a, successors int, gamma float64) *MDP {
	t.Helper()
	rng := seed.New(6, "scattered")
	model := Model{Gamma: gamma, R: mat.NewDense(s, a, nil)}
	row := make([]float64, successors)
	for i := range s * a {
		dirichlet(rng, row)
		for k, p := range row {
			to := rng.IntN(s)
			if successors == s {
				to = k
			}
			model.P.Add(to, p)
		}
		model.P.EndRow()
		model.R.Set(i/a, i%a, 2*rng.Float64()-1)
	}
	return testkit.Must(model.Build())(t)
}

// cycle goes through all states in an order that is drawn, or stays for nothing; one step pays.
func cycle(t testing.TB, s int, gamma float64) *MDP {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	order := rng.Perm(s)
	next := make([]int, s)
	for i, x := range order {
		next[x] = order[(i+1)%s]
	}
	model := Model{Gamma: gamma, R: mat.NewDense(s, 2, nil)}
	for i := range s {
		model.P.row(float64(next[i]), 1)
		model.P.row(float64(i), 1)
	}
	model.R.Set(order[0], 0, 1)
	return testkit.Must(model.Build())(t)
}

// swim is RiverSwim (Strehl and Littman, 2008) of s states: optimal play far from the
// right end hangs on values that come from there.
func swim(t testing.TB, s int, gamma float64) *MDP {
	t.Helper()
	model := Model{Gamma: gamma, R: mat.NewDense(s, 2, nil)}
	for i := range s {
		left, right := float64(max(i-1, 0)), float64(min(i+1, s-1))
		model.P.row(left, 1)
		model.P.row(left, .05, float64(i), .6, right, .35)
	}
	model.R.Set(0, 0, .005)
	model.R.Set(s-1, 1, 1)
	return testkit.Must(model.Build())(t)
}
