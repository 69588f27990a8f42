package recipe

import (
	"fmt"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/internal/safetensors"
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

// tokensPerCall are about how many tokens a call takes: many to be worth it, and few, so
// that little is lost where few states are left.
const tokensPerCall, fewTokens = 1024, 128

// Forward implements [anymdp.Forward]. A call takes one of two numbers of states, so that
// two programs do for every number of actions.
func (m *Model) Forward(states [][][]float64) ([][]float64, error) {
	if len(states) == 0 {
		return nil, nil
	}
	actions := len(states[0])
	outputs := make([][]float64, 0, len(states))
	for len(states) > 0 {
		size := max(16, fewTokens/actions/16*16)
		if many := max(16, tokensPerCall/actions/16*16); len(states) > many/2 {
			size = many
		}
		some := states[:min(size, len(states))]
		states = states[len(some):]
		rows, err := m.call(some, size)
		if err != nil {
			return nil, fmt.Errorf("recipe: %w", err)
		}
		outputs = append(outputs, rows...)
	}
	return outputs, nil
}

// call takes states with the same number of actions through the program for size states.
func (m *Model) call(states [][][]float64, size int) ([][]float64, error) {
	actions := len(states[0])
	input := make([]float32, size*actions*anymdp.Features)
	for i, state := range states {
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
		return nil, err
	}
	rows := make([][]float64, len(states))
	err = tensors.ConstFlatData(output, func(values []float32) {
		for i := range rows {
			rows[i] = make([]float64, actions*anymdp.Outputs)
			for k := range rows[i] {
				rows[i][k] = float64(values[i*len(rows[i])+k])
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return rows, output.FinalizeAll()
}

// Settle returns weights of a training run in the form in which they are released. The
// loss sees outputs less those of the empty token only; here the head's bias is changed so
// that the empty token's are 0, and outputs can be taken as they are.
func Settle(weights []byte) ([]byte, error) {
	f, err := safetensors.Unmarshal(weights)
	if err != nil {
		return nil, fmt.Errorf("recipe: %w", err)
	}
	network, err := anymdp.NewNetwork(func(name string) ([]float32, error) {
		values, _, err := safetensors.Get[float32](f, name)
		return values, err
	})
	if err != nil {
		return nil, fmt.Errorf("recipe: %w", err)
	}
	empty, err := network.Vectors([][]float64{anymdp.Empty()})
	if err != nil {
		return nil, fmt.Errorf("recipe: %w", err)
	}
	bias, _, err := safetensors.Get[float32](f, "head.bias")
	if err != nil {
		return nil, fmt.Errorf("recipe: %w", err)
	}
	for k, v := range empty[0] {
		bias[k] = float32(float64(bias[k]) - v)
	}
	if err := train.Seal(f); err != nil {
		return nil, fmt.Errorf("recipe: %w", err)
	}
	return safetensors.Marshal(f)
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
