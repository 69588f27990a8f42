package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/control"
	"icrl/policyattention/decoder"
	"icrl/policyattention/mdp"
	"icrl/policyattention/train"
)

func TestSolve(t *testing.T) {
	path := problemFile(t, 4)
	for _, eta := range []string{"0.8", "auto"} {
		code, stdout, stderr := call("--json", "solve", "--mdp", path, "--actor", "exact", "--rounds", "40", "--eta", eta)
		if code != 0 {
			t.Fatal(stderr)
		}
		var s control.Solution
		if err := json.Unmarshal([]byte(stdout), &s); err != nil {
			t.Fatal(err)
		}
		if len(s.Policy) != 4 || len(s.Q) != 4 || len(s.QStar) != 4 || len(s.QPi) != 4 || len(s.Loss) != 41 || s.Loss[0] != 1 {
			t.Errorf("η=%s: %+v", eta, s)
		}
	}
	if code, stdout, _ := call("solve", "--mdp", path); code != 0 || !strings.Contains(stdout, "after round 40") || !strings.Contains(stdout, "likeliest action") {
		t.Errorf("plain output: %d, %q", code, stdout)
	}
}

// Critics that sample end near the exact one's loop, at another place for another seed, and
// nearer with more samples.
func TestSolveBySamples(t *testing.T) {
	path := problemFile(t, 4)
	solve := func(arguments ...string) (s control.Solution) {
		code, stdout, stderr := call(append([]string{"--json", "solve", "--mdp", path}, arguments...)...)
		if code != 0 {
			t.Fatal(stderr)
		}
		if err := json.Unmarshal([]byte(stdout), &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	exact := solve()
	off := func(s control.Solution) float64 {
		worst := 0.0
		for i, row := range s.Policy {
			for a, p := range row {
				worst = max(worst, math.Abs(p-exact.Policy[i][a]))
			}
		}
		return worst
	}
	for _, critic := range []string{"mean", "memory"} {
		few, other, many := off(solve("--critic", critic)), off(solve("--critic", critic, "--seed", "2")), off(solve("--critic", critic, "--samples", "5000"))
		if few == 0 || few == other || many > .1 || many > few {
			t.Errorf("%s: policies differ by %v from the exact critic's, with seed 2 by %v, with 5,000 samples by %v", critic, few, other, many)
		}
	}
	if s := solve("--critic", "memory", "--actor", "any"); s.Loss[40] > .5 {
		t.Errorf("both trained parts end at %v", s.Loss[40])
	}
	for _, wrong := range [][]string{{"--critic", "best"}, {"--critic", "memory", "--samples", "0"}, {"--critic", "mean", "--actor", "decoder"}} {
		if code, _, _ := call(append([]string{"solve", "--mdp", path}, wrong...)...); code != 2 {
			t.Errorf("%v: exit %d, want 2", wrong, code)
		}
	}
}

// A value that is zero but for rounding has no sign.
func TestSolvePrintsNoNegativeZero(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tiny.json")
	if err := os.WriteFile(path, []byte(`{"gamma": 0.5, "P": [[[1], [1]]], "r": [[-1e-9, -2e-9]]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := call("solve", "--mdp", path)
	if code != 0 || !strings.Contains(stdout, " 0.0000\n") || strings.Contains(stdout, "-0.0000") {
		t.Errorf("exit %d, %s%s", code, stdout, stderr)
	}
}

// Mass that is not there at the start never comes.
func TestSolveWithoutMass(t *testing.T) {
	for pi0, warned := range map[string]bool{"[[1, 0], [0.5, 0.5]]": true, "[[0, 1], [0.5, 0.5]]": false} {
		path := filepath.Join(t.TempDir(), "start.json")
		// Action 1 pays in state 0; in state 1 the actions are alike.
		if err := os.WriteFile(path, []byte(`{"gamma": 0.5, "P": [[[1, 0], [1, 0]], [[0, 1], [0, 1]]], "r": [[0, 1], [0, 0]], "pi0": `+pi0+`}`), 0o644); err != nil {
			t.Fatal(err)
		}
		code, _, stderr := call("solve", "--mdp", path)
		if code != 0 || strings.Contains(stderr, "no mass to the best action in 1 of 2 states") != warned {
			t.Errorf("pi0 %s: exit %d, %q", pi0, code, stderr)
		}
	}
}

// The answer's keys are part of the interface.
func TestSolveKeys(t *testing.T) {
	_, stdout, _ := call("--json", "solve", "--mdp", problemFile(t, 4), "--rounds", "2")
	var keys map[string]json.RawMessage
	if err := json.Unmarshal([]byte(stdout), &keys); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"policy", "q", "q_star", "q_pi", "loss", "certificate"} {
		if keys[key] == nil {
			t.Errorf("no %q in %s", key, stdout)
		}
	}
}

// The fixed decoder does what exact PMD does, up to the residuals that it was certified for
// before it saw the problem.
func TestSolveByDecoder(t *testing.T) {
	path := problemFile(t, 4)
	solve := func(actor string) (s struct {
		control.Solution
		Decoder *decoder.Certificate
	}) {
		code, stdout, stderr := call("--json", "solve", "--mdp", path, "--actor", actor)
		if code != 0 {
			t.Fatal(stderr)
		}
		if err := json.Unmarshal([]byte(stdout), &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	exact, fixed := solve("exact"), solve("decoder")
	if exact.Decoder != nil || fixed.Decoder == nil {
		t.Fatal("only the decoder has a certificate")
	}
	c := fixed.Certificate
	if c.Zeta > fixed.Decoder.Zeta || c.Delta > fixed.Decoder.DeltaRoute || c.Delta == 0 {
		t.Errorf("residuals %g and %g, certified %g and %g", c.Zeta, c.Delta, fixed.Decoder.Zeta, fixed.Decoder.DeltaRoute)
	}
	// 40 rounds of errors of at most 1e-5 in Q move log π by at most 40·η·1e-5.
	for k, loss := range fixed.Loss {
		if math.Abs(loss-exact.Loss[k]) > 1e-3 {
			t.Errorf("round %d: loss %g, exact PMD %g", k, loss, exact.Loss[k])
		}
	}
	if code, stdout, _ := call("solve", "--mdp", path, "--actor", "decoder"); code != 0 || !strings.Contains(stdout, "certified") {
		t.Errorf("plain output: %d, %q", code, stdout)
	}
	rewardless := filepath.Join(t.TempDir(), "zero.json")
	if err := os.WriteFile(rewardless, []byte(`{"gamma": 0.5, "P": [[[1], [1]]], "r": [[0, 0]]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := call("solve", "--mdp", rewardless, "--actor", "decoder", "--eta", "auto"); code != 0 {
		t.Errorf("without rewards: %s", stderr)
	}
}

// The actor for any MDP takes any shape, and finds what exact PMD finds.
func TestSolveByAny(t *testing.T) {
	for _, states := range []int{2, 4, 9} {
		path := problemFile(t, states)
		var loss [2]float64
		for i, actor := range []string{"exact", "any"} {
			code, stdout, stderr := call("--json", "solve", "--mdp", path, "--actor", actor, "--rounds", "40")
			if code != 0 || strings.Contains(stderr, "warning") {
				t.Fatalf("exit %d: %s", code, stderr)
			}
			var s control.Solution
			if err := json.Unmarshal([]byte(stdout), &s); err != nil {
				t.Fatal(err)
			}
			loss[i] = s.Loss[40]
		}
		if math.Abs(loss[1]-loss[0]) > .005 { // the 99th percentile of its excess
			t.Errorf("S = %d: loss %g, exact PMD %g", states, loss[1], loss[0])
		}
	}
}

// The actors of fixed shape are warned about where they were seen to lock up or to fail.
func TestUnfamiliar(t *testing.T) {
	config := train.Standard(train.Proximal, train.Plain(), 1, 4)
	problems, err := mdp.Random.Draw(9, 4, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	p := problems[0]
	p.Pi0 = p.MDP.Uniform()
	changed := func(least, most float64) mdp.Problem {
		r := mat.DenseCopyOf(p.MDP.R)
		r.Apply(func(_, _ int, v float64) float64 { return least + (most-least)*(v+1)/2 }, r)
		m, err := mdp.New(p.MDP.Gamma, p.MDP.DenseP(), r)
		if err != nil {
			t.Fatal(err)
		}
		return mdp.Problem{MDP: m, Pi0: p.Pi0}
	}
	starved := mdp.Problem{MDP: p.MDP, Pi0: mat.DenseCopyOf(p.Pi0)}
	starved.Pi0.SetRow(0, []float64{.00033, .5, .49967})
	for _, tc := range []struct {
		problem mdp.Problem
		want    []string
	}{
		{p, nil},
		{starved, []string{"may never be found"}},
		{changed(-1, -.5), []string{"both signs", "values between"}},
		{changed(0, 1), []string{"both signs"}},
		{changed(-3, 3), []string{"at most 1 in size"}},
	} {
		warnings, err := unfamiliar(config, tc.problem, .8)
		if err != nil {
			t.Fatal(err)
		}
		text := strings.Join(warnings, "\n")
		for _, want := range tc.want {
			if !strings.Contains(text, want) {
				t.Errorf("no warning with %q in %q", want, text)
			}
		}
		if tc.want == nil && text != "" {
			t.Errorf("warnings for a problem of the training distribution: %q", text)
		}
	}
}
