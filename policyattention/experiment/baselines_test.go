package experiment

import (
	"errors"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/artifact"
	"icrl/policyattention/baseline"
	"icrl/policyattention/baseline/distill"
	"icrl/policyattention/baseline/lianglai"
	"icrl/policyattention/control"
	"icrl/policyattention/pmd"
	"icrl/policyattention/stats"
)

// The folders that corruptions of the baselines are planted in.
const (
	block     = "train/liang-lai-S8-18100"
	network   = "train/algorithm-distillation-source32-context60-steps5-S8-18100"
	imitator  = "benchmark/liang-lai-tuned-S8-18100"
	distilled = "benchmark/algorithm-distillation-cpu-tuned-S8-18100"
	grid      = "tuning/liang-lai-S8"
	tuned     = "tuning/algorithm-distillation-cpu-tuned-S8-18100"
	native    = "qualification/liang-lai-native-S9-17100"
)

func init() { corruptions = append(corruptions, ofBaselines...) }

var ofBaselines = []corruption{
	{"byte of a block, resealed", []string{block}, func(t *testing.T, f string) {
		editBlock(t, f, func(t lianglai.Config, _ *lianglai.Trained) lianglai.Config { t.Seed++; return t })
	}, "weights.safetensors: it holds step 100 of configuration"},
	{"edited block", []string{imitator, block}, func(t *testing.T, f string) {
		folders, err := filepath.Glob(filepath.Join(f, "../../", block+"-*"))
		if err != nil || len(folders) != 1 {
			t.Fatalf("%v: %v", folders, err)
		}
		editBlock(t, folders[0], func(t lianglai.Config, b *lianglai.Trained) lianglai.Config {
			b.Block.V.Scale(1.01, b.Block.V)
			return t
		})
		digest := testkit.Must(artifact.FileDigest(filepath.Join(folders[0], "weights.safetensors")))(t)
		reseal(func(m *artifact.Manifest) { m.Weights["liang-lai-S8-18100"] = digest })(t, f)
	}, "the controller, replayed, differs"},
	{"better policies of a block, rescored", []string{imitator, block}, plantBetterPolicies, "the controller, replayed, differs"},
	{"edited step size", []string{imitator, block}, editJSON(1, `"alpha":32`, `"alpha":33`), "its cell or configuration is not that of its hash"},
	{"edited action", []string{distilled, network}, editArray("actions", func(data []float64) { data[5] = float64((int(data[5]) + 1) % 3) }), "is not the one that was drawn"},
	{"invalid action", []string{distilled, network}, editArray("actions", func(data []float64) { data[5] = 0.5 }), "0.5 is no action"},
	{"edited policy of a network", []string{distilled, network}, editArray("policies", func(data []float64) { data[48], data[49] = data[49], data[48] }), "the controller, replayed, differs"},
	{"edited policy of a kept round", []string{tuned, network}, editArray("policies", func(data []float64) { data[3], data[4] = data[4], data[3] }), "the controller, replayed, differs"},
	{"edited loss of a kept round", []string{tuned, network}, editTable(roundsFile, roundsHeader, func(rows [][]float64) { rows[20][2] -= 1e-6 }), roundsFile + ": row 21: column loss"},
	{"edited loss of another round", []string{tuned, network}, editTable(roundsFile, roundsHeader, func(rows [][]float64) { rows[21][2] -= 0.1 }), roundsFile + ": row 22: column loss"},
	{"other rounds", []string{distilled, network}, editArray("rounds", func(data []float64) { data[0] = 19 }), "array rounds is [19 40]"},
	{"edited score", []string{grid}, editTable("scores.csv.gz", lianglai.Tuning{}.Tables()[0].Columns, func(rows [][]float64) { rows[4][3] -= 0.01 }), "scores.csv.gz: row 5: column loss_T20"},
	{"edited choice", []string{grid}, reseal(func(m *artifact.Manifest) { m.Summary["uniform"]["alpha"] *= 2 }), "its summary says uniform alpha"},
	{"edited curve", []string{native, "train/liang-lai-S9-17100"}, editTable("curves.csv.gz", lianglai.ImitationConfig{}.Tables()[0].Columns, func(rows [][]float64) { rows[7][1] += 1e-6 }), "curves.csv.gz: row 8: column learned"},
	{"edited update error", []string{native, "train/liang-lai-S9-17100"}, reseal(func(m *artifact.Manifest) { m.Summary["update"]["median_relative_error"] = 1e-3 }), "its summary says update median_relative_error"},
}

// editBlock edits a trained block and makes the digests agree.
func editBlock(t *testing.T, folder string, edit func(lianglai.Config, *lianglai.Trained) lianglai.Config) {
	t.Helper()
	path := filepath.Join(folder, "weights.safetensors")
	recipe, trained, err := lianglai.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	recipe = edit(recipe, trained)
	testkit.Check(t, recipe.Write(path, trained))
	reseal(nil)(t, folder)
}

// find returns the result of the cell called name.
func find(t *testing.T, s *Store, name string) *Evaluation {
	t.Helper()
	for _, cell := range s.Preset.Plan() {
		if cell.Name() == name {
			e := testkit.Must(s.Find(cell))(t)
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
	problems := testkit.Must(e.Config.Fixtures.Draw())(t)
	teacher := baseline.Teacher{Steps: baseline.StepSizes{Alpha: 2, Beta: 0.2}, Start: baseline.Initial, Root: 18100}
	want := testkit.Must(teacher.Run(problems, e.Config.Loop.Rounds))(t)
	scored := testkit.Must(control.Score(problems, want))(t)
	for i := range scored {
		for k, loss := range scored[i].Loss {
			if math.Abs(e.Scored[i].Loss[k]-loss) > 0.02 { // smoke's block is off by 1e-3 or so in an update
				t.Fatalf("problem %d, round %d: loss %v, the teacher's is %v", i, k, e.Scored[i].Loss[k], loss)
			}
		}
	}
}

// followed attaches what exact evaluation by a loop makes of the policies.
func TestFollowedIsTheExactCritic(t *testing.T) {
	s := open(t)
	e := find(t, s, "oracle/exact-pmd-S4")
	problems := testkit.Must(e.Config.Fixtures.Draw())(t)
	want := testkit.Must(control.ExactPMD(0.8).Run(problems[:2], 5))(t)
	got := []control.Trajectory{{Policies: want[0].Policies}, {Policies: want[1].Policies}}
	testkit.Check(t, (&LoopConfig{Eta: 0.8}).followed(problems[:2], got))
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
	s := testkit.Must(Open("../../artifacts", "paper", "go"))(t)
	losses := map[int]map[string]float64{8: {}, 16: {}}
	for _, cell := range s.Preset.Plan() {
		if cell.Block != Tuning || cell.Method != Distillation {
			continue
		}
		e, err := s.Find(cell)
		if errors.Is(err, artifact.ErrMissing) {
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
		want := "cpu-source-" + strconv.FormatFloat(PaperProtocol.Sizes[states].Tuned["source"].Alpha, 'g', -1, 64)
		if rates[best] != want {
			t.Errorf("S=%d: the lowest loss is that of %s, the protocol has %s", states, rates[best], want)
		}
	}
}

// The step sizes of the protocol are what the stored tuning of the paper preset
// chose, past the paper's, and inside its grid.
func TestTunedStepsAreTheTuningsChoice(t *testing.T) {
	s := testkit.Must(Open("../../artifacts", "paper", "go"))(t)
	for _, cell := range s.Preset.Plan() {
		if cell.Block != Tuning || cell.Method != LiangLai || cell.Recipe != "" {
			continue
		}
		e, err := s.Find(cell)
		if errors.Is(err, artifact.ErrMissing) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		tuned := PaperProtocol.Sizes[cell.S].Tuned
		for start, want := range map[baseline.Start]baseline.StepSizes{baseline.Initial: tuned["initial"], baseline.Uniform: tuned["uniform"]} {
			best, inside, err := baseline.BestFrom(e.Found.([]baseline.Score), start)
			if err != nil {
				t.Fatal(err)
			}
			if best.StepSizes != want || !inside || best.Alpha <= 2 {
				t.Errorf("S=%d from the %s policy: the protocol has %+v, the best is %+v, inside %v", cell.S, start, want, best, inside)
			}
		}
		if best, _, err := baseline.Best(e.Found.([]baseline.Score)); err != nil || best.Start != baseline.Uniform {
			t.Errorf("S=%d: the best is %+v, the recipe tuned starts from the uniform policy: %v", cell.S, best, err)
		}
	}
}
