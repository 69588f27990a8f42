package control

import (
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
)

func draw(t *testing.T, root uint64, s, n int) []mdp.Problem {
	t.Helper()
	problems := testkit.Must(mdp.Random.Draw(root, s, 3, n))(t)
	return problems
}

// The score of exact PMD has no residuals in any round, and begins at Q^{π_0}.
func TestScore(t *testing.T) {
	problems := draw(t, 3, 5, 6)
	trajectories := testkit.Must(ExactPMD(0.8).Run(problems, 10))(t)
	scored := testkit.Must(Score(problems, trajectories))(t)
	for i, s := range scored {
		if s.Loss[0] != 1 || s.E0 != s.Gap {
			t.Errorf("problem %d: loss of π_0 is %v, want 1; E_0 %v, gap %v", i, s.Loss[0], s.E0, s.Gap)
		}
		if len(s.Loss) != 11 || len(s.Zeta) != 10 || len(s.Delta) != 9 || len(s.Defect) != 10 {
			t.Errorf("problem %d: lengths %d %d %d %d", i, len(s.Loss), len(s.Zeta), len(s.Delta), len(s.Defect))
		}
		for k := range s.Zeta {
			if s.Zeta[k] != 0 || (k < len(s.Delta) && s.Delta[k] != 0) {
				t.Errorf("problem %d round %d: the oracle has residuals", i, k)
			}
		}
		for horizon := 1; horizon <= 10; horizon++ {
			if _, slack, err := s.Bound(horizon); err != nil || slack < 0 {
				t.Errorf("problem %d, T=%d: slack %v, %v", i, horizon, slack, err)
			}
		}
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	serial := testkit.Must(Score(problems, trajectories))(t)
	for i := range serial {
		for k := range serial[i].Loss {
			if serial[i].Loss[k] != scored[i].Loss[k] {
				t.Fatalf("problem %d round %d: the score depends on the number of processors", i, k)
			}
		}
	}
}

func TestAtTemperature(t *testing.T) {
	pi := mat.NewDense(2, 3, []float64{.2, .6, .2, 0, .5, .5})
	for temperature, want := range map[float64][]float64{
		1: pi.RawMatrix().Data, .5: {1. / 11, 9. / 11, 1. / 11, 0, .5, .5}, 0: {0, 1, 0, 0, 1, 0},
	} {
		if got := AtTemperature(pi, temperature); !mat.EqualApprox(got, mat.NewDense(2, 3, want), 1e-15) {
			t.Errorf("at %v: %v", temperature, got.RawMatrix().Data)
		}
	}
}

func TestScoreOfAnOptimalStart(t *testing.T) {
	m := testkit.Must(mdp.New(0.5, mat.NewDense(2, 1, []float64{1, 1}), mat.NewDense(1, 2, []float64{1, 0})))(t)
	best, worst := mat.NewDense(1, 2, []float64{1, 0}), mat.NewDense(1, 2, []float64{0, 1})
	scored := testkit.Must(Score([]mdp.Problem{{MDP: m, Pi0: best}},
		[]Trajectory{{Policies: []*mat.Dense{best, best, worst}}}))(t)
	if loss := scored[0].Loss; loss[0] != 0 || loss[1] != 0 || !math.IsInf(loss[2], 1) {
		t.Errorf("losses %v, want 0, 0, +Inf", loss)
	}
	if _, _, err := scored[0].Bound(1); err == nil || !strings.Contains(err.Error(), "without critic tables") {
		t.Errorf("the bound of a trajectory without Q: %v", err)
	}
}

func TestMixedActor(t *testing.T) {
	problems := draw(t, 4, 4, 3)
	loop := ExactPMD(0.8)
	loop.Actor = MixedActor{Actor: loop.Actor, Phi: 0.01}
	trajectories := testkit.Must(loop.Run(problems, 5))(t)
	for i, trajectory := range trajectories {
		for k, pi := range trajectory.Policies[1:] {
			if mat.Min(pi) < 0.01/3 {
				t.Errorf("problem %d round %d: probability %v below φ/A", i, k+1, mat.Min(pi))
			}
		}
	}
}

type brokenActor struct {
	policies []pmd.Policy
	err      error
}

func (b brokenActor) Act([]Context) ([]pmd.Policy, error) { return b.policies, b.err }

func TestBrokenParts(t *testing.T) {
	problems := draw(t, 5, 4, 1)
	for _, test := range []struct {
		actor brokenActor
		want  string
	}{
		{brokenActor{err: errors.New("out of ink")}, "out of ink"},
		{brokenActor{}, "returned 0 tables for 1 contexts"},
		{brokenActor{policies: []pmd.Policy{{}}}, "policy is missing"},
		{brokenActor{policies: []pmd.Policy{{Pi: mat.NewDense(4, 3, nil)}}}, "sums to 0"},
	} {
		_, err := Loop{Actor: test.actor, Critic: ExactCritic{}, Eta: 0.8}.Run(problems, 2)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("error %v, want one with %q", err, test.want)
		}
	}
	for _, l := range []Loop{{Actor: RuleActor(pmd.PMD)}, {Critic: ExactCritic{}}} {
		if _, err := l.Run(problems, 1); err == nil || !strings.Contains(err.Error(), "want both") {
			t.Errorf("%+v: error %v", l, err)
		}
	}
	for _, eta := range []float64{-3, math.NaN(), math.Inf(1)} {
		own := Loop{Actor: brokenActor{policies: []pmd.Policy{{Pi: problems[0].Pi0}}}, Critic: ExactCritic{}, Eta: eta}
		if _, err := own.Run(problems, 2); err == nil || !strings.Contains(err.Error(), "eta is") {
			t.Errorf("step size %v: error %v", eta, err)
		}
	}
	if _, err := ExactPMD(0.8).Run([]mdp.Problem{{Pi0: problems[0].Pi0}}, 2); err == nil ||
		!strings.Contains(err.Error(), "without an MDP") {
		t.Errorf("a problem without an MDP: %v", err)
	}
	if _, err := (MixedActor{Phi: .1}).Act(nil); err == nil {
		t.Error("a mixture of no actor acted")
	}
	if _, err := (ExactCritic{}).Evaluate([]Context{{Problem: 3, Pi: problems[0].Pi0,
		Q: problems[0].MDP.R}}); err == nil || !strings.Contains(err.Error(), "problem 3") {
		t.Errorf("the exact critic without an MDP: %v", err)
	}
	if _, err := ExactPMD(0.8).Run(problems, 0); err == nil {
		t.Error("zero rounds were run")
	}
	if _, err := Score(problems, nil); err == nil {
		t.Error("no trajectories were scored")
	}
}

// inPlace is exact PMD that writes its results over what it is given.
type inPlace struct{}

func (inPlace) Act(batch []Context) ([]pmd.Policy, error) {
	out, err := RuleActor(pmd.PMD).Act(batch)
	for i, c := range batch {
		c.Q.Zero()
		c.Pi.Copy(out[i].Pi)
		out[i], batch[i] = pmd.Policy{Pi: c.Pi}, Context{}
	}
	return out, err
}

func (inPlace) Evaluate(batch []Context) ([]*mat.Dense, error) {
	out, err := ExactCritic{}.Evaluate(batch)
	for i, c := range batch {
		c.Pi.Zero()
		c.Q.Copy(out[i])
		out[i], batch[i] = c.Q, Context{}
	}
	return out, err
}

func TestPartsThatWriteOverTheirInputs(t *testing.T) {
	problems, untouched := draw(t, 7, 4, 2), draw(t, 7, 4, 2)
	want := testkit.Must(ExactPMD(0.8).Run(untouched, 4))(t)
	got := testkit.Must(Loop{Actor: inPlace{}, Critic: inPlace{}, Eta: 0.8}.Run(problems, 4))(t)
	for i := range want {
		if !mat.Equal(problems[i].Pi0, untouched[i].Pi0) {
			t.Errorf("problem %d: π₀ was written over", i)
		}
		for k := range want[i].Policies {
			if !mat.Equal(got[i].Policies[k], want[i].Policies[k]) || k < 4 && !mat.Equal(got[i].Q[k], want[i].Q[k]) {
				t.Errorf("problem %d round %d: the trajectory was written over", i, k)
			}
		}
	}
}

func TestScoreRefuses(t *testing.T) {
	problems := draw(t, 8, 4, 1)
	pi, uniform := problems[0].Pi0, problems[0].MDP.Uniform()
	one := func(q *mat.Dense, eta ...float64) Trajectory {
		return Trajectory{Policies: []*mat.Dense{pi, pi}, Q: []*mat.Dense{q}, Eta: eta}
	}
	for name, test := range map[string]struct {
		t    Trajectory
		want string
	}{
		"shape of Q": {one(mat.NewDense(3, 3, nil), 1), "round 0: mdp: Q is [3, 3]"},
		"no Q":       {one(nil, 1), "Q is missing"},
		"no steps":   {one(nil), "0 step sizes"},
		"a gap in Q": {Trajectory{Policies: []*mat.Dense{pi, pi, pi}, Q: []*mat.Dense{problems[0].MDP.R, nil},
			Eta: []float64{1, 1}}, "round 1: the round before had no critic call"},
		"another π₀":   {Trajectory{Policies: []*mat.Dense{uniform, pi}}, "does not begin"},
		"no π₀":        {Trajectory{Policies: []*mat.Dense{nil, pi}}, "policy is missing"},
		"nothing":      {Trajectory{}, "0 policies"},
		"later policy": {Trajectory{Policies: []*mat.Dense{pi, nil}}, "round 1: mdp: policy is missing"},
	} {
		if _, err := Score(problems, []Trajectory{test.t}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, test.want)
		}
	}
}

// TestUnderflow asks for rounds in which a probability falls below every float64 and comes
// back: in the first rounds state 0 sees the toll of 10⁴ and not yet what lies behind it.
func TestUnderflow(t *testing.T) {
	m := testkit.Must(mdp.New(.9, mat.NewDense(4, 2, []float64{1, 0, 0, 1, 1, 0, 0, 1}),
		mat.NewDense(2, 2, []float64{100, -1e4, 0, 1e4})))(t)
	for _, eta := range []float64{.8, 1e3, 1e6} {
		for _, start := range []float64{.5, 1e-300} {
			problem := mdp.Problem{MDP: m, Pi0: mat.NewDense(2, 2, []float64{1 - start, start, 1 - start, start})}
			trajectories := testkit.Must(ExactPMD(eta).Run([]mdp.Problem{problem}, 60))(t)
			scored := testkit.Must(Score([]mdp.Problem{problem}, trajectories))(t)
			gone := false
			for k, pi := range trajectories[0].Policies {
				gone = gone || pi.At(0, 1) == 0
				if k < 60 && scored[0].Zeta[k] != 0 {
					t.Errorf("η %v, start %v: the oracle has ζ_%d = %v", eta, start, k, scored[0].Zeta[k])
				}
			}
			if loss := scored[0].Loss[60]; loss > 1e-12 || start == .5 && eta == .8 && !gone {
				t.Errorf("η %v, start %v: loss %v after 60 rounds (a probability was 0: %v)", eta, start, loss, gone)
			}
		}
	}
}

// TestScheduleAndStart takes each round's step from a schedule and Q_0 from a function: the
// first round is then softmax(log π + η_0Q_0), and ζ is measured against the round's own η.
func TestScheduleAndStart(t *testing.T) {
	problems := draw(t, 12, 4, 2)
	loop := ExactPMD(99)
	loop.Schedule = func(k int) float64 { return 1 / float64(1+k) }
	loop.Start = func(p mdp.Problem) (*mat.Dense, error) { return p.MDP.R, nil }
	trajectories := testkit.Must(loop.Run(problems, 5))(t)
	scored := testkit.Must(Score(problems, trajectories))(t)
	for i, tr := range trajectories {
		want := testkit.Must(pmd.Step(problems[i].Pi0, problems[i].MDP.R, 1))(t)
		if !mat.Equal(tr.Policies[1], want) || len(tr.Eta) != 5 || tr.Eta[4] != .2 {
			t.Errorf("problem %d: steps %v, first policy %v", i, tr.Eta, mat.Formatted(tr.Policies[1]))
		}
		for k, zeta := range scored[i].Zeta {
			if zeta != 0 {
				t.Errorf("problem %d: ζ_%d = %v", i, k, zeta)
			}
		}
	}
	loop.Schedule = func(int) float64 { return -1 }
	if _, err := loop.Run(problems, 1); err == nil || !strings.Contains(err.Error(), "eta is -1") {
		t.Errorf("a negative step of a schedule: %v", err)
	}
}
