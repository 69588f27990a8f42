package train

import (
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/seed"
)

func contexts(t *testing.T, states, n int) []control.Context {
	t.Helper()
	problems := testkit.Must(mdp.Random.Draw(CalibrationRoot(3), states, 2, n))(t)
	batch := make([]control.Context, n)
	for i, p := range problems {
		q := testkit.Must(p.MDP.PolicyValue(p.Pi0))(t)
		batch[i] = control.Context{Problem: i, MDP: p.MDP, Pi: p.Pi0, Q: q, Eta: 0.8}
	}
	return batch
}

func fresh(t *testing.T, c Config) *Model {
	t.Helper()
	m := testkit.Must(NewModel(c, c.start()))(t)
	return m
}

func act(t *testing.T, m *Model, batch []control.Context) []*mat.Dense {
	t.Helper()
	a := testkit.Must(m.Actor())(t)
	var policies []*mat.Dense
	for _, p := range testkit.Must(a.Act(batch))(t) {
		policies = append(policies, p.Pi)
	}
	return policies
}

// TestActor: rows are distributions also from contexts without mass on some action.
func TestActor(t *testing.T) {
	for _, recipe := range []Recipe{Plain(), Prior()} {
		c := tiny(Proximal)
		c.Recipe = recipe
		m := fresh(t, c)
		batch := contexts(t, 3, 67)
		batch[0].Pi = mat.NewDense(3, 2, []float64{1, 0, 0, 1, 1e-300, 1})
		policies := act(t, m, batch)
		for i, p := range policies {
			if err := batch[i].MDP.CheckPolicy(p); err != nil {
				t.Errorf("%s: problem %d: %v", recipe.Name, i, err)
			}
		}
		if p := policies[0]; recipe.Readout == PriorReadout &&
			(p.At(0, 1) != 0 || p.At(1, 0) != 0 || p.At(2, 0) > 1e-290) {
			t.Errorf("prior: actions without mass got some: %v", p)
		}
	}
}

// What an equivariant actor does to actions in another order, the one to the other in one state and as they were in
// the rest, is what it did in that order; the paper's actor does something else.
func TestEquivariant(t *testing.T) {
	for attention, same := range map[Attention]bool{Equivariant: true, Everything: false} {
		c := tiny(Proximal)
		c.Attention = attention
		m, batch := fresh(t, c), contexts(t, 3, 2)
		swap := func(x *mat.Dense) *mat.Dense {
			y := mat.DenseCopyOf(x)
			y.SetRow(1, []float64{x.At(1, 1), x.At(1, 0)})
			return y
		}
		batch[1] = batch[0]
		batch[1].Pi, batch[1].Q = swap(batch[0].Pi), swap(batch[0].Q)
		policies := act(t, m, batch)
		// In float32 sums in another order differ by a few times 6e-8.
		if d := mdp.MaxAbsDiff(swap(policies[0]), policies[1]); (d < 1e-5) != same {
			t.Errorf("attention %q: swapped actions change rows by %v", attention, d)
		}
	}
}

// How many cores take problems through a network changes no bit, nor does what else is in a batch; a critic's samples
// are a function of root, problem and round alone.
func TestModelOnCores(t *testing.T) {
	for objective, states := range map[Objective]int{Proximal: 8, Critic: 3} {
		c := Standard(objective, Plain(), 7, states)
		c.Actions, c.Samples, c.Layers = 2, 2, 1
		m, batch := fresh(t, c), contexts(t, states, 64)
		evaluate := func(batch []control.Context) []*mat.Dense {
			if objective != Critic {
				return act(t, m, batch)
			}
			return testkit.Must(testkit.Must(m.Critic(1))(t).Evaluate(batch))(t)
		}
		all := evaluate(batch)
		processors := runtime.GOMAXPROCS(1)
		alone := append(evaluate(batch[:31]), evaluate(batch[31:])...)
		runtime.GOMAXPROCS(processors)
		for i := range all {
			if !mat.Equal(alone[i], all[i]) {
				t.Fatalf("%s, S=%d: problem %d differs by %g", objective, states, i, mdp.MaxAbsDiff(alone[i], all[i]))
			}
		}
		if objective == Critic {
			other := testkit.Must(testkit.Must(m.Critic(2))(t).Evaluate(batch[:1]))(t)
			batch[0].Round = 1
			if mat.Equal(other[0], all[0]) || mat.Equal(evaluate(batch[:1])[0], all[0]) {
				t.Error("another root or another round gives the same samples")
			}
		}
	}
}

// With a network that writes zeros, the prior read-out is the identity update.
func TestPriorReadoutOfSilentNetwork(t *testing.T) {
	c := tiny(Proximal)
	c.Recipe = Prior()
	m := testkit.Must(NewModel(c, make([]float32, c.Network().Size())))(t)
	batch := contexts(t, 3, 2)
	for i, p := range act(t, m, batch) {
		if d := mdp.MaxAbsDiff(p, batch[i].Pi); d > 1e-15 {
			t.Errorf("actor differs from identity by %v", d)
		}
	}
}

// The mean of samples comes to the exact backup, and refuses what it cannot sample.
func TestSampleMean(t *testing.T) {
	x := contexts(t, 3, 1)
	exact := x[0].MDP.EvaluationBackup(x[0].Pi, x[0].Q)
	// 10⁶ samples of values within B = 10 have standard errors below .01.
	got := testkit.Must(SampleMean{Samples: 1e6, Root: 1}.Evaluate(x))(t)[0]
	if d := mdp.MaxAbsDiff(got, exact); d > .05 {
		t.Errorf("the mean of 10⁶ samples is %v from the exact backup", d)
	}
	if _, err := (SampleMean{}).Evaluate(x); err == nil || !strings.Contains(err.Error(), "0 samples") {
		t.Errorf("no samples: %v", err)
	}
	x[0].MDP = nil
	if _, err := (SampleMean{Samples: 6}).Evaluate(x); err == nil || !strings.Contains(err.Error(), "has no MDP") {
		t.Errorf("no MDP: %v", err)
	}
}

// TestCriticTokens reads what the input tells of a context off its tokens.
func TestCriticTokens(t *testing.T) {
	c := tiny(Critic)
	x := contexts(t, 3, 1)[0]
	sampled := c.sample(seed.New(1, "test"), x.MDP, x.Pi, x.Q)
	const pairs = 6
	features := c.Network().Features
	tokens := make([]float32, c.ContextTokens()*features)
	c.criticTokens(tokens, sampled)
	for i := range c.ContextTokens() {
		pair, query := i/c.Samples, i >= pairs*c.Samples
		want := make([]float32, features)
		if query {
			pair, want[features-1] = i-pairs*c.Samples, 1
		} else {
			next := sampled.successors[i]
			want[5+next], want[8], want[9] = 1, float32(x.MDP.R.At(pair/2, pair%2)), float32(sampled.values[next])
		}
		want[pair/2], want[3+pair%2] = 1, 1
		if got := tokens[i*features:][:features]; !slices.Equal(got, want) {
			t.Errorf("token %d is %v, want %v", i, got, want)
		}
	}
}

func TestDeployErrors(t *testing.T) {
	c := tiny(Proximal)
	m := fresh(t, c)
	bad := contexts(t, 3, 1)
	bad[0].Q = mat.NewDense(3, 2, []float64{0, 0, 0, math.NaN(), 0, 0})
	a := testkit.Must(m.Actor())(t)
	spoiled := func(spoil func(*control.Context)) []control.Context {
		batch := contexts(t, 3, 1)
		spoil(&batch[0])
		return batch
	}
	for want, batch := range map[string][]control.Context{
		"the MDP is [4":     contexts(t, 4, 1),
		"0 sequences":       nil,
		"equal to NaN":      bad,
		"policy is missing": spoiled(func(x *control.Context) { x.Pi = nil }),
		"sums to 0":         spoiled(func(x *control.Context) { x.Pi = mat.NewDense(3, 2, nil) }),
		"Q is [2, 2]":       spoiled(func(x *control.Context) { x.Q = mat.NewDense(2, 2, nil) }),
		"eta is NaN":        spoiled(func(x *control.Context) { x.Eta = math.NaN() }),
	} {
		if _, err := a.Act(batch); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	// An actor does not read the MDP; a critic samples from it.
	blind := spoiled(func(x *control.Context) { x.MDP = nil })
	want := testkit.Must(a.Act(contexts(t, 3, 1)))(t)
	if got, err := a.Act(blind); err != nil || !mat.Equal(got[0].Pi, want[0].Pi) {
		t.Errorf("an actor without the MDP: %v", err)
	}
	critic := testkit.Must(fresh(t, tiny(Critic)).Critic(1))(t)
	if _, err := critic.Evaluate(blind); err == nil || !strings.Contains(err.Error(), "MDP is missing") {
		t.Errorf("a critic without the MDP: %v", err)
	}
	other := spoiled(func(x *control.Context) { x.MDP = contexts(t, 4, 1)[0].MDP })
	if _, err := critic.Evaluate(other); err == nil || !strings.Contains(err.Error(), "the MDP is [4, 2]") {
		t.Errorf("a critic with another MDP: %v", err)
	}
	if _, err := m.Critic(1); err == nil {
		t.Error("an actor's weights make a critic")
	}
	if _, err := fresh(t, tiny(Critic)).Actor(); err == nil {
		t.Error("a critic's weights make an actor")
	}
	params := c.start()
	params[5] = float32(math.Inf(1))
	if _, err := NewModel(c, params); err == nil || !strings.Contains(err.Error(), "parameter 5 is +Inf") {
		t.Errorf("an infinite parameter: %v", err)
	}
	if _, err := NewModel(c, params[:3]); err == nil || !strings.Contains(err.Error(), "3 parameters") {
		t.Errorf("a model of 3 parameters: %v", err)
	}
	if _, err := Load(filepath.Join(t.TempDir(), "absent")); err == nil {
		t.Error("absent weights load")
	}
	if _, err := Load(mustTrain(t, c, t.TempDir()).Weights); err != nil {
		t.Error(err)
	}
}

// A generative source of m transitions a pair hands out those that a learned critic draws.
func TestCriticDrawsTheSourcesTransitions(t *testing.T) {
	problems := testkit.Must(mdp.Random.Draw(9, 5, 3, 1))(t)
	m := problems[0].MDP
	c := Config{Actions: 3, Samples: 4}
	drawn := c.sample(seed.New(21, "critic", 2, 7), m, problems[0].Pi0, m.R)
	window := baseline.Generative(60, 21)(2, m)(7, nil)
	for i, x := range window {
		pair := i / 4
		if x.State != pair/3 || x.Action != pair%3 || x.Next != drawn.successors[i] || x.Reward != drawn.rewards[pair] {
			t.Fatalf("transition %d is %+v, the critic's leads to %d with reward %v", i, x, drawn.successors[i],
				drawn.rewards[pair])
		}
	}
}
