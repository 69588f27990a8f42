package field

import (
	"cmp"
	"path/filepath"
	"strings"
	"testing"

	"icrl/policyattention/capability"
)

const root = "../.."

// Every tick opens, but for those of S5RL that wait for artifacts of its training: they print
// only where these are.
func TestMap(t *testing.T) {
	cells, err := Map(root)
	if err != nil {
		t.Fatal(err)
	}
	if want := len(Systems()) * len(capability.Capabilities()); len(cells) != want {
		t.Fatalf("%d cells, want %d", len(cells), want)
	}
	trained, err := filepath.Glob(filepath.Join(root, "artifacts/paper/train/s5rl-S8-*/weights.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cells {
		absent := len(trained) == 0 && c.System == "S5RL" && c.Capability != capability.Softmax && c.Capability != capability.ReturnError
		if (c.Missing != nil) != absent || (c.Mark == "") != absent {
			t.Errorf("%s, %s: mark %q, %v", c.System, c.Capability, c.Mark, c.Missing)
		}
	}
}

// The marks are those of the paper's Table 1, cell by cell.
func TestMarksAreThePapers(t *testing.T) {
	for name, want := range map[string]string{
		"Wang et al. 2025":       "emp. yes no yes no",
		"Xie et al. 2026":        "yes yes no yes no",
		"Liang–Lai 2026":         "linear yes yes yes no",
		"Algorithm Distillation": "yes implicit yes yes no",
		"PolicyAttention":        "yes yes yes yes yes",
	} {
		found := false
		for _, s := range Systems() {
			if s.Name != name {
				continue
			}
			found = true
			var got []string
			for _, c := range capability.Capabilities() {
				got = append(got, cmp.Or(s.Ticks[c].Mark, capability.No))
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s: %v, want %s", name, got, want)
			}
		}
		if !found {
			t.Errorf("no row %s", name)
		}
	}
}
