package field

import (
	"cmp"
	"strings"
	"testing"

	"icrl/policyattention/capability"
)

const root = "../.."

// Every tick opens.
func TestMap(t *testing.T) {
	cells, err := Map(root)
	if err != nil {
		t.Fatal(err)
	}
	if want := len(Systems()) * len(capability.Capabilities()); len(cells) != want {
		t.Fatalf("%d cells, want %d", len(cells), want)
	}
	for _, c := range cells {
		if c.Missing != nil || c.Mark == "" {
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
		"S5RL":                   "no implicit yes yes no", // in its text alone
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
