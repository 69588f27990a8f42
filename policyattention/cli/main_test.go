package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/mdpfile"
	"icrl/policyattention/train"
)

// The test binary is the command when this is set, as workers and the tests of
// signals need it.
const asCommand = "POLICYATTENTION_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// call runs a command line in this process.
func call(args ...string) (code int, stdout, stderr string) {
	var out, failures bytes.Buffer
	code = run(args, &out, &failures)
	return code, out.String(), failures.String()
}

func problemFile(t *testing.T, states int) string {
	t.Helper()
	problems, err := mdp.Random.Draw(5, states, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "mdp.json")
	if err := mdpfile.Write(path, problems[0]); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestExitCodes(t *testing.T) {
	good := problemFile(t, 4)
	bad := filepath.Join(t.TempDir(), "bad.json")
	if err := os.WriteFile(bad, []byte(`{"gamma": 1, "P": [[[1]]], "r": [[1]]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	checkpoint := filepath.Join(t.TempDir(), "weights.safetensors")
	if err := os.WriteFile(checkpoint, []byte("no weights"), 0o644); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	empty := t.TempDir()
	unsealed, err := filepath.Glob(filepath.Join("..", "..", "..", "artifacts", "paper", "train", "liang-lai-*", "weights.safetensors"))
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
		{"unknown preset", []string{"--preset", "huge", "plan"}, exitUsage, "preset"},
		{"no such file", []string{"solve", "--mdp", "nowhere.json"}, exitUsage, "nowhere.json"},
		{"eta with a tail", []string{"solve", "--mdp", good, "--eta", "0.8x"}, exitUsage, "0.8x"},
		{"bad eta", []string{"solve", "--mdp", good, "--eta", "fast"}, exitUsage, "--eta"},
		{"no such cell", []string{"--artifacts", empty, "evaluate", "nothing"}, exitUsage, "nothing"},
		{"no such task", []string{"--artifacts", empty, "--preset", "smoke", "grid", "run", "1000"}, exitUsage, "no task 1000"},
		{"grid not done", []string{"--artifacts", empty, "--preset", "smoke", "grid", "status"}, exitInterrupted, "not yet done"},
		{"no such run", []string{"--artifacts", empty, "train", "nothing"}, exitUsage, "nothing"},
		{"discount one", []string{"solve", "--mdp", bad}, exitFailure, "gamma is 1"},
		{"unknown file to write", []string{"solve", "--mdp", good, "--out", "policy.txt"}, exitUsage, "--out="},
		{"no rounds", []string{"solve", "--mdp", good, "--rounds", "0"}, exitUsage, "--rounds=0"},
		{"no actor", []string{"solve", "--mdp", good, "--actor", "exakt"}, exitUsage, "want \"exact\", \"decoder\", \"any\" or a file of weights"},
		{"workers", []string{"--artifacts", empty, "--preset", "smoke", "train", "--workers=-1"}, exitUsage, "--workers=-1"},
		{"nothing to verify", []string{"--artifacts", empty, "verify"}, exitFailure, "nothing to verify"},
		{"nothing to tabulate", []string{"--artifacts", empty, "table", "prior"}, 0, "holds no result of the preset quick"},
		{"no growth", []string{"growth", "--file", filepath.Join(empty, "growth.json")}, exitFailure, "run 'go run ./policyattention/bench/cmd/bench growth'"},
		{"no checkpoint", []string{"--backend", "go", "solve", "--mdp", good, "--actor", checkpoint}, exitFailure, "weights.safetensors"},
		{"no such table", []string{"--artifacts", empty, "table", "nothing"}, exitUsage, "nothing"},
		{"unknown backend", []string{"--backend", "abacus", "solve", "--mdp", good, "--actor", checkpoint}, exitUsage, "abacus"},
		{"unknown backend, not needed", []string{"--backend", "abacus", "solve", "--mdp", good}, exitUsage, "abacus"},
		{"weights of another network", []string{"--backend", "go", "solve", "--mdp", good, "--actor", filepath.Join("..", "..", "anymdp", "weights.safetensors")}, exitFailure, `not the weights that were asked for: of the configuration {"recipe":"any"`},
		{"weights without a digest", []string{"--backend", "go", "solve", "--mdp", good, "--actor", unsealed[0]}, exitFailure, "states no digest"},
		{"no actor for any MDP", []string{"--artifacts", empty, "any", "table"}, exitFailure, "of --preset paper"},
		{"nothing beside it", []string{"--artifacts", empty, "any", "beside"}, 0, "of --preset paper"},
		{"no such method to ask", []string{"equal", "ask", "policyattention"}, exitUsage, `want one of ["pmd-mean"`},
		{"no such family to ask about", []string{"equal", "ask", "--family", "mazes", "pmd-mean"}, exitUsage, `unknown family "mazes"`},
		{"no transitions to ask with", []string{"equal", "ask", "--n", "0", "pmd-mean"}, exitUsage, "0 transitions"},
		{"no plugin", []string{"--artifacts", t.TempDir(), "--backend", "xla:nowhere", "any", "train"}, exitNoBackend, "nowhere"},
		{"artifacts in a file", []string{"--artifacts", filepath.Join(plain, "a"), "--preset", "smoke", "--backend", "go", "evaluate", "oracle"}, exitFailure, "not a directory"},
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
		var lines []planned
		if err := json.Unmarshal([]byte(stdout), &lines); err != nil {
			t.Fatal(err)
		}
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
	evaluate := append(args[:len(args):len(args)], "--json", "evaluate", "benchmark/exact-pmd-S4", "benchmark/policyattention-S4-14100", "benchmark/pmd-target-S4-14100")
	var outputs [2]bytes.Buffer
	var cmds [2]*exec.Cmd
	for i := range cmds {
		cmds[i] = command(t.Context(), evaluate...)
		cmds[i].Stdout, cmds[i].Stderr = &outputs[i], &outputs[i]
		if err := cmds[i].Start(); err != nil {
			t.Fatal(err)
		}
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
	if code, stdout, stderr := call(append(args, "table", "benchmark")...); code != 0 || !strings.Contains(stdout, "PMD-target") {
		t.Errorf("table: %d, %s %s", code, stdout, stderr)
	}
	checkpoint := filepath.Join(folders[0], "weights.safetensors")
	if code, _, stderr := call("--backend", "go", "--json", "solve", "--mdp", problemFile(t, 4), "--actor", checkpoint, "--rounds", "3"); code != 0 {
		t.Errorf("solve with a checkpoint: %s", stderr)
	}
	if code, stdout, stderr := call("--backend", "go", "--json", "solve", "--mdp", problemFile(t, 4), "--actor", checkpoint, "--eta", "5"); code != 0 ||
		!strings.Contains(stderr, "warning: the actor was trained on step sizes in [0.4, 1.2]") || !strings.Contains(stdout, `"warnings":`) {
		t.Errorf("a step size that the actor was not trained on: %d, %s", code, stderr)
	}
	if code, _, stderr := call("--backend", "go", "solve", "--mdp", problemFile(t, 5), "--actor", checkpoint); code != exitFailure || !strings.Contains(stderr, "5 states") {
		t.Errorf("a checkpoint of another size: %d, %s", code, stderr)
	}
	statement := filepath.Join(t.TempDir(), "statement.json")
	if code, stdout, stderr := call(append(args, "--backend", "go", "verify", "--statement", statement, "--source", "../../..")...); code != 0 {
		t.Errorf("verify: %d, %s %s", code, stdout, stderr)
	}
	if text, err := os.ReadFile(statement); err != nil || !strings.Contains(string(text), `"PASSED"`) || !strings.Contains(string(text), filepath.Base(folders[0])+"/weights.safetensors") {
		t.Errorf("the statement: %v, %.200s", err, text)
	}
	if err := os.WriteFile(filepath.Join(folders[0], "loss.csv.gz"), []byte("edited"), 0o644); err != nil {
		t.Fatal(err)
	}
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
	cmd := command(t.Context(), "--artifacts", artifacts, "--preset", "quick", "--json", "train", "proximal-plain-5120-S4-14100")
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 1)
	if _, err := stdout.Read(line); err != nil { // progress: training has begun
		t.Fatalf("%v: %s", err, &stderr)
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
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

// TestCellsOfLongTraining names cells by how they begin: only so are those had whose
// training takes days.
func TestCellsOfLongTraining(t *testing.T) {
	store, err := experiment.Open(t.TempDir(), "paper", "go")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name       string
		want, left int
	}{
		{"benchmark/policyattention-S8", 3, 0}, {"benchmark/policyattention-learned-critic-S8-18101", 1, 0},
		{"benchmark/algorithm-distillation-full-S8", 3, 0}, {"ablation", 30, 0}, {"benchmark", 0, 6},
	} {
		var stderr bytes.Buffer
		g := &globals{errors: &stderr}
		found, err := cells(store, []string{c.name})
		if err != nil {
			t.Fatal(err)
		}
		kept, err := g.leaveLong(store, found, []string{c.name})
		if err != nil {
			t.Fatal(err)
		}
		for _, cell := range kept {
			if !strings.HasPrefix(cell.Name(), c.name) {
				t.Errorf("%s names %s", c.name, cell.Name())
			}
		}
		left := strings.Count(stderr.String(), "algorithm-distillation-full")
		if len(found)-len(kept) != left || left < c.left || c.left == 0 && (left > 0 || len(kept) != c.want) {
			t.Errorf("%s: %d cells, %d left out; want %d and %d", c.name, len(kept), left, c.want, c.left)
		}
	}
}

func TestCellsByBlock(t *testing.T) {
	store, err := experiment.Open(t.TempDir(), "smoke", "go")
	if err != nil {
		t.Fatal(err)
	}
	found, err := cells(store, []string{"shift"})
	if err != nil || len(found) != 8 {
		t.Errorf("%d cells of the shift block, want 8: %v", len(found), err)
	}
	configs, err := store.Preset.Trainings()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range configs {
		if c, ok := c.(train.Config); ok && c.Objective == train.Critic && len(c.Snapshots) > 0 {
			t.Errorf("%s keeps snapshots that nothing reads", c.Name())
		}
	}
}

func TestEvaluateTrained(t *testing.T) {
	artifacts := t.TempDir()
	if code, _, stderr := call("--artifacts", artifacts, "--preset", "smoke", "--backend", "go", "evaluate", "--trained", "shift"); code != 0 {
		t.Fatal(stderr)
	}
	store, err := experiment.Open(artifacts, "smoke", "go")
	if err != nil {
		t.Fatal(err)
	}
	list, err := cells(store, []string{"shift"})
	if err != nil {
		t.Fatal(err)
	}
	for _, cell := range list {
		_, err := store.Find(cell)
		if exact := cell.Method == experiment.ExactPMD; exact != (err == nil) {
			t.Errorf("%s: %v; without training only exact cells can be evaluated", cell.Name(), err)
		}
	}
}

func TestProgressLine(t *testing.T) {
	p := experiment.Progress{Name: "run", Progress: train.Progress{Step: 100, Steps: 1000, StepsPerSecond: 90}}
	if got, want := line(p), "run: 100 of 1000 steps, 90 steps/s, 10s left"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := line(experiment.Progress{Name: "run", Waiting: true}), "another process is at run, waiting"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A command whose workers could not go on says so as they do.
func TestExitCodeOfWorkers(t *testing.T) {
	for _, want := range []int{exitInterrupted, exitNoBackend} {
		err := exec.Command("sh", "-c", fmt.Sprintf("exit %d", want)).Run()
		if got := exitCode(fmt.Errorf("training: %w", errors.Join(err))); got != want {
			t.Errorf("exit code %d, want %d", got, want)
		}
	}
	if got := exitCode(exec.Command("sh", "-c", "exit 2").Run()); got != exitFailure {
		t.Errorf("of another program: exit code %d, want %d", got, exitFailure)
	}
}
