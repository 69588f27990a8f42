package experiment

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"icrl/internal/testkit"
	"icrl/policyattention/artifact"
	"icrl/policyattention/method"
	"icrl/policyattention/method/policyattention"
	"icrl/policyattention/train"
)

// open returns a store on a copy of the smoke artifacts, which a test may spoil.
func open(t *testing.T) *Store {
	t.Helper()
	work := t.TempDir()
	testkit.Check(t, os.CopyFS(work, os.DirFS(testkit.Smoke(t))))
	store := testkit.Must(Open(work, "smoke", "go"))(t)
	return store
}

func TestEvaluateOnce(t *testing.T) {
	s := open(t)
	for _, cell := range s.Preset.Plan() {
		e := testkit.Must(s.Find(cell))(t)
		before := testkit.Must(os.Stat(filepath.Join(e.Folder, artifact.ManifestFile)))(t)
		e = testkit.Must(s.Evaluate(t.Context(), cell))(t)
		after, err := os.Stat(filepath.Join(e.Folder, artifact.ManifestFile))
		if err != nil || !os.SameFile(before, after) || !before.ModTime().Equal(after.ModTime()) {
			t.Errorf("%s was computed again", cell.Name())
		}
	}
	left := testkit.Must(filepath.Glob(filepath.Join(s.Root(), artifact.WorkFolder, "*")))(t)
	for _, path := range left {
		if filepath.Ext(path) != ".lock" {
			t.Errorf("%s was left behind", path)
		}
	}
}

func TestMissing(t *testing.T) {
	s := testkit.Must(Open(t.TempDir(), "smoke", "go"))(t)
	for _, cell := range s.Preset.Plan() {
		if _, err := s.Find(cell); !errors.Is(err, artifact.ErrMissing) {
			t.Fatalf("%s: %v, want artifact.ErrMissing", cell.Name(), err)
		}
	}
}

// An actor for eight states and a critic for four have networks of one shape, but
// read other numbers of tokens: each has a program of its own.
func TestModelsOfOneShape(t *testing.T) {
	s := testkit.Must(Open(t.TempDir(), "smoke", "go"))(t)
	actor, critic := train.Standard(train.Proximal, train.Plain(), 1, 8), train.Standard(train.Critic, train.Plain(), 1, 4)
	if actor.Network() != critic.Network() {
		t.Fatalf("networks %+v and %+v", actor.Network(), critic.Network())
	}
	for _, c := range []*train.Config{&actor, &critic} {
		c.MDPs, c.Examples, c.Batch, c.Steps = 2, 4, 2, 1
		testkit.Must(s.Train(t.Context(), *c))(t)
	}
	if _, err := (&policyattention.Weights{Training: actor, Step: 1}).Actor(s.models); err != nil {
		t.Error(err)
	}
	if _, err := (&policyattention.Weights{Training: critic, Step: 1}).Critic(s.models, 1); err != nil {
		t.Error(err)
	}
}

// Losses come back as they were, in as few digits as tell them apart.
func TestLossesRoundTrip(t *testing.T) {
	dir := t.TempDir()
	losses := []float32{0.1, 1.0 / 3, 3e-8, 123456.7}
	testkit.Check(t, writeLosses(dir, losses))
	rows, err := artifact.ReadTable(filepath.Join(dir, lossFile), lossHeader)
	if err != nil || rows[0][1] != 0.1 {
		t.Errorf("%v, %v: want 0.1 as it is printed", rows, err)
	}
	got := testkit.Must((&TrainingRun{Config: train.Config{Steps: 4}, Folder: dir}).Losses())(t)
	for i, want := range losses {
		if got[i].Step != i+1 || float32(got[i].Mean) != want {
			t.Errorf("loss %d is %v, want %v", i+1, got[i], want)
		}
	}
	double := []float64{0.1, 1.0 / 3, 4.9e-324}
	testkit.Check(t, writeLosses(dir, double))
	want := []Loss{{1, double[0]}, {2, double[1]}, {3, double[2]}}
	if got, err = (&TrainingRun{Config: method.Descent{Steps: 3}, Folder: dir}).Losses(); err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

// A long run's losses are the means of stretches of equal length but for the
// last; a table that leaves some out is refused.
func TestLongLosses(t *testing.T) {
	dir := t.TempDir()
	steps := 2*lossRows + 3
	losses := make([]float32, steps)
	for i := range losses {
		losses[i] = float32(i)
	}
	testkit.Check(t, writeLosses(dir, losses))
	run := &TrainingRun{Config: train.Config{Steps: steps}, Folder: dir}
	got := testkit.Must(run.Losses())(t)
	last := Loss{steps, float64(steps) - 2} // of three steps, which count from 0 here
	if first := (Loss{4, 1.5}); len(got) > lossRows || got[0] != first || got[len(got)-1] != last {
		t.Errorf("%d rows from %v to %v, want at most %d from %v to %v", len(got), got[0], got[len(got)-1], lossRows, first, last)
	}
	for name, edit := range map[string]func(rows [][]float64) [][]float64{
		"end":    func(rows [][]float64) [][]float64 { return rows[:len(rows)-1] },
		"middle": func(rows [][]float64) [][]float64 { return slices.Delete(rows, 5, 6) },
		"all":    func([][]float64) [][]float64 { return nil },
	} {
		rows := testkit.Must(artifact.ReadTable(filepath.Join(dir, lossFile), lossHeader))(t)
		cut := &TrainingRun{Config: run.Config, Folder: t.TempDir()}
		testkit.Check(t, artifact.WriteTable(filepath.Join(cut.Folder, lossFile), lossHeader, edit(rows)))
		if _, err := cut.Losses(); err == nil {
			t.Errorf("read losses without their %s", name)
		}
	}
}

// A preset whose runs could not be made or told apart is refused when it is opened.
func TestPresetsRefused(t *testing.T) {
	paper := func(change func(*Protocol)) *Protocol {
		p := PaperProtocol
		change(&p)
		return &p
	}
	for want, change := range map[string]func(*Preset){
		"0 problems in block oracle": func(p *Preset) {
			p.Oracle, p.Rows = 0, []Row{{Block: Oracle, Method: ExactPMD, Sizes: []int{4}}}
		},
		"block long, and no horizons": func(p *Preset) {
			p.Protocol, p.Rows = paper(func(q *Protocol) { q.Long = nil }), []Row{{Block: Long, Method: ExactPMD, Sizes: []int{4}}}
		},
		"10 rounds, block oracle keeps round 40": func(p *Preset) {
			p.Protocol, p.Rows = paper(func(q *Protocol) { q.Rounds = 10 }), []Row{{Block: Oracle, Method: ExactPMD, Sizes: []int{4}}}
		},
		"the source's rate is NaN": func(p *Preset) {
			p.Rows = []Row{{Block: Benchmark, Method: Distillation, Recipe: "cpu-source-NaN", Sizes: []int{8}, Runs: 1}}
		},
		"two training runs of the name": func(p *Preset) { // the names leave out both usual budgets
			p.Steps, p.Ablation = 51_200, 6_400
			p.Rows = []Row{{Block: Benchmark, Method: PolicyAttention, Recipe: "plain", Sizes: []int{8}, Runs: 1}, {Block: Ablation, Method: PolicyAttention, Recipe: "plain", Sizes: []int{8}, Runs: 1}}
		},
	} {
		p := Presets["paper"]
		p.Limits, p.Brief = nil, nil
		change(&p)
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
