package results

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"icrl/internal/testkit"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
)

// snippet returns the first block of README in a language that has some text.
func snippet(t *testing.T, language, with string) string {
	t.Helper()
	for _, block := range strings.Split(read(t, root+"README.md"), "```"+language+"\n")[1:] {
		if block, _, _ = strings.Cut(block, "```"); strings.Contains(block, with) {
			return block
		}
	}
	t.Fatalf("README has no %s with %s", language, with)
	return ""
}

// README's lines of Go are a program once there is an update rule: with that of PMD it ends where exact
// PMD does.
func TestReadmeGo(t *testing.T) {
	program := `package main
import (
	"fmt"
	"gonum.org/v1/gonum/mat"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
)
func myUpdateRule(c control.Context) (*mat.Dense, error) { return pmd.Step(c.Pi, c.Q, c.Eta) }
func main() {
` + snippet(t, "go", "myUpdateRule") + "\nif err != nil { panic(err) }\n}"
	file := filepath.Join(t.TempDir(), "main.go")
	testkit.Check(t, os.WriteFile(file, []byte(program), 0o644))
	command := exec.Command("go", "run", file)
	command.Dir = root
	out, err := command.CombinedOutput()
	problems := testkit.Must(mdp.Random.Draw(1, 8, 3, 1))(t)
	exact := testkit.Must(control.Score(problems, testkit.Must(control.ExactPMD(.8).Run(problems, 40))(t)))(t)[0].Loss
	if want := fmt.Sprintln(exact[20], exact[40]); err != nil || string(out) != want {
		t.Errorf("%s, %v, want %s", out, err, want)
	}
}

// README's lines of Python print the medians of the runs.
func TestReadmePython(t *testing.T) {
	command := exec.Command(".local/python/bin/python", "-c", snippet(t, "python", "import")+
		"\nprint(rows[(rows['round'] == 20) & (rows.s == 8) & (rows.method == 'exact-pmd')].loss.median())")
	command.Dir = root
	out, err := command.Output()
	if errors.Is(err, fs.ErrNotExist) {
		t.Skip("make setup has not been run")
	}
	want := fmt.Sprint(testkit.Must(stored.Ask("median benchmark method=exact-pmd s=8 t=20"))(t).Value)
	if lines := strings.Fields(string(out)); err != nil || lines[len(lines)-1] != want ||
		!strings.Contains(string(out), want[:6]) {
		t.Errorf("%s, %v, want %s", out, err, want)
	}
}
