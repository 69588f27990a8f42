package engine

import (
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/safetensors"
	"icrl/internal/testkit"
	"icrl/policyattention/anymdp"
	"icrl/policyattention/control"
	"icrl/policyattention/decoder"
	"icrl/policyattention/mdp"
	"icrl/policyattention/mdpfile"
)

func settings() Settings {
	return Settings{
		Preset: string(mdp.Random), States: 8, Actions: 3, Seed: 1, Gamma: 0.9, Eta: 0.8,
		Packets: 6, Routing: 1e-3, Carrier: 1e6, Rounds: 40,
	}
}

func start(t testing.TB, s Settings) *Engine {
	t.Helper()
	e := testkit.Must(New(s, mdp.Problem{}))(t)
	return e
}

// TestAgainstLibrary holds a run without edits against the library's own loops.
func TestAgainstLibrary(t *testing.T) {
	s := settings()
	e := start(t, s)
	problems := []mdp.Problem{e.Phases[0].Problem}
	for name, loop := range map[string]control.Loop{
		Decoder: e.Decoder.Controller(s.Eta, decoder.Sampled(s.Seed)), Exact: control.ExactPMD(s.Eta),
	} {
		run := testkit.Must(loop.Run(problems, s.Rounds))(t)
		scored := testkit.Must(control.Score(problems, run))(t)[0]
		for k := range s.Rounds {
			got := testkit.Must(e.Round(name, k))(t)
			bound, _, err := scored.Bound(k + 1)
			testkit.Check(t, err)
			if !mat.Equal(got.NextPi, run[0].Policies[k+1]) || !mat.Equal(got.Q, run[0].Q[k]) || got.Bound != bound ||
				got.Zeta != scored.Zeta[k] || name == Exact && got.Zeta != 0 || got.Defect != scored.Defect[k] ||
				math.Abs(got.Distance/scored.Gap-scored.Loss[k+1]) > 1e-15 {
				t.Fatalf("round %d of %s differs from control", k, name)
			}
		}
	}
	if _, err := e.Round(Decoder, s.Rounds); err == nil {
		t.Error("a round beyond the horizon was run")
	}
}

// TestBounds runs every controller on every preset, with edits on the way, and
// holds each round against its bounds.
func TestBounds(t *testing.T) {
	for _, preset := range []string{string(mdp.Random), string(mdp.SparseTransitions), string(mdp.SparseRewards),
		string(mdp.Ring), FrozenLake, LockUp} {
		s := settings()
		s.Preset, s.Rounds, s.Phi = preset, 12, 0.05
		e := start(t, s)
		for k := range s.Rounds {
			if k == 5 {
				for _, edit := range []Edit{{Kind: "reward", S: 0, A: 1, Value: 0.75},
					{Kind: "transition", S: 0, A: 0, T: 0, Value: 0.3}} {
					if err := e.Apply(k, edit); preset != LockUp && err != nil {
						t.Fatal(preset, err)
					}
				}
			}
			for _, name := range []string{Decoder, Exact, Normalized, Idle} {
				r, err := e.Round(name, k)
				if err != nil {
					t.Fatal(preset, name, k, err)
				}
				if slack := r.Bound.Total() - r.Distance; slack < -1e-9 {
					t.Errorf("%s, %s, round %d: loss %v above its bound %v",
						preset, name, k, r.Distance, r.Bound.Total())
				}
				if name == Decoder &&
					(r.Zeta > r.ZetaBound+e.Decoder.RoundoffZeta || r.Route > r.RouteBound+e.Decoder.RoundoffDelta) {
					t.Errorf("%s, round %d: ζ %v ≤ %v, routing %v ≤ %v",
						preset, k, r.Zeta, r.ZetaBound, r.Route, r.RouteBound)
				}
			}
		}
	}
}

// TestApply edits the past: what was computed before stays, the rest is the same
// as if the edit had been made on the way and the controllers had come after it, and refused edits change nothing.
func TestApply(t *testing.T) {
	edit := Edit{Kind: "reward", S: 2, A: 1, Value: -0.5}
	late, early := start(t, settings()), start(t, settings())
	for _, name := range []string{Decoder, Exact} {
		testkit.Must(late.Round(name, 20))(t)
	}
	testkit.Check(t, late.Apply(15, Edit{Kind: "reward", S: 0, A: 0, Value: 1}))
	for _, e := range []*Engine{late, early} {
		testkit.Check(t, e.Apply(7, edit))
	}
	for _, bad := range []Edit{
		{}, {Kind: "reward", S: 8}, {Kind: "reward", A: -1}, {Kind: "reward", Value: math.NaN()},
		{Kind: "reward", Value: 1e9},
		{Kind: "transition", Value: 1.5}, {Kind: "transition", Value: math.NaN()}, {Kind: "transition", T: 99},
	} {
		if err := late.Apply(9, bad); err == nil {
			t.Errorf("edit %+v was applied", bad)
		}
	}
	if len(late.Phases) != 2 || late.Phases[1].From != 7 {
		t.Fatalf("phases %+v", late.Phases)
	}
	for _, name := range []string{Decoder, Exact} {
		x := testkit.Must(late.Round(name, 12))(t)
		y := testkit.Must(early.Round(name, 12))(t)
		if !mat.Equal(x.NextPi, y.NextPi) || x.Bound != y.Bound || x.Distance != y.Distance {
			t.Errorf("%s: an edit of the past gives another future than one on the way", name)
		}
	}
	testkit.Check(t, late.Apply(3, Edit{Kind: "transition", S: 1, A: 1, T: 3, Value: 1}))
	if row := late.Phases[1].Problem.MDP.Next(1, 1); row[3] != 1 {
		t.Errorf("row %v", row)
	}
	testkit.Check(t, late.Apply(3, Edit{Kind: "transition", S: 1, A: 1, T: 3, Value: 0.5}))
	if row := late.Phases[len(late.Phases)-1].Problem.MDP.Next(1, 1); row[3] != 0.5 || math.Abs(row[0]-0.5/7) > 1e-16 {
		t.Errorf("row %v, want the rest shared equally", row)
	}
}

// TestFrozenLake compares the preset with the tables exported from Gymnasium,
// and its optimum with a known value: 0.542 at the start for γ = 0.99.
func TestFrozenLake(t *testing.T) {
	data := testkit.Must(os.ReadFile("../../scripts/testdata/frozenlake-4x4.json"))(t)
	want := testkit.Must(mdpfile.Decode("problem.json", data, mdpfile.Options{}))(t)
	s := settings()
	s.Preset, s.Gamma = FrozenLake, 0.99
	e := start(t, s)
	got := e.Phases[0].Problem.MDP
	// Gymnasium adds thirds and rounds.
	if !mat.EqualApprox(got.DenseP(), want.MDP.DenseP(), 1e-15) || !mat.EqualApprox(got.R, want.MDP.R, 1e-15) {
		t.Error("the lake differs from Gymnasium's")
	}
	if v := slices.Max(e.Phases[0].Optimum.Q.RawRowView(0)); math.Abs(v-0.5420) > 5e-5 {
		t.Errorf("value of the start %v, want 0.5420", v)
	}
}

func TestMatrices(t *testing.T) {
	s := settings()
	s.States, s.Actions, s.Packets, s.Phi = 3, 2, 2, 0.01
	e := start(t, s)
	for _, call := range []string{ActorCall, CriticCall, NormedCall} {
		c := testkit.Must(e.Trace(4, call))(t)
		r, _ := e.Round(Decoder, 4)
		results := testkit.Must(Matrix(c, "results", 0, 99))(t)
		// The trace sums in another order than the pass, and LayerNorm shrinks by ρ.
		want, tolerance, width := r.NextPi.RawMatrix().Data, 1e-12, e.Decoder.Layout.Width()
		if call == CriticCall {
			want = r.NextQ.RawMatrix().Data
		}
		if call == NormedCall {
			tolerance, width = 1e-6, width+2
		}
		for i, row := range results {
			for j, v := range row {
				if math.Abs(v-want[i*len(row)+j]) > tolerance {
					t.Errorf("%s: read-out %d,%d is %v, the call returned %v", call, i, j, v, want[i*len(row)+j])
				}
			}
		}
		n, dim := len(c.Names), e.Decoder.Layout.HeadDim()
		for name, cols := range map[string]int{
			"payloads": e.Decoder.Layout.Width(), "tokens": width, "block.0.head.0.query": dim,
			"block.1.head.0.key": dim, "block.0.head.1.value": dim, "block.1.head.1.mixed": dim,
			"block.0.head.1.written": width, "block.0.head.0.score": n, "block.1.head.0.weight": n,
			"block.0.attended": width, "block.0.pre": 2, "block.0.post": 2, "block.1.output": width, "output": width,
		} {
			if rows, err := Matrix(c, name, 3, 1); err != nil || len(rows) != 0 {
				t.Errorf("matrix %s: rows 3 to 1 are %d, %v", name, len(rows), err)
			}
			rows, err := Matrix(c, name, 1, 3)
			if err != nil || len(rows) != 2 || len(rows[0]) != cols {
				t.Errorf("%s: %d rows, %v", name, len(rows), err)
			}
		}
		for _, name := range []string{"", "block", "block.9.output", "block.0.head.7.query", "block.0.head.x.query",
			"block.-1.post", "block.0.nonsense"} {
			if _, err := Matrix(c, name, 0, 1); err == nil {
				t.Errorf("there is a matrix %q", name)
			}
		}
	}
	for _, link := range e.Decoder.Legend {
		m, err := e.Weight(ActorCall, link.Matrix)
		if err != nil || m.At(link.To.Offset, link.From.Offset) != link.Value {
			t.Errorf("%s: %v", link.Matrix, err)
		}
	}
	if _, err := e.Weight(ActorCall, "block.0.head.0.x"); err == nil {
		t.Error("there is a weight matrix x")
	}
	m, err := e.Weight(NormedCall, "block.0.head.0.q")
	if err != nil || m.RawMatrix().Cols != e.Decoder.Layout.Width()+2 {
		t.Errorf("W_Q with LayerNorm: %v", err)
	}
	s.States, s.Actions, s.Packets = 16, 16, 64
	if _, err := start(t, s).Trace(0, CriticCall); err == nil || !strings.Contains(err.Error(), "tokens") {
		t.Errorf("a call of 16,896 tokens was taken apart: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	for _, change := range []func(*Settings){
		func(s *Settings) { s.States = 65 }, func(s *Settings) { s.Actions = 1 }, func(s *Settings) { s.Packets = 65 },
		func(s *Settings) { s.Packets = 0 }, func(s *Settings) { s.Rounds = 0 }, func(s *Settings) { s.Rounds = 1001 },
		func(s *Settings) { s.Gamma = 1 }, func(s *Settings) { s.Gamma = math.NaN() }, func(s *Settings) { s.Eta = -1 },
		func(s *Settings) { s.Eta = math.Inf(1) }, func(s *Settings) { s.Phi = 2 }, func(s *Settings) { s.Routing = 0 },
		func(s *Settings) { s.Preset = "<script>" }, func(s *Settings) { s.States = -1 },
		func(s *Settings) { s.Tau1 = math.Inf(1) },
	} {
		s := settings()
		change(&s)
		if _, err := New(s, mdp.Problem{}); err == nil {
			t.Errorf("settings %+v were taken", s)
		}
	}
	large := testkit.Must(mdp.Random.Draw(1, 65, 2, 1))(t)
	if _, err := New(settings(), large[0]); err == nil {
		t.Error("a problem of 65 states was taken")
	}
	if _, err := start(t, settings()).Round(Learned, 0); err == nil {
		t.Error("a learned actor ran without weights")
	}
}

// TestLearned takes states of a run through the released network, and compares with the
// actor that the run uses; its attention sums to one.
func TestLearned(t *testing.T) {
	e := start(t, settings())
	if _, err := e.Look(0, 0); err == nil {
		t.Error("a network that is not there was looked at")
	}
	if _, err := e.Compare(0); err == nil {
		t.Error("a network that is not there acted")
	}
	f := testkit.Must(safetensors.ReadFile("../../policyattention/anymdp/weights.safetensors"))(t)
	n, err := anymdp.NewNetwork(anymdp.Shape(), safetensors.Floats(f))
	if err != nil {
		t.Fatal(err)
	}
	testkit.Check(t, e.SetLearned(n))
	testkit.Must(e.Round(Learned, 5))(t)
	want := testkit.Must(e.Compare(5))(t)
	for s := range 8 {
		trace := testkit.Must(e.Look(5, s))(t)
		results := testkit.Must(LearnedMatrix(trace, "results", 0, 99))(t)
		for a, row := range results {
			if row[3] != want.At(s, a) {
				t.Errorf("π̂(%d|%d) is %v in the trace and %v of the actor", a, s, row[3], want.At(s, a))
			}
		}
		for name, size := range map[string][2]int{
			"tokens": {3, 4}, "block.0.weight": {12, 3}, "block.3.query": {3, 64}, "block.1.key": {3,
				64}, "block.1.value": {3, 64},
			"block.2.mixed": {3, 64}, "block.2.attended": {3, 64}, "block.0.units": {3, 128}, "block.3.output": {3, 64},
		} {
			rows, err := LearnedMatrix(trace, name, 0, 99)
			if err != nil || len(rows) != size[0] || len(rows[0]) != size[1] {
				t.Fatalf("%s is [%d, …], %v, want %v", name, len(rows), err, size)
			}
			for _, row := range rows {
				sum := 0.0
				for _, v := range row {
					sum += v
				}
				if name == "block.0.weight" && math.Abs(sum-1) > 1e-12 {
					t.Errorf("a row of attention sums to %v", sum)
				}
			}
		}
		for _, name := range []string{"block.4.weight", "block.0.head.0.weight", "block.0.score", "x"} {
			if _, err := LearnedMatrix(trace, name, 0, 1); err == nil {
				t.Errorf("there is a matrix %q", name)
			}
		}
	}
	if _, err := e.Look(0, 8); err == nil {
		t.Error("state 8 of 8 was looked at")
	}
}
