package cli

import (
	"encoding/json"
	"testing"

	"icrl/policyattention/paper"
)

func TestField(t *testing.T) {
	for name, s := range paper.Systems {
		for _, variant := range s.Variants {
			args := []string{"--backend", "go", "field", name, "--processes", "2", "--variant", variant}
			says(t, 0, "squared error", args...)
			if stdout := says(t, 0, "", append(args, "--json")...); !json.Valid([]byte(stdout)) {
				t.Errorf("%q as JSON: %.100q", args, stdout)
			}
		}
	}
	says(t, exitUsage, "no system", "field", "none")
}
