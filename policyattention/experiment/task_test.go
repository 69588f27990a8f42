package experiment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"icrl/internal/testkit"
	"icrl/policyattention/artifact"
)

func tasks(t *testing.T, s *Store) []Task {
	t.Helper()
	list := testkit.Must(s.Preset.Tasks())(t)
	return list
}

// A task is a function of its index: what is done has no influence, and two
// tasks never make the same artifact.
func TestTasks(t *testing.T) {
	for name := range Presets {
		s := testkit.Must(Open(t.TempDir(), name, "go"))(t)
		trained := map[string]bool{}
		folders := map[string]bool{}
		for i, task := range tasks(t, s) {
			folder := place(t, s, task)
			if folders[folder] {
				t.Errorf("%s: task %d makes %s again", name, i, folder)
			}
			folders[folder] = true
			if task.Training != nil {
				trained[task.Training.Hash()] = true
				continue
			}
			needed := testkit.Must(s.Preset.Trainings(*task.Cell))(t)
			for _, c := range needed {
				if !trained[c.Hash()] {
					t.Errorf("%s: task %d, %s, comes before %s", name, i, task.Name(), c.Name())
				}
			}
		}
	}
}

func TestRunTwice(t *testing.T) {
	s := open(t)
	for _, task := range tasks(t, s) {
		if state, _, err := s.State(task); state != Done || err != nil {
			t.Errorf("%s is %q, %v", task.Name(), state, err)
		}
		if made, err := s.Run(t.Context(), task); made || err != nil {
			t.Errorf("%s was made again (%v), %v", task.Name(), made, err)
		}
	}
}

// A run that cannot continue is reported, its evaluations do not try it again,
// and both recover when the cause is gone.
func TestFailure(t *testing.T) {
	s := open(t)
	list := tasks(t, s)
	training := list[0]
	index := slices.IndexFunc(list, func(t Task) bool {
		if t.Cell == nil {
			return false
		}
		needed, err := s.Preset.Trainings(*t.Cell)
		return err == nil && len(needed) == 1 && needed[0].Hash() == training.Training.Hash()
	})
	evaluation := list[index]
	for _, task := range []Task{training, evaluation} {
		remove(t, place(t, s, task))
	}
	broken := s.artifacts.Work(s.trainingFolder(training.Training))
	testkit.Check(t, os.MkdirAll(broken, 0o755))
	testkit.Check(t, os.WriteFile(filepath.Join(broken, "state.safetensors"), []byte("no state"), 0o644))
	if state, _, err := s.State(training); state != Begun || err != nil {
		t.Errorf("before: %q, %v", state, err)
	}
	for _, task := range []Task{training, evaluation} {
		_, err := s.Run(t.Context(), task)
		if err == nil || artifact.Passing(err) {
			t.Fatalf("%s: %v, want a failure for good", task.Name(), err)
		}
		state, failure, err := s.State(task)
		if err != nil || state != Failed || !strings.Contains(failure.Error, "state.safetensors") {
			t.Errorf("%s: %q, %+v, %v", task.Name(), state, failure, err)
		}
	}
	remove(t, broken)
	for _, task := range []Task{training, evaluation} {
		if made, err := s.Run(t.Context(), task); !made || err != nil {
			t.Fatalf("%s again: %v, %v", task.Name(), made, err)
		}
		if state, _, err := s.State(task); state != Done || err != nil {
			t.Errorf("%s again: %q, %v", task.Name(), state, err)
		}
	}
}

// An interruption is no failure.
func TestInterruptedTask(t *testing.T) {
	s := testkit.Must(Open(t.TempDir(), "smoke", "go"))(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	task := tasks(t, s)[0]
	if _, err := s.Run(ctx, task); !artifact.Passing(err) {
		t.Errorf("%v is not passing", err)
	}
	if state, _, err := s.State(task); state != Begun || err != nil {
		t.Errorf("%q, %v, want begun", state, err)
	}
}

func TestPassing(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, true},
		{fmt.Errorf("a: %w", errors.Join(errors.New("b"), context.Canceled)), true},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.ENOENT}, false},
		{errors.New("the loss of step 7 is NaN"), false},
	} {
		if artifact.Passing(c.err) != c.want {
			t.Errorf("artifact.Passing(%v) = %v", c.err, !c.want)
		}
	}
}

// tree returns the contents of all artifacts of a store, by path.
func tree(t *testing.T, s *Store) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := fs.WalkDir(os.DirFS(s.Root()), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == artifact.WorkFolder:
			return fs.SkipDir
		case !d.IsDir():
			files[path], err = os.ReadFile(filepath.Join(s.Root(), path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// place returns the folder of a task's artifact.
func place(t *testing.T, s *Store, task Task) string {
	t.Helper()
	folder := testkit.Must(s.place(task))(t)
	return folder
}

// fresh returns an empty store.
func fresh(t *testing.T) *Store {
	t.Helper()
	s := testkit.Must(Open(t.TempDir(), "smoke", "go"))(t)
	return s
}

// Two machines have made overlapping parts at different cost: every order of
// merging, in one call or several, gives the same bytes.
func TestMergeInAnyOrder(t *testing.T) {
	parts := []*Store{open(t), open(t), open(t)}
	for i, s := range parts {
		for n, task := range tasks(t, s) {
			if n%3 == i { // each task is in two of the parts
				remove(t, place(t, s, task))
			} else {
				reseal(func(m *artifact.Manifest) { m.Cost.WallSeconds = float64(100*i + n) })(t, place(t, s, task))
			}
		}
	}
	dirs := []string{filepath.Dir(parts[0].Root()), filepath.Dir(parts[1].Root()), filepath.Dir(parts[2].Root())}
	var want map[string][]byte
	for _, order := range [][][]int{{{0, 1, 2}}, {{2, 1, 0}}, {{1}, {0}, {2}}, {{2, 0}, {1, 2, 0}}} {
		s := fresh(t)
		for _, call := range order {
			var sources []string
			for _, i := range call {
				sources = append(sources, dirs[i])
			}
			testkit.Must(s.Merge(t.Context(), sources))(t)
		}
		got := tree(t, s)
		if want == nil {
			want = got
			if v, err := s.Verify(t.Context(), 1, nil); err != nil || v.Err() != nil || v.Missing > 0 {
				t.Errorf("verify: %v, %v", v, err)
			}
		}
		if !maps.EqualFunc(got, want, bytes.Equal) {
			t.Errorf("order %v gives other bytes", order)
		}
		if copied, err := s.Merge(t.Context(), dirs); copied != 0 || err != nil {
			t.Errorf("merging again: %d copied, %v", copied, err)
		}
	}
}

func TestMergeRefuses(t *testing.T) {
	training, evaluation := tasks(t, fresh(t))[0], Task{}
	for _, task := range tasks(t, fresh(t)) {
		if task.Cell != nil && task.Cell.Method == PolicyAttention {
			evaluation = task
			break
		}
	}
	for _, c := range []struct {
		name     string
		spoil    func(s *Store)
		conflict bool
		want     string
	}{
		{"other numbers", func(s *Store) {
			reseal(func(m *artifact.Manifest) { m.Summary["T20"] = artifact.Values{"median_loss": 0.5} })(t, place(t, s, evaluation))
		}, true, evaluation.Name()},
		{"other weights behind an evaluation", func(s *Store) {
			// The first store has no such evaluation, so only the weights contradict it.
			reseal(func(m *artifact.Manifest) {
				for name := range m.Weights {
					m.Weights[name] = strings.Repeat("0", 64)
				}
			})(t, place(t, s, evaluation))
		}, true, "weights 000"},
		{"a damaged file", func(s *Store) {
			flip(lossFile)(t, place(t, s, training))
		}, false, lossFile},
		{"an edited manifest", func(s *Store) {
			path := filepath.Join(place(t, s, training), artifact.ManifestFile)
			text, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, bytes.Replace(text, []byte(training.Name()), []byte("another"), 1), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		}, false, "seal"},
	} {
		t.Run(c.name, func(t *testing.T) {
			one, two, into := open(t), open(t), fresh(t)
			c.spoil(two)
			if c.name == "other weights behind an evaluation" {
				remove(t, place(t, one, evaluation))
			}
			copied, err := into.Merge(t.Context(), []string{filepath.Dir(one.Root()), filepath.Dir(two.Root())})
			if err == nil || errors.Is(err, artifact.ErrConflict) != c.conflict || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want an error with %q", err, c.want)
			}
			if _, err := os.Stat(into.Root()); copied != 0 || !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%d copied, %v", copied, err)
			}
		})
	}
	if _, err := fresh(t).Merge(t.Context(), []string{t.TempDir()}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder without the preset: %v", err)
	}
}
