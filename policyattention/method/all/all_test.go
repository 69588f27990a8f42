package all_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"icrl/internal/testkit"
	"icrl/policyattention/method"
	"icrl/policyattention/method/all"
)

// Names, labels and colours tell the methods apart, and what they promise is there.
func TestMethods(t *testing.T) {
	names, labels := map[method.Name]bool{}, map[string]bool{}
	for _, m := range all.Methods {
		if m.Name == "" || m.Label == "" || names[m.Name] || labels[m.Label] || m.Colour.A != 255 || m.Signal == "" || m.Access == "" || m.Cost == "" {
			t.Errorf("%+v: want a name and a label of its own, an opaque colour, signal, access and cost", m)
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

// The module without a baseline's folder, its line of registration and the tests of the
// baselines builds, and what remains runs a method from outside. Go's -overlay takes the
// files away, so that packages which do not know the baseline are built once.
func TestWithoutABaseline(t *testing.T) {
	if testing.Short() {
		t.Skip("builds most of the module twice")
	}
	root := testkit.Must(filepath.Abs("../../.."))(t)
	list := filepath.Join(root, "policyattention/method/all/all.go")
	text := testkit.Must(os.ReadFile(list))(t)
	for _, baseline := range []string{"distill", "lianglai"} {
		t.Run(baseline, func(t *testing.T) {
			var kept []string
			for line := range strings.Lines(string(text)) {
				if !strings.Contains(line, "baseline/"+baseline) && !strings.Contains(line, baseline+".Method") {
					kept = append(kept, line)
				}
			}
			without := filepath.Join(t.TempDir(), "all.go")
			testkit.Check(t, os.WriteFile(without, []byte(strings.Join(kept, "")), 0o644))
			replace := map[string]string{list: without, filepath.Join(root, "policyattention/experiment/baselines_test.go"): ""}
			files := testkit.Must(filepath.Glob(filepath.Join(root, "policyattention/baseline", baseline, "*.go")))(t)
			if len(kept) == strings.Count(string(text), "\n") || len(files) == 0 {
				t.Fatalf("%d lines of registration are left, and %d files are to go", len(kept), len(files))
			}
			for _, file := range files {
				replace[file] = ""
			}
			overlay := filepath.Join(t.TempDir(), "overlay.json")
			b := testkit.Must(json.Marshal(map[string]any{"Replace": replace}))(t)
			testkit.Check(t, os.WriteFile(overlay, b, 0o644))
			for _, args := range [][]string{
				{"list", "-export", "-overlay", overlay, "./policyattention/..."}, // builds, and links no command,
				{"test", "-overlay", overlay, "-vet=off", "./policyattention/experiment", "-run", "TestMethodFromOutside|TestRootsAreDisjoint|TestConfigHash"},
			} {
				command := exec.Command("go", args...)
				command.Dir = root
				if out, err := command.CombinedOutput(); err != nil {
					t.Fatalf("go %q: %v: %s", args, err, out)
				}
			}
		})
	}
}
