package train

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"

	"icrl/internal/safetensors"
	"icrl/policyattention/backend"
	"icrl/policyattention/transformer"
)

// state is a run between two steps.
type state struct {
	step      int
	params    []float32
	m, v      []float32         // moments of AdamW
	average   []float32         // of the parameters over the steps, see Job.Average
	losses    []float32         // one per step so far
	wall, cpu float64           // seconds spent, over all interruptions
	stretches []backend.Stretch // of the steps so far
}

// made says that steps with such losses have been made on a backend and a processor.
func (s *state) made(losses []float32, on backend.Stretch) {
	s.step += len(losses)
	s.losses = append(s.losses, losses...)
	on.Step = s.step
	if n := len(s.stretches); n > 0 && s.stretches[n-1].Backend == on.Backend && s.stretches[n-1].CPU == on.CPU {
		s.stretches[n-1] = on
	} else {
		s.stretches = append(s.stretches, on)
	}
}

// Seal adds to the metadata the digest of everything else in the file, without which
// ReadParams refuses it.
func Seal(f *safetensors.File) error {
	digest, err := digest(f)
	if err != nil {
		return err
	}
	if f.Metadata == nil {
		f.Metadata = map[string]string{}
	}
	f.Metadata["sha256"] = digest
	return nil
}

func digest(f *safetensors.File) (string, error) {
	bare := *f
	bare.Metadata = maps.Clone(f.Metadata)
	delete(bare.Metadata, "sha256")
	b, err := safetensors.Marshal(&bare)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}

// open reads a sealed file.
func open(path string) (*safetensors.File, error) {
	f, err := safetensors.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	want, err := digest(f)
	if err != nil {
		return nil, fmt.Errorf("train: %s: %w", path, err)
	}
	if f.Metadata["sha256"] == "" {
		return nil, fmt.Errorf("train: %s states no digest: it holds other weights than those that are read here", path)
	}
	if f.Metadata["sha256"] != want {
		return nil, fmt.Errorf("train: %s has been changed: its digest is not the one it states", path)
	}
	if !json.Valid([]byte(f.Metadata["config"])) {
		return nil, fmt.Errorf("train: %s states no configuration", path)
	}
	return f, nil
}

// Hash returns the SHA-256 of the configuration in hexadecimal.
func (j Job) Hash() string {
	sum := sha256.Sum256(j.Config)
	return hex.EncodeToString(sum[:])
}

// saveState stores a run so that it can be resumed. An average that is not released is
// left out.
func (j Job) saveState(path string, s state) error {
	stretches, err := json.Marshal(s.stretches)
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	f := &safetensors.File{
		Metadata: map[string]string{
			"config": string(j.Config), "config_sha256": j.Hash(), "step": strconv.Itoa(s.step),
			"wall_seconds": strconv.FormatFloat(s.wall, 'g', -1, 64),
			"cpu_seconds":  strconv.FormatFloat(s.cpu, 'g', -1, 64),
			"stretches":    string(stretches),
		},
		Tensors: []safetensors.Tensor{
			{Name: "params", Shape: []int{len(s.params)}, Data: s.params},
			{Name: "m", Shape: []int{len(s.m)}, Data: s.m},
			{Name: "v", Shape: []int{len(s.v)}, Data: s.v},
			{Name: "losses", Shape: []int{len(s.losses)}, Data: s.losses},
		},
	}
	if j.Average {
		f.Tensors = append(f.Tensors, safetensors.Tensor{Name: "average", Shape: []int{len(s.average)}, Data: s.average})
	}
	if j.Line != "" {
		f.Metadata["line"] = j.Line
	}
	if err := Seal(f); err != nil {
		return err
	}
	return safetensors.WriteFile(path, f)
}

// loadState reads a run of this very configuration.
func (j Job) loadState(path string) (state, error) {
	f, err := open(path)
	if err != nil {
		return state{}, err
	}
	if f.Metadata["config"] != string(j.Config) {
		return state{}, fmt.Errorf("train: %s belongs to another configuration (%.12s, this is %.12s): use another folder", path, f.Metadata["config_sha256"], j.Hash())
	}
	return j.state(path, f)
}

// state returns the run that a sealed file holds.
func (j Job) state(path string, f *safetensors.File) (s state, err error) {
	if s.step, err = strconv.Atoi(f.Metadata["step"]); err != nil || s.step < 0 || s.step > j.Steps {
		return state{}, fmt.Errorf("train: %s is at step %q of %d", path, f.Metadata["step"], j.Steps)
	}
	// Durations are for the record: unreadable ones count as zero.
	s.wall, _ = strconv.ParseFloat(f.Metadata["wall_seconds"], 64)
	s.cpu, _ = strconv.ParseFloat(f.Metadata["cpu_seconds"], 64)
	if text, ok := f.Metadata["stretches"]; ok {
		if err := json.Unmarshal([]byte(text), &s.stretches); err != nil {
			return state{}, fmt.Errorf("train: %s: stretches: %w", path, err)
		}
	} else if s.step > 0 {
		s.stretches = []backend.Stretch{{Step: s.step}} // made before they were recorded
	}
	size := size(j.Model.Layout())
	type part struct {
		name string
		into *[]float32
		want int
	}
	parts := []part{{"params", &s.params, size}, {"m", &s.m, size}, {"v", &s.v, size}, {"losses", &s.losses, s.step}}
	if j.Average {
		parts = append(parts, part{"average", &s.average, size})
	} else {
		s.average = make([]float32, size)
	}
	for _, part := range parts {
		values, _, err := safetensors.Get[float32](f, part.name)
		if err != nil {
			return state{}, fmt.Errorf("train: %s: %w", path, err)
		}
		if len(values) != part.want {
			return state{}, fmt.Errorf("train: %s has %d values of %s, want %d", path, len(values), part.name, part.want)
		}
		*part.into = values
	}
	return s, nil
}

// stage is the file of the state of a run that is made in stages; "" for others.
func (r Run) stage() string {
	if r.Job.Line == "" || r.Stages == "" {
		return ""
	}
	return filepath.Join(r.Stages, r.Job.Line+".safetensors")
}

// begin returns a run of which nothing has been made, or only earlier stages.
func (r Run) begin() (state, error) {
	path := r.stage()
	if path == "" {
		return r.Job.start(), nil
	}
	f, err := open(path)
	if errors.Is(err, os.ErrNotExist) {
		return r.Job.start(), nil
	}
	if err != nil {
		return state{}, err
	}
	if f.Metadata["line"] != r.Job.Line {
		return state{}, fmt.Errorf("train: %s is a stage of %q, want %q", path, f.Metadata["line"], r.Job.Line)
	}
	if step, err := strconv.Atoi(f.Metadata["step"]); err == nil && step > r.Job.Steps {
		return r.Job.start(), nil // a later stage
	}
	return r.Job.state(path, f)
}

// leaveStage keeps the state of a run for later stages, unless a later one's is there.
func (m *member) leaveStage() error {
	path := m.stage()
	if path == "" {
		return nil
	}
	if f, err := open(path); err == nil {
		if step, err := strconv.Atoi(f.Metadata["step"]); err == nil && step >= m.s.step {
			return nil
		}
	}
	if err := os.MkdirAll(m.Stages, 0o755); err != nil {
		return fmt.Errorf("train: %w", err)
	}
	return m.Job.saveState(path, m.s)
}

// saveWeights releases the weights of a run as it is now, named and shaped as
// in the network's Layout.
func (j Job) saveWeights(path string, s state) error {
	params := s.params
	if j.Average {
		params = s.average
	}
	f := &safetensors.File{Metadata: map[string]string{
		"config": string(j.Config), "config_sha256": j.Hash(), "step": strconv.Itoa(s.step),
	}}
	for _, t := range j.Model.Layout() {
		f.Tensors = append(f.Tensors, safetensors.Tensor{
			Name: t.Name, Shape: t.Shape, Data: params[t.Offset : t.Offset+t.Size()],
		})
	}
	if err := Seal(f); err != nil {
		return err
	}
	return safetensors.WriteFile(path, f)
}

// readWeights reads weights of this very job.
func (j Job) readWeights(path string) (step int, params []float32, err error) {
	config, step, params, err := ReadParams(path, func([]byte) ([]transformer.Tensor, error) { return j.Model.Layout(), nil })
	if err == nil && string(config) != string(j.Config) {
		err = fmt.Errorf("train: %s belongs to another configuration", path)
	}
	return step, params, err
}

// ReadParams reads weights that a Job released: its configuration, the step
// after which they were taken, and the flat parameter vector. The function layout says
// which parameters the model of the configuration has. It returns an error if the file
// has been changed since.
func ReadParams(path string, layout func(config []byte) ([]transformer.Tensor, error)) (config []byte, step int, params []float32, err error) {
	f, err := open(path)
	if err != nil {
		return nil, 0, nil, err
	}
	config = []byte(f.Metadata["config"])
	all, err := layout(config)
	if err != nil {
		return nil, 0, nil, fmt.Errorf("%w (in %s)", err, path)
	}
	if step, err = strconv.Atoi(f.Metadata["step"]); err != nil {
		return nil, 0, nil, fmt.Errorf("train: %s states no step", path)
	}
	params = make([]float32, size(all))
	for _, t := range all {
		values, _, err := safetensors.Get[float32](f, t.Name)
		if err != nil {
			return nil, 0, nil, fmt.Errorf("train: %s: %w", path, err)
		}
		if len(values) != t.Size() {
			return nil, 0, nil, fmt.Errorf("train: %s: tensor %q has %d values, want %d", path, t.Name, len(values), t.Size())
		}
		copy(params[t.Offset:], values)
	}
	return config, step, params, nil
}

// ReadParamsOf is ReadParams of a Job whose configuration is the JSON of a C. It refuses an
// invalid one.
func ReadParamsOf[C interface{ Validate() error }](path string, layout func(C) []transformer.Tensor) (C, int, []float32, error) {
	var c, none C
	_, step, params, err := ReadParams(path, func(config []byte) ([]transformer.Tensor, error) {
		err := json.Unmarshal(config, &c)
		if err == nil {
			err = c.Validate()
		}
		if err != nil {
			return nil, fmt.Errorf("train: not the weights that were asked for: of the configuration %.40s…: %w", config, err)
		}
		return layout(c), nil
	})
	if err != nil {
		return none, 0, nil, err
	}
	return c, step, params, nil
}

// ReadWeights reads weights that Train released: their configuration, the step
// after which they were taken, and the flat parameter vector. It returns an error when the
// file has been changed since.
func ReadWeights(path string) (c Config, step int, params []float32, err error) {
	return ReadNetwork[Config](path)
}
