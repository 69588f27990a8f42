package experiment_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/control"
	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/rows"
)

// lossOf scores a stored policy from the stored problems alone.
func lossOf(t *testing.T, problems []rows.Problem, p rows.Policy) float64 {
	t.Helper()
	for _, x := range problems {
		if x.S == p.S && x.Problem == p.Problem {
			s, a := int(x.S), int(x.A)
			m := testkit.Must(mdp.New(x.Gamma, mat.NewDense(s*a, s, x.P), mat.NewDense(s, a, x.R)))(t)
			scale := testkit.Must(control.NewScale(mdp.Problem{MDP: m, Pi0: mat.NewDense(s, a, x.Pi0)}))(t)
			return testkit.Must(scale.Loss(mat.NewDense(s, a, append([]float64(nil), p.Policy...))))(t)
		}
	}
	t.Fatalf("no problem %d", p.Problem)
	return 0
}

// What has failed for good is not tried again by what needs it; what passes is.
func TestFailures(t *testing.T) {
	s := testkit.Must(little(t).Open(t.TempDir(), "go"))(t)
	tasks := testkit.Must(s.Tasks())(t)
	training := tasks[0]
	work := filepath.Join(s.Root, experiment.WorkFolder)
	testkit.Check(t, os.MkdirAll(work, 0o755))
	failed := filepath.Join(work, training.Path()+"-"+method.Hash(training.Training)[:12]+".failed")
	testkit.Check(t, os.WriteFile(failed, []byte(`{"error": "no such luck"}`), 0o644))
	if state, failure, err := s.State(training); state != experiment.Failed || failure == nil || err != nil {
		t.Errorf("state %q, %v, %v", state, failure, err)
	}
	for _, task := range tasks {
		if len(task.Weights) == 0 || method.Hash(task.Weights[0].Training) != method.Hash(training.Training) {
			continue
		}
		if _, err := s.Run(t.Context(), task); err == nil {
			t.Errorf("%s was made without its training run", task.Path())
		}
	}
}

// files returns those of a merged preset in the order in which they were written.
func files(t *testing.T, root string) (names []string) {
	t.Helper()
	at := map[string]int64{}
	testkit.Check(t, fs.WalkDir(os.DirFS(root), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || strings.HasPrefix(name, "train/") || strings.HasPrefix(name, ".") {
			return err
		}
		info, err := e.Info()
		at[name] = info.ModTime().UnixNano()
		names = append(names, name)
		return err
	}))
	slices.SortFunc(names, func(x, y string) int { return int(at[x] - at[y]) })
	return names
}

// undisturbed returns the folder of results that were merged without trouble, and their digests.
func undisturbed(t *testing.T) (root, sums string) {
	t.Helper()
	merged(t)
	root = filepath.Join(made.folder, "after", "little")
	return root, string(testkit.Must(os.ReadFile(filepath.Join(root, "SHA256SUMS")))(t))
}

// whole fails the test unless every result is there, and a merge gives the files of an undisturbed one.
func whole(t *testing.T, artifacts, want string) {
	t.Helper()
	s := testkit.Must(little(t).Open(artifacts, "go"))(t)
	for _, task := range testkit.Must(s.Tasks())(t) {
		if state, _, err := s.State(task); state != experiment.Done || err != nil {
			t.Errorf("%s: %s, %v", task.Path(), state, err)
		}
		if task.Training == nil {
			if r, err := s.Evaluate(t.Context(), task); err != nil || r.Len() == 0 {
				t.Errorf("%s has no rows: %v", task.Path(), err)
			}
		}
	}
	testkit.Must(s.Merge(t.Context()))(t)
	got, sums := files(t, s.Root), filepath.Join(s.Root, "SHA256SUMS")
	if text := string(testkit.Must(os.ReadFile(sums))(t)); text != want || got[len(got)-1] != "SHA256SUMS" {
		t.Errorf("it ends in %q with the digests\n%swant\n%s", got, text, want)
	}
}

// Killed between any two of its files, or while single results go, a merge has lost nothing, and the
// next one ends in the bytes of one that was left alone.
func TestMergeKilled(t *testing.T) {
	after, want := undisturbed(t)
	order := files(t, after)
	if len(order) < 12 || order[len(order)-1] != "SHA256SUMS" || order[len(order)-2] != "runs.json" {
		t.Fatalf("a merge writes %q", order)
	}
	for n := range len(order) + 2 {
		artifacts := t.TempDir()
		copyResults(t, "before", artifacts)
		root := filepath.Join(artifacts, "little")
		for _, name := range order[:min(n, len(order))] {
			testkit.Check(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
			text := testkit.Must(os.ReadFile(filepath.Join(after, name)))(t)
			testkit.Check(t, os.WriteFile(filepath.Join(root, name), text, 0o644))
		}
		if n > len(order) {
			testkit.Check(t, os.RemoveAll(filepath.Join(root, "new/benchmark")))
		} else { // half of the next file
			testkit.Check(t, os.WriteFile(filepath.Join(root, ".runs.json123"), []byte("["), 0o644))
		}
		whole(t, artifacts, want)
	}
}

// An evaluation with weights of another machine, under the name of those that are there, is refused.
func TestMergeOfOtherWeights(t *testing.T) {
	_, want := undisturbed(t)
	artifacts := t.TempDir()
	copyResults(t, "before", artifacts)
	root := filepath.Join(artifacts, "little")
	records := testkit.Must(filepath.Glob(root + "/train/proximal-plain-S4-14100-*/run.json"))(t)
	text := string(testkit.Must(os.ReadFile(records[0]))(t))
	digest := regexp.MustCompile(`safetensors":"([0-9a-f]{64})"`).FindStringSubmatch(text)[1]
	replace(t, records[0], digest, strings.Repeat("0", 64))
	s := testkit.Must(little(t).Open(artifacts, "go"))(t)
	if _, err := s.Merge(t.Context()); err == nil || !strings.Contains(err.Error(), "made with the weights") {
		t.Errorf("an evaluation with other weights: %v", err)
	}
	replace(t, records[0], strings.Repeat("0", 64), digest)
	whole(t, artifacts, want)
}

// A merge on a full disk fails as what may pass, and when there is space again nothing is lost.
func TestMergeOnFullDisk(t *testing.T) {
	_, want := undisturbed(t)
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=64m"); err != nil {
		t.Skipf("no disk of its own, which only root can have: %v", err)
	}
	defer syscall.Unmount(disk, 0) //nolint:errcheck // the test's end
	failed := 0
	for _, free := range []int{4, 40, 100, 200, 60_000} { // kB
		artifacts, filler := filepath.Join(disk, "artifacts"), filepath.Join(disk, "filler")
		copyResults(t, "before", artifacts)
		var space syscall.Statfs_t
		testkit.Check(t, syscall.Statfs(disk, &space))
		filling := max(0, int(space.Bavail)*int(space.Bsize)-free*1024)
		testkit.Check(t, os.WriteFile(filler, make([]byte, filling), 0o644))
		s := testkit.Must(little(t).Open(artifacts, "go"))(t)
		if _, err := s.Merge(t.Context()); err != nil {
			if failed++; !errors.Is(err, syscall.ENOSPC) || !experiment.Passing(err) {
				t.Errorf("with %d kB of space: %v", free, err)
			}
		}
		testkit.Check(t, os.RemoveAll(filler))
		whole(t, artifacts, want)
		testkit.Check(t, os.RemoveAll(artifacts))
	}
	if failed < 2 {
		t.Errorf("the disk was full %d times", failed)
	}
}
