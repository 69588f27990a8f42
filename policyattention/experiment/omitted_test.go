package experiment

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"icrl/internal/testkit"
	"icrl/policyattention/artifact"
)

// Artifacts of the ablation, the second and third of which are made from the
// weights of the first.
var ablated = []string{"train/proximal-plain-5-S4-14100", "ablation/policyattention-5-S4-14100", "contrast/policyattention-5-S4-14100"}

// What is planted in a loop and in a comparison whose weights are left out, and what must be
// said of it.
var ofOmitted = []struct {
	what  string
	plant func(t *testing.T, loop, contrast string)
	found string
}{
	{"policy", func(t *testing.T, loop, _ string) {
		editArray("policies", func(data []float64) { data[3], data[4] = data[4], data[3] })(t, loop)
	}, roundsFile + ": row 21: column loss"},
	{"loss", func(t *testing.T, loop, _ string) {
		editTable(roundsFile, roundsHeader, func(rows [][]float64) { rows[40][2] -= 1e-6 })(t, loop)
	}, roundsFile + ": row 41: column loss"},
	{"residual", func(t *testing.T, loop, _ string) {
		editTable(roundsFile, roundsHeader, func(rows [][]float64) { rows[7][5] = 0 })(t, loop)
	}, roundsFile + ": row 8: no policies have residuals"},
	{"gap", func(t *testing.T, loop, _ string) {
		editTable(roundsFile, roundsHeader, func(rows [][]float64) {
			for k := range 41 {
				rows[41+k][3] *= 1.001
			}
		})(t, loop)
	}, roundsFile + ": row 42: column gap"},
	{"median", func(t *testing.T, loop, _ string) {
		reseal(func(m *artifact.Manifest) { m.Summary["T40"]["median_loss"] /= 2 })(t, loop)
	}, "its summary says T40 median_loss"},
	{"weights' digest", func(t *testing.T, loop, _ string) {
		reseal(func(m *artifact.Manifest) {
			for name := range m.Weights {
				m.Weights[name] = strings.Repeat("0", 64)
			}
		})(t, loop)
	}, "it was made from other weights"},
	{"answer", func(t *testing.T, _, contrast string) {
		editArray("next", func(data []float64) { data[0], data[1] = data[1], data[0] })(t, contrast)
	}, distancesFile + ": row 1"},
}

// docs/evidence.md says how many corruptions are planted.
func TestCountOfCorruptions(t *testing.T) {
	text := testkit.Must(os.ReadFile("../../docs/evidence.md"))(t)
	says := fmt.Sprintf("%d for `policyattention verify`", len(corruptions)+len(ofOmitted))
	if !strings.Contains(strings.Join(strings.Fields(string(text)), " "), says) {
		t.Errorf("docs/evidence.md does not say %q", says)
	}
}

// A copy of the repository leaves out what manifests say is left out, and nothing else of theirs.
func TestIgnoredWeights(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skipf("skipped: %v", err)
	}
	root := testkit.Must(filepath.Abs("../.."))(t)
	for _, name := range []string{".git", ".gitignore"} {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			t.Skipf("skipped: these are files without a repository: %v", err)
		}
	}
	kept, left := []string{}, []string{}
	for _, path := range testkit.Must(filepath.Glob(filepath.Join(root, "artifacts/paper/train/*", artifact.ManifestFile)))(t) {
		m := testkit.Must(artifact.ReadManifest(filepath.Dir(path)))(t)
		folder := testkit.Must(filepath.Rel(root, filepath.Dir(path)))(t)
		for file := range m.Files {
			kept = append(kept, folder+"/"+file)
		}
		for file := range m.Omitted {
			left = append(left, folder+"/"+file)
		}
	}
	check := exec.CommandContext(t.Context(), "git", "-C", root, "check-ignore", "--no-index", "--stdin")
	check.Stdin = strings.NewReader(strings.Join(append(kept, left...), "\n"))
	ignored := strings.Fields(string(testkit.Must(check.Output())(t)))
	slices.Sort(left)
	slices.Sort(ignored)
	if !slices.Equal(ignored, left) {
		for _, path := range ignored {
			if slices.Contains(kept, path) {
				t.Errorf(".gitignore leaves out %s, which its manifest has", path)
			}
		}
		for _, path := range left {
			if !slices.Contains(ignored, path) {
				t.Errorf(".gitignore does not leave out %s, as its manifest says", path)
			}
		}
	}
}

// Without the ablation's weights what is stored of it is verified.
func TestVerifyWithoutWeights(t *testing.T) {
	unheld := func(t *testing.T) (s *Store, loop, contrast string) {
		s, folders := part(t, ablated...)
		remove(t, filepath.Join(folders[0], lastWeights))
		return s, folders[1], folders[2]
	}
	s, _, _ := unheld(t)
	v := testkit.Must(s.Verify(t.Context(), 1, nil))(t)
	if v.Err() != nil || v.Trainings != 1 || v.Cells != 2 || v.WithoutWeights != 2 {
		t.Errorf("%s, %v; want two evaluations without weights", v, v.Discrepancies)
	}
	for _, c := range ofOmitted {
		t.Run(c.what, func(t *testing.T) {
			s, loop, contrast := unheld(t)
			c.plant(t, loop, contrast)
			finds(t, s, c.found)
		})
	}
}

// unhold takes a file of weights from a run, as of a later identity, of which the smoke
// preset has none.
func unhold(t *testing.T, folder, weights string) {
	t.Helper()
	reseal(func(m *artifact.Manifest) {
		m.Omitted = map[string]string{weights: m.Files[weights]}
		delete(m.Files, weights)
	})(t, folder)
	remove(t, filepath.Join(folder, weights))
}

// remade takes an evaluation away, makes it once more, and returns its manifests.
func remade(t *testing.T, s *Store, folder string) (before, after *artifact.Manifest) {
	t.Helper()
	before = testkit.Must(artifact.ReadManifest(folder))(t)
	remove(t, folder)
	e := testkit.Must(s.Evaluate(t.Context(), cellOf(t, before)))(t)
	return before, e.Manifest
}

// Weights on the way can be left out while the last ones are there: what is stored of an
// evaluation of theirs is scored, and they come back when it is made again.
func TestSnapshotsWithoutWeights(t *testing.T) {
	const snapshot = "weights-5.safetensors"
	unheld := func(t *testing.T) (s *Store, folders []string) {
		s, folders = part(t, training, "frontier/policyattention-S4-14100-5")
		unhold(t, folders[0], snapshot)
		return s, folders
	}
	s, folders := unheld(t)
	v := testkit.Must(s.Verify(t.Context(), 1, nil))(t)
	// The preset wants them, and says so; nothing else is wrong.
	if v.WithoutWeights != 1 || len(v.Discrepancies) != 1 || !strings.Contains(v.Discrepancies[0].String(), "it omits") {
		t.Errorf("%s, %v; want one evaluation without weights and a manifest that omits them", v, v.Discrepancies)
	}

	before, after := remade(t, s, folders[1])
	if got, want := after.Files[policiesFile], before.Files[policiesFile]; got != want {
		t.Errorf("policies have the digest %.12s after they were made again, before %.12s", got, want)
	}

	s, folders = unheld(t)
	editArray("policies", func(data []float64) { data[3], data[4] = data[4], data[3] })(t, folders[1])
	finds(t, s, roundsFile+": row 21: column loss")
}

// Where all policies and critic tables are stored, so are residuals.
func TestVerifyResidualsWithoutWeights(t *testing.T) {
	s, folders := part(t, critic, fullyLoop, training)
	unhold(t, folders[0], lastWeights)
	editTable(roundsFile, roundsHeader, func(rows [][]float64) {
		for _, row := range rows {
			for _, column := range []int{5, 6, 7, 8} {
				row[column] /= 2
			}
		}
	})(t, folders[1])
	finds(t, s, roundsFile+": row 1: column zeta")
}

// So is what is stored of a critic's backups.
func TestVerifyBackupsWithoutWeights(t *testing.T) {
	s, folders := part(t, critic, backups)
	unhold(t, folders[0], lastWeights)
	editTable(backupsFile, backupsHeader, func(rows [][]float64) { rows[2][2] *= 1.001 })(t, folders[1])
	v := testkit.Must(s.Verify(t.Context(), 1, nil))(t)
	var found []string
	for _, d := range v.Discrepancies {
		if strings.HasPrefix(d.File, folders[1]) {
			found = append(found, d.String())
		}
	}
	if v.WithoutWeights != 1 || len(found) != 1 || !strings.Contains(found[0], backupsFile+": row 3") {
		t.Errorf("%d evaluations without weights, want 1; of the backups: %q", v.WithoutWeights, found)
	}
}

// A copy that holds the weights has them checked.
func TestVerifyOmittedWeights(t *testing.T) {
	s, folders := part(t, ablated...)
	flip(lastWeights)(t, folders[0])
	finds(t, s, lastWeights+": its SHA-256")
}

// Weights that an evaluation takes are trained once more, to the same bytes, or
// refused.
func TestRestoreWeights(t *testing.T) {
	s, folders := part(t, ablated...)
	weights := filepath.Join(folders[0], lastWeights)
	remove(t, weights)
	before, after := remade(t, s, folders[1])
	for name, digest := range before.Files {
		if after.Files[name] != digest {
			t.Errorf("%s has other bytes than before", name)
		}
	}
	run := testkit.Must(artifact.ReadManifest(folders[0]))(t)
	if digest, err := artifact.FileDigest(weights); err != nil || digest != run.Omitted[lastWeights] {
		t.Errorf("%v: the weights have not come back", err)
	}

	remove(t, folders[1])
	remove(t, weights)
	reseal(func(m *artifact.Manifest) { m.Omitted[lastWeights] = strings.Repeat("0", 64) })(t, folders[0])
	if _, err := s.Evaluate(t.Context(), cellOf(t, before)); err == nil || !strings.Contains(err.Error(), "has other weights than") {
		t.Errorf("weights that the manifest does not tell of: %v", err)
	}
}
