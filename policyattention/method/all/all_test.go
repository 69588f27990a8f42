package all_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"icrl/internal/testkit"
	"icrl/policyattention/method"
	"icrl/policyattention/method/all"
)

// Names and labels tell the methods apart.
func TestMethods(t *testing.T) {
	names, labels := map[method.Name]bool{}, map[string]bool{}
	for _, m := range all.Methods {
		if m.Name == "" || m.Label == "" || names[m.Name] || labels[m.Label] {
			t.Errorf("%+v: want a name and a label of its own", m)
		}
		names[m.Name], labels[m.Label] = true, true
		if found, err := all.Methods.Find(m.Name); err != nil || found.Label != m.Label {
			t.Errorf("%s: found %q, %v", m.Name, found.Label, err)
		}
	}
	if _, err := all.Methods.Find("none"); err == nil {
		t.Error("there is a method called none")
	}
}

// The marks are those of the paper's Table 1, cell by cell, and the test that each names is there.
func TestTableOne(t *testing.T) {
	for _, s := range all.Systems {
		want := map[string]string{
			"Wang et al. 2025":       "emp. ✓ – ✓ –",
			"Xie et al. 2026":        "✓ ✓ – ✓ –",
			"Liang–Lai 2026":         "linear ✓ ✓ ✓ –",
			"Algorithm Distillation": "✓ implicit ✓ ✓ –",
			"S5RL":                   "– implicit ✓ ✓ –", // in its text alone
			"PolicyAttention":        "✓ ✓ ✓ ✓ ✓",
		}[s.Name]
		if got := strings.Trim(fmt.Sprint(s.Marks()), "[]"); got != want {
			t.Errorf("%s: %s, want %s", s.Name, got, want)
		}
		for _, m := range s.Marks() {
			folder, name, _ := strings.Cut(m.Test, ".")
			files := testkit.Must(filepath.Glob(filepath.Join("../..", folder, "*_test.go")))(t)
			found := slices.ContainsFunc(files, func(file string) bool {
				return strings.Contains(string(testkit.Must(os.ReadFile(file))(t)), "\nfunc "+name+"(t *testing.T) {")
			})
			if found != (m.As != "") {
				t.Errorf("%s: %q is shown by %q, which is there: %v", s.Name, m, m.Test, found)
			}
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
	root := testkit.Must(filepath.Abs("../../.."))(t)
	command := func(args ...string) string {
		t.Helper()
		command := exec.Command("go", args...)
		command.Dir = root
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("go %q: %v: %s", args, err, out)
		}
		return string(out)
	}
	list := filepath.Join(root, "policyattention/method/all/all.go")
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
		if len(files) == 0 || !strings.Contains(text, folder) || !strings.Contains(text, baseline+".System") {
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
	command("list", "-test", "-overlay", overlay, "./policyattention/...") // an import of what is gone is an error
	command("test", "-overlay", overlay, "-vet=off", "./policyattention/experiment", "-run", "TestMethodFromOutside")
}
