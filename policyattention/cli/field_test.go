package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"icrl/policyattention/method/all"
)

func TestField(t *testing.T) {
	commands := map[string]string{"": "PolicyAttention         this paper        ✓        ✓           ✓        ✓        ✓"}
	for _, s := range all.Systems {
		for _, variant := range s.Variants {
			commands[s.Folder+" --processes 2 --variant "+variant] = "squared error"
		}
	}
	for command, want := range commands {
		args := append([]string{"--backend", "go", "field"}, strings.Fields(command)...)
		if code, stdout, stderr := call(args...); code != 0 || !strings.Contains(stdout, want) {
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
