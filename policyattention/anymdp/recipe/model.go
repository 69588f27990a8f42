package recipe

import (
	"fmt"
	"slices"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/policyattention/anymdp"
	"icrl/policyattention/train"
	"icrl/policyattention/transformer"
	"icrl/policyattention/transformer/fused"
)

// Model is a trained network on a GoMLX backend.
type Model struct {
	Hash string // of the weights' configuration
	Step int

	network transformer.Config
	folded  []*tensors.Tensor
	fold    *Exec
	exec    *Exec
}

// Load reads the weights of a training run by this recipe.
func Load(b compute.Backend, path string) (*Model, error) {
	c, step, params, err := ReadWeights(path)
	if err != nil {
		return nil, err
	}
	m := &Model{Hash: c.Hash(), Step: step, network: c.Network()}
	m.fold, err = NewExec(b, func(params *Node) []*Node { return fused.Bind(m.network, params).Fold() })
	if err == nil {
		m.folded, err = m.fold.Call(tensors.FromFlatDataAndDimensions(params, len(params)))
	}
	if err == nil {
		m.exec, err = NewExec(b, func(in []*Node) *Node {
			tokens := in[len(in)-1]
			return fused.BindFolded(m.network, in[:len(in)-1]).Tail(tokens, tokens.Shape().Dimensions[1])
		})
	}
	if err != nil {
		m.Close()
		return nil, fmt.Errorf("recipe: %w", err)
	}
	return m, nil
}

// Close frees what the model holds on the device.
func (m *Model) Close() {
	for _, x := range m.folded {
		x.FinalizeAll() //nolint:errcheck // nothing is left to do about it
	}
	for _, e := range []*Exec{m.fold, m.exec} {
		if e != nil {
			e.Finalize()
		}
	}
}

// tokensPerCall is about how many tokens a call takes: enough to be worth it, and few enough
// that little is lost where few states are asked for.
const tokensPerCall = 256

// Forward implements [anymdp.Forward]. Every call takes the same number of states, so
// that what is computed for a state does not depend on how many others are asked for.
func (m *Model) Forward(states [][][]float64) ([][]float64, error) {
	if len(states) == 0 {
		return nil, nil
	}
	actions := len(states[0])
	size := max(16, tokensPerCall/actions/16*16)
	var outputs [][]float64
	for some := range slices.Chunk(states, size) {
		input := make([]float32, size*actions*anymdp.Features)
		for i, state := range some {
			for a, token := range state {
				for k, v := range token {
					input[(i*actions+a)*anymdp.Features+k] = float32(v)
				}
			}
		}
		var inputs []any
		for _, x := range m.folded {
			inputs = append(inputs, x)
		}
		output, err := m.exec.Call1(append(inputs, tensors.FromFlatDataAndDimensions(input, size, actions, anymdp.Features))...)
		if err != nil {
			return nil, fmt.Errorf("recipe: %w", err)
		}
		err = tensors.ConstFlatData(output, func(values []float32) {
			for i := range some {
				row := make([]float64, actions*anymdp.Outputs)
				for k := range row {
					row[k] = float64(values[i*len(row)+k])
				}
				outputs = append(outputs, row)
			}
		})
		if err != nil {
			return nil, fmt.Errorf("recipe: %w", err)
		}
		if err := output.FinalizeAll(); err != nil {
			return nil, fmt.Errorf("recipe: %w", err)
		}
	}
	return outputs, nil
}

// ReadWeights reads weights of a training run by this recipe: their configuration, the
// step after which they were taken, and the flat parameter vector.
func ReadWeights(path string) (c Config, step int, params []float32, err error) {
	_, step, params, err = train.ReadParams(path, func(config []byte) ([]transformer.Tensor, error) {
		if err := unmarshal(config, &c); err != nil {
			return nil, err
		}
		return c.Network().Layout(), c.Validate()
	})
	return c, step, params, err
}
