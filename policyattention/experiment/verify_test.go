package experiment_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"icrl/internal/testkit"
	"icrl/policyattention/experiment"
	"icrl/policyattention/paper"
	"icrl/policyattention/rows"
)

// little is a preset of every kind of evaluation, at the scale of smoke.
func little(t *testing.T) experiment.Preset {
	t.Helper()
	p := testkit.Must(paper.FindPreset("smoke"))(t)
	p.Name, p.Snapshots = "little", nil
	row := func(block experiment.Block, method, recipe string, size, runs int) experiment.Row {
		return experiment.Row{Block: block, Method: method, Recipe: recipe, Sizes: []int{size}, Runs: runs}
	}
	p.Rows = []experiment.Row{
		row(experiment.Benchmark, "exact-pmd", "", 4, 0), row(experiment.Benchmark, "policyattention", "plain", 4, 2),
		row(experiment.Mechanism, "policyattention", "plain", 4, 1), row(experiment.Backups, "sample-mean", "", 4, 0),
		row(experiment.Qualification, "s5rl", "cpu", 8, 1), row(experiment.Tuning, "liang-lai", "", 8, 0),
		row(experiment.Qualification, "liang-lai", "harness", 8, 1),
	}
	return p
}

var made struct {
	sync.Once
	folder string
	err    error
}

// merged returns a copy of the merged results of the preset little.
func merged(t *testing.T) (store *experiment.Store, artifacts string) {
	t.Helper()
	made.Do(func() {
		if made.folder, made.err = os.MkdirTemp("", "little"); made.err != nil {
			return
		}
		var s *experiment.Store
		if s, made.err = little(t).Open(made.folder, "go"); made.err != nil {
			return
		}
		var tasks []experiment.Task
		if tasks, made.err = s.Tasks(); made.err != nil {
			return
		}
		for _, task := range tasks {
			if _, made.err = s.Run(t.Context(), task); made.err != nil {
				return
			}
		}
		_, made.err = s.Merge(t.Context())
	})
	if made.err != nil {
		t.Fatal(made.err)
	}
	artifacts = t.TempDir()
	testkit.Check(t, os.CopyFS(artifacts, os.DirFS(made.folder)))
	return testkit.Must(little(t).Open(artifacts, "go"))(t), artifacts
}

func TestMain(m *testing.M) {
	code := m.Run()
	if made.folder != "" {
		os.RemoveAll(made.folder)
	}
	os.Exit(code)
}

// seal writes SHA256SUMS for what is there: a forger would.
func seal(t *testing.T, root string) {
	t.Helper()
	var b strings.Builder
	testkit.Check(t, filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || e.Name() == "SHA256SUMS" || strings.Contains(path, ".work") {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(root, path)
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(text), filepath.ToSlash(name))
		return err
	}))
	testkit.Check(t, os.WriteFile(filepath.Join(root, "SHA256SUMS"), []byte(b.String()), 0o644))
}

// edit changes the rows of a file.
func edit[R any](t *testing.T, path string, change func([]R) []R) {
	t.Helper()
	testkit.Check(t, rows.Write(path, change(testkit.Must(rows.Read[R](path))(t))))
}

// replace changes text in a file.
func replace(t *testing.T, path, old, new string) {
	t.Helper()
	text := testkit.Must(os.ReadFile(path))(t)
	if !bytes.Contains(text, []byte(old)) {
		t.Fatalf("%s has no %q", path, old)
	}
	testkit.Check(t, os.WriteFile(path, bytes.Replace(text, []byte(old), []byte(new), 1), 0o644))
}

func weights(t *testing.T, root, name string) string {
	t.Helper()
	paths := testkit.Must(filepath.Glob(filepath.Join(root, "train", name+"-*", "weights.safetensors")))(t)
	if len(paths) != 1 {
		t.Fatalf("weights of %s: %q", name, paths)
	}
	return paths[0]
}

func learned(r rows.Key) bool { return r.Method == "policyattention" && r.Seed == 14100 }

// Everything that a forger or a disk can do to results is found, whether or not the digests were
// made to fit.
func TestVerifyFindsCorruptions(t *testing.T) {
	s, _ := merged(t)
	if v := testkit.Must(s.Verify(t.Context(), true))(t); v.Err() != nil || v.Missing > 0 || v.Units != 8 || v.Scored == 0 || v.Again == 0 {
		t.Fatalf("%v: %v", v, v.Discrepancies)
	}
	for _, c := range []struct {
		name   string
		sealed bool // digests fit
		change func(t *testing.T, root string)
		want   string
	}{
		{"an edited float", false, func(t *testing.T, root string) {
			edit(t, root+"/rows/benchmark.parquet", func(r []rows.Round) []rows.Round { r[7].Loss += 1e-12; return r })
		}, "its SHA-256 is"},
		{"an edited loss", true, func(t *testing.T, root string) {
			edit(t, root+"/rows/benchmark.parquet", func(r []rows.Round) []rows.Round { r[7].Loss *= 1.001; return r })
		}, "computed again"},
		{"a loss of the last problem", true, func(t *testing.T, root string) {
			edit(t, root+"/rows/benchmark.parquet", func(r []rows.Round) []rows.Round { r[len(r)-1].Loss *= 1.001; return r })
		}, "the stored policy has loss"},
		{"an edited residual", true, func(t *testing.T, root string) {
			edit(t, root+"/rows/benchmark.parquet", func(r []rows.Round) []rows.Round { r[5].Defect += .01; return r })
		}, "Defect is"},
		{"a loss that is no number", true, func(t *testing.T, root string) {
			edit(t, root+"/rows/benchmark.parquet", func(r []rows.Round) []rows.Round { r[3].Loss = math.NaN(); return r })
		}, "Loss is NaN"},
		{"two policies swapped", true, func(t *testing.T, root string) {
			edit(t, root+"/policies/benchmark.parquet", func(p []rows.Policy) []rows.Policy {
				p[0].Policy, p[2].Policy = p[2].Policy, p[0].Policy
				return p
			})
		}, "the stored policy has loss"},
		{"a policy that does not add up", true, func(t *testing.T, root string) {
			edit(t, root+"/policies/benchmark.parquet", func(p []rows.Policy) []rows.Policy { p[1].Policy[0] += .1; return p })
		}, "the stored policy has loss"},
		{"greedy policies with losses made to fit", true, func(t *testing.T, root string) {
			greedy(t, s, root)
		}, "computed again"},
		{"a policy of another shape", true, func(t *testing.T, root string) {
			edit(t, root+"/policies/benchmark.parquet", func(p []rows.Policy) []rows.Policy { p[1].Policy = p[1].Policy[:6]; return p })
		}, "it is no policy"},
		{"a truncated file of rows", true, func(t *testing.T, root string) {
			text := testkit.Must(os.ReadFile(root + "/rows/benchmark.parquet"))(t)
			testkit.Check(t, os.WriteFile(root+"/rows/benchmark.parquet", text[:len(text)/2], 0o644))
		}, "benchmark.parquet"},
		{"a file that is missing", false, func(t *testing.T, root string) {
			testkit.Check(t, os.Remove(root+"/rows/mechanism.parquet"))
		}, "it is missing"},
		{"rows that are missing", true, func(t *testing.T, root string) {
			edit(t, root+"/rows/benchmark.parquet", func(r []rows.Round) []rows.Round {
				return slices.DeleteFunc(r, func(r rows.Round) bool { return learned(r.Key) })
			})
		}, "policyattention-S4-14100"},
		{"a problem that is missing", true, func(t *testing.T, root string) {
			edit(t, root+"/rows/benchmark.parquet", func(r []rows.Round) []rows.Round {
				return slices.DeleteFunc(r, func(r rows.Round) bool { return r.Problem == 5 && learned(r.Key) })
			})
		}, "rows on each of"},
		{"a row too many", true, func(t *testing.T, root string) {
			edit(t, root+"/rows/benchmark.parquet", func(r []rows.Round) []rows.Round { return append(r, r[len(r)-1]) })
		}, "rows on each of"},
		{"rows of a run that nobody made", true, func(t *testing.T, root string) {
			edit(t, root+"/rows/benchmark.parquet", func(r []rows.Round) []rows.Round {
				one := r[0]
				one.Seed = 7
				return append(r, one)
			})
		}, "which no record names"},
		{"a record of another configuration", true, func(t *testing.T, root string) {
			replace(t, root+"/runs.json", `"rounds": 40`, `"rounds": 41`)
		}, "not of its configuration"},
		{"a record of other weights", true, func(t *testing.T, root string) {
			digest := testkit.Must(experiment.FileDigest(weights(t, root, "proximal-plain-S4-14100")))(t)
			replace(t, root+"/runs.json", digest, strings.Repeat("0", 64))
		}, "other weights"},
		{"an edited weight", true, func(t *testing.T, root string) {
			path := weights(t, root, "proximal-plain-S4-14100")
			text := testkit.Must(os.ReadFile(path))(t)
			text[len(text)-1] ^= 1
			testkit.Check(t, os.WriteFile(path, text, 0o644))
		}, "not that of the training run's record"},
		{"weights of another seed", true, func(t *testing.T, root string) {
			one, other := weights(t, root, "proximal-plain-S4-14100"), weights(t, root, "proximal-plain-S4-14101")
			was, is := testkit.Must(experiment.FileDigest(one))(t), testkit.Must(experiment.FileDigest(other))(t)
			testkit.Check(t, os.WriteFile(one, testkit.Must(os.ReadFile(other))(t), 0o644))
			replace(t, root+"/trainings.json", was, is)
			text := testkit.Must(os.ReadFile(root + "/runs.json"))(t)
			testkit.Check(t, os.WriteFile(root+"/runs.json", bytes.ReplaceAll(text, []byte(was), []byte(is)), 0o644))
		}, "configuration"},
		{"an edited action", true, func(t *testing.T, root string) {
			edit(t, root+"/choices/qualification.parquet", func(c []rows.Choice) []rows.Choice {
				c[0].Actions[3] = (c[0].Actions[3] + 1) % 3
				return c
			})
		}, "qualification/s5rl"},
		{"too few actions", true, func(t *testing.T, root string) {
			edit(t, root+"/choices/qualification.parquet", func(c []rows.Choice) []rows.Choice {
				c[0].Actions = c[0].Actions[:10]
				return c
			})
		}, "choices"},
		{"a distance to a rule", true, func(t *testing.T, root string) {
			edit(t, root+"/rows/mechanism.parquet", func(r []rows.Rule) []rows.Rule { r[0].RowL1 += .01; return r })
		}, "RowL1 is"},
		{"a fitted step size", true, func(t *testing.T, root string) {
			edit(t, root+"/rows/mechanism-steps.parquet", func(r []rows.Fit) []rows.Fit { r[0].Fitted += .005; return r })
		}, "Fitted is"},
		{"an error of a backup", true, func(t *testing.T, root string) {
			edit(t, root+"/rows/backups.parquet", func(r []rows.Backup) []rows.Backup { r[0].Error += .01; return r })
		}, "Error is"},
		{"a loss of the tuning", true, func(t *testing.T, root string) {
			edit(t, root+"/rows/tuning.parquet", func(r []rows.Tuned) []rows.Tuned { r[0].Loss += 1e-6; return r })
		}, "Loss is"},
		{"a point of a curve", true, func(t *testing.T, root string) {
			edit(t, root+"/rows/qualification-imitation.parquet", func(r []rows.Measure) []rows.Measure { r[0].Value += 1e-6; return r })
		}, "Value is"},
		{"a training loss", true, func(t *testing.T, root string) {
			edit(t, root+"/losses.parquet", func(r []rows.Loss) []rows.Loss { r[0].Loss = math.NaN(); return r })
		}, "loss 1 is NaN"},
		{"a training loss that is missing", true, func(t *testing.T, root string) {
			edit(t, root+"/losses.parquet", func(r []rows.Loss) []rows.Loss { return r[1:] })
		}, "loss"},
		{"a file beside", false, func(t *testing.T, root string) {
			testkit.Check(t, os.WriteFile(root+"/rows/extra.parquet", nil, 0o644))
		}, "does not list it"},
		{"a training that nobody planned", true, func(t *testing.T, root string) {
			testkit.Check(t, os.MkdirAll(root+"/train/proximal-plain-S4-1-000000000000", 0o755))
		}, "no configuration of preset little"},
		{"digests that are missing", false, func(t *testing.T, root string) {
			testkit.Check(t, os.Remove(root+"/SHA256SUMS"))
		}, "SHA256SUMS: it is missing"},
		{"digests that are none", false, func(t *testing.T, root string) {
			testkit.Check(t, os.WriteFile(root+"/SHA256SUMS", []byte("none\n"), 0o644))
		}, "no digest and name"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, artifacts := merged(t)
			c.change(t, s.Root())
			if c.sealed {
				seal(t, s.Root())
			}
			s = testkit.Must(little(t).Open(artifacts, "go"))(t)
			v := testkit.Must(s.Verify(t.Context(), c.name == "a fitted step size"))(t)
			if !errors.Is(v.Err(), experiment.ErrDiscrepancies) || !strings.Contains(fmt.Sprint(v.Discrepancies), c.want) {
				t.Errorf("found %v, want %q", v.Discrepancies, c.want)
			}
		})
	}
}

// greedy plants policies greedy for what the network returned, with the losses that they have.
func greedy(t *testing.T, s *experiment.Store, root string) {
	t.Helper()
	losses := map[[2]int32]float64{}
	problems := testkit.Must(rows.Read[rows.Problem](root + "/problems.parquet"))(t)
	edit(t, root+"/policies/benchmark.parquet", func(all []rows.Policy) []rows.Policy {
		for _, p := range all {
			if !learned(p.Key) {
				continue
			}
			for i := 0; i < len(p.Policy); i += 3 {
				best := slices.Index(p.Policy[i:i+3], slices.Max(p.Policy[i:i+3]))
				for a := range 3 {
					p.Policy[i+a] = map[bool]float64{true: 1}[a == best]
				}
			}
			losses[[2]int32{p.Problem, p.Round}] = lossOf(t, problems, p)
		}
		return all
	})
	edit(t, root+"/rows/benchmark.parquet", func(all []rows.Round) []rows.Round {
		for i, r := range all {
			if loss, ok := losses[[2]int32{r.Problem, r.Round}]; ok && learned(r.Key) {
				all[i].Loss = loss
			}
		}
		return all
	})
}
