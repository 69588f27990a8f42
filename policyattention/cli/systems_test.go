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
		says(t, 0, "squared error", args...)
		if stdout := says(t, 0, "", append([]string{"--json"}, args...)...); !json.Valid([]byte(stdout)) {
			t.Errorf("field %s as JSON: %.100q", command, stdout)
		}
	}
	says(t, exitUsage, "no system", "field", "none")
}
