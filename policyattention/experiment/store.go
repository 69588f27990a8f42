package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/gomlx/compute"

	"icrl/policyattention/backend"
	"icrl/policyattention/method"
	"icrl/policyattention/rows"
	"icrl/policyattention/train"
)

// Files and folders of a preset. Results are first folders of their own below newFolder, one a
// unit, each with a recordFile and tables; training runs likewise below trainFolder. Merge then
// moves the tables into one file a block, and the records into lists.
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

// Record is what is kept of a unit besides its rows.
type Record struct {
	Block    Block             `json:"block"`
	Name     string            `json:"name"`
	Method   string            `json:"method"`
	Recipe   string            `json:"recipe,omitempty"`
	S        int32             `json:"s,omitempty"`
	Seed     int64             `json:"seed,omitempty"`
	Step     int32             `json:"step,omitempty"`
	Family   string            `json:"family,omitempty"`
	Hash     string            `json:"hash"` // SHA-256 of the configuration
	Config   json.RawMessage   `json:"config"`
	Weights  map[string]string `json:"weights,omitempty"` // SHA-256 of those used, by training run
	Notes    json.RawMessage   `json:"equal,omitempty"`   // what a study chose and counted
	Produced Produced          `json:"produced"`
	Cost     Cost              `json:"cost"`
}

// Store makes the results of one preset and finds them again.
type Store struct {
	Preset Preset
	// Progress, if not nil, is told of training steps and of waiting.
	Progress func(Progress)

	root    string
	backend func() (compute.Backend, error)
	models  *method.Models

	mu     sync.Mutex
	sealed *sealed      // what Merge has put together
	read   [2]time.Time // when its files had been written
}

// sealed is the index of a preset's lists.
type sealed struct {
	runs      map[string]Record      // by path
	trainings map[string]TrainingRun // by hash
	blocks    map[Block]map[any]*rows.Tables
}

// Progress says how far a training run is.
type Progress struct {
	Name    string `json:"name"` // of the training run or unit
	Waiting bool   `json:"waiting,omitempty"`
	train.Progress
}

func open(p Preset, artifacts, backendName string) *Store {
	s := &Store{
		Preset: p, root: filepath.Join(artifacts, p.Name),
		backend: sync.OnceValues(func() (compute.Backend, error) { return backend.New(backendName) }),
	}
	s.models = &method.Models{Backend: s.backend, Path: func(w method.Weights) (string, error) {
		t, err := s.FindTraining(w.Training)
		if err != nil {
			return "", err
		}
		return t.WeightsPath(w.Step), nil
	}}
	return s
}

// Root returns the folder of the preset's results.
func (s *Store) Root() string { return s.root }

// Models gives the trained networks of the store.
func (s *Store) Models() *method.Models { return s.models }

// Units lists the preset's cells and the units of its studies.
func (s *Store) Units() ([]Unit, error) {
	units, err := s.Preset.Cells()
	for _, study := range s.Preset.Studies {
		more, failed := study.Units(s)
		if err = errors.Join(err, failed); err != nil {
			return nil, err
		}
		units = append(units, more...)
	}
	return units, err
}

// fileName makes a name one of a file.
func fileName(name string) string {
	return strings.NewReplacer("/", "_", " ", "_", string(filepath.Separator), "_").Replace(name)
}

// folder returns where the unit's result is before it is merged.
func (s *Store) folder(u Unit) string {
	return filepath.Join(s.Root(), newFolder, string(u.Block), fileName(u.Name)+"-"+u.Hash()[:12])
}

// index reads what has been merged, again where it has changed.
func (s *Store) index() (*sealed, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var written [2]time.Time
	for i, file := range []string{runsFile, trainingsFile} {
		if info, err := os.Stat(filepath.Join(s.Root(), file)); err == nil {
			written[i] = info.ModTime()
		}
	}
	if s.sealed != nil && written == s.read { // another process may have merged
		return s.sealed, nil
	}
	x := &sealed{map[string]Record{}, map[string]TrainingRun{}, map[Block]map[any]*rows.Tables{}}
	var runs []Record
	var trainings []TrainingRun
	for file, to := range map[string]any{runsFile: &runs, trainingsFile: &trainings} {
		if err := readJSON(filepath.Join(s.Root(), file), to); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	for _, r := range runs {
		x.runs[string(r.Block)+"/"+r.Name] = r
	}
	for _, t := range trainings {
		x.trainings[t.Hash] = t
	}
	s.sealed, s.read = x, written
	return x, nil
}

// record returns what is kept of a unit, and whether it has been merged. The error wraps
// ErrMissing if it has not been run.
func (s *Store) record(u Unit) (r Record, merged bool, err error) {
	x, err := s.index()
	if err != nil {
		return r, false, err
	}
	if r, ok := x.runs[u.Path()]; ok && r.Hash == u.Hash() {
		return r, true, nil
	}
	err = readJSON(filepath.Join(s.folder(u), recordFile), &r)
	if errors.Is(err, os.ErrNotExist) {
		return r, false, fmt.Errorf("experiment: %s in %s: %w", u.Path(), s.Root(), ErrMissing)
	}
	if err == nil && r.Hash != u.Hash() {
		err = fmt.Errorf("experiment: %s is of another configuration than its name says", s.folder(u))
	}
	return r, false, err
}

// Find returns what a unit has left; the error wraps ErrMissing if it has not been run.
func (s *Store) Find(u Unit) (Record, *Result, error) {
	r, merged, err := s.record(u)
	if err != nil {
		return r, nil, err
	}
	found := &Result{Notes: r.Notes}
	if !merged {
		found.Tables, err = rows.ReadBlock(s.folder(u), string(u.Block))
		return r, found, err
	}
	runs, err := s.block(u.Block)
	if err != nil {
		return r, nil, err
	}
	if t := runs[u.Of]; t != nil {
		found.Tables = *t
	}
	return r, found, nil
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
		all, err := rows.ReadBlock(s.Root(), string(name))
		if err != nil {
			return nil, err
		}
		x.blocks[name] = all.Split()
	}
	return x.blocks[name], nil
}

// Evaluate returns the result of a unit, computing it where it is missing, and
// the training runs it needs likewise. Another process on the same unit is
// waited for.
func (s *Store) Evaluate(ctx context.Context, u Unit) (*Result, error) {
	_, r, err := s.Find(u)
	if !errors.Is(err, ErrMissing) {
		return r, err
	}
	for _, w := range u.Weights {
		t, err := s.Train(ctx, w.Training)
		if err == nil && !t.Holds(w.Step) {
			err = fmt.Errorf("experiment: %s: the weights of %s after step %d are not in the repository; "+
				"train it in another folder of artifacts", u.Path(), t.Name, w.Step)
		}
		if err != nil {
			return nil, err
		}
	}
	unlock, err := s.lock(ctx, u.Path(), s.folder(u))
	if err != nil {
		return nil, err
	}
	defer unlock()
	if _, r, err := s.Find(u); !errors.Is(err, ErrMissing) {
		return r, err // made while waiting
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("experiment: before %s: %w", u.Path(), context.Cause(ctx))
	}
	meter := StartMeter()
	if r, err = u.Compute(ctx, s, 0, nil); err != nil {
		return nil, fmt.Errorf("experiment: %s: %w", u.Path(), err)
	}
	record, err := s.describe(u)
	if err != nil {
		return nil, err
	}
	record.Notes, record.Cost = r.Notes, meter.Cost()
	return r, s.publish(s.folder(u), func(dir string) error {
		if err := r.Write(dir, string(u.Block)); err != nil {
			return err
		}
		return WriteJSON(filepath.Join(dir, recordFile), record, " ")
	})
}

// describe returns the record of a unit but for its notes and cost.
func (s *Store) describe(u Unit) (r Record, err error) {
	r = Record{
		Block: u.Block, Name: u.Name, Method: u.Method, Recipe: u.Recipe, S: u.S, Seed: u.Seed, Step: u.Step,
		Family: u.Family,
		Hash:   u.Hash(), Config: configuration(u),
	}
	if r.Weights, err = s.weights(u); err != nil {
		return r, err
	}
	if !method.Networks(u.Weights) {
		r.Produced = Machine(nil)
		return r, nil
	}
	b, err := s.backend()
	if err == nil {
		d := backend.Describe(b)
		r.Produced = Machine(&d)
	}
	return r, err
}

// weights returns the SHA-256 of the weights that a unit uses, by training run.
func (s *Store) weights(u Unit) (map[string]string, error) {
	digests := map[string]string{}
	for _, w := range u.Weights {
		t, err := s.FindTraining(w.Training)
		if err != nil {
			return nil, err
		}
		digests[t.Name] = t.Weights[weightsFile(w.Training, w.Step)]
	}
	return digests, nil
}

// Backend returns the store's backend, which is made when it is first needed.
func (s *Store) Backend() (compute.Backend, error) { return s.backend() }
