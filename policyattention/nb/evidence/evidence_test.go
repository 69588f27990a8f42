package evidence

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// A cell that asks for what does not exist says so and fails; the notebooks themselves, which
// the tests execute, are the test of the rest.
func TestRefused(t *testing.T) {
	cells := map[string]func(){
		"evidence: \"stord\"": func() { Open("stord") },
		"table \"nonsense\"":  func() { Open("stored").Table("nonsense") },
		"figure \"nonsense\"": func() { Open("stored").Figure("nonsense") },
		"not []int":           func() { Rows(Open("stored"), "claims", func(int) bool { return true }) },
	}
	if cell := cells[os.Getenv("EVIDENCE_TEST_CELL")]; cell != nil {
		cell()
		return
	}
	for want := range cells {
		c := exec.Command(os.Args[0], "-test.run=TestRefused")
		c.Env = append(os.Environ(), "EVIDENCE_TEST_CELL="+want, "POLICYATTENTION_PRESET=smoke")
		out, err := c.CombinedOutput()
		if c.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), want) {
			t.Errorf("%v with output %q, want status 1 and %s", err, out, want)
		}
	}
}
