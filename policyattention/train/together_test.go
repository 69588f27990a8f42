package train

import (
	"bytes"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"

	"icrl/policyattention/backend"
	"icrl/policyattention/transformer"
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
	results, err := RunTogether(t.Context(), b, e, runs)
	if err != nil {
		t.Fatal(err)
	}
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
// snapshots, several identities at once, and both. (In pure Go there are no
// loops.)
func TestExecutionsAgree(t *testing.T) {
	backends(t, func(t *testing.T, b compute.Backend) {
		one, two, critic := tiny(Proximal), tiny(Proximal), tiny(Critic)
		two.Seed++
		two.Task++
		alone := []*Result{together(t, b, Execution{}, one)[0], together(t, b, Execution{}, two)[0]}
		for _, e := range []Execution{{}, {StepsPerCall: 7}} {
			for i, r := range together(t, b, e, one, two) {
				same(t, "together", r, alone[i])
			}
		}
		same(t, "in one loop", together(t, b, Execution{StepsPerCall: 100}, one)[0], alone[0])
		same(t, "a critic in loops", together(t, b, Execution{StepsPerCall: 7}, critic)[0], together(t, b, Execution{}, critic)[0])
	})
}

// A batch shared out to several devices gives the losses and weights of one.
func TestDevicesAgree(t *testing.T) {
	b := start(t, "xla:cpu")
	if n := b.NumDevices(); n < 2 {
		t.Skipf("the backend has %d device", n)
	}
	c := tiny(Proximal)
	c.Batch = 4
	want := together(t, b, Execution{}, c)[0]
	same(t, "devices", together(t, b, Execution{Devices: 2}, c)[0], want)
	same(t, "devices in loops", together(t, b, Execution{Devices: 2, StepsPerCall: 7}, c)[0], want)

	c.Batch = 3
	for devices, want := range map[int]string{2: "batch of 3", b.NumDevices() + 1: "devices"} {
		_, err := RunTogether(t.Context(), b, Execution{Devices: devices}, []Run{{Job: c.job(), Dir: t.TempDir()}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d devices: %v, want an error with %q", devices, err, want)
		}
	}
}

// A batch in parts has the loss and the gradient of the batch.
func TestPartsAgree(t *testing.T) {
	b := start(t, "xla:cpu")
	for _, objective := range Objectives {
		c := tiny(objective)
		c.Batch = 8
		j := c.job()
		data, err := j.Data()
		if err != nil {
			t.Fatal(err)
		}
		inputs := []any{j.Init(), j.Batch(0)}
		for _, x := range data {
			inputs = append(inputs, x)
		}
		var losses, gradients [][]float32
		for _, parts := range []int{1, 4} {
			exec, err := NewExec(b, func(inputs []*Node) []*Node {
				loss, gradient := j.gradient(parts, inputs[0], inputs[2:], inputs[1])
				return []*Node{loss, gradient}
			})
			if err != nil {
				t.Fatal(err)
			}
			outputs, err := exec.Call(inputs...)
			if err != nil {
				t.Fatal(err)
			}
			for i, into := range []*[][]float32{&losses, &gradients} {
				values, err := flat(outputs[i])
				if err != nil {
					t.Fatal(err)
				}
				*into = append(*into, values)
			}
		}
		largest := float64(slices.Max(gradients[0]))
		for i, whole := range append(losses[0], gradients[0]...) {
			// Rounding of float32 sums over the batch.
			if got := append(losses[1], gradients[1]...)[i]; !(math.Abs(float64(got-whole)) <= 1e-5*max(largest, math.Abs(float64(whole)))) {
				t.Fatalf("%s: value %d is %v in parts, %v in one", objective, i, got, whole)
			}
		}
	}
}

// Parts are for many tokens, on a CPU.
func TestParts(t *testing.T) {
	backends(t, func(t *testing.T, b compute.Backend) {
		for _, tc := range []struct {
			objective Objective
			states    int
			xla       int
		}{{Proximal, 4, 1}, {Proximal, 8, 2}, {Proximal, 16, 4}, {Critic, 4, 8}, {Critic, 8, 8}} {
			want := 1
			if !backend.IsGo(b) {
				want = tc.xla
			}
			c, k := Standard(tc.objective, Plain(), 1, tc.states), tc.states*3
			tokens := k
			if tc.objective == Critic {
				tokens = 7 * k
			}
			gotN, gotB, gotT, gotK := c.Passes(b)
			if got, want := [4]int{gotN, gotB, gotT, gotK}, [4]int{want, 64 / want, tokens, k}; got != want {
				t.Errorf("%s at S = %d: passes %v, want %v", tc.objective, tc.states, got, want)
			}
		}
	})
}

// Runs that were interrupted together or apart end in the same bytes.
func TestInterruptedTogether(t *testing.T) {
	hurry(t)
	b := goBackend(t)
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
	parts, err := RunTogether(t.Context(), b, e, runs)
	if err != nil {
		t.Fatal(err)
	}
	for i := range parts {
		if !slices.Equal(parts[i].Losses, whole[i].Losses) || !bytes.Equal(read(t, parts[i].Weights), read(t, whole[i].Weights)) {
			t.Errorf("run %d differs after interruptions", i)
		}
	}
}

// A run that diverges does not take the others with it.
func TestFailureTogether(t *testing.T) {
	b := goBackend(t)
	good, bad := tiny(Proximal), tiny(Proximal).job()
	want := together(t, b, Execution{}, good)[0]
	loss := bad.Loss
	bad.Loss = func(network *transformer.Network, data []*Node, batch *Node) *Node {
		return Div(loss(network, data, batch), Sub(loss(network, data, batch), loss(network, data, batch)))
	}
	results, err := RunTogether(t.Context(), b, Execution{StepsPerCall: 4}, []Run{{Job: bad, Dir: t.TempDir()}, {Job: good.job(), Dir: t.TempDir()}})
	if err == nil || !strings.Contains(err.Error(), "the loss of step 1 is") || results[0] != nil {
		t.Errorf("%v, %v", results[0], err)
	}
	same(t, "the other run", results[1], want)
}
