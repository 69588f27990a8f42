package train

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/internal/testkit"
	"icrl/internal/testkit/graphs"
	"icrl/policyattention/backend"
	_ "icrl/policyattention/backend/xla"
	"icrl/policyattention/transformer/fused"
)

// backends calls a test with the pure-Go backend and with XLA where there is
// its plugin.
func backends(t *testing.T, test func(t *testing.T, b compute.Backend)) {
	for _, name := range []string{"go", "xla:cpu"} {
		t.Run(name, func(t *testing.T) { test(t, start(t, name)) })
	}
}

// start returns a backend, for one test, and skips the test without its plugin.
func start(t *testing.T, name string) compute.Backend {
	t.Helper()
	if testing.Short() && name != "go" {
		t.Skip("XLA compiles for long")
	}
	b, err := backend.New(name)
	if errors.Is(err, backend.ErrNoPlugin) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Finalize)
	return b
}

// together trains runs to their ends and returns where they are.
func together(t *testing.T, b compute.Backend, e Execution, configs ...Config) []*Result {
	t.Helper()
	var runs []Run
	for _, c := range configs {
		runs = append(runs, Run{Job: c.job(), Dir: t.TempDir()})
	}
	results := testkit.Must(RunTogether(t.Context(), b, e, runs))(t)
	return results
}

// same compares two runs of one configuration: the executables differ, and so
// does the order in which they sum, so losses and weights differ by float32
// rounding, after 40 steps of a tiny network by some units in 1e-7. Left out are
// the biases that a softmax does not see, those of keys and, of actors, those
// that add the same to all logits: their gradient is nothing but rounding, and
// Adam makes whole steps of it.
func same(t *testing.T, what string, got, want *Result) {
	t.Helper()
	const tolerance = 5e-6
	near := func(what string, got, want []float32) {
		t.Helper()
		if len(got) != len(want) {
			t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
		}
		for i := range got {
			if d := math.Abs(float64(got[i] - want[i])); !(d <= tolerance*max(1, math.Abs(float64(want[i])))) {
				t.Fatalf("%s: value %d is %v, want %v", what, i, got[i], want[i])
			}
		}
	}
	near(what+": losses", got.Losses, want.Losses)
	c, _, _, err := ReadWeights(want.Weights)
	if err != nil {
		t.Fatal(err)
	}
	seen := func(params []float32) []float32 {
		for _, p := range c.Network().Layout() {
			switch {
			case strings.HasSuffix(p.Name, "qkv.bias"):
				clear(params[p.Offset+c.Width:][:c.Width])
			case c.Objective != Critic && (p.Name == "norm.bias" || p.Name == "head.bias"):
				clear(params[p.Offset:][:p.Size()])
			}
		}
		return params
	}
	paths := [][2]string{{got.Weights, want.Weights}}
	for step := range want.Snapshots {
		paths = append(paths, [2]string{got.Snapshots[step], want.Snapshots[step]})
	}
	for _, p := range paths {
		_, gotStep, gotParams, err := ReadWeights(p[0])
		if err != nil {
			t.Fatal(err)
		}
		_, wantStep, wantParams, err := ReadWeights(p[1])
		if err != nil {
			t.Fatal(err)
		}
		if gotStep != wantStep {
			t.Errorf("%s: weights of step %d, want %d", what, gotStep, wantStep)
		}
		near(what+": weights", seen(gotParams), seen(wantParams))
	}
}

// Every way of execution gives the results of a call a step and a run at a
// time: loops on the device whose lengths divide neither the steps nor the
// snapshots, and several identities at once. (In pure Go there are no loops.)
func TestExecutionsAgree(t *testing.T) {
	backends(t, func(t *testing.T, b compute.Backend) {
		one, two, critic := tiny(Proximal), tiny(Proximal), tiny(Critic)
		two.Seed++
		two.Task++
		alone := []*Result{together(t, b, Execution{}, one)[0], together(t, b, Execution{}, two)[0]}
		for i, r := range together(t, b, Execution{StepsPerCall: 7}, one, two) {
			same(t, "together", r, alone[i])
		}
		same(t, "in one loop", together(t, b, Execution{StepsPerCall: 100}, one)[0], alone[0])
		same(t, "a critic in loops", together(t, b, Execution{StepsPerCall: 7}, critic)[0], together(t, b, Execution{}, critic)[0])
	})
}

// A batch in parts has the loss and the gradient of the batch, of which the first
// moment after one step is a tenth. One core takes all parts; [TestCoresAgree] is on more.
// Actors differ in what is made of the outputs only, so one stands for them.
func TestPartsAgree(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	b := start(t, "xla:cpu")
	for _, objective := range []Objective{Proximal, Critic} {
		c := tiny(objective)
		c.Batch, c.Examples = 512, 512
		j := c.job()
		whole, parted := j.start(), j.start()
		g := testkit.Must(newGroup(b, Execution{}, []Job{j}, []*state{&whole}))(t)
		defer g.finalize()
		several := testkit.Must(newCores(b, j, &parted))(t)
		defer several.finalize()
		if len(several.gradients) < 4 {
			t.Errorf("%s: %d parts, want 4 at least", objective, len(several.gradients))
		}
		for _, run := range []struct {
			stepper
			s *state
		}{{g, &whole}, {several, &parted}} {
			losses := testkit.Must(run.steps(1))(t)
			testkit.Check(t, run.read(0, run.s))
			run.s.losses = losses[0]
		}
		if got, want := float64(parted.losses[0]), float64(whole.losses[0]); !(math.Abs(got-want) <= 1e-5*math.Abs(want)) {
			t.Errorf("%s: loss %v in parts, %v in one", objective, got, want)
		}
		largest := float64(slices.Max(whole.m))
		for i, want := range whole.m {
			// Rounding of float32 sums over the batch.
			if got := parted.m[i]; !(math.Abs(float64(got-want)) <= 1e-5*max(largest, math.Abs(float64(want)))) {
				t.Fatalf("%s: first moment %d is %v in parts, %v in one", objective, i, got, want)
			}
		}
	}
}

// Passes are for two cores, and for caches.
func TestParts(t *testing.T) {
	b := start(t, "xla:cpu")
	for _, tc := range []struct {
		objective    Objective
		states, want int
	}{{Proximal, 4, 2}, {Proximal, 8, 2}, {Proximal, 16, 4}, {Critic, 4, 8}, {Critic, 8, 16}} {
		c, k := Standard(tc.objective, Plain(), 1, tc.states), tc.states*3
		tokens := k
		if tc.objective == Critic {
			tokens = 7 * k
		}
		gotN, gotB, gotT, gotK := c.Passes(b)
		if got, want := [4]int{gotN, gotB, gotT, gotK}, [4]int{tc.want, 64 / tc.want, tokens, k}; got != want {
			t.Errorf("%s at S = %d: passes %v, want %v", tc.objective, tc.states, got, want)
		}
	}
}

// Several cores compute what one does, to the bit: an actor in two parts, which stands for
// all, and a critic in four or more.
func TestCoresAgree(t *testing.T) {
	backends(t, func(t *testing.T, b compute.Backend) {
		for objective, batch := range map[Objective]int{Proximal: 128, Critic: 512} {
			c := tiny(objective)
			c.Batch, c.Examples = batch, 512
			j := c.job()
			run := func() state {
				s := j.start()
				several := testkit.Must(newStepper(b, Execution{}, []Job{j}, []*state{&s}))(t)
				defer several.finalize()
				losses := testkit.Must(several.steps(10))(t)
				testkit.Check(t, several.read(0, &s))
				s.losses = losses[0]
				return s
			}
			shared := run()
			processors := runtime.GOMAXPROCS(1)
			alone := run()
			runtime.GOMAXPROCS(processors)
			for what, pair := range map[string][2][]float32{
				"losses": {alone.losses, shared.losses}, "parameters": {alone.params, shared.params},
				"first moments": {alone.m, shared.m}, "second moments": {alone.v, shared.v}, "averages": {alone.average, shared.average},
			} {
				if !slices.Equal(pair[0], pair[1]) {
					t.Errorf("%s, batches of %d: %s differ between one core and several", objective, batch, what)
				}
			}
		}
	})
}

// Runs that were interrupted together or apart end in the same bytes.
func TestInterruptedTogether(t *testing.T) {
	hurry(t)
	b := graphs.Backend(t)
	one, two := tiny(Proximal), tiny(Proximal)
	two.Seed++
	e := Execution{StepsPerCall: 3}
	whole := together(t, b, e, one, two)
	runs := []Run{{Job: one.job(), Dir: t.TempDir()}, {Job: two.job(), Dir: t.TempDir()}}
	interrupt := func(after int, runs ...Run) {
		t.Helper()
		ctx, cancel := context.WithCancelCause(context.Background())
		cause := errors.New("enough")
		runs = slices.Clone(runs)
		runs[0].Progress = func(Progress) {
			if after--; after == 0 {
				cancel(cause)
			}
		}
		if _, err := RunTogether(ctx, b, e, runs); !errors.Is(err, cause) {
			t.Fatalf("interrupted runs returned %v", err)
		}
	}
	interrupt(2, runs...)
	interrupt(3, runs[1]) // now ahead of the other
	interrupt(1, runs...)
	parts := testkit.Must(RunTogether(t.Context(), b, e, runs))(t)
	for i := range parts {
		if !slices.Equal(parts[i].Losses, whole[i].Losses) || !bytes.Equal(read(t, parts[i].Weights), read(t, whole[i].Weights)) {
			t.Errorf("run %d differs after interruptions", i)
		}
	}
}

// A run that diverges does not take the others with it.
func TestFailureTogether(t *testing.T) {
	b := graphs.Backend(t)
	good, bad := tiny(Proximal), tiny(Proximal).job()
	want := together(t, b, Execution{}, good)[0]
	model := bad.Model.(Transformer)
	loss := model.Objective
	model.Objective = func(network *fused.Network, data, batch []*Node) *Node {
		return Div(loss(network, data, batch), Sub(loss(network, data, batch), loss(network, data, batch)))
	}
	model.InGo = nil
	bad.Model = model
	results, err := RunTogether(t.Context(), b, Execution{StepsPerCall: 4}, []Run{{Job: bad, Dir: t.TempDir()}, {Job: good.job(), Dir: t.TempDir()}})
	if err == nil || !strings.Contains(err.Error(), "the loss of step 1 is") || results[0] != nil {
		t.Errorf("%v, %v", results[0], err)
	}
	same(t, "the other run", results[1], want)
}

// Nor does one whose data cannot be had (at −1), or a batch of a step.
func TestFaultTogether(t *testing.T) {
	good := tiny(Proximal)
	backends(t, func(t *testing.T, b compute.Backend) {
		want := together(t, b, Execution{}, good)[0]
		for _, at := range []int{-1, 2} {
			bad := good.job()
			bad.Batches = faulty{bad.Batches, at}
			results, err := RunTogether(t.Context(), b, Execution{}, []Run{{Job: bad, Dir: t.TempDir()}, {Job: good.job(), Dir: t.TempDir()}})
			if !errors.Is(err, errFaulty) || len(results) != 2 || results[0] != nil {
				t.Errorf("at %d: %v, %v", at, results, err)
				continue
			}
			same(t, fmt.Sprintf("the other run, at %d", at), results[1], want)
		}
	})
}

var errFaulty = errors.New("no such examples")

type faulty struct {
	Batches
	at int
}

func (f faulty) Data() ([]*tensors.Tensor, error) {
	if f.at < 0 {
		return nil, errFaulty
	}
	return f.Batches.Data()
}

func (f faulty) Batch(step int) ([]*tensors.Tensor, error) {
	if step == f.at {
		return nil, errFaulty
	}
	return f.Batches.Batch(step)
}

// Who stops the others is told of both.
func TestFaultAndStop(t *testing.T) {
	good := tiny(Proximal)
	bad := good.job()
	bad.Batches = faulty{bad.Batches, -1}
	ctx, cancel := context.WithCancel(t.Context())
	stops := Run{Job: good.job(), Dir: t.TempDir(), Progress: func(Progress) { cancel() }}
	hurry(t)
	_, err := RunTogether(ctx, graphs.Backend(t), Execution{}, []Run{{Job: bad, Dir: t.TempDir()}, stops})
	if !errors.Is(err, errFaulty) || !errors.Is(err, context.Canceled) {
		t.Errorf("a failed run and a stop: %v", err)
	}
}

// Nor does one that cannot go on from what it left.
func TestUnreadableTogether(t *testing.T) {
	b := graphs.Backend(t)
	good := tiny(Proximal)
	want := together(t, b, Execution{}, good)[0]
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "state.safetensors"), []byte("no state"), 0o644); err != nil {
		t.Fatal(err)
	}
	results, err := RunTogether(t.Context(), b, Execution{}, []Run{{Job: good.job(), Dir: broken}, {Job: good.job(), Dir: t.TempDir()}})
	if err == nil || !strings.Contains(err.Error(), broken) || results[0] != nil {
		t.Errorf("%v, %v", results, err)
	}
	same(t, "the other run", results[1], want)
}
