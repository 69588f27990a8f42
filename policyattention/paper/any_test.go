package paper

import (
	"math"
	"path/filepath"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/anymdp"
	"icrl/policyattention/control"
	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/transformer/engine"
)

func TestAnySets(t *testing.T) {
	names := map[string]bool{}
	for _, r := range anySets {
		if names[r.Name] {
			t.Errorf("two rows are called %q", r.Name)
		}
		names[r.Name] = true
		problems := testkit.Must(r.Pick(1, []int32{0, 1}))(t)
		for i, p := range problems {
			m := p.MDP
			if m.States() != r.States || m.Actions() != r.Actions || m.Gamma != r.Gamma ||
				mat.Min(m.R) < min(r.Least, -r.Cliff) || mat.Max(m.R) > r.Most || p.Eta <= 0 {
				t.Errorf("%s: S = %d, A = %d, γ = %v, rewards from %v to %v, η = %v", r.Name, m.States(), m.Actions(),
					m.Gamma, mat.Min(m.R), mat.Max(m.R), p.Eta)
			}
			if r.Mass == 0 && !r.Lock {
				continue
			}
			optimum := testkit.Must(m.Optimal())(t)
			starved := 0
			for s := range r.States {
				mass := p.Pi0.At(s, floats.MaxIdx(optimum.Q.RawRowView(s)))
				if mass == r.Mass || r.Lock && mass >= 1e-12 && mass <= .1 {
					starved++
				}
			}
			if r.Lock && i == 0 { // other states may begin with as little
				starved = min(starved, 1)
			}
			if want := map[bool]int{false: 1, true: r.States}[r.Everywhere || r.Lock && i == 1]; starved != want {
				t.Errorf("%s: %d states begin with that mass, want %d", r.Name, starved, want)
			}
		}
	}
}

// The benchmark's problems are those of its protocol.
func TestAnyOnTheBenchmark(t *testing.T) {
	var found []uint64
	for _, r := range anySets {
		if r.Fixture == 0 {
			continue
		}
		found = append(found, r.Fixture)
		want := testkit.Must(r.Family.Draw(r.Fixture, r.States, r.Actions, 1))(t)[0]
		if got := testkit.Must(r.Pick(1, []int32{0}))(t)[0]; !mat.Equal(got.MDP.R, want.MDP.R) {
			t.Errorf("%s: other problems than root %d has", r.Name, r.Fixture)
		}
		if size := experiment.PaperProtocol.Sizes[r.States]; size.Evaluation != r.Fixture {
			t.Errorf("%s: root %d, the protocol has %d", r.Name, r.Fixture, size.Evaluation)
		}
	}
	if len(found) != 3 {
		t.Errorf("rows of the benchmark with the roots %d, want 3", found)
	}
}

// What is stored of a problem are the losses of its loops, each with its own step size.
func TestAnyLosses(t *testing.T) {
	r := anyBase
	r.Name, r.Network, r.Mixed, r.Eta = "test", 1, 1, 0
	forward := testkit.Must(anymdp.Released())(t)
	problems := testkit.Must(r.Pick(1, []int32{0, 1}))(t)
	got := testkit.Must(r.Run(t.Context(), 1, forward, []int32{0, 1}, []int{3, 7}))(t)
	if len(got) != 8 || problems[0].Eta == problems[1].Eta { // two problems of one read-out, one of the others
		t.Errorf("%d rows, want 8", len(got))
	}
	for _, x := range got {
		p := problems[x.Problem]
		loop, one := control.ExactPMD(p.Eta), []mdp.Problem{p.Problem}
		exact := testkit.Must(control.Score(one, testkit.Must(loop.Run(one, 7))(t)))(t)[0].Loss[x.Round]
		if x.Exact != digits(exact, 6) || math.Abs(x.Excess) > .01 {
			t.Errorf("%+v, want the loss %v of exact PMD", x, exact)
		}
	}
}

// Where one action of every state is worth less than the others by anything up to 10¹², the released
// network does what exact PMD does, in float64 and in float32, with log π added and without.
func TestCliffsHold(t *testing.T) {
	double := testkit.Must(anymdp.Released())(t)
	paths := testkit.Must(filepath.Glob("../../artifacts/paper/train/any-31000-*/weights.safetensors"))(t)
	released := anymdp.Standard(31000)
	job := testkit.Must(released.Job())(t)
	params := testkit.Must(job.Params(paths[0], job.Steps))(t)
	single := testkit.Must(engine.New[float32](released.Network(), params))(t)
	var problems []anyProblem
	for i, p := range testkit.Must(mdp.Random.Draw(991, 8, 3, 24))(t) {
		cost := math.Pow(10, float64(i/2+1)) // to 10¹²
		optimum := testkit.Must(p.MDP.Optimal())(t)
		for s := range 8 {
			worst := floats.MinIdx(optimum.Q.RawRowView(s))
			p.MDP.R.Set(s, worst, -cost)
			pmd.SetShare(p.Pi0.RawRowView(s), worst, 1e-4/cost)
		}
		p = testkit.Must(mdp.NewProblem(.9, p.MDP.DenseP(), p.MDP.R, p.Pi0))(t)
		problems = append(problems, anyProblem{p, .8})
	}
	exact := testkit.Must(anyLosses(t.Context(), control.RuleActor(pmd.PMD), problems, []int{100}))(t)
	for name, forward := range map[string]anymdp.Forward{"float64": double, "float32": single.Sequences} {
		for _, readout := range []anymdp.Readout{anymdp.Prior, anymdp.Network} {
			actor := testkit.Must(anymdp.NewActor(forward, readout))(t)
			for i, losses := range testkit.Must(anyLosses(t.Context(), actor, problems, []int{100}))(t) {
				if excess := losses[0] - exact[i][0]; excess > .02 {
					t.Errorf("%s, %s: it locks up at a cliff of 1e%d: excess %g", name, readout, i/2+1, excess)
				}
			}
		}
	}
}
