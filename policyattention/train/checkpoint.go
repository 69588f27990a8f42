package train

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strconv"

	"icrl/policyattention/safetensors"
)

// state is a run between two steps.
type state struct {
	step      int
	params    []float32
	m, v      []float32 // moments of AdamW
	losses    []float32 // one per step so far
	wall, cpu float64   // seconds spent, over all interruptions
}

// seal adds to the metadata the digest of everything else in the file.
func seal(f *safetensors.File) error {
	digest, err := digest(f)
	if err != nil {
		return err
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

// open reads a sealed file and the configuration it was made from.
func open(path string) (*safetensors.File, Config, error) {
	f, err := safetensors.ReadFile(path)
	if err != nil {
		return nil, Config{}, fmt.Errorf("train: %w", err)
	}
	want, err := digest(f)
	if err != nil {
		return nil, Config{}, fmt.Errorf("train: %s: %w", path, err)
	}
	if f.Metadata["sha256"] != want {
		return nil, Config{}, fmt.Errorf("train: %s has been changed: its digest is not the one it states", path)
	}
	var c Config
	if err := json.Unmarshal([]byte(f.Metadata["config"]), &c); err != nil {
		return nil, Config{}, fmt.Errorf("train: %s states no configuration: %w", path, err)
	}
	return f, c, nil
}

// saveState stores a run so that it can be resumed.
func (c Config) saveState(path string, s state) error {
	f := &safetensors.File{
		Metadata: map[string]string{
			"config": c.json(), "config_sha256": c.Hash(), "step": strconv.Itoa(s.step),
			"wall_seconds": strconv.FormatFloat(s.wall, 'g', -1, 64),
			"cpu_seconds":  strconv.FormatFloat(s.cpu, 'g', -1, 64),
		},
		Tensors: []safetensors.Tensor{
			{Name: "params", Shape: []int{len(s.params)}, Data: s.params},
			{Name: "m", Shape: []int{len(s.m)}, Data: s.m},
			{Name: "v", Shape: []int{len(s.v)}, Data: s.v},
			{Name: "losses", Shape: []int{len(s.losses)}, Data: s.losses},
		},
	}
	if err := seal(f); err != nil {
		return err
	}
	return safetensors.WriteFile(path, f)
}

// loadState reads a run of this very configuration.
func (c Config) loadState(path string) (state, error) {
	f, stored, err := open(path)
	if err != nil {
		return state{}, err
	}
	if stored.Hash() != c.Hash() {
		return state{}, fmt.Errorf("train: %s belongs to another configuration (%.12s, this is %.12s): use another folder", path, stored.Hash(), c.Hash())
	}
	var s state
	if s.step, err = strconv.Atoi(f.Metadata["step"]); err != nil || s.step < 0 || s.step > c.Steps {
		return state{}, fmt.Errorf("train: %s is at step %q of %d", path, f.Metadata["step"], c.Steps)
	}
	// Durations are for the record: unreadable ones count as zero.
	s.wall, _ = strconv.ParseFloat(f.Metadata["wall_seconds"], 64)
	s.cpu, _ = strconv.ParseFloat(f.Metadata["cpu_seconds"], 64)
	size := c.Network().Size()
	for _, part := range []struct {
		name string
		into *[]float32
		want int
	}{{"params", &s.params, size}, {"m", &s.m, size}, {"v", &s.v, size}, {"losses", &s.losses, s.step}} {
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

// saveWeights stores released weights, named and shaped as in the network's
// Layout.
func (c Config) saveWeights(path string, step int, params []float32) error {
	network := c.Network()
	f := &safetensors.File{Metadata: map[string]string{
		"config": c.json(), "config_sha256": c.Hash(), "step": strconv.Itoa(step),
	}}
	for _, t := range network.Layout() {
		f.Tensors = append(f.Tensors, safetensors.Tensor{
			Name: t.Name, Shape: t.Shape, Data: params[t.Offset : t.Offset+t.Size()],
		})
	}
	if err := seal(f); err != nil {
		return err
	}
	return safetensors.WriteFile(path, f)
}

// ReadWeights reads weights that Train released: their configuration, the step
// after which they were taken, and the flat parameter vector. It errs when the
// file has been changed since.
func ReadWeights(path string) (c Config, step int, params []float32, err error) {
	f, c, err := open(path)
	if err != nil {
		return Config{}, 0, nil, err
	}
	if err := c.Validate(); err != nil {
		return Config{}, 0, nil, fmt.Errorf("%w (in %s)", err, path)
	}
	if step, err = strconv.Atoi(f.Metadata["step"]); err != nil {
		return Config{}, 0, nil, fmt.Errorf("train: %s states no step", path)
	}
	network := c.Network()
	params = make([]float32, network.Size())
	for _, t := range network.Layout() {
		values, _, err := safetensors.Get[float32](f, t.Name)
		if err != nil {
			return Config{}, 0, nil, fmt.Errorf("train: %s: %w", path, err)
		}
		if len(values) != t.Size() {
			return Config{}, 0, nil, fmt.Errorf("train: %s: tensor %q has %d values, want %d", path, t.Name, len(values), t.Size())
		}
		copy(params[t.Offset:], values)
	}
	return c, step, params, nil
}
