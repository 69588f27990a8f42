package lianglai

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/safetensors"
)

// Write stores a trained block with its recipe: "P" and "V" [d, d] and "loss"
// [Steps], all float64, the recipe as JSON under "config", and under "rate" that
// of the optimizer where restarts have lowered it.
func (t Config) Write(path string, trained *Trained) error {
	config, err := json.Marshal(t)
	if err != nil {
		return fmt.Errorf("lianglai: %w", err)
	}
	block := func(name string, m *mat.Dense) safetensors.Tensor {
		rows, cols := m.Dims()
		return safetensors.Tensor{Name: name, Shape: []int{rows, cols}, Data: m.RawMatrix().Data}
	}
	f := &safetensors.File{Metadata: map[string]string{"config": string(config)}, Tensors: []safetensors.Tensor{
		block("P", trained.Block.P), block("V", trained.Block.V),
		{Name: "loss", Shape: []int{len(trained.Loss)}, Data: trained.Loss},
	}}
	if trained.Rate != t.Rate {
		f.Metadata["rate"] = strconv.FormatFloat(trained.Rate, 'g', -1, 64)
	}
	return safetensors.WriteFile(path, f)
}

// Read reads what Write stored. It returns an error on tensors of other shapes or with numbers
// that are not finite.
func Read(path string) (t Config, trained *Trained, err error) {
	f, err := safetensors.ReadFile(path)
	if err != nil {
		return t, nil, fmt.Errorf("lianglai: %w", err)
	}
	if err := json.Unmarshal([]byte(f.Metadata["config"]), &t); err != nil {
		return t, nil, fmt.Errorf("lianglai: %s states no recipe: %w", path, err)
	}
	if err := t.Validate(); err != nil {
		return t, nil, fmt.Errorf("%w (in %s)", err, path)
	}
	prompt, err := NewActorCriticPrompt(t.States, t.Actions)
	if err != nil {
		return t, nil, err
	}
	d := prompt.Width()
	read := func(name string, size int) []float64 {
		values, _, e := safetensors.Get[float64](f, name)
		if e == nil && len(values) != size {
			e = fmt.Errorf("lianglai: tensor %q has %d values, want %d", name, len(values), size)
		}
		for i, v := range values {
			if e == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
				e = fmt.Errorf("lianglai: tensor %q has %v at %d, want finite numbers", name, v, i)
			}
		}
		if e != nil && err == nil {
			err = fmt.Errorf("%w (in %s)", e, path)
		}
		return values
	}
	p, v, loss := read("P", d*d), read("V", d*d), read("loss", t.Steps)
	if err != nil {
		return t, nil, err
	}
	rate := t.Rate
	if text, ok := f.Metadata["rate"]; ok {
		if rate, err = strconv.ParseFloat(text, 64); err != nil || !(rate > 0 && rate < t.Rate) {
			return t, nil, fmt.Errorf("lianglai: %s states the rate %q, want a number between 0 and the recipe's %v",
				path, text, t.Rate)
		}
	}
	return t, &Trained{Block: &Block{P: mat.NewDense(d, d, p), V: mat.NewDense(d, d, v)}, Loss: loss, Rate: rate}, nil
}
