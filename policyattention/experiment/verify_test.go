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
	"reflect"
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
		row("mechanism", "policyattention", "plain", 4, 1), row("backups", "sample-mean", "", 4, 0),
		row("qualification", "s5rl", "cpu", 8, 1), row("tuning", "liang-lai", "", 8, 0),
		row("qualification", "liang-lai", "harness", 8, 1),
	}
	return p.With(p.Protocol, p.Methods) // without a baseline that has been taken out
}

var made struct {
	sync.Once
	folder string // with the results before they are merged, and after
	err    error
}

// merged returns a copy of the merged results of the preset little.
func merged(t *testing.T) (store *experiment.Store, artifacts string) {
	t.Helper()
	artifacts = t.TempDir()
	copyResults(t, "after", artifacts)
	return testkit.Must(little(t).Open(artifacts, "go"))(t), artifacts
}

// copyResults copies those of the preset little, before they are merged or after.
func copyResults(t *testing.T, when, to string) {
	t.Helper()
	made.Do(func() { made.err = makeResults(t) })
	testkit.Check(t, made.err)
	testkit.Check(t, os.CopyFS(to, os.DirFS(filepath.Join(made.folder, when))))
}

func makeResults(t *testing.T) (err error) {
	if made.folder, err = os.MkdirTemp("", "little"); err != nil {
		return err
	}
	after := filepath.Join(made.folder, "after")
	s, err := little(t).Open(after, "go")
	if err != nil {
		return err
	}
	tasks, err := s.Tasks()
	if err != nil {
		return err
	}
	for _, task := range tasks {
		if _, err := s.Run(t.Context(), task); err != nil {
			return err
		}
	}
	if err := os.CopyFS(filepath.Join(made.folder, "before"), os.DirFS(after)); err != nil {
		return err
	}
	_, err = s.Merge(t.Context())
	return err
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
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("%s is of a baseline that has been taken out", path)
	}
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

// corruption is something that a forger or a disk can do to results.
type corruption struct {
	name   string
	sealed bool // the digests are made to fit
	change func(t *testing.T, root string)
	want   string // what must be named
}

// edited changes the rows of a file.
func edited[R any](file string, change func([]R) []R) func(*testing.T, string) {
	return func(t *testing.T, root string) { edit(t, filepath.Join(root, file), change) }
}

// row edits one row of a file.
func row[R any](file string, at int, change func(*R)) func(*testing.T, string) {
	return edited(file, func(all []R) []R { change(&all[(at+len(all))%len(all)]); return all })
}

// without drops rows of a file.
func without[R any](file string, drop func(R) bool) func(*testing.T, string) {
	return edited(file, func(all []R) []R { return slices.DeleteFunc(all, drop) })
}

// text changes a file's text.
func text(file, old, new string) func(*testing.T, string) {
	return func(t *testing.T, root string) { replace(t, filepath.Join(root, file), old, new) }
}

func remove(file string) func(*testing.T, string) {
	return func(t *testing.T, root string) { testkit.Check(t, os.Remove(filepath.Join(root, file))) }
}

func write(file, text string) func(*testing.T, string) {
	return func(t *testing.T, root string) {
		testkit.Check(t, os.MkdirAll(filepath.Dir(filepath.Join(root, file)), 0o755))
		testkit.Check(t, os.WriteFile(filepath.Join(root, file), []byte(text), 0o644))
	}
}

// columns are corruptions of one entry in each column of a file, which name says.
func columns[R any](file, want string) (all []corruption) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[R]()) {
		if f.Anonymous {
			continue
		}
		all = append(all, corruption{file + " " + f.Name, true, edited(file, func(rows []R) []R {
			for i := range rows { // of which some is no NaN, or nothing is found
				v := reflect.ValueOf(&rows[i]).Elem().FieldByIndex(f.Index)
				if v.Kind() != reflect.Float64 || v.Float() == v.Float() {
					spoil(v)
					break
				}
			}
			return rows
		}), want})
	}
	return all
}

func spoil(v reflect.Value) {
	switch {
	case v.CanFloat():
		v.SetFloat(v.Float() + .01)
	case v.CanInt():
		v.SetInt(v.Int() + 1)
	case v.Kind() == reflect.String:
		v.SetString(v.String() + "x")
	case v.Kind() == reflect.Slice && v.Len() == 0:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
	case v.Kind() == reflect.Slice:
		spoil(v.Index(0))
	}
}

const (
	benchmark, benchmarkPolicies = "rows/benchmark.parquet", "policies/benchmark.parquet"
)

// corruptions are sealed where digests alone would tell.
var corruptions = slices.Concat(
	columns[rows.Round](benchmark, "benchmark"), columns[rows.Policy](benchmarkPolicies, "benchmark"),
	columns[rows.Rule]("rows/mechanism.parquet", "mechanism"),
	columns[rows.Fit]("rows/mechanism-steps.parquet", "mechanism"),
	columns[rows.Policy]("policies/mechanism.parquet", "mechanism"),
	columns[rows.Backup]("rows/backups.parquet", "backups"),
	columns[rows.Policy]("policies/backups.parquet", "backups"),
	columns[rows.Tuned]("rows/tuning.parquet", "tuning"),
	columns[rows.Measure]("rows/qualification-numbers.parquet", "qualification"),
	columns[rows.Choice]("choices/qualification.parquet", "qualification"),
	columns[rows.Problem]("problems.parquet", "problems.parquet"),
	[]corruption{
		{"an edited float", false, row(benchmark, 7, func(r *rows.Round) { r.Loss += 1e-12 }), "its SHA-256 is"},
		{"an edited loss", true, row(benchmark, 7, func(r *rows.Round) { r.Loss *= 1.001 }), "computed again"},
		{"the last problem's loss", true, row(benchmark, -1, func(r *rows.Round) { r.Loss *= 1.001 }),
			"the stored policy has"},
		{"a loss that is none", true, row(benchmark, 3, func(r *rows.Round) { r.Loss = math.NaN() }), "Loss is NaN"},
		{"two policies swapped", true, edited(benchmarkPolicies, func(p []rows.Policy) []rows.Policy {
			p[0].Policy, p[2].Policy = p[2].Policy, p[0].Policy
			return p
		}), "the stored policy has loss"},
		{"no distribution", true, row(benchmarkPolicies, 1, func(p *rows.Policy) { p.Policy[0] += .1 }),
			"the stored policy"},
		{"another shape", true, row(benchmarkPolicies, 1, func(p *rows.Policy) { p.Policy = p.Policy[:6] }),
			"it is no policy"},
		{"a truncated file", true, truncated, "benchmark.parquet"},
		{"an empty file", true, write(benchmark, ""), "benchmark.parquet"},
		{"a file that is missing", false, remove("rows/mechanism.parquet"), "it is missing"},
		{"rows of a run missing", true, without(benchmark, func(r rows.Round) bool { return learned(r.Key) }),
			"policyattention-S4-14100"},
		{"a problem missing", true, without(benchmark, func(r rows.Round) bool {
			return r.Problem == 5 && learned(r.Key)
		}), "rows on each of"},
		{"a row too many", true, edited(benchmark, func(r []rows.Round) []rows.Round { return append(r, r[len(r)-1]) }),
			"rows on each of"},
		{"a record of other rounds", true, text("runs.json", `"rounds":40`, `"rounds":41`),
			"not of its configuration"},
		{"a record of another seed", true, text("runs.json", `"root":34100`, `"root":34101`),
			"not of its configuration"},
		{"a record of another name", true, text("runs.json", `"name":"exact-pmd-S4"`, `"name":"exact-pmd-S5"`),
			"exact-pmd-S5"},
		{"a record of another hash", true, text("runs.json", `"hash":"`, `"hash":"0`), "which no record names"},
		{"runs that are no JSON", true, write("runs.json", "["), "runs.json"},
		{"a record of other weights", true, otherDigest, "other weights"},
		{"a training of other steps", true, text("trainings.json", `"steps":10`, `"steps":11`),
			"not of its configuration"},
		{"a training without a name", true, text("trainings.json", `"name":"proximal-plain-S4-14100"`, `"name":""`),
			"no task of preset little"},
		{"a record of another method", true, text("runs.json", `"method":"exact-pmd"`, `"method":"exact"`),
			"not of its configuration"},
		{"losses of a training that is not there", true, edited("losses.parquet", func(l []rows.Loss) []rows.Loss {
			return append(l, rows.Loss{Training: "x", Step: 1})
		}), "which no record names"},
		{"an edited weight", true, weightEdited, "not that of the training run's record"},
		{"weights that are gone", true, func(t *testing.T, root string) {
			testkit.Check(t, os.Remove(weights(t, root, "proximal-plain-S4-14100")))
		}, "not that of the training run's record"},
		{"weights of another seed", true, weightsSwapped, "configuration"},
		{"an edited action", true, row("choices/qualification.parquet", 0,
			func(c *rows.Choice) { c.Actions[3] = (c.Actions[3] + 1) % 3 }), "qualification/s5rl"},
		{"too few actions", true, row("choices/qualification.parquet", 0,
			func(c *rows.Choice) { c.Actions = c.Actions[:10] }), "choices"},
		{"a training loss", true, row("losses.parquet", 0, func(l *rows.Loss) { l.Loss = math.NaN() }),
			"loss 1 is NaN"},
		{"a step of a training loss", true, row("losses.parquet", 0, func(l *rows.Loss) { l.Step++ }), "loss 2 is"},
		{"another training's loss", true, row("losses.parquet", 0, func(l *rows.Loss) { l.Training += "x" }), "loss"},
		{"a training loss missing", true, edited("losses.parquet", func(l []rows.Loss) []rows.Loss { return l[1:] }),
			"loss"},
		{"a file beside", false, write("rows/extra.parquet", ""), "does not list it"},
		{"a training not planned", true, write("train/proximal-plain-S4-1-000000000000/x", ""),
			"no configuration of preset little"},
		{"digests missing", false, remove("SHA256SUMS"), "SHA256SUMS: it is missing"},
		{"digests that are none", false, write("SHA256SUMS", "none\n"), "no digest and name"},
	})

func truncated(t *testing.T, root string) {
	text := testkit.Must(os.ReadFile(root + "/" + benchmark))(t)
	testkit.Check(t, os.WriteFile(root+"/"+benchmark, text[:len(text)/2], 0o644))
}

func otherDigest(t *testing.T, root string) {
	digest := testkit.Must(experiment.FileDigest(weights(t, root, "proximal-plain-S4-14100")))(t)
	replace(t, root+"/runs.json", digest, strings.Repeat("0", 64))
}

func weightEdited(t *testing.T, root string) {
	path := weights(t, root, "proximal-plain-S4-14100")
	text := testkit.Must(os.ReadFile(path))(t)
	text[len(text)-1] ^= 1
	testkit.Check(t, os.WriteFile(path, text, 0o644))
}

func weightsSwapped(t *testing.T, root string) {
	one, other := weights(t, root, "proximal-plain-S4-14100"), weights(t, root, "proximal-plain-S4-14101")
	was, is := testkit.Must(experiment.FileDigest(one))(t), testkit.Must(experiment.FileDigest(other))(t)
	testkit.Check(t, os.WriteFile(one, testkit.Must(os.ReadFile(other))(t), 0o644))
	replace(t, root+"/trainings.json", was, is)
	text := testkit.Must(os.ReadFile(root + "/runs.json"))(t)
	testkit.Check(t, os.WriteFile(root+"/runs.json", bytes.ReplaceAll(text, []byte(was), []byte(is)), 0o644))
}

// Everything that a forger or a disk can do to results is found, whether or not the digests were
// made to fit.
func TestVerifyFindsCorruptions(t *testing.T) {
	s, _ := merged(t)
	v := testkit.Must(s.Verify(t.Context(), true, 1))(t)
	units := testkit.Must(s.Units())(t)
	if v.Err() != nil || v.Missing > 0 || v.Units != len(units) || v.Scored == 0 || v.Again == 0 {
		t.Fatalf("%v: %v", v, v.Discrepancies)
	}
	all := append(slices.Clone(corruptions), corruption{"greedy policies with losses made to fit", true,
		func(t *testing.T, root string) { greedy(t, s, root) }, "computed again"})
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, artifacts := merged(t)
			c.change(t, s.Root)
			if c.sealed {
				seal(t, s.Root)
			}
			s = testkit.Must(little(t).Open(artifacts, "go"))(t)
			v := testkit.Must(s.Verify(t.Context(), strings.Contains(c.name, "-steps"), 1))(t)
			if !errors.Is(v.Err(), experiment.ErrDiscrepancies) ||
				!strings.Contains(fmt.Sprint(v.Discrepancies), c.want) {
				t.Errorf("found %v, want %q", v.Discrepancies, c.want)
			}
		})
	}
}

// greedy plants policies greedy for what the network returned in most problems, with the losses that
// they have. The first two problems stay: nothing may hang on which are computed again.
func greedy(t *testing.T, s *experiment.Store, root string) {
	t.Helper()
	losses := map[[2]int32]float64{}
	problems := testkit.Must(rows.Read[rows.Problem](root + "/problems.parquet"))(t)
	edit(t, root+"/policies/benchmark.parquet", func(all []rows.Policy) []rows.Policy {
		for _, p := range all {
			if !learned(p.Key) || p.Problem < 2 {
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
