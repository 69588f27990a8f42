package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"icrl/policyattention/paper"
)

func TestField(t *testing.T) {
	var commands []string
	for name, s := range paper.Systems {
		for _, variant := range s.Variants {
			commands = append(commands, name+" --processes 2 --variant "+variant)
		}
	}
	for _, command := range commands {
		args := append([]string{"--backend", "go", "field"}, strings.Fields(command)...)
		if code, stdout, stderr := call(args...); code != 0 || !strings.Contains(stdout, "squared error") {
			t.Errorf("field %s: exit code %d, %q, %q", command, code, stdout, stderr)
		}
		code, stdout, _ := call(append([]string{"--json"}, args...)...)
		if code != 0 || !json.Valid([]byte(stdout)) {
			t.Errorf("field %s as JSON: exit code %d, %.100q", command, code, stdout)
		}
	}
	if code, _, stderr := call("field", "none"); code != exitUsage || !strings.Contains(stderr, "no system") {
		t.Errorf("no such system: exit code %d, %q", code, stderr)
	}
}
