package experiment

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/google/renameio/v2"

	"icrl/policyattention/backend"
	"icrl/policyattention/method"
)

const manifestFile = "manifest.json"

// Manifest describes an artifact and vouches for its files.
type Manifest struct {
	Name       string          `json:"name"`                 // of the cell or the training run
	Hash       string          `json:"hash"`                 // of the configuration
	Cell       *Cell           `json:"cell,omitempty"`       // of an evaluation
	Evaluation json.RawMessage `json:"evaluation,omitempty"` // its configuration
	Training   Trained         `json:"-"`                    // of a training run
	outcome
}

// Trained is the configuration of a training run, which a manifest holds under its key.
type Trained struct {
	Key    string // see method.Training
	Config json.RawMessage
}

// outcome is the part of a manifest after the configuration.
type outcome struct {
	Fixtures string            `json:"fixtures,omitempty"` // SHA-256 of the problems
	Weights  map[string]string `json:"weights,omitempty"`  // used weights: SHA-256 by training name
	Files    map[string]string `json:"files"`              // SHA-256 by name
	// Omitted is the SHA-256, by name, of files that copies may lack: see Preset.Omit.
	Omitted  map[string]string `json:"omitted,omitempty"`
	Summary  map[string]Values `json:"summary,omitempty"` // medians, by what they are of
	Produced Produced          `json:"produced"`
	Cost     Cost              `json:"cost"`
	Seal     string            `json:"seal"` // SHA-256 of this manifest with an empty seal
}

// members are the names in a manifest, but for the key of a training run.
var members = []string{"name", "hash", "cell", "evaluation", "fixtures", "weights", "files", "omitted", "summary", "produced", "cost", "seal"}

// setTraining describes the training run c.
func (m *Manifest) setTraining(c method.Training) error {
	config, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	m.Training = Trained{c.Key(), config}
	return nil
}

// MarshalJSON implements json.Marshaler.
func (m Manifest) MarshalJSON() ([]byte, error) {
	training := map[string]json.RawMessage{}
	if m.Training.Key != "" {
		training[m.Training.Key] = m.Training.Config
	}
	return joinObjects(struct {
		Name       string          `json:"name"`
		Hash       string          `json:"hash"`
		Cell       *Cell           `json:"cell,omitempty"`
		Evaluation json.RawMessage `json:"evaluation,omitempty"`
	}{m.Name, m.Hash, m.Cell, m.Evaluation}, training, m.outcome)
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *Manifest) UnmarshalJSON(text []byte) error {
	type plain Manifest
	if err := json.Unmarshal(text, (*plain)(m)); err != nil {
		return err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	for key, config := range all {
		if !slices.Contains(members, key) {
			m.Training = Trained{key, config}
		}
	}
	return nil
}

// digest returns the SHA-256 of a file of the artifact.
func (m *Manifest) digest(name string) string {
	if d, ok := m.Omitted[name]; ok {
		return d
	}
	return m.Files[name]
}

// Values are numbers by name.
type Values = map[string]float64

// Produced says on what an artifact was made.
type Produced struct {
	Go       string               `json:"go"`
	Platform string               `json:"platform"`
	CPU      string               `json:"cpu"`
	Cores    int                  `json:"cores"` // that the process was allowed to use
	Backend  *backend.Description `json:"backend,omitempty"`
	Modules  map[string]string    `json:"modules"` // versions of what computes
}

// Cost is what an artifact took to make.
type Cost struct {
	WallSeconds    float64 `json:"wall_seconds"`
	CPUSeconds     float64 `json:"cpu_seconds"`
	PeakMemory     int64   `json:"peak_memory_bytes"` // of the process that made it
	StepsPerSecond float64 `json:"steps_per_second,omitempty"`
}

// computing are the modules whose versions can change results.
var computing = []string{"github.com/gomlx/gomlx", "github.com/gomlx/compute", "github.com/gomlx/go-xla", "gonum.org/v1/gonum"}

func produced(d *backend.Description) Produced {
	p := Produced{
		Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, CPU: backend.Processor(),
		Cores: runtime.NumCPU(), Backend: d, Modules: map[string]string{},
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if slices.Contains(computing, m.Path) {
				p.Modules[m.Path] = m.Version
			}
		}
	}
	return p
}

// meter measures the cost of what happens after it was started.
type meter struct {
	began time.Time
	cpu   time.Duration
}

func startMeter() meter { return meter{time.Now(), usage().cpu} }

func (m meter) cost() Cost {
	u := usage()
	return Cost{WallSeconds: time.Since(m.began).Seconds(), CPUSeconds: (u.cpu - m.cpu).Seconds(), PeakMemory: u.peak}
}

type resources struct {
	cpu  time.Duration
	peak int64 // bytes
}

func usage() (r resources) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return r
	}
	r.cpu, r.peak = time.Duration(u.Utime.Nano()+u.Stime.Nano()), u.Maxrss
	if runtime.GOOS != "darwin" {
		r.peak *= 1024 // Linux counts kilobytes, macOS bytes
	}
	return r
}

// write stores the manifest of the files in dir, with their digests and its
// own seal.
func (m *Manifest) write(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	m.Files = map[string]string{}
	for _, e := range entries {
		if e.Name() == manifestFile {
			continue
		}
		digest, err := fileDigest(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		if _, ok := m.Omitted[e.Name()]; ok {
			m.Omitted[e.Name()] = digest
		} else {
			m.Files[e.Name()] = digest
		}
	}
	m.Seal = ""
	if m.Seal, err = jsonDigest(m); err != nil {
		return err
	}
	text, err := m.text()
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(filepath.Join(dir, manifestFile), text, 0o644); err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	return nil
}

// text is the manifest as it stands in its file.
func (m *Manifest) text() ([]byte, error) {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("experiment: %w", err)
	}
	return append(text, '\n'), nil
}

// readManifest reads a manifest and checks its seal.
func readManifest(dir string) (*Manifest, error) {
	path := filepath.Join(dir, manifestFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("experiment: %w", err)
	}
	m, err := parseManifest(text)
	if err != nil {
		return nil, fmt.Errorf("experiment: %s: %w", path, err)
	}
	return m, nil
}

func parseManifest(text []byte) (*Manifest, error) {
	m := &Manifest{}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, err
	}
	bare := *m
	bare.Seal = ""
	seal, err := jsonDigest(bare)
	if err != nil {
		return nil, err
	}
	if seal != m.Seal {
		return nil, errors.New("it has been changed: its seal is not its digest")
	}
	// The seal is of the values: names that stand twice, in other case, or where no
	// manifest has them, leave it.
	if written, err := m.text(); err != nil {
		return nil, err
	} else if !bytes.Equal(text, written) {
		return nil, errors.New("it has been changed: it is not written as manifests are")
	}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(m.Files)), slices.Collect(maps.Keys(m.Omitted))) {
		if name != filepath.Base(name) || name == "." || name == ".." {
			return nil, fmt.Errorf("it lists %q, which is no file name", name)
		}
	}
	return m, nil
}

func jsonDigest(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("experiment: %w", err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// textDigest returns the SHA-256 of JSON without white space.
func textDigest(text []byte) string {
	var b bytes.Buffer
	json.Compact(&b, text) //nolint:errcheck // what is no JSON is no configuration's either
	sum := sha256.Sum256(b.Bytes())
	return hex.EncodeToString(sum[:])
}

func fileDigest(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("experiment: %w", err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}
