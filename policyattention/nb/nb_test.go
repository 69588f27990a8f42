package nb

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
		"no preset \"huge\"":  func() { Open("huge") },
		"evidence \"stord\"":  func() { Evidence("stord") },
		"table \"nonsense\"":  func() { Open("smoke").Table("nonsense") },
		"figure \"nonsense\"": func() { Open("smoke").Figure("nonsense") },
	}
	if cell := cells[os.Getenv("NB_TEST_CELL")]; cell != nil {
		cell()
		return
	}
	for want := range cells {
		c := exec.Command(os.Args[0], "-test.run=TestRefused")
		c.Env = append(os.Environ(), "NB_TEST_CELL="+want, "POLICYATTENTION_PRESET=")
		out, err := c.CombinedOutput()
		if c.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), want) {
			t.Errorf("%v with output %q, want status 1 and %s", err, out, want)
		}
	}
}
