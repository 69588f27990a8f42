package paper_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"icrl/internal/testkit"
	"icrl/policyattention/method"
	"icrl/policyattention/paper"
)

// Names and labels tell the methods apart.
func TestMethods(t *testing.T) {
	names, labels := map[method.Name]bool{}, map[string]bool{}
	for _, m := range paper.Methods {
		if m.Name == "" || m.Label == "" || names[m.Name] || labels[m.Label] {
			t.Errorf("%+v: want a name and a label of its own", m)
		}
		names[m.Name], labels[m.Label] = true, true
	}
	if _, err := paper.Methods.Find("none"); err == nil {
		t.Error("there is a method called none")
	}
}

// Each mark of the paper's Table 1, and of S5RL, which is in its text alone, is shown by a test.
func TestTableOne(t *testing.T) {
	for mark := range strings.Lines(string(testkit.Must(os.ReadFile("testdata/marks.txt"))(t))) {
		part := strings.Split(strings.TrimSpace(mark), ": ")
		if _, err := os.Stat(filepath.Join("..", part[0])); errors.Is(err, os.ErrNotExist) {
			continue // a system that has been taken out
		}
		files := testkit.Must(filepath.Glob(filepath.Join("..", part[0], "*_test.go")))(t)
		if !slices.ContainsFunc(files, func(file string) bool {
			text := string(testkit.Must(os.ReadFile(file))(t))
			return strings.Contains(text, "\nfunc "+part[2]+"(t *testing.T) {")
		}) {
			t.Errorf("there is no test of %s", mark)
		}
	}
}

// Without the folder of a baseline, its line of registration and its tests no import of the module is
// missing, so nothing else knows it, no other baseline either, and the list builds. Without all of them what
// remains builds and runs a method from outside. Go's -overlay takes the files away; what does not change is
// not built again.
func TestWithoutBaselines(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a good part of the module")
	}
	baselines := []string{"baseline/distill", "baseline/lianglai", "field/s5rl", "field/wang", "field/xie"}
	for _, baseline := range baselines {
		run := without(t, baseline)
		run("list", "-test", "./policyattention/...") // an import of what is gone is an error
		run("build", "./policyattention/paper")
	}
	run := without(t, baselines...)
	run("list", "-test", "./policyattention/...")
	run("test", "-vet=off", "./policyattention/cli", "-run", "TestMethodFromOutside")
}

// without returns what runs go on the module without folders and their lines in the list of methods.
func without(t *testing.T, folders ...string) (run func(args ...string)) {
	t.Helper()
	root := testkit.Must(filepath.Abs("../.."))(t)
	list := filepath.Join(root, "policyattention/paper/paper.go")
	text, replace := string(testkit.Must(os.ReadFile(list))(t)), map[string]string{}
	for _, folder := range folders {
		files := testkit.Must(filepath.Glob(filepath.Join(root, "policyattention", folder, "*.go")))(t)
		for _, file := range files {
			replace[file] = ""
		}
		var kept []string
		for line := range strings.Lines(text) {
			if !strings.Contains(line, folder+`"`) && !strings.Contains(line, filepath.Base(folder)+".") {
				kept = append(kept, line)
			}
		}
		if len(files) == 0 || len(kept)+2 > strings.Count(text, "\n") {
			t.Fatalf("%s has %d files, and its registration is not where it was", folder, len(files))
		}
		text = strings.Join(kept, "")
	}
	replace[list] = filepath.Join(t.TempDir(), "paper.go")
	testkit.Check(t, os.WriteFile(replace[list], []byte(text), 0o644))
	overlay := filepath.Join(t.TempDir(), "overlay.json")
	b := testkit.Must(json.Marshal(map[string]any{"Replace": replace}))(t)
	testkit.Check(t, os.WriteFile(overlay, b, 0o644))
	return func(args ...string) {
		t.Helper()
		command := exec.Command("go", args...)
		command.Dir, command.Env = root, append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+overlay)
		if out, err := command.CombinedOutput(); err != nil {
			t.Errorf("without %q: go %q: %v: %s", folders, args, err, out)
		}
	}
}
