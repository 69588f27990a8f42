package experiment

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gomlx/compute"

	"icrl/policyattention/backend"
	"icrl/policyattention/method"
	"icrl/policyattention/rows"
	"icrl/policyattention/train"
)

// Files and folders of a preset. Results are first folders of their own, a unit's below newFolder and a
// training run's below trainFolder, each with a recordFile and tables. Merge then moves the tables into
// one file a block, and the records into lists; weights stay where they are.
const (
	newFolder     = "new"
	trainFolder   = "train"
	recordFile    = "run.json"
	runsFile      = "runs.json"
	trainingsFile = "trainings.json"
	lossesFile    = "losses.parquet"
	problemsFile  = "problems.parquet"
	sumsFile      = "SHA256SUMS"
	lastWeights   = "weights.safetensors"
)

// Record is what is kept of a unit or a training run besides rows and weights.
type Record struct {
	Block Block  `json:"block,omitempty"`
	Name  string `json:"name"`
	Kind  string `json:"kind,omitempty"` // of a training run
	rows.Key
	Hash   string          `json:"hash"` // SHA-256 of the configuration
	Config json.RawMessage `json:"config"`
	// Weights are the SHA-256 of those that a unit used, by training run, or of the files that a training
	// run left, some of which may be left out.
	Weights  map[string]string `json:"weights,omitempty"`
	Produced Produced          `json:"produced"`
	Cost     Cost              `json:"cost"`

	merged bool // it stands in a list
}

// Store makes the results of one preset and finds them again.
type Store struct {
	Preset   Preset
	Root     string         // folder of the preset's results
	Progress func(Progress) // is told of training steps and of waiting; after Open it does nothing
	Models   *method.Models // the trained networks; their Backend is made when it is first needed

	mu     sync.Mutex
	sealed *sealed   // what Merge has put together
	read   time.Time // when its runsFile had been written
}

// sealed is what Merge has put together.
type sealed struct {
	records map[string]Record // by task
	blocks  map[Block]map[any]*rows.Tables
}

// Progress says how far a training run is.
type Progress struct {
	Name    string `json:"name"` // of the training run or unit
	Waiting bool   `json:"waiting,omitempty"`
	train.Progress
}

// Open returns the store of the preset below the folder artifacts. The backend called backendName (see package backend)
// is made when it is first needed. It returns an error if the preset makes no sense: see Check.
func (p Preset) Open(artifacts, backendName string) (*Store, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	s := &Store{Preset: p, Root: filepath.Join(artifacts, p.Name), Progress: func(Progress) {}}
	s.Models = &method.Models{
		Backend: sync.OnceValues(func() (compute.Backend, error) { return backend.New(backendName) }),
		Path: func(w method.Weights) (string, error) {
			_, err := s.record(training(w.Training))
			return s.weightsPath(w), err
		},
	}
	return s, nil
}

// Units lists the preset's cells and the units of its studies.
func (s *Store) Units() ([]Unit, error) {
	units, err := s.Preset.Cells()
	for _, study := range s.Preset.Studies {
		more, failed := study(s)
		units, err = append(units, more...), errors.Join(err, failed)
	}
	return units, err
}

// fileName makes a name one of a file.
func fileName(name string) string {
	return strings.NewReplacer("/", "_", " ", "_", string(filepath.Separator), "_").Replace(name)
}

// folder returns where a task's result is before it is merged, and weights are for good.
func (s *Store) folder(u Unit) string {
	if u.Training != nil {
		return filepath.Join(s.Root, trainFolder, u.Name+"-"+u.hash()[:12])
	}
	return filepath.Join(s.Root, newFolder, string(u.Block), fileName(u.Name)+"-"+u.hash()[:12])
}

// index reads the records that have been merged, again where they have changed.
func (s *Store) index() (*sealed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var written time.Time
	if info, err := os.Stat(filepath.Join(s.Root, runsFile)); err == nil { // which Merge writes after trainingsFile
		written = info.ModTime()
	}
	if s.sealed != nil && written == s.read { // another process may have merged
		return s.sealed, nil
	}
	x := &sealed{map[string]Record{}, map[Block]map[any]*rows.Tables{}}
	for _, file := range []string{runsFile, trainingsFile} {
		var records []Record
		if err := readJSON(filepath.Join(s.Root, file), &records); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		for _, r := range records {
			r.merged = true
			x.records[Unit{Block: r.Block, Name: r.Name}.Path()] = r
		}
	}
	s.sealed, s.read = x, written
	return x, nil
}

// record returns what is kept of a task. The error wraps ErrMissing if it has not been run.
func (s *Store) record(u Unit) (r Record, err error) {
	x, err := s.index()
	if err != nil {
		return r, err
	}
	if r, ok := x.records[u.Path()]; ok && r.Hash == u.hash() {
		return r, nil
	}
	err = readJSON(filepath.Join(s.folder(u), recordFile), &r)
	switch {
	case errors.Is(err, os.ErrNotExist):
		err = fmt.Errorf("experiment: %s in %s: %w", u.Path(), s.Root, ErrMissing)
	case err == nil && r.Hash != u.hash():
		err = fmt.Errorf("experiment: %s is of another configuration than its name says", s.folder(u))
	}
	return r, err
}

// find returns what a task has left; the error wraps ErrMissing if it has not been run.
func (s *Store) find(u Unit) (Record, *rows.Tables, error) {
	r, err := s.record(u)
	if err != nil {
		return r, nil, err
	}
	if !r.merged {
		found, err := rows.ReadBlock(s.folder(u), string(u.Block))
		return r, &found, err
	}
	runs, err := s.block(u.Block)
	return r, cmp.Or(runs[u.Of], &rows.Tables{}), err
}

// block reads the merged rows of a block, by run.
func (s *Store) block(name Block) (map[any]*rows.Tables, error) {
	x, err := s.index()
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if x.blocks[name] == nil {
		all, err := rows.ReadBlock(s.Root, string(name))
		if err != nil {
			return nil, err
		}
		x.blocks[name] = all.Split()
	}
	return x.blocks[name], nil
}

// make makes the result of a task, unless it is there. Another process on the same task is waited for.
func (s *Store) make(ctx context.Context, u Unit) error {
	if _, err := s.record(u); !errors.Is(err, ErrMissing) {
		return err
	}
	unlock, err := s.lock(ctx, u.Path(), s.folder(u))
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := s.record(u); !errors.Is(err, ErrMissing) {
		return err // made while waiting
	}
	if ctx.Err() != nil {
		return fmt.Errorf("experiment: before %s: %w", u.Path(), context.Cause(ctx))
	}
	dir := s.work(s.folder(u)) + "-new" // where one is, it is of the dead
	if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r, result := u.record(), (*rows.Tables)(nil)
	if u.Training != nil {
		result, err = s.trained(ctx, u, dir, &r)
	} else {
		result, err = s.evaluated(ctx, u, &r)
	}
	if err != nil {
		return fmt.Errorf("experiment: %s: %w", u.Path(), err)
	}
	if err := result.Write(dir, string(r.Block)); err != nil {
		return err
	}
	if err := writeJSON(filepath.Join(dir, recordFile), r); err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(filepath.Dir(s.folder(u)), 0o755), os.Rename(dir, s.folder(u)))
}

// Evaluate returns the result of a unit, computing it where it is missing, and the training runs it needs likewise.
func (s *Store) Evaluate(ctx context.Context, u Unit) (*rows.Tables, error) {
	if _, r, err := s.find(u); !errors.Is(err, ErrMissing) {
		return r, err
	}
	for _, w := range u.Weights {
		if err := s.Train(ctx, w.Training); err != nil {
			return nil, err
		}
		if !s.holds(w) {
			return nil, fmt.Errorf("experiment: %s: the weights of %s after step %d are not in the repository; "+
				"train it in another folder of artifacts", u.Path(), w.Training.Name(), w.Step)
		}
	}
	if err := s.make(ctx, u); err != nil {
		return nil, err
	}
	_, r, err := s.find(u)
	return r, err
}

// evaluated computes a unit and completes its record.
func (s *Store) evaluated(ctx context.Context, u Unit, r *Record) (*rows.Tables, error) {
	cost := StartMeter()
	result, err := u.Compute(ctx, s, First(u.Problems), nil)
	if err != nil {
		return nil, err
	}
	if r.Weights, err = s.digests(u); err != nil {
		return nil, err
	}
	r.Cost = cost()
	r.Produced, err = s.machine(method.Networks(u.Weights))
	return result, err
}

// machine describes this machine, and the backend where it computes.
func (s *Store) machine(networks bool) (Produced, error) {
	if !networks {
		return Machine(nil), nil
	}
	b, err := s.Models.Backend()
	return Machine(b), err
}

// digests returns the SHA-256 of the weights that a unit uses, by training run.
func (s *Store) digests(u Unit) (map[string]string, error) {
	digests := map[string]string{}
	for _, w := range u.Weights {
		r, err := s.record(training(w.Training))
		if err != nil {
			return nil, err
		}
		digests[r.Name] = r.Weights[weightsFile(w)]
	}
	return digests, nil
}

// Produced says what made a result.
type Produced struct {
	Go       string               `json:"go"`
	Platform string               `json:"platform"`
	CPU      string               `json:"cpu"`
	Cores    int                  `json:"cores"`
	Backend  *backend.Description `json:"backend,omitempty"`
	// Earlier are the stretches of a training run before the one on Backend and CPU.
	Earlier []backend.Stretch `json:"earlier,omitempty"`
	Modules string            `json:"modules"` // what computes, with versions
}

// Cost is what a result took to make.
type Cost struct {
	WallSeconds    float64 `json:"wall_seconds"`
	CPUSeconds     float64 `json:"cpu_seconds"`
	PeakMemory     int64   `json:"peak_memory_bytes"` // of the process that made it
	StepsPerSecond float64 `json:"steps_per_second,omitempty"`
}

// computing are the modules whose versions can change results.
var computing = []string{"github.com/gomlx/gomlx", "github.com/gomlx/compute", "github.com/gomlx/go-xla",
	"gonum.org/v1/gonum"}

// Machine describes the machine, the program and its backend, which may be nil.
func Machine(b compute.Backend) Produced {
	p := Produced{
		Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, CPU: backend.Processor(),
		Cores: runtime.NumCPU(),
	}
	if b != nil {
		d := backend.Describe(b)
		p.Backend = &d
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if slices.Contains(computing, m.Path) {
				p.Modules += " " + path.Base(m.Path) + " " + m.Version
			}
		}
	}
	p.Modules = strings.TrimSpace(p.Modules)
	return p
}

// StartMeter returns what tells the cost of what happens after this call.
func StartMeter() (cost func() Cost) {
	began, cpu := time.Now(), backend.ProcessorTime()
	return func() Cost {
		return Cost{WallSeconds: time.Since(began).Seconds(), CPUSeconds: (backend.ProcessorTime() - cpu).Seconds(),
			PeakMemory: backend.PeakMemory()}
	}
}
