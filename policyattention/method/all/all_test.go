package all_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

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

// A copy of the module without a baseline's folder, its line of registration and the
// tests of the baselines builds, and what remains runs a method from outside.
func TestWithoutABaseline(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a copy of the module")
	}
	for _, baseline := range []string{"distill", "lianglai"} {
		t.Run(baseline, func(t *testing.T) {
			root := t.TempDir()
			copyModule(t, "../../..", root)
			if err := os.RemoveAll(filepath.Join(root, "policyattention/baseline", baseline)); err != nil {
				t.Fatal(err)
			}
			if err := os.Remove(filepath.Join(root, "policyattention/experiment/baselines_test.go")); err != nil {
				t.Fatal(err)
			}
			list := filepath.Join(root, "policyattention/method/all/all.go")
			text, err := os.ReadFile(list)
			if err != nil {
				t.Fatal(err)
			}
			var kept []string
			for _, line := range strings.Split(string(text), "\n") {
				if !strings.Contains(line, "baseline/"+baseline) && !strings.Contains(line, baseline+".Method") {
					kept = append(kept, line)
				}
			}
			if err := os.WriteFile(list, []byte(strings.Join(kept, "\n")), 0o644); err != nil {
				t.Fatal(err)
			}
			for _, args := range [][]string{
				{"build", "./policyattention/...", "./policyattention/bench/cmd/bench"},
				{"test", "./policyattention/experiment", "-run", "TestMethodFromOutside|TestRootsAreDisjoint|TestConfigHash"},
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

// copyModule copies what Go needs of a module, without artifacts and notebooks.
func copyModule(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if d.IsDir() {
			top, _, _ := strings.Cut(name, string(filepath.Separator))
			if name != "." && top != "internal" && top != "policyattention" && top != "scripts" {
				return fs.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		}
		if !d.Type().IsRegular() {
			return nil
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), b, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}
