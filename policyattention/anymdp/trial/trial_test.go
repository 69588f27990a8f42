package trial

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/anymdp"
	"icrl/policyattention/anymdp/recipe"
	"icrl/policyattention/control"
)

func TestRowsAreWhatTheySay(t *testing.T) {
	names := map[string]bool{}
	for _, r := range Rows {
		if names[r.Name] {
			t.Errorf("two rows are called %q", r.Name)
		}
		names[r.Name] = true
		r.Problems = 2
		problems, err := r.Draw(5, 1)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			m := p.MDP
			if m.States() != r.States || m.Actions() != r.Actions || m.Gamma != r.Gamma || mat.Min(m.R) < r.Least || mat.Max(m.R) > r.Most || p.Eta <= 0 {
				t.Errorf("%s: S = %d, A = %d, γ = %v, rewards from %v to %v, η = %v", r.Name, m.States(), m.Actions(), m.Gamma, mat.Min(m.R), mat.Max(m.R), p.Eta)
			}
			if r.Mass == 0 {
				continue
			}
			optimum, err := m.Optimal()
			if err != nil {
				t.Fatal(err)
			}
			starved := 0
			for s := range r.States {
				if p.Pi0.At(s, best(optimum.Q.RawRowView(s))) == r.Mass {
					starved++
				}
			}
			if want := map[bool]int{false: 1, true: r.States}[r.Everywhere]; starved != want {
				t.Errorf("%s: %d states begin with that mass, want %d", r.Name, starved, want)
			}
		}
	}
}

// The trial's loop is control.Loop, scored by control.Score.
func TestLoopIsControls(t *testing.T) {
	r := base
	r.Name, r.Problems, r.Network = "test", 2, 1
	forward, err := anymdp.Released()
	if err != nil {
		t.Fatal(err)
	}
	losses, err := r.run(5, 1, forward, []int{3, 7})
	if err != nil {
		t.Fatal(err)
	}
	problems, err := r.Draw(5, 1)
	if err != nil {
		t.Fatal(err)
	}
	actor, err := anymdp.NewActor(forward, anymdp.Prior)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range problems {
		for name, loop := range map[string]control.Loop{"exact": control.ExactPMD(p.Eta), "prior": {Actor: actor, Critic: control.ExactCritic{}, Eta: p.Eta}} {
			solution, err := loop.Solve(p.Problem, 7)
			if err != nil {
				t.Fatal(err)
			}
			got := losses[i].Exact
			if name == "prior" {
				got = losses[i].Prior
			}
			if got[0] != solution.Loss[3] || got[1] != solution.Loss[7] {
				t.Errorf("problem %d, %s: losses %v, want %v and %v", i, name, got, solution.Loss[3], solution.Loss[7])
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
		}
		losses = append(losses, l)
	}
	all := Summarize("x", losses)
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

func TestStore(t *testing.T) {
	preset, c := t.TempDir(), recipe.Standard(1)
	folder := Folder(preset, c)
	if _, _, err := Read(folder, c); !errors.Is(err, ErrMissing) {
		t.Errorf("nothing there: %v", err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, WeightsFile), []byte("w"), 0o644); err != nil {
		t.Fatal(err)
	}
	nan := []float64{math.NaN(), math.NaN(), math.NaN(), math.NaN()}
	want := Losses{[]float64{.5, .25, 1.25e-9, 0}, []float64{.5, .25, .125, .1}, nan}
	if err := Write(folder, Manifest{Config: c}, map[string][]Losses{Rows[0].Name: {want}}); err != nil {
		t.Fatal(err)
	}
	_, losses, err := Read(folder, c)
	if err != nil {
		t.Fatal(err)
	}
	got := losses[Rows[0].Name][0]
	for k := range Horizons {
		if got.Exact[k] != want.Exact[k] || got.Prior[k] != want.Prior[k] || !math.IsNaN(got.Network[k]) {
			t.Errorf("read %v, want %v", got, want)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, WeightsFile), []byte("v"), 0o644); err != nil {
		t.Fatal(err)
	}
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
	const preset = "../../../artifacts/paper"
	var configs []recipe.Config
	for _, identity := range recipe.Identities {
		configs = append(configs, recipe.Standard(identity))
	}
	e, err := Load(preset, configs)
	if err != nil {
		t.Fatal(err)
	}
	if len(e.Manifests) != len(configs) {
		t.Errorf("%d of %d identities have results", len(e.Manifests), len(configs))
	}
	var card strings.Builder
	if err := e.Card(&card); err != nil {
		t.Fatal(err)
	}
	stored, err := os.ReadFile("../MODEL.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(stored) != card.String() {
		t.Error("MODEL.md is not what 'policyattention --preset paper any card' prints")
	}
	released, err := digest("../weights.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	if released != e.Manifests[0].Files[WeightsFile] {
		t.Error("the released weights are not those of the first identity")
	}
}

// The first problem of some rows runs again as stored.
func TestVerify(t *testing.T) {
	wrong, losses, err := Verify("../../../artifacts/paper", []recipe.Config{recipe.Standard(31000), recipe.Standard(31001), recipe.Standard(31002), recipe.Standard(31003), recipe.Standard(31004)})
	if err != nil {
		t.Fatal(err)
	}
	if want := len(Rows) * len(replayed) * 3; len(wrong) > 0 || losses != want {
		t.Errorf("%d losses replayed, want %d: %v", losses, want, wrong)
	}
}
