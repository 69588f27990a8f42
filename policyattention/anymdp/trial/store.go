package trial

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"

	"icrl/policyattention/anymdp/recipe"
	"icrl/policyattention/artifact"
)

// Root is the root of the problems of the table. Those of [CalibrationRoot] were looked at
// while the recipe was made; of rows with a Fixture, so may have been the fixture's, which
// [Row.Draw] gave for every root until then.
const Root, CalibrationRoot = 31900, 31800

// Files of an identity's folder.
const (
	WeightsFile  = "weights.safetensors"
	lossesFile   = "losses.csv.gz"
	manifestFile = "manifest.json"
)

// Manifest describes the folder of an identity and vouches for its files.
type Manifest struct {
	Config          recipe.Config     `json:"config"`
	Hash            string            `json:"hash"`
	Root            uint64            `json:"root"` // of the problems
	Horizons        []int             `json:"horizons"`
	Files           map[string]string `json:"files"` // SHA-256 by name
	TrainingSeconds float64           `json:"training_cpu_seconds"`
	Seconds         float64           `json:"evaluation_cpu_seconds"`
	Backend         string            `json:"backend"`
	Seal            string            `json:"seal"` // SHA-256 of this manifest with an empty seal
}

// Folder is the folder of a configuration's results below that of a preset.
func Folder(preset string, c recipe.Config) string {
	return filepath.Join(preset, "any", fmt.Sprintf("any-%d-%.12s", c.Seed, c.Hash()))
}

// header names the columns of losses.csv.gz: the losses of exact PMD, in six digits, and
// by how much those of the read-outs are larger, in three. An empty one was not run.
func header() []string {
	h := []string{"row", "problem"}
	for _, of := range []string{"exact", "prior_excess", "network_excess", "mixed_excess"} {
		for _, t := range Horizons {
			h = append(h, fmt.Sprintf("%s_%d", of, t))
		}
	}
	return h
}

// Write stores the losses of an identity, by row, and its manifest, in a folder that has
// the weights already.
func Write(folder string, m Manifest, losses map[string][]Losses) error {
	var lines [][]string
	for _, row := range Rows {
		for i, l := range losses[row.Name] {
			line := []string{row.Name, strconv.Itoa(i)}
			for _, v := range l.Exact {
				line = append(line, artifact.Field(v, 6))
			}
			for _, values := range [][]float64{l.Prior, l.Network, l.Mixed} {
				for k, v := range values {
					line = append(line, artifact.Field(v-l.Exact[k], 3))
				}
			}
			lines = append(lines, line)
		}
	}
	if err := artifact.WriteLines(filepath.Join(folder, lossesFile), gzip.BestCompression, header(), lines); err != nil {
		return err
	}
	m.Hash, m.Root, m.Horizons, m.Files = m.Config.Hash(), Root, Horizons, map[string]string{}
	for _, name := range []string{WeightsFile, lossesFile} {
		digest, err := artifact.FileDigest(filepath.Join(folder, name))
		if err != nil {
			return err
		}
		m.Files[name] = digest
	}
	if err := artifact.Seal(&m, &m.Seal); err != nil {
		return err
	}
	return artifact.WriteJSON(filepath.Join(folder, manifestFile), m, "  ")
}

// Read returns what is stored of a configuration. It returns an error if a file has been
// changed or is of another configuration; the error wraps [artifact.ErrMissing] if nothing is stored.
func Read(folder string, c recipe.Config) (*Manifest, map[string][]Losses, error) {
	var m Manifest
	err := artifact.ReadJSON(filepath.Join(folder, manifestFile), &m)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("trial: %s: %w", folder, artifact.ErrMissing)
	}
	if err != nil {
		return nil, nil, err
	}
	if m.Hash != c.Hash() || m.Config != c || m.Root != Root {
		return nil, nil, fmt.Errorf("trial: %s is of another configuration or root", folder)
	}
	if err := artifact.CheckSeal(&m, &m.Seal); err != nil {
		return nil, nil, fmt.Errorf("trial: the manifest of %s: %w", folder, err)
	}
	for _, name := range []string{WeightsFile, lossesFile} {
		if err := artifact.CheckFile(filepath.Join(folder, name), m.Files[name]); err != nil {
			return nil, nil, err
		}
	}
	losses, err := readLosses(filepath.Join(folder, lossesFile))
	return &m, losses, err
}

func readLosses(path string) (map[string][]Losses, error) {
	lines, err := artifact.ReadLines(path, header())
	if err != nil {
		return nil, err
	}
	all := map[string][]Losses{}
	for n, line := range lines {
		values := make([]float64, len(line)-2)
		for k := range values {
			if values[k], err = artifact.Number(line[2+k]); err != nil {
				return nil, fmt.Errorf("trial: %s: line %d: %w", path, n+2, err)
			}
		}
		h := len(Horizons)
		if line[1] != strconv.Itoa(len(all[line[0]])) {
			return nil, fmt.Errorf("trial: %s: line %d is not of the next problem of a row", path, n+2)
		}
		for k := h; k < len(values); k++ {
			values[k] += values[k%h]
		}
		all[line[0]] = append(all[line[0]], Losses{values[:h], values[h : 2*h], values[2*h : 3*h], values[3*h:]})
	}
	return all, nil
}
