package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
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
	text, err := json.Marshal(map[string]any{
		"gamma": p.MDP.Gamma, "P": cube, "r": mdp.ToRows(p.MDP.R), "pi0": mdp.ToRows(p.Pi0),
	})
	path := filepath.Join(t.TempDir(), "mdp.json")
	if err == nil {
		err = os.WriteFile(path, text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestExitCodes(t *testing.T) {
	good := problemFile(t, 4)
	bad := filepath.Join(t.TempDir(), "bad.json")
	testkit.Check(t, os.WriteFile(bad, []byte(`{"gamma": 1, "P": [[[1]]], "r": [[1]]}`), 0o644))
	checkpoint := filepath.Join(t.TempDir(), "weights.safetensors")
	testkit.Check(t, os.WriteFile(checkpoint, []byte("no weights"), 0o644))
	plain := filepath.Join(t.TempDir(), "file")
	testkit.Check(t, os.WriteFile(plain, nil, 0o644))
	empty := t.TempDir()
	unsealed, err := filepath.Glob(filepath.Join("..", "..", "artifacts", "paper", "train", "liang-lai-*",
		"weights.safetensors"))
	if err != nil || len(unsealed) == 0 {
		t.Fatalf("weights of Liang–Lai: %q, %v", unsealed, err)
	}
	for _, c := range []struct {
		name   string
		args   []string
		code   int
		stderr string
	}{
		{"no command", nil, exitUsage, "expected one of"},
		{"unknown command", []string{"frobnicate"}, exitUsage, "frobnicate"},
		{"unknown preset", []string{"--preset", "huge", "plan"}, exitUsage, `no preset "huge"`},
		{"no such file", []string{"solve", "--mdp", "nowhere.json"}, exitUsage, "nowhere.json"},
		{"eta with a tail", []string{"solve", "--mdp", good, "--eta", "0.8x"}, exitUsage, "0.8x"},
		{"bad eta", []string{"solve", "--mdp", good, "--eta", "fast"}, exitUsage, "--eta"},
		{"no such cell", []string{"--artifacts", empty, "evaluate", "nothing"}, exitUsage, "nothing"},
		{"no such task", []string{"--artifacts", empty, "--preset", "smoke", "grid", "run", "1000"}, exitUsage,
			"no task 1000"},
		{"grid not done", []string{"--artifacts", empty, "--preset", "smoke", "grid", "status"}, exitInterrupted,
			"not yet done"},
		{"no such run", []string{"--artifacts", empty, "train", "nothing"}, exitUsage, "nothing"},
		{"discount one", []string{"solve", "--mdp", bad}, exitFailure, "gamma is 1"},
		{"unknown file to write", []string{"solve", "--mdp", good, "--out", "policy.txt"}, exitUsage, "--out="},
		{"no rounds", []string{"solve", "--mdp", good, "--rounds", "0"}, exitUsage, "--rounds=0"},
		{"no actor", []string{"solve", "--mdp", good, "--actor", "exakt"}, exitUsage,
			"want \"exact\", \"decoder\", \"any\" or a file of weights"},
		{"nothing to verify", []string{"--artifacts", empty, "verify"}, exitFailure, "nothing to verify"},
		{"nothing to tabulate", []string{"--artifacts", empty, "table", "3"}, exitFailure,
			"holds no merged result of the preset paper"},
		{"nothing of another preset", []string{"--artifacts", empty, "--preset", "quick", "table", "3"}, exitFailure,
			"are of --preset paper"},
		{"a table's beginning", []string{"--artifacts", empty, "table", "bench"}, exitUsage,
			`did you mean "benchmark"?`},
		{"a misspelt table", []string{"--artifacts", empty, "table", "cliams"}, exitUsage, `or "claims"?`},
		{"a misspelt figure", []string{"--artifacts", empty, "figure", "orcale"}, exitUsage, `did you mean "oracle"?`},
		{"a misspelt preset", []string{"--preset", "papr", "plan"}, exitUsage, `did you mean "paper"?`},
		{"a misspelt method", []string{"try", "--method", "policyatention"}, exitUsage,
			`did you mean "policyattention"?`},
		{"a misspelt setting", []string{"try", "--set", "widht=7"}, exitUsage, `did you mean "width"?`},
		{"no such setting", []string{"--artifacts", empty, "try", "--set", "colour=7"}, exitUsage,
			`no setting "colour"`},
		{"no such width", []string{"--artifacts", empty, "try", "--set", "width=wide"}, exitUsage,
			`setting "width=wide"`},
		{"heads that do not divide", []string{"--artifacts", empty, "try", "--set", "width=30"}, exitUsage, "30"},
		{"a size without seeds", []string{"--artifacts", empty, "try", "--size", "5"}, exitUsage, "S=5"},
		{"no preset's file", []string{"--preset", "nowhere.json", "plan"}, exitFailure, "nowhere.json"},
		{"no checkpoint", []string{"--backend", "go", "solve", "--mdp", good, "--actor", checkpoint}, exitFailure,
			"weights.safetensors"},
		{"no such table", []string{"--artifacts", empty, "table", "nothing"}, exitUsage, "nothing"},
		{"unknown backend", []string{"--backend", "abacus", "solve", "--mdp", good, "--actor", checkpoint}, exitUsage,
			"abacus"},
		{"unknown backend, not needed", []string{"--backend", "abacus", "solve", "--mdp", good}, exitUsage, "abacus"},
		{"weights of another network", []string{"--backend", "go", "solve", "--mdp", good, "--actor",
			filepath.Join("..", "anymdp", "weights.safetensors")}, exitFailure,
			`not the weights that were asked for: of the configuration {"recipe":"any"`},
		{"weights without a digest", []string{"--backend", "go", "solve", "--mdp", good, "--actor", unsealed[0]},
			exitFailure, "states no digest"},
		{"no plugin", []string{"--artifacts", t.TempDir(), "--backend", "xla:nowhere", "any", "train"}, exitNoBackend,
			"nowhere"},
		{"artifacts in a file", []string{"--artifacts", filepath.Join(plain, "a"), "--preset", "smoke", "--backend",
			"go", "evaluate", "oracle"}, exitFailure, "not a directory"},
	} {
		code, _, stderr := call(c.args...)
		if code != c.code || !strings.Contains(stderr, c.stderr) {
			t.Errorf("%s: exit %d, %q; want %d with %q", c.name, code, stderr, c.code, c.stderr)
		}
	}
}

func TestPlan(t *testing.T) {
	for _, preset := range []string{"smoke", "quick", "paper"} {
		code, stdout, stderr := call("--artifacts", t.TempDir(), "--preset", preset, "--json", "plan")
		if code != 0 {
			t.Fatal(stderr)
		}
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
	folders, err := filepath.Glob(filepath.Join(artifacts, "smoke", "train", "*"))
	if err != nil || len(folders) != 2 {
		t.Errorf("%d training folders: %v", len(folders), folders)
	}
	if code, stdout, stderr := call(append(args, "table", "benchmark")...); code != 0 ||
		!strings.Contains(stdout, "PMD-target") {
		t.Errorf("table: %d, %s %s", code, stdout, stderr)
	}
	checkpoint := filepath.Join(folders[0], "weights.safetensors")
	if code, _, stderr := call("--backend", "go", "--json", "solve", "--mdp", problemFile(t, 4), "--actor", checkpoint,
		"--rounds", "3"); code != 0 {
		t.Errorf("solve with a checkpoint: %s", stderr)
	}
	if code, stdout, stderr := call("--backend", "go", "--json", "solve", "--mdp", problemFile(t, 4), "--actor",
		checkpoint, "--eta", "5"); code != 0 ||
		!strings.Contains(stderr, "warning: the actor was trained on step sizes in [0.4, 1.2]") ||
		!strings.Contains(stdout, `"warnings":`) {
		t.Errorf("a step size that the actor was not trained on: %d, %s", code, stderr)
	}
	if code, _, stderr := call("--backend", "go", "solve", "--mdp", problemFile(t, 5), "--actor",
		checkpoint); code != exitFailure || !strings.Contains(stderr, "the MDP is [5, 3]") {
		t.Errorf("a checkpoint of another size: %d, %s", code, stderr)
	}
	if code, stdout, stderr := call(append(args, "--backend", "go", "verify")...); code != 0 {
		t.Errorf("verify: %d, %s %s", code, stdout, stderr)
	}
	testkit.Check(t, os.WriteFile(filepath.Join(artifacts, "smoke", "losses.parquet"), []byte("edited"), 0o644))
	code, stdout, _ := call(append(args, "--backend", "go", "--json", "verify")...)
	var v experiment.Verification
	if err := json.Unmarshal([]byte(stdout), &v); err != nil || code != exitDiscrepancies || len(v.Discrepancies) == 0 {
		t.Errorf("verify after an edit: %d, %v, %s", code, err, stdout)
	}
}

// An interrupted training run says so, leaves its state, and the next call
// finishes it.
func TestInterrupt(t *testing.T) {
	artifacts := t.TempDir()
	// The quick preset's run takes minutes in pure Go, half of one on XLA: long enough to be interrupted.
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
	go func() {
		for buffer := make([]byte, 4096); ; {
			if _, err := stdout.Read(buffer); err != nil {
				return
			}
		}
	}()
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != exitInterrupted {
		t.Fatalf("%v, want exit code %d: %s", err, exitInterrupted, &stderr)
	}
	states, err := filepath.Glob(filepath.Join(artifacts, "quick", ".work", "*", "state.safetensors"))
	if err != nil || len(states) != 1 {
		t.Fatalf("state files %v, %v", states, err)
	}
	info, err := os.Stat(states[0])
	if err != nil || time.Since(info.ModTime()) > time.Minute {
		t.Errorf("%v, %v", info, err)
	}
}

func open(t *testing.T, artifacts, preset string) *experiment.Store {
	t.Helper()
	return testkit.Must(testkit.Must(paper.FindPreset(preset))(t).Open(artifacts, "go"))(t)
}

// Units are named by how they begin, by block, or in full.
func TestUnits(t *testing.T) {
	all := testkit.Must(open(t, t.TempDir(), "paper").Units())(t)
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
	code, stdout, stderr := call(args...)
	if code != 0 || !strings.Contains(stdout, "width=16") || strings.Count(stdout, "PolicyAttention") < 4 {
		t.Fatalf("%d: %s %s", code, stdout, stderr)
	}
	if code, again, stderr := call(args...); code != 0 || again != stdout {
		t.Errorf("once more: %d, %s %s", code, again, stderr)
	}
}

// A preset of one's own is a file.
func TestPresetFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "own.json")
	text := `{"name": "own", "steps": 4, "problems": 4, "rows": [
		{"block": "benchmark", "method": "exact-pmd", "sizes": [4]},
		{"block": "benchmark", "method": "policyattention", "sizes": [4], "runs": 1,
		 "recipe": "plain,width=16,layers=1,mdps=4,examples=32,batch=8"}]}`
	testkit.Check(t, os.WriteFile(path, []byte(text), 0o644))
	artifacts := t.TempDir()
	for _, args := range [][]string{{"plan"}, {"evaluate"}, {"verify"}, {"table", "benchmark"}} {
		if code, stdout, stderr := call(append([]string{"--artifacts", artifacts, "--backend", "go", "--preset", path},
			args...)...); code != 0 {
			t.Errorf("%v: %d, %s %s", args, code, stdout, stderr)
		}
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
