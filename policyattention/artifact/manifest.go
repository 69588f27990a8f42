package artifact

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"icrl/internal/usage"
	"icrl/policyattention/backend"
)

// ManifestFile is the name of the manifest in an artifact's folder.
const ManifestFile = "manifest.json"

// Manifest describes an artifact and vouches for its files.
type Manifest struct {
	Name string `json:"name"` // of the task that made it
	Hash string `json:"hash"` // of its configuration
	// Of is what it was made from and for, which its maker alone understands. Its members
	// stand between the hash and the rest.
	Of []Member `json:"-"`
	rest
}

// Member is a value that stands in a manifest under a key.
type Member struct {
	Key   string
	Value json.RawMessage
}

// MarshalJSON implements json.Marshaler: an object of one member.
func (m Member) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]json.RawMessage{m.Key: m.Value})
}

// Digest returns the SHA-256 of the value without white space.
func (m Member) Digest() string {
	var b bytes.Buffer
	json.Compact(&b, m.Value) //nolint:errcheck // what is no JSON is no configuration's either
	return digest(b.Bytes())
}

// Add adds a value under a key of the maker's.
func (m *Manifest) Add(key string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("artifact: %w", err)
	}
	m.Of = append(m.Of, Member{key, text})
	return nil
}

// Get returns what stands under one of the maker's keys, nil where nothing does.
func (m *Manifest) Get(key string) json.RawMessage {
	for _, x := range m.Of {
		if x.Key == key {
			return x.Value
		}
	}
	return nil
}

// rest is the part of a manifest after what it is of.
type rest struct {
	Fixtures string            `json:"fixtures,omitempty"` // SHA-256 of the problems
	Weights  map[string]string `json:"weights,omitempty"`  // used weights: SHA-256 by training name
	Files    map[string]string `json:"files"`              // SHA-256 by name
	// Omitted is the SHA-256, by name, of files that copies may lack.
	Omitted  map[string]string `json:"omitted,omitempty"`
	Summary  map[string]Values `json:"summary,omitempty"` // medians, by what they are of
	Produced Produced          `json:"produced"`
	Cost     Cost              `json:"cost"`
	Seal     string            `json:"seal"` // SHA-256 of this manifest with an empty seal
}

// members are the names in a manifest but for its maker's.
var members = []string{"name", "hash", "fixtures", "weights", "files", "omitted", "summary", "produced", "cost", "seal"}

// MarshalJSON implements json.Marshaler.
func (m Manifest) MarshalJSON() ([]byte, error) {
	parts := []any{struct {
		Name string `json:"name"`
		Hash string `json:"hash"`
	}{m.Name, m.Hash}}
	for _, x := range m.Of {
		parts = append(parts, x)
	}
	return JoinObjects(append(parts, m.rest)...)
}

// UnmarshalJSON implements json.Unmarshaler.
func (m *Manifest) UnmarshalJSON(text []byte) error {
	type plain Manifest
	if err := json.Unmarshal(text, (*plain)(m)); err != nil {
		return err
	}
	read := json.NewDecoder(bytes.NewReader(text))
	if _, err := read.Token(); err != nil { // the brace
		return err
	}
	for m.Of = nil; read.More(); {
		key, err := read.Token()
		if err != nil {
			return err
		}
		x := Member{Key: key.(string)} // what else stands in an object is no JSON
		if err := read.Decode(&x.Value); err != nil {
			return err
		}
		if !slices.Contains(members, x.Key) {
			m.Of = append(m.Of, x)
		}
	}
	return nil
}

// Digest returns the SHA-256 of a file of the artifact, "" where the manifest has none.
func (m *Manifest) Digest(name string) string {
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
	// Earlier are the stretches of a training run before the one on Backend and CPU.
	Earlier []backend.Stretch `json:"earlier,omitempty"`
	Modules map[string]string `json:"modules"` // versions of what computes
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

// Machine describes the machine, the program and its backend, which may be nil.
func Machine(d *backend.Description) Produced {
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

// Meter measures the cost of what happens after it was started.
type Meter struct {
	began time.Time
	cpu   time.Duration
}

// StartMeter returns a meter that was started now.
func StartMeter() Meter { return Meter{time.Now(), usage.Processor()} }

// Cost returns the cost so far.
func (m Meter) Cost() Cost {
	return Cost{WallSeconds: time.Since(m.began).Seconds(), CPUSeconds: (usage.Processor() - m.cpu).Seconds(), PeakMemory: usage.Peak()}
}

// Write stores the manifest of the files in dir, with their digests and its
// own seal.
func (m *Manifest) Write(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("artifact: %w", err)
	}
	m.Files = map[string]string{}
	for _, e := range entries {
		if e.Name() == ManifestFile {
			continue
		}
		digest, err := FileDigest(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		if _, ok := m.Omitted[e.Name()]; ok {
			m.Omitted[e.Name()] = digest
		} else {
			m.Files[e.Name()] = digest
		}
	}
	if err := Seal(m, &m.Seal); err != nil {
		return err
	}
	return WriteJSON(filepath.Join(dir, ManifestFile), m, manifestIndent)
}

// manifestIndent is that of manifests.
const manifestIndent = "  "

// ReadManifest reads a manifest and checks its seal.
func ReadManifest(dir string) (*Manifest, error) {
	path := filepath.Join(dir, ManifestFile)
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("artifact: %w", err)
	}
	m, err := parseManifest(text)
	if err != nil {
		return nil, fmt.Errorf("artifact: %s: %w", path, err)
	}
	return m, nil
}

func parseManifest(text []byte) (*Manifest, error) {
	m := &Manifest{}
	if err := json.Unmarshal(text, m); err != nil {
		return nil, err
	}
	if err := CheckSeal(m, &m.Seal); err != nil {
		return nil, err
	}
	// The seal is of the values: names that stand twice, in other case, or where no
	// manifest has them, leave it.
	if written, err := jsonText(m, manifestIndent); err != nil {
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
