package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/control"
	"icrl/policyattention/decoder"
	"icrl/policyattention/mdp"
	"icrl/policyattention/train"
)

// solved is the JSON form of an answer.
type solved struct {
	Policy, Q [][]float64
	Optimal   [][]int
	QStar     [][]*float64 `json:"q_star"`
	QPi       [][]*float64 `json:"q_pi"`
	VStar     []float64    `json:"v_star"`
	Rounds    int
	Eta, Loss float64
	Losses    []measured
	Exact     bool
	Worst     struct{ Relative float64 } `json:"worst_state"`
	Start     struct{ Value, Optimal float64 }
	States    []string

	Distance    float64
	Certificate struct {
		Zeta, Delta float64
		Proven      *float64 // absent at γ = 1
	}
	Decoder  *decoder.Certificate
	Warnings []string
}

// solve runs the command, which must end with the code.
func solve(t *testing.T, want int, arguments ...string) (s solved) {
	t.Helper()
	code, stdout, stderr := call(append([]string{"--json", "solve"}, arguments...)...)
	if code != want {
		t.Fatalf("%v: exit %d, want %d: %s", arguments, code, want, stderr)
	}
	if err := json.Unmarshal([]byte(stdout), &s); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	return s
}

func TestSolve(t *testing.T) {
	path := problemFile(t, 4)
	for _, eta := range []string{"0.8", "auto"} {
		s := solve(t, 0, "--mdp", path, "--rounds", "40", "--eta", eta, "--tol", "0")
		if len(s.Policy) != 4 || len(s.Q) != 4 || len(s.QStar) != 4 || len(s.QPi) != 4 || s.Rounds != 40 ||
			!s.Exact || len(s.Losses) != 6 {
			t.Errorf("η=%s: %+v", eta, s)
		}
	}
	short := solve(t, 0, "--mdp", path)
	if short.Loss > 1e-6 || short.Worst.Relative > 1e-6 || short.Rounds == 1000 || len(short.Warnings) != 0 {
		t.Errorf("%d rounds leave a loss of %v, %v in a state: %v",
			short.Rounds, short.Loss, short.Worst.Relative, short.Warnings)
	}
	if stdout := says(t, 0, "after round 40", "solve", "--mdp", path); !strings.Contains(stdout, "likeliest action") {
		t.Errorf("plain output: %q", stdout)
	}
	early := solve(t, 0, "--mdp", path, "--rounds", "5")
	if len(early.Warnings) != 1 ||
		!strings.Contains(early.Warnings[0], "more --rounds, or a larger step: --eta auto is") {
		t.Errorf("a run that ends early warns %q", early.Warnings)
	}
}

// TestCases runs the problems that people have. V* is held against exact rationals, 1e-9 of
// max(1, |V*|) in each state; with --eta auto a few rounds find a policy that is proven to be optimal
// whatever the scales, and warnings name penalties, and what would help where rounds do not suffice.
func TestCases(t *testing.T) {
	folder := filepath.Join("..", "mdpfile", "testdata", "cases")
	var expected map[string]struct {
		V       []float64
		Optimal [][]int
	}
	testkit.Check(t, json.Unmarshal(testkit.Must(os.ReadFile(filepath.Join(folder, "expected.json")))(t), &expected))
	files := testkit.Must(filepath.Glob(filepath.Join(folder, "*.json")))(t)
	for _, file := range files {
		name := filepath.Base(file)
		switch name {
		case "expected.json":
			continue
		case "undisc-1.json":
			says(t, exitFailure, "name the terminal states", "solve", "--mdp", file)
			continue
		}
		plain, auto := solve(t, 0, "--mdp", file, "--rounds", "3000", "--tol", "1e-9"),
			solve(t, 0, "--mdp", file, "--rounds", "3000", "--tol", "1e-9", "--eta", "auto")
		if !(auto.Eta >= .8) || auto.Loss > plain.Loss+1e-9 {
			t.Errorf("%s: η = %v leaves %v, .8 leaves %v", name, auto.Eta, auto.Loss, plain.Loss)
		}
		for _, x := range []solved{plain, auto} { // the bound holds of what is measured, rounding and all
			if proven := x.Certificate.Proven; proven != nil && !(x.Distance <= *proven) {
				t.Errorf("%s: distance %v, proven at most %v", name, x.Distance, *proven)
			}
		}
		want := expected[name]
		for s, v := range want.V {
			if !(math.Abs(plain.VStar[s]-v) <= 1e-9*max(1, math.Abs(v))) {
				t.Errorf("%s: V*(%d) = %v, want %v", name, s, plain.VStar[s], v)
			}
			if !slices.Equal(auto.Optimal[s], want.Optimal[s]) {
				t.Errorf("%s, state %d: optimal %v, want %v", name, s, auto.Optimal[s], want.Optimal[s])
			}
			if best := floats.MaxIdx(auto.Policy[s]); !slices.Contains(want.Optimal[s], best) {
				t.Errorf("%s: state %d takes %d, want one of %v", name, s, best, want.Optimal[s])
			}
		}
		if auto.Worst.Relative > 1e-9 || auto.Rounds > 40 {
			t.Errorf("%s: %d rounds leave %v in a state: %q", name, auto.Rounds, auto.Worst.Relative, auto.Warnings)
		}
		if strings.HasPrefix(name, "inventory-1e") && !strings.Contains(strings.Join(auto.Warnings, " "), "mask") {
			t.Errorf("%s: no warning of a penalty: %q", name, auto.Warnings)
		}
		if plain.Worst.Relative > 1e-6 && !strings.Contains(strings.Join(plain.Warnings, " "), "more --rounds") {
			t.Errorf("%s: η = .8 leaves %v in a state: %q", name, plain.Worst.Relative, plain.Warnings)
		}
	}
	if len(files) < 70 {
		t.Errorf("%d files", len(files))
	}
}

// TestSolveMasks asks every actor and critic for a policy where actions are missing.
func TestSolveMasks(t *testing.T) {
	file := filepath.Join("..", "mdpfile", "testdata", "cases", "two-state-infeasible-inf.json")
	for _, arguments := range [][]string{{}, {"--actor", "any"}, {"--actor", "decoder", "--eta", "auto"},
		{"--critic", "mean"}, {"--critic", "memory"}} {
		s := solve(t, 0, append([]string{"--mdp", file, "--rounds", "100"}, arguments...)...)
		if s.Policy[1][1] != 0 || s.QStar[1][1] != nil || s.QPi[1][1] != nil || s.Loss > .05 {
			t.Errorf("%v: %+v", arguments, s)
		}
	}
}

// TestSolveMeaning: costs come back as costs, states by their names, values under the start.
func TestSolveMeaning(t *testing.T) {
	path := jsonFile(t, `{"gamma": 0.5, "states": ["open", "shut"], "actions": ["sell", "rest"], "start": {"open": 1},
		"terminal": ["shut"], "P": [[[1, 0], [0, 1]], [[0, 1], [0, 1]]], "costs": [[3, 8], [0, 0]]}`)
	s := solve(t, 0, "--mdp", path)
	if math.Abs(s.VStar[0]-6) > 1e-12 || math.Abs(s.Start.Optimal-6) > 1e-12 || s.States[0] != "open" {
		t.Errorf("%+v", s)
	}
	// What is lost is more of the range of V* than a number holds.
	apart := jsonFile(t, `{"gamma": 0, "P": [[[1], [1]]], "r": [[1e-305, -1e100]]}`)
	if s := solve(t, 0, "--mdp", apart, "--eta", "0"); s.VStar[0] != 1e-305 || len(s.Warnings) == 0 {
		t.Errorf("%+v", s)
	}
	tiny := jsonFile(t, `{"gamma": 0.9, "P": [[[1], [1]]], "r": [[1e-300, 2e-300]]}`)
	if s := solve(t, 0, "--mdp", tiny, "--eta", "auto"); s.Loss > 1e-6 || s.Warnings != nil {
		t.Errorf("rewards of 1e-300: %+v", s)
	}
	nothing := jsonFile(t, `{"gamma": 0.9, "P": [[[1], [1]]], "costs": [[1, 0]]}`)
	if s := solve(t, 0, "--mdp", nothing); s.VStar[0] != 0 || s.Worst.Relative > 1e-6 || s.Warnings != nil {
		t.Errorf("where V* is 0: %+v", s)
	}
	out := filepath.Join(t.TempDir(), "policy.csv")
	if stdout := says(t, 0, "cost  optimal", "solve", "--mdp", path, "--out", out); !strings.Contains(stdout, "open") ||
		!strings.Contains(stdout, "sell") {
		t.Error(stdout)
	}
	if text := string(testkit.Must(os.ReadFile(out))(t)); !strings.HasPrefix(text,
		"state,action,probability,q,v\nopen,sell,") {
		t.Errorf("the file holds %q", text)
	}
	cmd := command(t.Context(), "solve", "--mdp", "-", "--gamma", "0.9")
	cmd.Stdin = bytes.NewReader(testkit.Must(os.ReadFile(path))(t))
	if text, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(text), "γ=0.9") {
		t.Errorf("from standard input: %v, %s", err, text)
	}
	flat := jsonFile(t, `{"gamma": 0.999999999, "P": [[[1], [1]]], "r": [[1e11, 100000000906]]}`)
	if s := solve(t, 0, "--mdp", flat, "--eta", "auto", "--rounds", "5", "--tol", "1e-12"); s.Optimal[0][0] != 1 ||
		!strings.Contains(strings.Join(s.Warnings, " "), "less than the rounding of values of 1e+20") {
		t.Errorf("actions that differ by less than rounding: %+v", s)
	}
	// A value that is zero but for rounding has no sign.
	small := jsonFile(t, `{"gamma": 0.5, "P": [[[1], [1]]], "r": [[-1e-9, -2e-9]]}`)
	if stdout := says(t, 0, " 0.0000\n", "solve", "--mdp", small); strings.Contains(stdout, "-0.0000") {
		t.Error(stdout)
	}
	// Mass that is not there at the start never comes. Action 1 pays in state 0; in state 1 the actions are alike.
	for pi0, warned := range map[string]bool{"[[1, 0], [0.5, 0.5]]": true, "[[0, 1], [0.5, 0.5]]": false} {
		start := jsonFile(t, `{"gamma": 0.5, "P": [[[1, 0], [1, 0]], [[0, 1], [0, 1]]], "r": [[0, 1], [0, 0]], "pi0": `+
			pi0+`}`)
		code, _, stderr := call("solve", "--mdp", start)
		if code != 0 || strings.Contains(stderr, "no mass to the best action in 1 of 2 states") != warned {
			t.Errorf("pi0 %s: exit %d, %q", pi0, code, stderr)
		}
	}
}

// interrupted starts solve and ends it with a signal after a while, as what may be called again.
func interrupted(t *testing.T, after time.Duration, signal os.Signal, args ...string) (stdout, stderr string) {
	t.Helper()
	cmd := command(t.Context(), append([]string{"solve"}, args...)...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	testkit.Check(t, cmd.Start())
	time.Sleep(after)
	testkit.Check(t, cmd.Process.Signal(signal))
	err := cmd.Wait()
	if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted ||
		!strings.Contains(errs.String(), "stopped ") {
		t.Errorf("%v, %s%s", err, &out, &errs)
	}
	return out.String(), errs.String()
}

// TestSolveInterrupted ends a run while Q* is sought, at once, and one that would take days, which says what there
// is. Where the machine is so busy that no round has ended by then, it waits longer.
func TestSolveInterrupted(t *testing.T) {
	large := written(t, testkit.Must(mdp.Random.Draw(7, 300, 30, 1))(t)[0])
	interrupted(t, 200*time.Millisecond, os.Interrupt, "--mdp", large) // of the seconds that it takes
	path, out := problemFile(t, 40), filepath.Join(t.TempDir(), "policy.npz")
	for _, wait := range []time.Duration{time.Second, 10 * time.Second, time.Minute} {
		stdout, stderr := interrupted(t, wait, syscall.SIGTERM, "--mdp", path, "--eta", "1e-9",
			"--rounds", "1000000000", "--tol", "0", "--out", out)
		if !strings.Contains(stdout, "loss after round") && wait < time.Minute {
			continue
		}
		if !strings.Contains(stderr, "stopped after round") || !strings.Contains(stdout, ": at most ") ||
			strings.Contains(stdout, ": at most 0 ") {
			t.Errorf("%s%s", stdout, stderr)
		}
		if _, err := os.Stat(out); err != nil {
			t.Error(err)
		}
		return
	}
}

// Critics that sample end near the exact one's loop, at another place for another seed, and
// nearer with more samples.
func TestSolveBySamples(t *testing.T) {
	path := problemFile(t, 4)
	at := func(arguments ...string) solved {
		return solve(t, 0, append([]string{"--mdp", path, "--rounds", "40", "--tol", "0"}, arguments...)...)
	}
	exact := at()
	off := func(s solved) float64 {
		worst := 0.0
		for i, row := range s.Policy {
			for a, p := range row {
				worst = max(worst, math.Abs(p-exact.Policy[i][a]))
			}
		}
		return worst
	}
	for _, critic := range []string{"mean", "memory"} {
		few, other, many := off(at("--critic", critic)), off(at("--critic", critic, "--seed", "2")),
			off(at("--critic", critic, "--samples", "5000"))
		if few == 0 || few == other || many > .1 || many > few {
			t.Errorf("%s: policies differ by %v from the exact critic's, with seed 2 by %v, with 5,000 samples by %v",
				critic, few, other, many)
		}
	}
	if s := at("--critic", "memory", "--actor", "any"); s.Loss > .5 {
		t.Errorf("both trained parts end at %v", s.Loss)
	}
	for _, wrong := range [][]string{{"--critic", "best"}, {"--critic", "memory", "--samples", "0"},
		{"--critic", "mean", "--actor", "decoder"}, {"--tol", "-1"}} {
		says(t, exitUsage, "", append([]string{"solve", "--mdp", path}, wrong...)...)
	}
}

// The fixed decoder does what exact PMD does, up to the residuals that it was certified for
// before it saw the problem.
func TestSolveByDecoder(t *testing.T) {
	path := problemFile(t, 4)
	exact, fixed := solve(t, 0, "--mdp", path, "--rounds", "40"),
		solve(t, 0, "--mdp", path, "--rounds", "40", "--actor", "decoder")
	if exact.Decoder != nil || fixed.Decoder == nil {
		t.Fatal("only the decoder has a certificate")
	}
	c := fixed.Certificate
	if c.Zeta > fixed.Decoder.Zeta || c.Delta > fixed.Decoder.DeltaRoute || c.Delta == 0 {
		t.Errorf("residuals %g and %g, certified %g and %g", c.Zeta, c.Delta, fixed.Decoder.Zeta,
			fixed.Decoder.DeltaRoute)
	}
	// 40 rounds of errors of at most 1e-5 in Q move log π by at most 40·η·1e-5.
	for k, l := range fixed.Losses {
		if math.Abs(l.Loss-exact.Losses[k].Loss) > 1e-3 {
			t.Errorf("%v, exact PMD %v", l, exact.Losses[k])
		}
	}
	says(t, 0, "certified", "solve", "--mdp", path, "--rounds", "40", "--actor", "decoder")
	cases := filepath.Join("..", "mdpfile", "testdata", "cases")
	for _, name := range []string{"s1a1.json", "equal.json", "bridge-repair-0.99.json", "maintenance0.99.json",
		"msdm-ties.json"} {
		if s := solve(t, 0, "--mdp", filepath.Join(cases, name), "--actor", "decoder", "--eta", "auto", "--rounds",
			"200"); s.Loss > .05 {
			t.Errorf("%s: loss %v at η = %v", name, s.Loss, s.Eta)
		}
	}
	says(t, exitFailure, "a step size of at most 0.0", "solve", "--mdp",
		filepath.Join(cases, "bridge-repair-0.99.json"), "--actor", "decoder")
}

// The actor for any MDP takes any shape, and finds what exact PMD finds.
func TestSolveByAny(t *testing.T) {
	for _, states := range []int{2, 4, 9} {
		path := problemFile(t, states)
		var loss [2]float64
		for i, actor := range []string{"exact", "any"} {
			s := solve(t, 0, "--mdp", path, "--actor", actor, "--rounds", "40", "--tol", "0")
			loss[i] = s.Loss
		}
		if math.Abs(loss[1]-loss[0]) > .005 { // the 99th percentile of its excess
			t.Errorf("S = %d: loss %g, exact PMD %g", states, loss[1], loss[0])
		}
	}
}

// The actors of fixed shape are warned about where they were seen to lock up or to fail.
func TestUnfamiliar(t *testing.T) {
	config := train.Standard(train.Proximal, train.Plain(), 1, 4)
	p := testkit.Must(mdp.Random.Draw(9, 4, 3, 1))(t)[0]
	p.Pi0 = p.MDP.Uniform()
	changed := func(least, most float64) mdp.Problem {
		r := mat.DenseCopyOf(p.MDP.R)
		r.Apply(func(_, _ int, v float64) float64 { return least + (most-least)*(v+1)/2 }, r)
		return mdp.Problem{MDP: testkit.Must(mdp.New(p.MDP.Gamma, p.MDP.DenseP(), r))(t), Pi0: p.Pi0}
	}
	starved := mdp.Problem{MDP: p.MDP, Pi0: mat.DenseCopyOf(p.Pi0)}
	starved.Pi0.SetRow(0, []float64{.00033, .5, .49967})
	tiny := mdp.Problem{MDP: p.MDP, Pi0: mat.DenseCopyOf(starved.Pi0)}
	tiny.Pi0.SetRow(0, []float64{1e-300, .5, .5})
	for _, tc := range []struct {
		problem mdp.Problem
		want    []string
	}{
		{p, nil},
		{starved, []string{"may never be found"}},
		{tiny, []string{"no probability below"}},
		{changed(-1, -.5), []string{"both signs", "values between"}},
		{changed(0, 1), []string{"both signs"}},
		{changed(-3, 3), []string{"at most 1 in size"}},
	} {
		a := &answer{errors: io.Discard}
		a.unfamiliar(config, testkit.Must(control.NewScale(tc.problem))(t), .8)
		warnings := a.warnings
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

// Trained actors are warned about cliffs deeper than what they were tried on, whatever the number of actions at the
// bottom. Those of fixed shape see all states, so that a near tie in one of them is no cliff.
func TestCliffs(t *testing.T) {
	plain := testkit.Must(filepath.Glob("../../artifacts/paper/train/proximal-plain-S4-14100-*/weights.safetensors"))(t)
	const ordinary, steep = "[-0.7,0.3,0.5],[0.1,-0.8,0.6],[-0.2,0.7,0]", "[0.001,0.0005,-1]"
	for _, tc := range []struct{ actor, rewards, want string }{
		{"any", "[0,-1,-1e15,-1e15]", "costs 1e+15 times"},
		{"any", "[-1,-1e15,0]", "costs 1e+15 times"},
		{"any", "[-1e17,0,-1,0,-1],[0,0,0,0,0]", "costs 1e+17 times"},
		{"any", "[0,-1,-1e11,-1e11]", ""},
		{"any", "[0,-1,-2,null]", ""},
		{"any", "[0.3,0.30000000000000004,-1]", ""}, // rounding
		{"any", "[0,-1e15,-1e15]", ""},              // the choice is the cliff
		{"any", "[0,0,0]", ""},
		{plain[0], strings.Join([]string{steep, steep, "[-1,0.0005,0.001]", "[0,0,0]"}, ","), "costs 2e+03 times"},
		{plain[0], "[0.9,-0.4,-0.6]," + ordinary, ""},
		{plain[0], steep + "," + ordinary, ""},
	} {
		states := strings.Count(tc.rewards, "[") // each leads to all alike, whatever is done: only rewards differ
		actions := strings.Count(tc.rewards, ",")/states + 1
		p := slices.Repeat([][]float64{slices.Repeat([]float64{1 / float64(states)}, states)}, actions)
		cube := testkit.Must(json.Marshal(slices.Repeat([][][]float64{p}, states)))(t)
		path := jsonFile(t, fmt.Sprintf(`{"gamma": 0.9, "P": %s, "r": [%s]}`, cube, tc.rewards))
		code, _, stderr := call("solve", "--mdp", path, "--actor", tc.actor, "--rounds", "2")
		if code != 0 || strings.Contains(stderr, "lock up") != (tc.want != "") || !strings.Contains(stderr, tc.want) {
			t.Errorf("%s: exit %d, %s; want %q", tc.rewards, code, stderr, tc.want)
		}
	}
	warned := 0
	for _, p := range testkit.Must(mdp.Random.Draw(9, 4, 3, 1000))(t) {
		if _, ratio := cliff(testkit.Must(p.MDP.Optimal())(t)); ratio > deepestPlain {
			warned++
		}
	}
	if warned > 1 {
		t.Errorf("warnings for %d of 1,000 problems of the training distribution", warned)
	}
}
