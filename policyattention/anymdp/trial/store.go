package trial

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"github.com/google/renameio/v2"

	"icrl/policyattention/anymdp/recipe"
)

// Root is the root of the problems of the table. Those of [CalibrationRoot] were looked at
// while the recipe was made.
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

// digits writes a loss in so many digits.
func digits(v float64, n int) string {
	if math.IsNaN(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', n, 64)
}

// Write stores the losses of an identity, by row, and its manifest, in a folder that has
// the weights already.
func Write(folder string, m Manifest, losses map[string][]Losses) error {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := csv.NewWriter(z)
	w.Write(header()) //nolint:errcheck // Flush keeps the error
	for _, row := range Rows {
		for i, l := range losses[row.Name] {
			line := []string{row.Name, strconv.Itoa(i)}
			for _, v := range l.Exact {
				line = append(line, digits(v, 6))
			}
			for _, values := range [][]float64{l.Prior, l.Network, l.Mixed} {
				for k, v := range values {
					line = append(line, digits(v-l.Exact[k], 3))
				}
			}
			w.Write(line) //nolint:errcheck // Flush keeps the error
		}
	}
	w.Flush()
	if err := errors.Join(w.Error(), z.Close()); err != nil {
		return fmt.Errorf("trial: %w", err)
	}
	if err := renameio.WriteFile(filepath.Join(folder, lossesFile), b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("trial: %w", err)
	}
	m.Hash, m.Root, m.Horizons, m.Files = m.Config.Hash(), Root, Horizons, map[string]string{}
	for _, name := range []string{WeightsFile, lossesFile} {
		digest, err := digest(filepath.Join(folder, name))
		if err != nil {
			return err
		}
		m.Files[name] = digest
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return fmt.Errorf("trial: %w", err)
	}
	if err := renameio.WriteFile(filepath.Join(folder, manifestFile), append(text, '\n'), 0o644); err != nil {
		return fmt.Errorf("trial: %w", err)
	}
	return nil
}

func digest(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("trial: %w", err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// ErrMissing is wrapped by the error that says that an identity has no results.
var ErrMissing = errors.New("not yet evaluated")

// Read returns what is stored of a configuration. It returns an error if a file has been
// changed or is of another configuration.
func Read(folder string, c recipe.Config) (*Manifest, map[string][]Losses, error) {
	text, err := os.ReadFile(filepath.Join(folder, manifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("trial: %s: %w", folder, ErrMissing)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("trial: %w", err)
	}
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, nil, fmt.Errorf("trial: %s: %w", folder, err)
	}
	if m.Hash != c.Hash() || m.Config != c || m.Root != Root {
		return nil, nil, fmt.Errorf("trial: %s is of another configuration or root", folder)
	}
	for _, name := range []string{WeightsFile, lossesFile} {
		got, err := digest(filepath.Join(folder, name))
		if err != nil {
			return nil, nil, err
		}
		if got != m.Files[name] {
			return nil, nil, fmt.Errorf("trial: %s: its SHA-256 is %.12s…, the manifest says %.12s…", filepath.Join(folder, name), got, m.Files[name])
		}
	}
	losses, err := readLosses(filepath.Join(folder, lossesFile))
	return &m, losses, err
}

func readLosses(path string) (map[string][]Losses, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("trial: %w", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("trial: %s: %w", path, err)
	}
	lines, err := csv.NewReader(z).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("trial: %s: %w", path, err)
	}
	all := map[string][]Losses{}
	for n, line := range lines[min(1, len(lines)):] {
		values := make([]float64, len(line)-2)
		for k := range values {
			if values[k], err = strconv.ParseFloat(line[2+k], 64); line[2+k] == "" {
				values[k] = math.NaN()
			} else if err != nil {
				return nil, fmt.Errorf("trial: %s: line %d: %w", path, n+2, err)
			}
		}
		h := len(Horizons)
		if len(values) != 4*h || line[1] != strconv.Itoa(len(all[line[0]])) {
			return nil, fmt.Errorf("trial: %s: line %d is not of the next problem of a row", path, n+2)
		}
		for k := h; k < len(values); k++ {
			values[k] += values[k%h]
		}
		all[line[0]] = append(all[line[0]], Losses{values[:h], values[h : 2*h], values[2*h : 3*h], values[3*h:]})
	}
	return all, nil
}
