package lianglai

import (
	"encoding/json"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/safetensors"
	"icrl/policyattention/train"
)

// write stores a trained block with its recipe: "P" and "V" [d, d] and "loss"
// [Steps], all float64, and the recipe as JSON under "config".
func (t Config) write(path string, trained *Trained) error {
	block := func(name string, m *mat.Dense) safetensors.Tensor {
		rows, cols := m.Dims()
		return safetensors.Tensor{Name: name, Shape: []int{rows, cols}, Data: m.RawMatrix().Data}
	}
	f := &safetensors.File{Metadata: map[string]string{"config": string(train.JSON(t))}, Tensors: []safetensors.Tensor{
		block("P", trained.Block.P), block("V", trained.Block.V),
		{Name: "loss", Shape: []int{len(trained.Loss)}, Data: trained.Loss},
	}}
	return safetensors.WriteFile(path, f)
}

// read reads what write stored. It returns an error on tensors of other shapes or with numbers
// that are not finite.
func read(path string) (t Config, trained *Trained, err error) {
	f, err := safetensors.ReadFile(path)
	if err != nil {
		return t, nil, fmt.Errorf("lianglai: %w", err)
	}
	if err = json.Unmarshal([]byte(f.Metadata["config"]), &t); err == nil {
		err = t.Validate()
	}
	if err != nil {
		return t, nil, fmt.Errorf("lianglai: %s states no recipe: %w", path, err)
	}
	d, parts := NewActorCriticPrompt(t.States, t.Actions).width, [3][]float64{}
	for i, name := range []string{"P", "V", "loss"} {
		size := []int{d * d, d * d, t.Steps}[i]
		parts[i], _, err = safetensors.Get[float64](f, name)
		norm := floats.Norm(parts[i], math.Inf(1))
		if err == nil && (len(parts[i]) != size || math.IsInf(norm, 1) || floats.HasNaN(parts[i])) {
			err = fmt.Errorf("%d numbers, want %d that are finite", len(parts[i]), size)
		}
		if err != nil {
			return t, nil, fmt.Errorf("lianglai: tensor %q: %w (in %s)", name, err, path)
		}
	}
	block := &Block{P: mat.NewDense(d, d, parts[0]), V: mat.NewDense(d, d, parts[1])}
	return t, &Trained{Block: block, Loss: parts[2]}, nil
}
