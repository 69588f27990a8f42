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
		if found, err := paper.Methods.Find(m.Name); err != nil || found.Label != m.Label {
			t.Errorf("%s: found %q, %v", m.Name, found.Label, err)
		}
	}
	if _, err := paper.Methods.Find("none"); err == nil {
		t.Error("there is a method called none")
	}
}

// Each mark of the paper's Table 1, and of S5RL, which is in its text alone, is shown by a test.
func TestTableOne(t *testing.T) {
	for _, mark := range []string{
		"field/wang: empirical softmax: TestTrainingLearns", "field/wang: evaluation: TestEachLayerIsAStep",
		"field/wang: learned: TestTrainingLearns",
		"field/xie: softmax: TestEachLayerIsAStep", "field/xie: evaluation: TestTheoremTwo",
		"field/xie: learned: TestTrainingLearns",
		"baseline/lianglai: linear softmax: TestAnalyticActorCritic",
		"baseline/lianglai: evaluation: TestAnalyticActorCritic",
		"baseline/lianglai: control: TestHarnessShapeAndController",
		"baseline/lianglai: learned: TestQualificationInTheNativeShape",
		"baseline/distill: softmax: TestCachedPassAndQueryAgreeWithFullPasses",
		"baseline/distill: implicit evaluation: TestLossIsTheNegativeLogLikelihood",
		"baseline/distill: control: TestReliveAgreesWithLive",
		"baseline/distill: learned: TestTrainingLearnsResumesAndRepeats",
		"field/s5rl: implicit evaluation: TestEstimate", "field/s5rl: control: TestReturnedPolicy",
		"field/s5rl: learned: TestLossIsPPOs",
		"decoder: softmax: TestBounds", "decoder: evaluation: TestCoverage", "decoder: control: TestConverges",
		"train: learned: TestTrainLearns", "control: bound on the returned policy: TestProve",
	} {
		part := strings.Split(mark, ": ")
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

// Without the baselines' folders, their lines of registration and their tests no import of the
// module is missing, so nothing else knows them, and what remains builds and runs a method from
// outside. No baseline knows another. Go's -overlay takes the files away; what does not change
// is not built again.
func TestWithoutBaselines(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a good part of the module")
	}
	root := testkit.Must(filepath.Abs("../.."))(t)
	flags := os.Getenv("GOFLAGS")
	command := func(args ...string) string {
		t.Helper()
		command := exec.Command("go", args...)
		command.Dir, command.Env = root, append(os.Environ(), "GOFLAGS="+flags)
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("go %q: %v: %s", args, err, out)
		}
		return string(out)
	}
	list := filepath.Join(root, "policyattention/paper/paper.go")
	replace := map[string]string{}
	take := func(path, text string) {
		t.Helper()
		replace[path] = filepath.Join(t.TempDir(), filepath.Base(path))
		testkit.Check(t, os.WriteFile(replace[path], []byte(text), 0o644))
	}
	text := string(testkit.Must(os.ReadFile(list))(t))
	folders := []string{"baseline/distill", "baseline/lianglai", "field/s5rl", "field/wang", "field/xie"}
	for _, folder := range folders {
		baseline, folder := filepath.Base(folder), "policyattention/"+folder
		files := testkit.Must(filepath.Glob(filepath.Join(root, folder, "*.go")))(t)
		if len(files) == 0 || !strings.Contains(text, folder) || !strings.Contains(text, baseline+".") {
			t.Fatalf("%s has %d files, and its registration is not where it was", folder, len(files))
		}
		for _, file := range files {
			replace[file] = ""
		}
		var kept []string
		for line := range strings.Lines(text) {
			if !strings.Contains(line, folder+`"`) && !strings.Contains(line, baseline+".") {
				kept = append(kept, line)
			}
		}
		text = strings.Join(kept, "")
		for path := range strings.FieldsSeq(command("list", "-f", "{{join .Imports \" \"}}", "./"+folder)) {
			if slices.Contains(folders, strings.TrimPrefix(path, "icrl/policyattention/")) {
				t.Errorf("%s imports %s", folder, path)
			}
		}
	}
	take(list, text)
	overlay := filepath.Join(t.TempDir(), "overlay.json")
	b := testkit.Must(json.Marshal(map[string]any{"Replace": replace}))(t)
	testkit.Check(t, os.WriteFile(overlay, b, 0o644))
	flags += " -overlay=" + overlay
	command("list", "-test", "./policyattention/...") // an import of what is gone is an error
	command("test", "-vet=off", "./policyattention/experiment", "-run", "TestMethodFromOutside")
}
