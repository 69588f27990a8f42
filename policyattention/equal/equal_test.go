package equal

import (
	"math"
	"testing"

	"icrl/internal/testkit"
	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method/all"
	"icrl/policyattention/transformer"
)

func networks(t *testing.T) *Networks {
	t.Helper()
	base := experiment.Preset{}.With(&experiment.PaperProtocol, all.Methods)
	paper := testkit.Must(experiment.ReadPreset("../presets/paper.json", base))(t)
	return &Networks{testkit.Must(paper.Open("../../artifacts", ""))(t)}
}

// starts returns the values at which the search begins.
func starts(m Method) []float64 {
	var values []float64
	for _, p := range m.Parameters {
		values = append(values, p.Start)
	}
	return values
}

// run runs a method on few problems from its starts.
func run(t *testing.T, n *Networks, c Condition, name string, f fixtures) *Result {
	t.Helper()
	m, err := Find(c.Information, name)
	if err != nil {
		t.Fatal(err)
	}
	states := f.problems[0].MDP.States()
	r, err := m.Run(Case{Networks: n, Condition: c, States: states, Values: starts(m), Root: 5}, f.problems, f.scales)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func few(t *testing.T, states, n int) fixtures {
	t.Helper()
	f, err := draw(17, states, n)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// No seed is another's, or one of the paper's protocol.
func TestRootsAreDisjoint(t *testing.T) {
	seen := map[uint64]string{}
	take := func(root uint64, what string) {
		if other, ok := seen[root]; ok && root != 0 {
			t.Errorf("%s and %s have the root %d", what, other, root)
		}
		seen[root] = what
	}
	for _, size := range experiment.PaperProtocol.Sizes {
		for _, r := range []uint64{size.Evaluation, size.Oracle, size.HeldOut, size.Calibration, size.Qualification} {
			seen[r] = "the protocol"
		}
		for _, r := range size.Runs {
			seen[r.Model], seen[r.Task] = "the protocol", "the protocol"
		}
	}
	for _, r := range Roots {
		take(r.Evaluation, "evaluation")
		take(r.Calibration, "calibration")
		take(r.Choosing, "choosing")
		for j := range uint64(Runs) {
			take(r.Samples+j, "samples")
		}
	}
}

// The search finds the bottom of a bowl in factors of two, also where it lies far beyond
// the first grid; a number at the most it can be, and a choice; and says so when it does
// not end.
func TestSearch(t *testing.T) {
	bowl := func(at float64) func([]float64) float64 {
		return func(v []float64) float64 {
			return math.Pow(math.Log2(v[0])-at, 2) + math.Pow(math.Log2(v[1])+2, 2) - v[2]
		}
	}
	parameters := []Parameter{{Name: "a", Start: 1}, {Name: "b", Start: 1, Most: 1}, {Name: "c", Choice: true}}
	for _, at := range []float64{0, -9, 14} {
		values, tuning, err := search(parameters, bowl(at))
		if err != nil || values[0] != math.Pow(2, at) || values[1] != .25 || values[2] != 1 || tuning.Score != -1 {
			t.Errorf("bottom at 2^%v: %v, %+v, %v", at, values, tuning, err)
		}
	}
	if values, _, err := search(parameters[1:2], func(v []float64) float64 { return -v[0] }); err != nil || values[0] != 1 {
		t.Errorf("falling toward its most: %v, %v", values, err)
	}
	if _, _, err := search(parameters[:1], func(v []float64) float64 { return -v[0] }); err == nil {
		t.Error("a search without an end ended")
	}
}

// A method whose own rounds are longer than the condition's first horizon has used nothing by then.
func TestBeforeItsFirstRound(t *testing.T) {
	r := run(t, networks(t), Condition{Information: Window, N: 10}, "algorithm-distillation", few(t, 8, 1))
	if Horizons[0] != 1 || r.Loss[0][0] != 1 || r.Use[0] != (Use{}) || r.Use[1].Transitions == 0 && r.Use[len(r.Use)-1].Transitions == 0 {
		t.Errorf("losses %v, use %+v", r.Loss, r.Use)
	}
}

// What methods use at S = 8, by hand. SA = 24; P and r have 216 entries.
func TestMeters(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs every method")
	}
	n, f := networks(t), few(t, 8, 1)
	for _, c := range Conditions {
		for _, m := range Methods(c.Information) {
			if !m.can(c, 8) || c.Information == Generative && c.N > 48 { // as of fewer
				continue
			}
			r := run(t, n, c, m.Name, f)
			for h, horizon := range Horizons {
				want := Use{Transitions: float64(c.N * horizon)}
				if m.Same != nil {
					want.Transitions = float64(c.N * horizon / 20 * 20) // in whole windows of its own
				}
				if c.Information == Model {
					// Q^π₀ reads everything twice, a backup once.
					want.Entries = float64(432 + 216*(horizon-1))
					switch m.Name {
					case "liang-lai":
						want.Entries = float64(432 + 216*horizon)
					case "natural-gradient":
						want.Entries = float64(432 * horizon)
					case "policy-iteration": // P of the greedy policy's 8 pairs, and r, then all
						want.Entries = float64(432 + (24+64+216)*(horizon-1))
					}
				}
				if got := r.Use[h]; got.Transitions != want.Transitions || got.Entries != want.Entries || got.Operations <= 0 {
					t.Errorf("%s, %s, T = %d: %+v, by hand %+v", m.Name, c, horizon, got, want)
				}
			}
		}
	}
}

// PolicyAttention's actor takes its network's operations, by the shapes, and a softmax of 5
// operations a pair where exact PMD takes 8.
func TestOperationsOfTheActor(t *testing.T) {
	n, f := networks(t), few(t, 8, 1)
	exact := run(t, n, Condition{Information: Model, N: 0}, "exact-pmd", f)
	actor := run(t, n, Condition{Information: Model, N: 0}, "policyattention", f)
	network := transformer.Standard(8+3+3).Operations(24, 24)
	for h, horizon := range Horizons {
		if got, want := actor.Use[h].Operations-exact.Use[h].Operations, float64(horizon*(network-3*24)); got != want {
			t.Errorf("T = %d: %v operations more than exact PMD, by hand %v", horizon, got, want)
		}
	}
}

// The actor for any MDP, by hand. It has four layers of width 64 with four heads and 128
// hidden units, and a state is a sequence of A = 3 tokens that all see each other.
//
//   - A norm takes 7 · 64 + 4 = 452. A token takes 2 · 4 · 64 for its embedding and in each
//     layer two norms, 2 · 64 · 192 for queries, keys and values, 2 · 64 · 64 for the output,
//     2 · 64 · 128 + 128 + 2 · 128 · 64 for the map and 128 for two residual sums: 66,696.
//   - Each of the 9 pairs of tokens takes 4 · 64 + 6 · 4 = 280 in each layer.
//   - Reading a token takes a norm and 2 · 64 · 2 for two outputs.
//   - An action takes, for its token, ηQ, a quotient and a sum for the mean, log π, the largest
//     log, two differences, the floor, |x|, its largest, the scale and six quotients, which are
//     17; for its logit 2; and for the softmax 5.
//
// Exact PMD's step takes 8 a pair.
func TestOperationsOfAnyMDP(t *testing.T) {
	const (
		norm  = 452
		token = 512 + 4*66_696
		row   = 3*token + 4*9*280 + 3*(norm+256)
		state = row + 3*(17+2+5)
	)
	n, f := networks(t), few(t, 8, 1)
	c := Condition{Information: Model, N: 0}
	exact, actor := run(t, n, c, "exact-pmd", f), run(t, n, c, "any", f)
	for h, horizon := range Horizons {
		if got, want := actor.Use[h].Operations-exact.Use[h].Operations, float64(horizon*(8*state-8*24)); got != want {
			t.Errorf("T = %d: %v operations more than exact PMD, by hand %v", horizon, got, want)
		}
	}
}

// Every learned method has as many identities as there are runs.
func TestIdentities(t *testing.T) {
	for _, row := range Plan() {
		m, err := Find(row.Information, row.Method)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.runs(row.Condition); m.Learned && got != 3 {
			t.Errorf("%s has %d identities, want 3", row.Name(), got)
		}
	}
}

// The decoder is exact PMD to its routing error of 1e-6, which 40 rounds at η = .8 carry
// into losses far below 1e-4.
func TestDecoderIsPMD(t *testing.T) {
	n, f := networks(t), few(t, 8, 2)
	exact, decoder := run(t, n, Condition{Information: Model, N: 0}, "exact-pmd", f), run(t, n, Condition{Information: Model, N: 0}, "decoder", f)
	for i := range exact.Loss {
		for h, loss := range exact.Loss[i] {
			if math.Abs(loss-decoder.Loss[i][h]) > 1e-4 {
				t.Errorf("problem %d, T = %d: loss %v of exact PMD, %v of the decoder", i, Horizons[h], loss, decoder.Loss[i][h])
			}
		}
	}
}

// A loop begun from the uniform policy is that of the same problem with π₀ uniform, and is
// scored by the problem's own gap.
func TestBegun(t *testing.T) {
	f := few(t, 8, 1)
	m, err := Find(Model, "exact-pmd")
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.Run(Case{Condition: Condition{Information: Model, N: 0}, States: 8, Values: []float64{.8, 1}}, f.problems, f.scales)
	if err != nil {
		t.Fatal(err)
	}
	uniform := f.problems[0]
	uniform.Pi0 = uniform.MDP.Uniform()
	other, err := m.Run(Case{Condition: Condition{Information: Model, N: 0}, States: 8, Values: []float64{.8, 0}}, []mdp.Problem{uniform}, f.scales)
	if err != nil {
		t.Fatal(err)
	}
	for h, loss := range r.Loss[0] {
		if loss != other.Loss[0][h] {
			t.Errorf("T = %d: loss %v, %v from π₀ uniform", Horizons[h], loss, other.Loss[0][h])
		}
	}
}
