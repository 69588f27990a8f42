package train

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"icrl/internal/safetensors"
	"icrl/internal/testkit"
	"icrl/policyattention/backend"
)

// tiny is a configuration whose runs take a fraction of a second in pure Go.
// Batches of 7 do not divide the 20 examples, so epochs meet inside a batch.
func tiny(o Objective) Config {
	c := Standard(o, Plain(), 7, 3)
	c.Actions, c.MDPs, c.Examples, c.Samples, c.Batch, c.Steps = 2, 4, 20, 2, 7, 40
	c.Layers, c.Heads, c.Width, c.Hidden = 1, 2, 8, 8
	c.Recipe.Rounds = 5
	c.Snapshots = []int{13}
	return c
}

// recipesOf are those that an objective is trained with.
func recipesOf(o Objective) []Recipe {
	if o == Critic {
		return []Recipe{Plain()}
	}
	return []Recipe{Plain(), Prior()}
}

// run trains c in pure Go.
func run(ctx context.Context, t *testing.T, c Config, dir string, progress func(Progress)) (*Result, error) {
	t.Helper()
	j, err := c.Job()
	if err != nil {
		return nil, err
	}
	return j.Run(ctx, testkit.Backend(t), dir, progress)
}

func mustTrain(t *testing.T, c Config, dir string) *Result {
	t.Helper()
	return testkit.Must(run(context.Background(), t, c, dir, nil))(t)
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b := testkit.Must(os.ReadFile(path))(t)
	return b
}

// TestTrainLearns trains every objective and asks that its loss fell.
func TestTrainLearns(t *testing.T) {
	for _, o := range Objectives {
		c := tiny(o)
		c.Steps, c.Optimizer.LearningRate = 200, 1e-2
		r := mustTrain(t, c, t.TempDir())
		mean := func(x []float32) (sum float32) {
			for _, v := range x {
				sum += v / float32(len(x))
			}
			return sum
		}
		if first, last := mean(r.Losses[:20]), mean(r.Losses[180:]); !(last < first) {
			t.Errorf("%s: loss %v in the first 20 steps, %v in the last", o, first, last)
		}
	}
}

// A run of fewer steps ends in the weights that a longer one has after as many.
func TestShorterRun(t *testing.T) {
	c := tiny(Proximal)
	c.Recipe.Average = true
	short := c
	short.Steps, short.Snapshots = c.Snapshots[0], nil
	dir := t.TempDir()
	whole, part := mustTrain(t, c, t.TempDir()), mustTrain(t, short, dir)
	if whole.WallSeconds <= 0 || whole.CPUSeconds <= 0 || whole.StepsPerSecond <= 0 {
		t.Errorf("%v s, %v CPU s, %v steps/s", whole.WallSeconds, whole.CPUSeconds, whole.StepsPerSecond)
	}
	want := testkit.Must(Load(whole.Snapshots[short.Steps]))(t).Params
	got := testkit.Must(Load(part.Weights))(t).Params
	if end := testkit.Must(job(t, short).loadState(statePath(dir)))(t); !slices.Equal(got, end.optimizer.Average) ||
		slices.Equal(got, end.optimizer.Params) {
		t.Error("what is released is not the average over the steps")
	}
	if !slices.Equal(got, want) || !slices.Equal(part.Losses, whole.Losses[:short.Steps]) {
		t.Errorf("weights or losses of %d steps are not those of %d steps on the way", short.Steps, c.Steps)
	}
}

// hurry makes runs report and save after every step.
func hurry(t *testing.T) {
	save, report := saveEvery, reportEvery
	saveEvery, reportEvery = 0, 0
	t.Cleanup(func() { saveEvery, reportEvery = save, report })
}

// TestKilled kills a training process with SIGKILL at ten random moments; what
// is left resumes to the bytes of an uninterrupted run.
func TestKilled(t *testing.T) {
	c := tiny(Proximal)
	c.Steps = 4000
	if dir := os.Getenv("TRAIN_AND_BE_KILLED"); dir != "" {
		hurry(t)
		mustTrain(t, c, dir)
		return
	}
	whole := mustTrain(t, c, t.TempDir())
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(3, 4))
	for range 10 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		cmd.Env = append(os.Environ(), "TRAIN_AND_BE_KILLED="+dir)
		testkit.Check(t, cmd.Start())
		// Wait for progress, so that each kill falls inside the run.
		before, _ := os.Stat(filepath.Join(dir, "state.safetensors"))
		for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
			now, err := os.Stat(filepath.Join(dir, "state.safetensors"))
			if err == nil && (before == nil || now.ModTime().After(before.ModTime())) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatal("the process saved nothing")
			}
		}
		time.Sleep(time.Duration(rng.IntN(30_000)) * time.Microsecond)
		testkit.Check(t, cmd.Process.Kill())
		cmd.Wait() //nolint:errcheck // it was killed
	}
	if s, err := job(t, c).loadState(filepath.Join(dir, "state.safetensors")); err != nil || s.step == 0 ||
		s.step == c.Steps {
		t.Fatalf("after the kills the run is at step %d: %v", s.step, err)
	}
	parts := mustTrain(t, c, dir)
	if !bytes.Equal(read(t, parts.Weights), read(t, whole.Weights)) ||
		!bytes.Equal(read(t, parts.Snapshots[13]), read(t, whole.Snapshots[13])) {
		t.Error("weights differ after kills")
	}
	if !slices.Equal(parts.Losses, whole.Losses) {
		t.Error("losses differ after kills")
	}
	again := mustTrain(t, c, dir)
	if again.WallSeconds != parts.WallSeconds || !slices.Equal(again.Losses, parts.Losses) {
		t.Error("a finished run was not returned as it was")
	}
}

func TestTrainErrors(t *testing.T) {
	c := tiny(Proximal)
	dir := t.TempDir()
	r := mustTrain(t, c, dir)
	statePath := filepath.Join(dir, "state.safetensors")
	sealed := read(t, statePath)
	weights := read(t, r.Weights)
	train := func(c Config) error {
		_, err := run(context.Background(), t, c, dir, nil)
		return err
	}
	edit := func(b []byte, at int) []byte {
		b = bytes.Clone(b)
		b[at] ^= 1
		return b
	}
	// resealed is a state whose digest is right and whose content is not.
	resealed := func(change func(f *safetensors.File)) []byte {
		f := testkit.Must(safetensors.Unmarshal(sealed))(t)
		change(f)
		f.Metadata["sha256"] = testkit.Must(digest(f))(t)
		return testkit.Must(safetensors.Marshal(f))(t)
	}
	for _, tc := range []struct {
		name  string
		state []byte
		want  string
	}{
		{"truncated", sealed[:len(sealed)/2], "ends at byte"},
		{"empty", nil, "ends before"},
		{"a value edited", edit(sealed, len(sealed)-3), "changed"},
		{"wrong shape", resealed(func(f *safetensors.File) {
			f.Tensors[0].Data, f.Tensors[0].Shape = []float32{1}, []int{1}
		}), "1 values of params"},
		{"no parameters", resealed(func(f *safetensors.File) { f.Tensors[0].Name = "other" }), "no tensor"},
		{"step beyond the end", resealed(func(f *safetensors.File) { f.Metadata["step"] = "41" }), "at step"},
		{"no configuration", resealed(func(f *safetensors.File) { delete(f.Metadata, "config") }), "no configuration"},
	} {
		testkit.Check(t, os.WriteFile(statePath, tc.state, 0o644))
		if err := train(c); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("state %s: error %v, want one with %q", tc.name, err, tc.want)
		}
	}
	testkit.Check(t, os.WriteFile(statePath, sealed, 0o644))
	other := c
	other.Seed++
	if err := train(other); err == nil || !strings.Contains(err.Error(), "another configuration") {
		t.Errorf("another configuration: error %v", err)
	}
	testkit.Check(t, os.WriteFile(r.Weights, edit(weights, len(weights)-3), 0o644))
	if _, err := Load(r.Weights); err == nil || !strings.Contains(err.Error(), "changed") {
		t.Errorf("edited weights: error %v", err)
	}
	// Training repairs its released weights from its own state.
	if err := train(c); err != nil || !bytes.Equal(read(t, r.Weights), weights) {
		t.Errorf("weights were not restored: %v", err)
	}
	lock := flock.New(filepath.Join(dir, "lock"))
	testkit.Check(t, lock.Lock())
	if err := train(c); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("locked folder: error %v", err)
	}
	lock.Unlock() //nolint:errcheck
	if _, err := run(context.Background(), t, c, filepath.Join(r.Weights, "below-a-file"), nil); err == nil {
		t.Error("an unusable folder does not err")
	}
}

func TestValidate(t *testing.T) {
	for want, change := range map[string]func(*Config){
		"objective":    func(c *Config) { c.Objective = "x" },
		"policy input": func(c *Config) { c.Recipe.Policy = "x" },
		"readout":      func(c *Config) { c.Recipe.Readout = "" },
		"distribution": func(c *Config) { c.Recipe.Contexts = "x" },
		"early":        func(c *Config) { c.Recipe.Early = -1 },
		"range":        func(c *Config) { c.Recipe.EtaMin = 0 },
		"sizes":        func(c *Config) { c.Sizes = nil },
		"slots":        func(c *Config) { c.Slots = 2 },
		"one size":     func(c *Config) { c.Sizes = []int{3, 4} },
		"no readout":   func(c *Config) { c.Objective, c.Recipe.Readout = Critic, PriorReadout },
		"actions":      func(c *Config) { c.Actions = 1 },
		"NaN to":       func(c *Config) { c.Recipe.EtaMin = math.NaN() },
		"examples":     func(c *Config) { c.Examples = 1 << 62 },
		"MDPs":         func(c *Config) { c.MDPs = 1 << 62 },
		"2^30":         func(c *Config) { c.Steps = 1 << 62 },
		"want at most": func(c *Config) { c.Slots, c.Sizes = 1<<62, []int{1 << 62} },
		"batches":      func(c *Config) { c.Batch = 21 },
		"steps":        func(c *Config) { c.Steps = 0 },
		"snapshots":    func(c *Config) { c.Snapshots = []int{41} },
		"samples":      func(c *Config) { c.Objective, c.Samples = Critic, 0 },
		"optimizer":    func(c *Config) { c.Optimizer.Beta2 = 1 },
		"heads do not": func(c *Config) { c.Heads = 3 },
	} {
		c := tiny(Proximal)
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
		if _, err := run(context.Background(), t, c, t.TempDir(), nil); err == nil {
			t.Errorf("training with bad %s does not err", want)
		}
		if _, err := NewModel(c, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a model with bad %s: error %v", want, err)
		}
	}
	if err := tiny(Proximal).Validate(); err != nil {
		t.Error(err)
	}
}

// TestNaN: no number from which training could not recover reaches the device.
func TestNaN(t *testing.T) {
	_, err := Arrays(2, func(i int) ([][]float64, error) {
		return [][]float64{{0, 0, math.Sqrt(-float64(i)), 0}}, nil
	}, []int{2, 2})
	if err == nil || !strings.Contains(err.Error(), "example 1 ") {
		t.Errorf("error %v, want one about example 1", err)
	}
	// A loss that overflows ends the run and leaves the last good state.
	c := tiny(Critic)
	c.Optimizer.LearningRate = 1e5
	c.Optimizer.WeightDecay = 1e5
	if _, err := run(context.Background(), t, c, t.TempDir(), nil); err == nil ||
		!strings.Contains(err.Error(), "loss of step") {
		t.Errorf("diverging run: error %v", err)
	}
}

// What is exported has the shapes that other programs are told, and the batches of a run.
func TestExport(t *testing.T) {
	for _, o := range []Objective{Proximal, Critic} {
		c := tiny(o)
		path := filepath.Join(t.TempDir(), "start.safetensors")
		testkit.Check(t, job(t, c).Export(path, 3))
		file := testkit.Must(safetensors.ReadFile(path))(t)
		shapes := map[string][]int{}
		for _, x := range file.Tensors {
			shapes[x.Name] = x.Shape
		}
		if got, want := shapes["index"], []int{3, c.Batch}; !slices.Equal(got, want) {
			t.Errorf("%s: index has shape %v, want %v", o, got, want)
		}
		if got := shapes["tokens"]; len(got) != 3 || got[0] != c.Examples || got[2] != c.Network().Features {
			t.Errorf("%s: tokens have shape %v, want [%d, L, %d]", o, got, c.Examples, c.Network().Features)
		}
		index, err := safetensors.Get[int32](file, "index")
		testkit.Check(t, err)
		if batch := c.order()(2); !slices.Equal(index[2*c.Batch:], batch) {
			t.Errorf("%s: the third batch is %v", o, index[2*c.Batch:])
		}
	}
}

// TestBatches: every epoch visits every example once, and a batch depends on
// its step alone.
func TestBatches(t *testing.T) {
	c := tiny(Proximal)
	batch := c.order()
	var visited []int32
	var batches [][]int32
	for step := range 40 {
		x := batch(step)
		visited, batches = append(visited, x...), append(batches, x)
	}
	for epoch := range len(visited) / c.Examples {
		seen := slices.Clone(visited[epoch*c.Examples:][:c.Examples])
		slices.Sort(seen)
		for i, v := range seen {
			if int(v) != i {
				t.Fatalf("epoch %d visits %v", epoch, seen)
			}
		}
	}
	fresh := c.order()
	for _, step := range []int{31, 2, 17} {
		if x := fresh(step); !slices.Equal(x, batches[step]) {
			t.Errorf("batch of step %d depends on earlier calls", step)
		}
	}
}

func TestStreamsAreDisjoint(t *testing.T) {
	seen := map[uint64]bool{}
	for id := range uint64(100) {
		c := tiny(Proximal)
		c.Seed, c.Task = id, id
		for _, root := range []uint64{c.taskRoot(), CalibrationRoot(id)} {
			if seen[root] || root < 1<<20 {
				t.Errorf("root %d of identity %d may meet another one", root, id)
			}
			seen[root] = true
		}
	}
}

// A run that goes on on another backend or another processor says which of them made which steps.
func TestStretches(t *testing.T) {
	c, dir, here := tiny(Proximal), t.TempDir(), backend.Processor()
	c.Snapshots, c.Steps = nil, 3
	hurry(t)
	for step, want := range [][]backend.Stretch{
		{{Backend: "go", CPU: here, Step: 1}}, {{Backend: "go", CPU: here, Step: 2}},
		{{Backend: "xla:cpu", CPU: "Another", Step: 2}, {Backend: "go", CPU: here, Step: 3}},
	} {
		if step == 2 { // those before were made elsewhere
			f := testkit.Must(open(statePath(dir)))(t)
			f.Metadata["stretches"] = `[{"backend":"xla:cpu","cpu":"Another","step":2}]`
			testkit.Check(t, write(statePath(dir), f))
		}
		ctx, cancel := context.WithCancel(t.Context())
		_, err := run(ctx, t, c, dir, func(Progress) { cancel() }) // after a step
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if got := testkit.Must(job(t, c).loadState(statePath(dir)))(t).stretches; !slices.Equal(got, want) {
			t.Errorf("after step %d: stretches %v, want %v", step+1, got, want)
		}
	}
}
