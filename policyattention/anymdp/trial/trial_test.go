package trial

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/safetensors"
	"icrl/internal/testkit"
	"icrl/policyattention/anymdp"
	"icrl/policyattention/anymdp/recipe"
	"icrl/policyattention/artifact"
	"icrl/policyattention/backend"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/mdpfile"
	"icrl/policyattention/seed"
	"icrl/policyattention/train"
	"icrl/policyattention/transformer/fused"
)

func TestRowsAreWhatTheySay(t *testing.T) {
	names := map[string]bool{}
	for _, r := range Rows {
		if names[r.Name] {
			t.Errorf("two rows are called %q", r.Name)
		}
		names[r.Name] = true
		r.Problems = 2
		problems := testkit.Must(r.Draw(5, 1))(t)
		for i, p := range problems {
			m := p.MDP
			if m.States() != r.States || m.Actions() != r.Actions || m.Gamma != r.Gamma || mat.Min(m.R) < r.Least || mat.Max(m.R) > r.Most || p.Eta <= 0 {
				t.Errorf("%s: S = %d, A = %d, γ = %v, rewards from %v to %v, η = %v", r.Name, m.States(), m.Actions(), m.Gamma, mat.Min(m.R), mat.Max(m.R), p.Eta)
			}
			if r.Mass == 0 && !r.Lock {
				continue
			}
			optimum := testkit.Must(m.Optimal())(t)
			starved := 0
			for s := range r.States {
				mass := p.Pi0.At(s, best(optimum.Q.RawRowView(s)))
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

// The benchmark's problems are those of its fixtures, and calibration never sees them.
func TestFixtures(t *testing.T) {
	found := 0
	for _, r := range Rows {
		if r.Fixture == 0 {
			continue
		}
		found++
		r.Problems = 1
		want := testkit.Must(r.Family.Draw(r.Fixture, r.States, r.Actions, 1))(t)[0]
		if got := testkit.Must(r.Draw(Root, 1))(t)[0]; !mat.Equal(got.MDP.R, want.MDP.R) {
			t.Errorf("%s: other problems than root %d has", r.Name, r.Fixture)
		}
		if got := testkit.Must(r.Draw(CalibrationRoot, 1))(t)[0]; mat.Equal(got.MDP.R, want.MDP.R) {
			t.Errorf("%s: calibration sees the benchmark's problems", r.Name)
		}
	}
	if found != len(Fixtures) {
		t.Errorf("%d rows of the benchmark, want %d", found, len(Fixtures))
	}
}

// The trial's loop is control.Loop, scored by control.Score.
func TestLoopIsControls(t *testing.T) {
	r := base
	r.Name, r.Problems, r.Network, r.Mixed = "test", 2, 1, 1
	forward := testkit.Must(anymdp.Released())(t)
	problems := testkit.Must(r.Draw(5, 1))(t)
	losses := testkit.Must(r.run(problems, 0, forward, []int{3, 7}))(t)
	actor := testkit.Must(anymdp.NewActor(forward, anymdp.Prior))(t)
	network := testkit.Must(anymdp.NewActor(forward, anymdp.Network))(t)
	for i, p := range problems {
		loops := map[string]control.Loop{"exact": control.ExactPMD(p.Eta), "prior": {Actor: actor, Critic: control.ExactCritic{}, Eta: p.Eta}}
		if i == 0 {
			loops["mixed"] = control.Loop{Actor: control.MixedActor{Actor: network, Phi: Phi}, Critic: control.ExactCritic{}, Eta: p.Eta}
		}
		for name, loop := range loops {
			one := []mdp.Problem{p.Problem}
			loss := testkit.Must(control.Score(one, testkit.Must(loop.Run(one, 7))(t)))(t)[0].Loss
			got := map[string][]float64{"exact": losses[i].Exact, "prior": losses[i].Prior, "mixed": losses[i].Mixed}[name]
			if got[0] != loss[3] || got[1] != loss[7] {
				t.Errorf("problem %d, %s: losses %v, want %v and %v", i, name, got, loss[3], loss[7])
			}
		}
	}
	if math.IsNaN(losses[0].Network[0]) || !math.IsNaN(losses[1].Network[0]) {
		t.Errorf("the network's read-out was run on other problems than the first: %v", losses)
	}
}

func TestSummarize(t *testing.T) {
	var losses []Losses
	for i := range 101 { // excess i/1024 of the prior read-out at every horizon
		l := Losses{}
		for range Horizons {
			l.Exact, l.Prior, l.Network = append(l.Exact, .125), append(l.Prior, .125+float64(i)/1024), append(l.Network, math.NaN())
			l.Mixed = append(l.Mixed, math.NaN())
		}
		losses = append(losses, l)
	}
	all := Summarize(Row{Name: "x"}, losses)
	if len(all) != len(Horizons) {
		t.Fatalf("%d summaries", len(all))
	}
	s := all[0]
	for name, pair := range map[string][2]float64{
		"median": {s.Median, 50. / 1024}, "99 %": {s.P99, 99. / 1024}, "worst": {s.Worst, 100. / 1024}, "ratio": {s.Ratio(), 1 + 400./1024}, "behind": {float64(s.Locked), 80}, "problems": {float64(s.Problems), 101},
	} {
		if math.Abs(pair[0]-pair[1]) > 1e-12 {
			t.Errorf("%s is %v, want %v", name, pair[0], pair[1])
		}
	}
}

// Problems that identities share are drawn once: with the same losses in each, five identities
// have the intervals of one.
func TestSharedProblemsCountOnce(t *testing.T) {
	var one []Losses
	for i := range 64 {
		l := Losses{}
		for range Horizons {
			l.Exact, l.Prior = append(l.Exact, .125), append(l.Prior, .125+float64(i)/1024)
			l.Network, l.Mixed = append(l.Network, math.NaN()), append(l.Mixed, math.NaN())
		}
		one = append(one, l)
	}
	row := Row{Name: "x", Problems: 64, Fixture: 7}
	alone, five := Summarize(row, one)[0], Summarize(row, slices.Repeat(one, 5))[0]
	width := func(x [2]float64) float64 { return x[1] - x[0] }
	if math.Abs(width(five.RatioIn)-width(alone.RatioIn)) > 1e-12 || math.Abs(width(five.MedianIn)-width(alone.MedianIn)) > .1*width(alone.MedianIn) {
		t.Errorf("five identities: %v, %v; one: %v, %v", five.RatioIn, five.MedianIn, alone.RatioIn, alone.MedianIn)
	}
	if row.Fixture = 0; width(Summarize(row, slices.Repeat(one, 5))[0].RatioIn) > .6*width(alone.RatioIn) { // 1/√5 of it
		t.Error("five times as many problems do not make the interval narrower")
	}
}

func TestStore(t *testing.T) {
	preset, c := t.TempDir(), recipe.Standard(1)
	folder := Folder(preset, c)
	if _, _, err := Read(folder, c); !errors.Is(err, artifact.ErrMissing) {
		t.Errorf("nothing there: %v", err)
	}
	testkit.Check(t, os.MkdirAll(folder, 0o755))
	testkit.Check(t, os.WriteFile(filepath.Join(folder, WeightsFile), []byte("w"), 0o644))
	nan := []float64{math.NaN(), math.NaN(), math.NaN(), math.NaN()}
	// Excesses of up to three digits are kept as they are.
	want := Losses{[]float64{.5, .25, 1.25e-9, 0}, []float64{.5, .125, .125 + 1.25e-9, .1}, nan, nan}
	testkit.Check(t, Write(folder, Manifest{Config: c}, map[string][]Losses{Rows[0].Name: {want}}))
	_, losses, err := Read(folder, c)
	if err != nil {
		t.Fatal(err)
	}
	got := losses[Rows[0].Name][0]
	for k := range Horizons {
		if got.Exact[k] != want.Exact[k] || math.Abs(got.Prior[k]-want.Prior[k]) > 1e-16 || !math.IsNaN(got.Network[k]) {
			t.Errorf("read %v, want %v", got, want)
		}
	}
	manifest := filepath.Join(folder, manifestFile)
	sealed := testkit.Must(os.ReadFile(manifest))(t)
	testkit.Check(t, os.WriteFile(manifest, bytes.Replace(sealed, []byte(`"training_cpu_seconds": 0`), []byte(`"training_cpu_seconds": 1`), 1), 0o644))
	if _, _, err := Read(folder, c); err == nil || !strings.Contains(err.Error(), "seal") {
		t.Errorf("another time: %v", err)
	}
	testkit.Check(t, os.WriteFile(manifest, sealed, 0o644))
	testkit.Check(t, os.WriteFile(filepath.Join(folder, WeightsFile), []byte("v"), 0o644))
	if _, _, err := Read(folder, c); err == nil || !strings.Contains(err.Error(), "SHA-256") {
		t.Errorf("other weights: %v", err)
	}
	wrong, _, err := Verify(preset, []recipe.Config{recipe.Standard(2)})
	if err != nil || len(wrong) != 1 || !strings.Contains(wrong[0], "no configuration") {
		t.Errorf("a stray folder: %v, %v", wrong, err)
	}
}

// The card and the released weights are what the artifacts give.
func TestCardIsCurrent(t *testing.T) {
	if testing.Short() {
		t.Skip("it summarizes all that is stored")
	}
	const preset = "../../../artifacts/paper"
	var configs []recipe.Config
	for _, identity := range recipe.Identities {
		configs = append(configs, recipe.Standard(identity))
	}
	e := testkit.Must(Load(preset, configs))(t)
	if len(e.Manifests) != len(configs) {
		t.Errorf("%d of %d identities have results", len(e.Manifests), len(configs))
	}
	var card strings.Builder
	testkit.Check(t, e.Card(&card))
	stored := testkit.Must(os.ReadFile("../MODEL.md"))(t)
	if string(stored) != card.String() {
		t.Error("MODEL.md is not what 'policyattention --preset paper any card' prints")
	}
	released := testkit.Must(artifact.FileDigest("../weights.safetensors"))(t)
	if released != e.Manifests[0].Files[WeightsFile] {
		t.Error("the released weights are not those of the first identity")
	}
}

// The first problem of some rows runs again as stored.
func TestVerify(t *testing.T) {
	if testing.Short() {
		t.Skip("it replays many rounds in plain Go")
	}
	wrong, losses, err := Verify("../../../artifacts/paper", []recipe.Config{recipe.Standard(31000), recipe.Standard(31001), recipe.Standard(31002), recipe.Standard(31003), recipe.Standard(31004)})
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	for _, row := range Rows {
		if row.Fixture == 0 {
			want += 3 * len(replayed(row))
		}
	}
	if len(wrong) > 0 || losses != want {
		t.Errorf("%d losses replayed, want %d: %v", losses, want, wrong)
	}
}

// What plain Go and the stored losses differ by is rounding in float32: the graph that the
// losses were made with, in float64, gives plain Go's. The problem is one on which float32
// shows.
func TestMissesAreRounding(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs forty rounds of three networks")
	}
	b := testkit.Must(backend.New("go"))(t)
	c := recipe.Standard(31001)
	path := filepath.Join(Folder("../../../artifacts/paper", c), WeightsFile)
	_, _, params, err := train.ReadNetwork[recipe.Config](path)
	if err != nil {
		t.Fatal(err)
	}
	f := testkit.Must(safetensors.ReadFile(path))(t)
	plain := testkit.Must(anymdp.Plain(f))(t)
	narrow := testkit.Must(recipe.Load(path))(t)
	i := slices.IndexFunc(Rows, func(r Row) bool { return r.Name == "mass 1e-12, all states" })
	row := Rows[i]
	row.Problems, row.Network, row.Mixed = 1, 1, 0
	problems := testkit.Must(row.Draw(Root, c.Seed))(t)
	loss := func(forward anymdp.Forward) float64 {
		losses := testkit.Must(row.run(problems, 0, forward, []int{40}))(t)
		return losses[0].Network[0]
	}
	want := loss(plain)
	if got := loss(wide(t, b, c, params)); math.Abs(got-want) > 1e-12 {
		t.Errorf("the graph in float64 ends at a loss of %v, plain Go at %v", got, want)
	}
	if got := loss(narrow.Forward); math.Abs(got-want) < 1e-6 || math.Abs(got-want) > networkTolerance {
		t.Errorf("the network in float32 ends at a loss of %v, plain Go at %v", got, want)
	}
}

// wide is the training's graph of the network in float64.
func wide(t *testing.T, b compute.Backend, c recipe.Config, params []float32) anymdp.Forward {
	t.Helper()
	values := make([]float64, len(params))
	for i, v := range params {
		values[i] = float64(v)
	}
	exec := graph.MustNewExec(b, func(in []*graph.Node) *graph.Node {
		return fused.Bind(c.Network(), in[0]).Tail(in[1], in[1].Shape().Dimensions[1])
	})
	t.Cleanup(exec.Finalize)
	return func(states [][][]float64) ([][]float64, error) {
		output, err := exec.Call1(values, states)
		if err != nil {
			return nil, err
		}
		outputs := make([][]float64, len(states))
		for i, rows := range output.Value().([][][]float64) {
			outputs[i] = slices.Concat(rows...)
		}
		return outputs, nil
	}
}

// maze draws a square maze: moves go left, down, right and up, into a wall or over the edge
// nowhere; the last place pays 1 a round and is not left.
func maze(t *testing.T, root uint64, side int) mdp.Problem {
	t.Helper()
	rng, n := seed.New(root, "maze"), side*side
	wall := make([]bool, n)
	for s := 1; s < n-1; s++ {
		wall[s] = rng.Float64() < .25
	}
	p, r := mat.NewDense(4*n, n, nil), mat.NewDense(n, 4, nil)
	for s := range n {
		for a, move := range [][2]int{{-1, 0}, {0, 1}, {1, 0}, {0, -1}} {
			x, y := s%side+move[0], s/side+move[1]
			to := y*side + x
			if s == n-1 || x < 0 || y < 0 || x >= side || y >= side || wall[to] {
				to = s
			}
			p.Set(4*s+a, to, 1)
		}
	}
	r.SetRow(n-1, []float64{1, 1, 1, 1})
	problem := testkit.Must(mdp.NewProblem(.9, p, r, nil))(t)
	return problem
}

// On Gymnasium's problems, exported by scripts/gymnasium_export.py, and on mazes the greedy
// policy is exact PMD's. Taxi takes plain Go a minute: its command is 'any greedy'.
func TestGreedyIsExactPMDs(t *testing.T) {
	if testing.Short() {
		t.Skip("it replays many rounds in plain Go")
	}
	forward := testkit.Must(anymdp.Released())(t)
	problems := map[string]mdp.Problem{"maze 1": maze(t, 1, 5), "maze 2": maze(t, 2, 6)}
	for _, name := range []string{"frozenlake-4x4", "frozenlake-8x8", "cliffwalking"} {
		problems[name] = testkit.Must(mdpfile.Read(filepath.Join("testdata", name+".npz"), mdpfile.Options{}))(t)
	}
	for name, p := range problems {
		all := testkit.Must(Agreement(p, forward, 100))(t)
		for _, g := range all {
			if g.Decided < 5 || len(g.Different) > 0 {
				t.Errorf("%s, %s: of %d decided states %v have another likeliest action", name, g.Readout, g.Decided, g.Different)
			}
		}
	}
	// It tells a policy apart: after one round from a uniform policy little is decided.
	one, err := Agreement(problems["frozenlake-8x8"], func(tokens [][][]float64) ([][]float64, error) {
		outputs, err := forward(tokens)
		for _, row := range outputs {
			for k := range row {
				row[k] = -row[k]
			}
		}
		return outputs, err
	}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(one[0].Different) == 0 {
		t.Error("an actor that goes the other way has the same greedy policy")
	}
}
