package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"icrl/internal/testkit"
	_ "icrl/policyattention/backend/xla"
	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/paper"
	"icrl/policyattention/train"
)

// The test binary is the command when this is set, as workers and the tests of
// signals need it.
const asCommand = "POLICYATTENTION_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(Run(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// call runs a command line in this process.
func call(args ...string) (code int, stdout, stderr string) {
	var out, failures bytes.Buffer
	code = Run(args, &out, &failures)
	return code, out.String(), failures.String()
}

// says runs a command line, which must end with a code and print a text, as an error where the code is not 0.
func says(t *testing.T, code int, text string, args ...string) (stdout string) {
	t.Helper()
	got, stdout, out := call(args...)
	if code == 0 {
		out = stdout + out
	}
	if got != code || !strings.Contains(out, text) {
		t.Errorf("%q: exit %d, %s; want %d with %q", args, got, out, code, text)
	}
	return stdout
}

func problemFile(t *testing.T, states int) string {
	t.Helper()
	problems := testkit.Must(mdp.Random.Draw(5, states, 3, 1))(t)
	return written(t, problems[0])
}

// written returns the file of a problem.
func written(t *testing.T, p mdp.Problem) string {
	t.Helper()
	cube := make([][][]float64, p.MDP.States())
	for s := range cube {
		for a := range p.MDP.Actions() {
			cube[s] = append(cube[s], p.MDP.Next(s, a))
		}
	}
	return jsonFile(t, string(testkit.Must(json.Marshal(map[string]any{
		"gamma": p.MDP.Gamma, "P": cube, "r": mdp.ToRows(p.MDP.R), "pi0": mdp.ToRows(p.Pi0),
	}))(t)))
}

// jsonFile writes a file of JSON.
func jsonFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "own.json")
	testkit.Check(t, os.WriteFile(path, []byte(content), 0o644))
	return path
}

func TestExitCodes(t *testing.T) {
	good := problemFile(t, 4)
	bad := jsonFile(t, `{"gamma": 1, "P": [[[1]]], "r": [[1]]}`)
	checkpoint := filepath.Join(t.TempDir(), "weights.safetensors")
	testkit.Check(t, os.WriteFile(checkpoint, []byte("no weights"), 0o644))
	plain := filepath.Join(t.TempDir(), "file")
	testkit.Check(t, os.WriteFile(plain, nil, 0o644))
	empty := t.TempDir()
	unsealed := testkit.Must(filepath.Glob("../../artifacts/paper/train/liang-lai-*/weights.safetensors"))(t)
	if len(unsealed) == 0 {
		t.Fatal("there are no weights of Liang–Lai's")
	}
	for _, c := range []struct {
		args   []string
		code   int
		stderr string
	}{
		{nil, exitUsage, "expected one of"},
		{[]string{"frobnicate"}, exitUsage, "frobnicate"},
		{[]string{"--preset", "huge", "plan"}, exitUsage, `no preset "huge"`},
		{[]string{"solve", "--mdp", "nowhere.json"}, exitUsage, "nowhere.json"},
		{[]string{"solve", "--mdp", good, "--eta", "0.8x"}, exitUsage, "0.8x"},
		{[]string{"solve", "--mdp", good, "--eta", "fast"}, exitUsage, "--eta"},
		{[]string{"--artifacts", empty, "evaluate", "nothing"}, exitUsage, "nothing"},
		{[]string{"--artifacts", empty, "--preset", "smoke", "grid", "run", "1000"}, exitUsage, "no task 1000"},
		{[]string{"--artifacts", empty, "--preset", "smoke", "grid", "status"}, exitInterrupted, "not yet done"},
		{[]string{"--artifacts", empty, "train", "nothing"}, exitUsage, "nothing"},
		{[]string{"solve", "--mdp", bad}, exitFailure, "gamma is 1"},
		{[]string{"solve", "--mdp", good, "--out", "policy.txt"}, exitUsage, "--out="},
		{[]string{"solve", "--mdp", good, "--rounds", "0"}, exitUsage, "--rounds=0"},
		{[]string{"solve", "--mdp", good, "--actor", "exakt"}, exitUsage,
			"want \"exact\", \"decoder\", \"any\" or a file of weights"},
		{[]string{"--artifacts", empty, "verify"}, exitFailure, "nothing to verify"},
		{[]string{"--artifacts", empty, "table", "3"}, exitFailure, "holds no merged result of the preset paper"},
		{[]string{"--artifacts", empty, "--preset", "quick", "table", "3"}, exitFailure, "are of --preset paper"},
		{[]string{"--artifacts", empty, "table", "bench"}, exitUsage, `did you mean "benchmark"?`},
		{[]string{"--artifacts", empty, "table", "cliams"}, exitUsage, `or "claims"?`},
		{[]string{"--artifacts", empty, "figure", "orcale"}, exitUsage, `did you mean "oracle"?`},
		{[]string{"--preset", "papr", "plan"}, exitUsage, `did you mean "paper"?`},
		{[]string{"try", "--method", "policyatention"}, exitUsage, `did you mean "policyattention"?`},
		{[]string{"try", "--set", "widht=7"}, exitUsage, `did you mean "width"?`},
		{[]string{"--artifacts", empty, "try", "--set", "colour=7"}, exitUsage, `no setting "colour"`},
		{[]string{"--artifacts", empty, "try", "--set", "attention="}, exitUsage, "it has no value"},
		{[]string{"--artifacts", empty, "try", "--set", "width=wide"}, exitUsage, `setting "width=wide"`},
		{[]string{"--artifacts", empty, "try", "--set", "width=30"}, exitUsage, "30"},
		{[]string{"--artifacts", empty, "try", "--size", "5"}, exitUsage, "S=5"},
		{[]string{"--preset", "nowhere.json", "plan"}, exitFailure, "nowhere.json"},
		{[]string{"--backend", "go", "solve", "--mdp", good, "--actor", checkpoint}, exitFailure,
			"weights.safetensors"},
		{[]string{"--artifacts", empty, "table", "nothing"}, exitUsage, "nothing"},
		{[]string{"--backend", "abacus", "solve", "--mdp", good, "--actor", checkpoint}, exitUsage, "abacus"},
		{[]string{"--backend", "abacus", "solve", "--mdp", good}, exitUsage, "abacus"},
		{[]string{"--backend", "go", "solve", "--mdp", good, "--actor", "../anymdp/weights.safetensors"}, exitFailure,
			`not the weights that were asked for: of the configuration {"recipe":"any"`},
		{[]string{"--backend", "go", "solve", "--mdp", good, "--actor", unsealed[0]}, exitFailure, "states no digest"},
		{[]string{"--artifacts", t.TempDir(), "--backend", "xla:nowhere", "--preset", "paper", "train", "any-31000"},
			exitNoBackend, "nowhere"},
		{[]string{"--artifacts", filepath.Join(plain, "a"), "--preset", "smoke", "--backend", "go", "evaluate",
			"oracle"}, exitFailure, "not a directory"},
	} {
		says(t, c.code, c.stderr, c.args...)
	}
}

func TestPlan(t *testing.T) {
	for _, preset := range []string{"smoke", "quick", "paper"} {
		stdout := says(t, 0, "", "--artifacts", t.TempDir(), "--preset", preset, "--json", "plan")
		var lines []listed
		testkit.Check(t, json.Unmarshal([]byte(stdout), &lines))
		if len(lines) < 20 {
			t.Errorf("%s: %d lines", preset, len(lines))
		}
		for _, p := range lines {
			if p.Done || (p.Kind == "train") != (p.Minutes > 0) {
				t.Errorf("%s: %+v", preset, p)
			}
		}
	}
}

// command returns the test binary as the command.
func command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), asCommand+"=1", "GOMLX_BACKEND=go")
	return cmd
}

// Two processes are asked for the same cells at once, with several missing
// training runs each: both succeed, what each run is made once, and a table and
// verification follow; then a report edited by hand is found.
func TestTwoProcessesOnOneCell(t *testing.T) {
	artifacts := t.TempDir()
	args := []string{"--artifacts", artifacts, "--preset", "smoke"}
	evaluate := append(args[:len(args):len(args)], "--json", "evaluate", "benchmark/exact-pmd-S4",
		"benchmark/policyattention-S4-14100", "benchmark/pmd-target-S4-14100")
	var outputs [2]bytes.Buffer
	var cmds [2]*exec.Cmd
	for i := range cmds {
		cmds[i] = command(t.Context(), evaluate...)
		cmds[i].Stdout, cmds[i].Stderr = &outputs[i], &outputs[i]
		testkit.Check(t, cmds[i].Start())
	}
	for i := range cmds {
		if err := cmds[i].Wait(); err != nil {
			t.Fatalf("%v: %s", err, &outputs[i])
		}
	}
	folders := testkit.Must(filepath.Glob(filepath.Join(artifacts, "smoke", "train", "*")))(t)
	if len(folders) != 2 {
		t.Errorf("training folders %v", folders)
	}
	says(t, 0, "PMD-target", append(args, "table", "benchmark")...)
	solve := []string{"--backend", "go", "--json", "solve", "--actor", filepath.Join(folders[0], "weights.safetensors"),
		"--mdp"}
	says(t, 0, "", append(solve, problemFile(t, 4), "--rounds", "3")...)
	if stdout := says(t, 0, "warning: the actor was trained on step sizes in [0.4, 1.2]",
		append(solve, problemFile(t, 4), "--eta", "5")...); !strings.Contains(stdout, `"warnings":["`) {
		t.Errorf("a step size that the actor was not trained on: %s", stdout)
	}
	says(t, exitFailure, "the MDP is [5, 3]", append(solve, problemFile(t, 5))...)
	says(t, 0, "", append(args, "--backend", "go", "verify")...)
	testkit.Check(t, os.WriteFile(filepath.Join(artifacts, "smoke", "losses.parquet"), []byte("edited"), 0o644))
	stdout := says(t, exitDiscrepancies, "", append(args, "--backend", "go", "--json", "verify")...)
	var v experiment.Verification
	if err := json.Unmarshal([]byte(stdout), &v); err != nil || len(v.Discrepancies) == 0 {
		t.Errorf("verify after an edit: %v, %s", err, stdout)
	}
}

// An interrupted training run says so, leaves its state, and the next call
// finishes it.
func TestInterrupt(t *testing.T) {
	artifacts := t.TempDir()
	// The quick preset's run takes half a minute: long enough to be interrupted.
	cmd := command(t.Context(), "--artifacts", artifacts, "--preset", "quick", "--json", "train",
		"proximal-plain-5120-S4-14100")
	stdout := testkit.Must(cmd.StdoutPipe())(t)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	testkit.Check(t, cmd.Start())
	line := make([]byte, 1)
	if _, err := stdout.Read(line); err != nil { // progress: training has begun
		t.Fatalf("%v: %s", err, &stderr)
	}
	testkit.Check(t, cmd.Process.Signal(syscall.SIGINT))
	go io.Copy(io.Discard, stdout) //nolint:errcheck // the command ends it
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted {
		t.Fatalf("%v, want exit code %d: %s", err, exitInterrupted, &stderr)
	}
	states := testkit.Must(filepath.Glob(filepath.Join(artifacts, "quick", ".work", "*", "state.safetensors")))(t)
	if len(states) != 1 || time.Since(testkit.Must(os.Stat(states[0]))(t).ModTime()) > time.Minute {
		t.Errorf("state files %v", states)
	}
}

// Units are named by how they begin, by block, or in full.
func TestUnits(t *testing.T) {
	store := testkit.Must(testkit.Must(paper.FindPreset("paper"))(t).Open(t.TempDir(), "go"))(t)
	all := testkit.Must(store.Units())(t)
	for name, want := range map[string]int{"benchmark/policyattention-S8": 3, "mechanism": 19,
		"benchmark/policyattention-learned-critic-S8-18101": 1} {
		if found := testkit.Must(named(all, "evaluation or block", "paper", []string{name}))(t); len(found) != want {
			t.Errorf("%s: %d units, want %d", name, len(found), want)
		}
	}
}

// A variation in a line is trained, killed or not, and printed beside the plain recipe.
func TestTry(t *testing.T) {
	artifacts := t.TempDir()
	args := []string{"--artifacts", artifacts, "--backend", "go", "try", "--size", "4", "--seeds", "1", "--steps", "4",
		"--set", "mdps=4,examples=32,batch=8,width=16,hidden=16,layers=1"}
	stdout := says(t, 0, "width=16", args...)
	if again := says(t, 0, "", args...); again != stdout || strings.Count(stdout, "PolicyAttention") < 4 {
		t.Errorf("%s, once more %s", stdout, again)
	}
}

// A preset of one's own is a file.
func TestPresetFile(t *testing.T) {
	path := jsonFile(t, `{"name": "own", "steps": 4, "problems": 4, "rows": [
		{"block": "benchmark", "method": "exact-pmd", "sizes": [4]},
		{"block": "benchmark", "method": "policyattention", "sizes": [4], "runs": 1,
		 "recipe": "plain,width=16,layers=1,mdps=4,examples=32,batch=8"}]}`)
	artifacts := t.TempDir()
	for _, args := range [][]string{{"plan"}, {"evaluate"}, {"verify"}, {"table", "benchmark"}} {
		says(t, 0, "", append([]string{"--artifacts", artifacts, "--backend", "go", "--preset", path}, args...)...)
	}
}

func TestProgressLine(t *testing.T) {
	p := experiment.Progress{Name: "run", Progress: train.Progress{Step: 100, Steps: 1000, StepsPerSecond: 90}}
	if got, want := line(p), "run: 100 of 1000 steps, 90 steps/s, 10s left"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := line(experiment.Progress{Name: "run", Waiting: true}),
		"another process is at run, waiting"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// Commands that documents name, in code and between backticks, are understood, with their flags.
func TestDocumentedCommands(t *testing.T) {
	var files []string
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../artifacts/*.md", "../../notebooks/*.md",
		"../*/*.md", "../*/*/*.md"} {
		files = append(files, testkit.Must(filepath.Glob(pattern))(t)...)
	}
	command := regexp.MustCompile("(?m)(?:^|`)(?:go run ./policyattention/cmd/)?policyattention ([^`#\n]*)")
	n := 0
	for _, file := range files {
		for _, m := range command.FindAllStringSubmatch(string(testkit.Must(os.ReadFile(file))(t)), -1) {
			args := strings.Fields(m[1])
			if len(args) == 0 || strings.Contains(m[1], "…") {
				continue
			}
			n++
			code, _, stderr := call(append(args, "--help")...) // which is answered before anything runs
			if code != 0 && !strings.Contains(stderr, "no such file") {
				t.Errorf("%s: policyattention %s: %s", file, m[1], stderr)
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d commands were found", n)
	}
}
