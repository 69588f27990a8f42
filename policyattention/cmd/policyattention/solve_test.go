package main

import (
	"encoding/json"
	"icrl/policyattention/control"
	"icrl/policyattention/decoder"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
