package experiment

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/npz"
	"icrl/internal/testkit"
	"icrl/policyattention/artifact"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/train"
)

func TestVerifyAll(t *testing.T) {
	v := testkit.Must(open(t).Verify(t.Context(), 1, nil))(t)
	if err := v.Err(); err != nil || v.Missing > 0 {
		t.Errorf("%v: %s %v", err, v, v.Discrepancies)
	}
}

// The Python script, which shares no code with this program, agrees.
func TestIndependentVerification(t *testing.T) {
	python := testkit.Must(filepath.Abs("../../.local/python/bin/python"))(t)
	if _, err := os.Stat(python); err != nil {
		t.Skip("set-up has not installed Python's packages")
	}
	s := open(t)
	out, err := exec.Command(python, "../../scripts/verify.py", "--artifacts", filepath.Dir(s.Root()), "--preset", "smoke").CombinedOutput()
	if err != nil {
		t.Errorf("%v: %s", err, out)
	}
	e := testkit.Must(s.Find(s.Preset.Plan()[0]))(t)
	editTable(roundsFile, roundsHeader, func(rows [][]float64) { rows[20][2] += 1e-9 })(t, e.Folder)
	out, err = exec.Command(python, "../../scripts/verify.py", "--artifacts", filepath.Dir(s.Root()), "--preset", "smoke").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "loss [0, 20]") {
		t.Errorf("an edited loss: %v: %s", err, out)
	}
}

// The folders that corruptions are planted in, by the start of their names.
const (
	training  = "train/proximal-plain-S4-14100"
	other     = "train/proximal-plain-S4-14101"
	critic    = "train/critic-plain-S4-14100"
	oracle    = "oracle/exact-pmd-S4"
	learned   = "benchmark/policyattention-S4-14100"
	confirmed = "confirmation/policyattention-S4-14100"
	oneStep   = "mechanism/policyattention-S4-14100"
	brief     = "quality/policyattention-8-S4-14100"
	briefRun  = "train/proximal-plain-8-S4-14100"
	fullyLoop = "confirmation/policyattention-learned-critic-S4-14100"
	backups   = "backups/policyattention-learned-critic-S4-14100"
	means     = "critics/sample-mean-S4"
	meanBacks = "backups/sample-mean-S4"
	long      = "long/policyattention-S4-14100"
	longExact = "long/exact-pmd-S4"
	zeroShot  = "zero-shot/policyattention-S6-48100"
	zeroRun   = "train/proximal-plain-S4+8-48100"
)

// plant spoils an artifact.
type plant = func(t *testing.T, folder string)

// reseal changes a manifest, unless edit is nil, and makes it consistent with the files.
func reseal(edit func(*artifact.Manifest)) plant {
	return func(t *testing.T, folder string) {
		t.Helper()
		m := &artifact.Manifest{}
		testkit.Check(t, json.Unmarshal(testkit.Must(os.ReadFile(filepath.Join(folder, artifact.ManifestFile)))(t), m))
		if edit != nil {
			edit(m)
		}
		testkit.Check(t, m.Write(folder))
	}
}

// editJSON replaces what stands once in the JSON, without white space, that is number i of what an
// artifact is of.
func editJSON(i int, old, new string) plant {
	return func(t *testing.T, folder string) {
		t.Helper()
		reseal(func(m *artifact.Manifest) {
			var b bytes.Buffer
			testkit.Check(t, json.Compact(&b, m.Of[i].Value))
			if bytes.Count(b.Bytes(), []byte(old)) != 1 {
				t.Fatalf("%s has not %s once", b.Bytes(), old)
			}
			m.Of[i].Value = bytes.Replace(b.Bytes(), []byte(old), []byte(new), 1)
		})(t, folder)
	}
}

// flip changes a byte of a file.
func flip(file string) plant {
	return func(t *testing.T, folder string) {
		t.Helper()
		path := filepath.Join(folder, file)
		b := testkit.Must(os.ReadFile(path))(t)
		b[len(b)/2] ^= 4
		testkit.Check(t, os.WriteFile(path, b, 0o644))
	}
}

// flipSealed makes the manifest agree with that.
func flipSealed(file string) plant {
	return func(t *testing.T, folder string) {
		flip(file)(t, folder)
		reseal(nil)(t, folder)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	testkit.Check(t, os.RemoveAll(path))
}

// editTable changes a table and makes the manifest agree.
func editTable(file string, header []string, edit func(rows [][]float64)) plant {
	return func(t *testing.T, folder string) {
		t.Helper()
		path := filepath.Join(folder, file)
		rows := testkit.Must(artifact.ReadTable(path, header))(t)
		edit(rows)
		testkit.Check(t, artifact.WriteTable(path, header, rows))
		reseal(nil)(t, folder)
	}
}

// editArray changes an array and makes the manifest agree.
func editArray(name string, edit func(data []float64)) plant {
	return func(t *testing.T, folder string) {
		t.Helper()
		path := filepath.Join(folder, policiesFile)
		arrays := testkit.Must(artifact.ReadArrays(path))(t)
		edit(arrays[name].Data)
		testkit.Check(t, artifact.WriteArrays(path, arrays))
		reseal(nil)(t, folder)
	}
}

var alongHeader = (&AlongConfig{Horizons: []int{20, 40}}).header()

type corruption struct {
	name    string
	folders []string
	plant   plant
	found   string // in the discrepancy
}

// Each corruption is planted in the first of its folders, alone in a store with
// the others, and must be found in the file it was planted in.
var corruptions = []corruption{
	{"byte of weights", []string{training}, flip("weights.safetensors"), "weights.safetensors: its SHA-256"},
	{"byte of a snapshot", []string{training}, flip("weights-5.safetensors"), "weights-5.safetensors: its SHA-256"},
	{"byte of the losses", []string{training}, flip(lossFile), lossFile + ": its SHA-256"},
	{"byte of a training manifest", []string{training}, flip(artifact.ManifestFile), artifact.ManifestFile},
	{"removed weights", []string{training}, func(t *testing.T, f string) { remove(t, filepath.Join(f, "weights.safetensors")) }, "weights.safetensors: it is missing"},
	{"removed manifest", []string{training}, func(t *testing.T, f string) { remove(t, filepath.Join(f, artifact.ManifestFile)) }, artifact.ManifestFile},
	{"added file", []string{training}, func(t *testing.T, f string) { testkit.Check(t, os.WriteFile(filepath.Join(f, "extra"), nil, 0o644)) }, "extra: the manifest does not list it"},
	{"edited training seed", []string{training}, editJSON(0, `"seed":14100`, `"seed":14101`), "its configuration is not that of its hash"},
	{"weights of another run", []string{training, other}, func(t *testing.T, f string) {
		source := testkit.Must(filepath.Glob(filepath.Join(filepath.Dir(f), filepath.Base(other)+"-*")))(t)
		testkit.Check(t, artifact.CopyFile(filepath.Join(f, "weights.safetensors"), filepath.Join(source[0], "weights.safetensors")))
		reseal(nil)(t, f)
	}, "weights.safetensors: it holds step 10 of configuration"},
	{"snapshot for final weights", []string{training}, func(t *testing.T, f string) {
		testkit.Check(t, artifact.CopyFile(filepath.Join(f, "weights.safetensors"), filepath.Join(f, "weights-5.safetensors")))
		reseal(nil)(t, f)
	}, "weights.safetensors: it holds step 5"},
	{"truncated weights, resealed", []string{training}, func(t *testing.T, f string) {
		testkit.Check(t, os.Truncate(filepath.Join(f, "weights.safetensors"), 1000))
		reseal(nil)(t, f)
	}, "weights.safetensors: "},
	{"byte of weights, resealed", []string{training}, flipSealed("weights.safetensors"), "weights.safetensors: "},
	{"swapped losses", []string{training}, editTable(lossFile, lossHeader, func(rows [][]float64) { rows[2], rows[3] = rows[3], rows[2] }), lossFile},
	{"loss that is no number", []string{training}, editTable(lossFile, lossHeader, func(rows [][]float64) { rows[4][1] = math.NaN() }), lossFile + ": row 5"},
	{"renamed training folder", []string{training}, func(t *testing.T, f string) { testkit.Check(t, os.Rename(f, f[:len(f)-1]+"x")) }, "no configuration of preset smoke"},
	{"removed training", []string{training, learned}, func(t *testing.T, f string) { remove(t, f) }, "the weights it was made from"},

	{"byte of the rounds", []string{oracle}, flip(roundsFile), roundsFile + ": its SHA-256"},
	{"byte of the policies", []string{oracle}, flip(policiesFile), policiesFile + ": its SHA-256"},
	{"name of a manifest in other case too", []string{oracle}, func(t *testing.T, f string) {
		path := filepath.Join(f, artifact.ManifestFile)
		text := testkit.Must(os.ReadFile(path))(t)
		text = bytes.Replace(text, []byte(`"hash":`), []byte(`"HASH": "another",
  "hash":`), 1)
		testkit.Check(t, os.WriteFile(path, text, 0o644))
	}, artifact.ManifestFile + ": it has been changed: its seal is not its digest"},
	{"byte of a manifest", []string{oracle}, flip(artifact.ManifestFile), artifact.ManifestFile},
	{"removed rounds", []string{oracle}, func(t *testing.T, f string) { remove(t, filepath.Join(f, roundsFile)) }, roundsFile + ": it is missing"},
	{"byte of the rounds, resealed", []string{oracle}, flipSealed(roundsFile), roundsFile},
	{"byte of the policies, resealed", []string{oracle}, flipSealed(policiesFile), policiesFile},
	{"swapped rows", []string{oracle}, editTable(roundsFile, roundsHeader, func(rows [][]float64) {
		for i := 2; i < len(roundsHeader); i++ {
			rows[50][i], rows[51][i] = rows[51][i], rows[50][i]
		}
	}), roundsFile + ": row 51"},
	{"edited loss", []string{oracle}, editTable(roundsFile, roundsHeader, func(rows [][]float64) { rows[20][2] += 1e-6 }), roundsFile + ": row 21: column loss"},
	{"edited residual", []string{oracle}, editTable(roundsFile, roundsHeader, func(rows [][]float64) { rows[7][8] *= 1.001 }), roundsFile + ": row 8: column defect"},
	{"edited policy", []string{oracle}, editArray("policies", func(data []float64) { data[0], data[1] = data[1], data[0] }), policiesFile + ": row 1: round 20"},
	{"swapped problems", []string{oracle}, editArray("policies", func(data []float64) {
		size := len(data) / 24
		for i := range size {
			data[i], data[size+i] = data[size+i], data[i]
		}
	}), policiesFile + ": row 2"},
	{"invalid policy", []string{oracle}, editArray("policies", func(data []float64) { data[0] = 2 }), policiesFile + ": row 1"},
	{"edited root", []string{oracle}, editJSON(1, `"root":54100`, `"root":54101`), "its cell or configuration is not that of its hash"},
	{"edited cell", []string{oracle}, editJSON(0, `"block":"oracle"`, `"block":"benchmark"`), "its cell or configuration"},
	{"edited fixture digest", []string{oracle}, reseal(func(m *artifact.Manifest) { m.Fixtures = strings.Repeat("0", 64) }), "the problems drawn from root"},
	{"edited median", []string{oracle}, reseal(func(m *artifact.Manifest) { m.Summary["T20"]["median_loss"] /= 2 }), "its summary says T20 median_loss"},
	{"renamed folder", []string{oracle}, func(t *testing.T, f string) { testkit.Check(t, os.Rename(f, f[:len(f)-1]+"x")) }, "no configuration of preset smoke"},

	{"other weights", []string{learned, training}, reseal(func(m *artifact.Manifest) { m.Weights["proximal-plain-S4-14100"] = strings.Repeat("0", 64) }), "it was made from other weights"},
	{"edited start", []string{confirmed, training}, editArray("policies", func(data []float64) { data[0], data[1] = data[1], data[0] }), "the policy of round 0 is not the problem's π₀"},
	{"better policies, rescored", []string{confirmed, training}, plantBetterPolicies, "the actor, replayed, differs"},
	{"better policies of two rounds, rescored", []string{learned, training}, plantBetterPolicies, "the controller, replayed, differs"},
	{"edited policy of two rounds", []string{learned, training}, editArray("policies", func(data []float64) { data[3], data[4] = data[4], data[3] }), "the controller, replayed, differs"},
	{"edited loss of two rounds", []string{learned, training}, editTable(roundsFile, roundsHeader, func(rows [][]float64) { rows[40][2] -= 1e-6 }), roundsFile + ": row 41: column loss"},
	{"edited loss between two rounds", []string{learned, training}, editTable(roundsFile, roundsHeader, func(rows [][]float64) { rows[39][2] -= 1e-3 }), roundsFile + ": row 40: column loss"},
	{"edited residual between two rounds", []string{learned, training}, editTable(roundsFile, roundsHeader, func(rows [][]float64) { rows[7][6] -= 1e-3 }), roundsFile + ": row 8: column row_l1"},
	{"residuals all a little smaller, summed up", []string{learned, training}, func(t *testing.T, f string) {
		editTable(roundsFile, roundsHeader, func(rows [][]float64) {
			for _, row := range rows {
				row[6] -= relivedTolerance / 2
			}
		})(t, f)
		reseal(func(m *artifact.Manifest) {
			m.Summary["T20"]["median_row_l1"] -= relivedTolerance / 2
			m.Summary["T40"]["median_row_l1"] -= relivedTolerance / 2
		})(t, f)
	}, "median_row_l1"},

	{"edited distance", []string{oneStep, training}, editTable(distancesFile, distancesHeader(), func(rows [][]float64) { rows[3][4] -= 1e-4 }), distancesFile + ": row 4"},
	{"edited fitted step", []string{oneStep, training}, editTable(stepsFile, stepsHeader, func(rows [][]float64) { rows[1][1] += 0.005 }), stepsFile + ": row 2: column fitted"},
	{"edited answer", []string{oneStep, training}, editArray("next", func(data []float64) { data[0], data[1] = data[1], data[0] }), "the actor, replayed, differs"},
	{"byte of the losses along training", []string{brief}, flip(alongFile), alongFile + ": its SHA-256"},
	{"edited loss along training", []string{brief, briefRun}, editTable(alongFile, alongHeader, func(rows [][]float64) { rows[7][3] -= 1e-6 }), alongFile + ": row 8: column loss_40"},
	{"edited loss of a problem without policies", []string{brief, briefRun}, editTable(alongFile, alongHeader, func(rows [][]float64) { rows[5][2] -= 1e-2 }), alongFile + ": row 6: column loss_20"},
	{"swapped steps", []string{brief, briefRun}, editTable(alongFile, alongHeader, func(rows [][]float64) { rows[0], rows[6] = rows[6], rows[0] }), alongFile + ": row 1 is of step 8"},
	{"edited policy along training", []string{brief, briefRun}, editArray("policies", func(data []float64) { data[0], data[1] = data[1], data[0] }), alongFile + ": row 1: column loss_20"},
	{"invalid policy along training", []string{brief, briefRun}, editArray("policies", func(data []float64) { data[0] = 2 }), policiesFile + ": row 1"},
	{"edited median along training", []string{brief, briefRun}, reseal(func(m *artifact.Manifest) { m.Summary["step8"]["median_loss_T20"] /= 2 }), "its summary says step8 median_loss_T20"},
	{"weights along training", []string{brief, briefRun}, reseal(func(m *artifact.Manifest) { m.Weights["proximal-plain-8-S4-14100-4"] = strings.Repeat("0", 64) }), "it was made from other weights"},

	{"edited critic table", []string{fullyLoop, training, critic}, editArray("q", func(data []float64) { data[30] += 0.1 }), policiesFile + ": row 1"},

	{"byte of the backups", []string{backups, critic}, flip(backupsFile), backupsFile + ": its SHA-256"},
	{"edited backup error", []string{backups, critic}, editTable(backupsFile, backupsHeader, func(rows [][]float64) { rows[2][2] /= 2 }), backupsFile + ": row 3: column mae"},
	{"swapped backups", []string{backups, critic}, editTable(backupsFile, backupsHeader, func(rows [][]float64) { rows[0], rows[1] = rows[1], rows[0] }), backupsFile + ": row 1: column input"},
	{"edited critic answer", []string{backups, critic}, editArray("values", func(data []float64) { data[13] += 0.1 }), "the critic, replayed, differs"},
	{"edited mean error", []string{backups, critic}, reseal(func(m *artifact.Manifest) { m.Summary["backup"]["mae"] = 0.1 }), "its summary says backup mae"},
	{"policies of a critic without a network", []string{means}, editArray("policies", func(data []float64) { data[0], data[1] = data[1], data[0] }), policiesFile + ": row 1: round 20: the controller, replayed, differs"},
	{"weight of the mean of samples", []string{means}, editJSON(1, `"weight":1`, `"weight":0.9`), "its cell or configuration is not that of its hash"},
	{"seed of a method without any", []string{means}, editJSON(0, `"s":4`, `"s":4,"seed":14100`), "its cell or configuration is not that of its hash"},
	{"value of the mean of samples", []string{meanBacks}, editArray("values", func(data []float64) { data[13] += 0.1 }), policiesFile + ": row 2: round"},
	{"error of the mean of samples", []string{meanBacks}, editTable(backupsFile, backupsHeader, func(rows [][]float64) { rows[2][3] *= 2 }), backupsFile + ": row 3: column largest"},
	{"loss after 400 rounds", []string{long, training}, editTable(roundsFile, roundsHeader, func(rows [][]float64) { rows[2][2] -= 1e-6 }), roundsFile + ": row 3: column loss"},
	{"round that is not kept", []string{long, training}, editTable(roundsFile, roundsHeader, func(rows [][]float64) { rows[1][1] = 99 }), roundsFile + ": experiment: "},
	{"policy after 400 rounds", []string{long, training}, editArray("policies", func(data []float64) { data[0], data[1] = data[1], data[0] }), policiesFile + ": row 1: round 400: the controller, replayed, differs"},
	{"losses after 400 rounds of all loops, summed up", []string{long, training}, func(t *testing.T, f string) {
		editTable(roundsFile, roundsHeader, func(rows [][]float64) {
			for i := 1; i < len(rows); i += 3 {
				rows[i][2] /= 2
			}
		})(t, f)
		reseal(func(m *artifact.Manifest) { m.Summary["T100"]["median_loss"] /= 2 })(t, f)
	}, roundsFile + ": row 2: column loss"},
	{"residual in a table of two rounds", []string{longExact}, editTable(roundsFile, roundsHeader, func(rows [][]float64) { rows[1][5], rows[1][6] = 0.1, 0.1 }), roundsFile + ": row 2: column zeta"},
	{"edited policy at an unseen size", []string{zeroShot, zeroRun}, editArray("policies", func(data []float64) { data[18], data[19] = data[19], data[18] }), "the controller, replayed, differs"},
	{"array that nothing reads", []string{zeroShot, zeroRun}, func(t *testing.T, f string) {
		path := filepath.Join(f, policiesFile)
		arrays := testkit.Must(artifact.ReadArrays(path))(t)
		arrays["more"] = npz.Array{Data: []float64{1}}
		testkit.Check(t, artifact.WriteArrays(path, arrays))
		reseal(nil)(t, f)
	}, "it holds the arrays"},
	{"weights of a network too many", []string{zeroShot, zeroRun}, reseal(func(m *artifact.Manifest) { m.Weights["another"] = strings.Repeat("0", 64) }), "it names the weights of 2 networks, want 1"},
	{"folder of no block", []string{oracle}, func(t *testing.T, f string) {
		testkit.Check(t, os.Mkdir(filepath.Join(f, "../../confirmation2"), 0o755))
	}, "confirmation2: nothing of preset smoke is called so"},
	{"sizes of a training run", []string{zeroRun}, editJSON(0, `"sizes":[4,8]`, `"sizes":[4,8,12]`), "its configuration is not that of its hash"},
}

// plantBetterPolicies replaces a learned loop by the exact one and makes all
// tables and digests agree: only the network can tell.
func plantBetterPolicies(t *testing.T, folder string) {
	m := testkit.Must(artifact.ReadManifest(folder))(t)
	config := testkit.Must(Presets["smoke"].Config(cellOf(t, m)))(t)
	problems := testkit.Must(config.Fixtures.Draw())(t)
	trajectories := testkit.Must(control.ExactPMD(config.Loop.Eta).Run(problems, config.Loop.Rounds))(t)
	scored := testkit.Must(control.Score(problems, trajectories))(t)
	testkit.Check(t, artifact.WriteTable(filepath.Join(folder, roundsFile), roundsHeader, config.Loop.roundRows(scored)))
	testkit.Check(t, artifact.WriteArrays(filepath.Join(folder, policiesFile), config.Loop.arrays(cellOf(t, m).kept(config.Loop), trajectories)))
	reseal(func(m *artifact.Manifest) { m.Summary = config.Loop.summarize(scored) })(t, folder)
}

// part returns a store of some artifacts of the smoke preset, by the start of
// their names, and their folders.
func part(t *testing.T, names ...string) (s *Store, folders []string) {
	t.Helper()
	dir, work := testkit.Smoke(t), t.TempDir()
	for _, name := range names {
		found, err := filepath.Glob(filepath.Join(dir, "smoke", name+"-????????????"))
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: %v, %v", name, found, err)
		}
		target := filepath.Join(work, "smoke", filepath.Dir(name), filepath.Base(found[0]))
		testkit.Check(t, os.CopyFS(target, os.DirFS(found[0])))
		folders = append(folders, target)
	}
	s = testkit.Must(Open(work, "smoke", "go"))(t)
	return s, folders
}

// finds verifies a store that something is wrong with.
func finds(t *testing.T, s *Store, want string) {
	t.Helper()
	v := testkit.Must(s.Verify(t.Context(), 1, nil))(t)
	if !errors.Is(v.Err(), ErrDiscrepancies) {
		t.Fatal("nothing was found")
	}
	for _, d := range v.Discrepancies {
		if strings.Contains(d.String(), want) {
			return
		}
	}
	t.Errorf("found %v, want %q", v.Discrepancies, want)
}

func TestVerifyFindsCorruption(t *testing.T) {
	for _, c := range corruptions {
		t.Run(c.name, func(t *testing.T) {
			s, folders := part(t, c.folders...)
			c.plant(t, folders[0])
			finds(t, s, c.found)
		})
	}
}

// Of problems whose loops are not run again the stored policies are scored all the same.
func TestVerifyScoresTheOthers(t *testing.T) {
	for name, found := range map[string]string{long: ": row 18: column loss", learned: ": row 246: column loss"} {
		s, folders := part(t, name, training)
		editArray("policies", func(data []float64) {
			n := len(data)
			data[n-1], data[n-2] = data[n-2], data[n-1]
		})(t, folders[0])
		v := testkit.Must(s.Verify(t.Context(), Share, nil))(t)
		if v.Sampled != s.Preset.Problems-1 || len(v.Discrepancies) != 1 || !strings.Contains(v.Discrepancies[0].String(), roundsFile+found) {
			t.Errorf("%s: %s, found %v", name, v, v.Discrepancies)
		}
	}
}

func TestStackRoundTrip(t *testing.T) {
	x := mat.NewDense(2, 2, []float64{1, 2, 3, 4})
	y := mat.NewDense(2, 2, []float64{5, 6, 7, 8})
	back, err := artifact.Unstack(artifact.Stack([][]*mat.Dense{{x, y}, {y, x}}), 2, 2, 2, 2)
	if err != nil || !mat.Equal(back[0][1], y) || !mat.Equal(back[1][1], x) {
		t.Errorf("%v, %v", back, err)
	}
	if _, err := artifact.Unstack(artifact.Stack([][]*mat.Dense{{x}}), 1, 2, 2, 2); err == nil {
		t.Error("a wrong shape was taken")
	}
}

// Hashes are what artifacts are found by: a change of the configuration's
// meaning must change them, and nothing else may.
func TestConfigHash(t *testing.T) {
	seen := map[string]string{}
	for _, preset := range []string{"smoke", "quick", "paper"} {
		names := map[string]bool{}
		for _, cell := range Presets[preset].Plan() {
			config := testkit.Must(Presets[preset].Config(cell))(t)
			if names[cell.Name()] {
				t.Errorf("%s: two cells are called %s", preset, cell.Name())
			}
			names[cell.Name()] = true
			text := testkit.Must(json.Marshal(config))(t)
			if before, ok := seen[config.Hash()]; ok && before != string(text) {
				t.Errorf("%s: two configurations share a hash", cell.Name())
			}
			seen[config.Hash()] = string(text)
		}
		configs := testkit.Must(Presets[preset].Trainings())(t)
		runs := map[string]bool{}
		for _, c := range configs {
			if err := c.Validate(); err != nil {
				t.Error(err)
			}
			if name := c.Name(); runs[name] {
				t.Errorf("%s: two training runs are called %s", preset, name)
			} else {
				runs[name] = true
			}
		}
	}
}

// Roots of training, evaluation, oracle and one-step problems are all distinct.
func TestRootsAreDisjoint(t *testing.T) {
	seen := map[uint64]bool{}
	add := func(root uint64) {
		if seen[root] {
			t.Errorf("root %d has two uses", root)
		}
		seen[root] = true
	}
	addRuns := func(runs []method.Identity) {
		for _, run := range runs {
			add(run.Model)
			add(run.Task)
			add(train.CalibrationRoot(run.Task))
		}
	}
	if PaperProtocol.Actions != mdp.Actions {
		t.Errorf("the protocol has %d actions, the harness %d", PaperProtocol.Actions, mdp.Actions)
	}
	addRuns(PaperProtocol.ZeroShot.Runs)
	for states, size := range PaperProtocol.Sizes {
		for _, root := range []uint64{size.Evaluation, size.Oracle, size.HeldOut, size.Calibration, size.Qualification} {
			if root != 0 {
				add(root)
			}
		}
		addRuns(size.Runs)
		addRuns(size.More)
		if states < 2 {
			t.Errorf("size %d", states)
		}
	}
}

// cellOf returns the cell that a manifest is of.
func cellOf(t *testing.T, m *artifact.Manifest) (c Cell) {
	t.Helper()
	testkit.Check(t, json.Unmarshal(m.Get(cellKey), &c))
	return c
}

func TestCloseTo(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		x, y float64
		want bool
	}{
		{1, 1 + 1e-12, true}, {1, 1 + 1e-10, false}, {1e6, 1e6 * (1 + 5e-12), true},
		{inf, inf, true}, {-inf, inf, false}, {.5, inf, false}, {inf, .5, false}, {nan, nan, true}, {nan, 1, false}, {nan, inf, false},
	} {
		if got := closeTo(c.x, c.y, 1e-11); got != c.want {
			t.Errorf("%v and %v: %v", c.x, c.y, got)
		}
	}
}
