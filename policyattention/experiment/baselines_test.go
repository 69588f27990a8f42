package experiment

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/baseline/distill"
	"icrl/policyattention/control"
	"icrl/policyattention/pmd"
	"icrl/policyattention/stats"
)

// find returns the result of the cell called name.
func find(t *testing.T, s *Store, name string) *Evaluation {
	t.Helper()
	for _, cell := range s.Preset.Plan() {
		if cell.Name() == name {
			e, err := s.Find(cell)
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
	}
	t.Fatalf("the preset has no cell %s", name)
	return nil
}

// The losses of Liang–Lai at the paper's step sizes are those of its teacher with
// the same start and random numbers.
func TestLiangLaiFollowsTheTeacher(t *testing.T) {
	e := find(t, open(t), "benchmark/liang-lai-paper-S8-18100")
	problems, err := e.Config.Fixtures.Draw()
	if err != nil {
		t.Fatal(err)
	}
	teacher := baseline.Teacher{Steps: baseline.Steps{Alpha: 2, Beta: 0.2}, Start: baseline.Initial, Root: 18100}
	want, err := teacher.Run(problems, e.Config.Loop.Rounds)
	if err != nil {
		t.Fatal(err)
	}
	scored, err := control.Score(problems, want)
	if err != nil {
		t.Fatal(err)
	}
	for i := range scored {
		for k, loss := range scored[i].Loss {
			if math.Abs(e.Scored[i].Loss[k]-loss) > 0.02 { // smoke's block errs by 1e-3 or so in an update
				t.Fatalf("problem %d, round %d: loss %v, the teacher's is %v", i, k, e.Scored[i].Loss[k], loss)
			}
		}
	}
}

// followed attaches what exact evaluation by a loop makes of the policies.
func TestFollowedIsTheExactCritic(t *testing.T) {
	s := open(t)
	e := find(t, s, "oracle/exact-pmd-S4")
	problems, err := e.Config.Fixtures.Draw()
	if err != nil {
		t.Fatal(err)
	}
	want, err := control.ExactPMD(0.8).Run(problems[:2], 5)
	if err != nil {
		t.Fatal(err)
	}
	got := []control.Trajectory{{Policies: want[0].Policies}, {Policies: want[1].Policies}}
	if err := (&LoopConfig{Eta: 0.8}).followed(problems[:2], got); err != nil {
		t.Fatal(err)
	}
	for i := range got {
		for k, q := range want[i].Q {
			if !mat.Equal(q, got[i].Q[k]) {
				t.Errorf("problem %d: table %d differs", i, k)
			}
		}
		next, err := pmd.Step(got[i].Policies[2], got[i].Q[2], got[i].Eta)
		if err != nil || !mat.Equal(next, got[i].Policies[3]) {
			t.Errorf("problem %d: exact PMD deviates from itself: %v", i, err)
		}
	}
}

func TestNoSuchBaselineCell(t *testing.T) {
	for _, c := range []Cell{
		{Preset: "paper", Block: Benchmark, Method: LiangLai, Recipe: "paper", S: 4, Seed: 14100}, // the paper has no step sizes
		{Preset: "paper", Block: Benchmark, Method: LiangLai, Recipe: "plain", S: 8, Seed: 18100},
		{Preset: "paper", Block: Benchmark, Method: LiangLai, Recipe: "paper", S: 8, Seed: 1},
		{Preset: "paper", Block: Benchmark, Method: Distillation, Recipe: "plain", S: 8, Seed: 18100},
		{Preset: "paper", Block: Qualification, Method: LiangLai, Recipe: "native", S: 8, Seed: 18100},
	} {
		if _, err := Presets["paper"].Config(c); err == nil || !strings.Contains(err.Error(), c.Name()) {
			t.Errorf("%s: %v", c.Name(), err)
		}
	}
}

// The source rates of the protocol are those of the lowest stored loss, once the
// rates on either side of the lowest have been tried.
func TestTunedSourceIsTheTuningsChoice(t *testing.T) {
	s, err := Open("../../artifacts", "paper", "go")
	if err != nil {
		t.Fatal(err)
	}
	losses := map[int]map[string]float64{8: {}, 16: {}}
	for _, cell := range s.Preset.Plan() {
		if cell.Block != Tuning || cell.Method != Distillation {
			continue
		}
		e, err := s.Find(cell)
		if errors.Is(err, ErrMissing) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		losses[cell.S][cell.Recipe] = stats.Median(e.Losses(20))
	}
	for states, of := range losses {
		rates := distill.Method.Recipes
		best := -1
		for i, rate := range rates {
			if loss, ok := of[rate]; ok && (best < 0 || loss < of[rates[best]]) {
				best = i
			}
		}
		if best < 1 || best == len(rates)-1 {
			t.Logf("S=%d: the lowest loss is at no inner rate yet", states)
			continue
		}
		if _, below := of[rates[best-1]]; !below {
			continue
		}
		if _, above := of[rates[best+1]]; !above {
			continue
		}
		want := "cpu-source-" + strconv.FormatFloat(Protocol.Sizes[states].Tuned["source"].Alpha, 'g', -1, 64)
		if rates[best] != want {
			t.Errorf("S=%d: the lowest loss is that of %s, the protocol has %s", states, rates[best], want)
		}
	}
}

// The step sizes of the protocol are what the stored tuning of the paper preset
// chose, past the paper's, and inside its grid.
func TestTunedStepsAreTheTuningsChoice(t *testing.T) {
	s, err := Open("../../artifacts", "paper", "go")
	if err != nil {
		t.Fatal(err)
	}
	for _, cell := range s.Preset.Plan() {
		if cell.Block != Tuning || cell.Method != LiangLai || cell.Recipe != "" {
			continue
		}
		e, err := s.Find(cell)
		if errors.Is(err, ErrMissing) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		tuned := Protocol.Sizes[cell.S].Tuned
		for start, want := range map[baseline.Start]baseline.Steps{baseline.Initial: tuned["initial"], baseline.Uniform: tuned["uniform"]} {
			best, inside, err := baseline.BestFrom(e.Found.([]baseline.Score), start)
			if err != nil {
				t.Fatal(err)
			}
			if best.Steps != want || !inside || best.Alpha <= 2 {
				t.Errorf("S=%d from the %s policy: the protocol has %+v, the best is %+v, inside %v", cell.S, start, want, best, inside)
			}
		}
		if best, _, err := baseline.Best(e.Found.([]baseline.Score)); err != nil || best.Start != baseline.Uniform {
			t.Errorf("S=%d: the best is %+v, the recipe tuned starts from the uniform policy: %v", cell.S, best, err)
		}
	}
}
