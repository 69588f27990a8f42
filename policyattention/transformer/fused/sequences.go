package fused

import (
	"fmt"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"

	"icrl/policyattention/transformer"
)

// Sequences is a network with weights on a backend. It takes sequences of any length, those
// of one length together.
type Sequences struct {
	network transformer.Config
	folded  []*tensors.Tensor
	fold    *Exec
	exec    *Exec
}

// NewSequences returns the network of c with the flat parameters params [Size].
func NewSequences(b compute.Backend, c transformer.Config, params []float32) (*Sequences, error) {
	s := &Sequences{network: c}
	var err error
	s.fold, err = NewExec(b, func(params *Node) []*Node { return Bind(c, params).Fold() })
	if err == nil {
		s.exec, err = NewExec(b, func(in []*Node) *Node {
			tokens := in[len(in)-1]
			return BindFolded(c, in[:len(in)-1]).Tail(tokens, tokens.Shape().Dimensions[1])
		})
	}
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("fused: %w", err)
	}
	first, err := s.With(params)
	if err != nil {
		s.Close()
	}
	return first, err
}

// With returns the network of the same shape with other parameters, which shares what has
// been compiled.
func (s *Sequences) With(params []float32) (*Sequences, error) {
	folded, err := s.fold.Call(tensors.FromFlatDataAndDimensions(params, len(params)))
	if err != nil {
		return nil, fmt.Errorf("fused: %w", err)
	}
	return &Sequences{network: s.network, folded: folded, fold: s.fold, exec: s.exec}, nil
}

// Close frees what the network holds on the device, and the programs that others may share.
func (s *Sequences) Close() {
	for _, x := range s.folded {
		x.FinalizeAll() //nolint:errcheck // nothing is left to do about it
	}
	for _, e := range []*Exec{s.fold, s.exec} {
		if e != nil {
			e.Finalize()
		}
	}
}

// tokensPerCall are about how many tokens a call takes: many to be worth it, and few, so
// that little is lost where few sequences are left.
const tokensPerCall, fewTokens = 1024, 128

// Forward maps tokens [n][T][Features] of n sequences of one length to outputs
// [n][T·Outputs]. A call takes one of two numbers of sequences, so that two programs do for
// each length.
func (s *Sequences) Forward(sequences [][][]float64) ([][]float64, error) {
	if len(sequences) == 0 {
		return nil, nil
	}
	length := len(sequences[0])
	for i, sequence := range sequences {
		if len(sequence) == 0 || len(sequence) != length {
			return nil, fmt.Errorf("fused: sequence %d has %d tokens, the first has %d: want one length of at least 1", i, len(sequence), length)
		}
	}
	outputs := make([][]float64, 0, len(sequences))
	for len(sequences) > 0 {
		size := max(16, fewTokens/length/16*16)
		if many := max(16, tokensPerCall/length/16*16); len(sequences) > many/2 {
			size = many
		}
		some := sequences[:min(size, len(sequences))]
		sequences = sequences[len(some):]
		rows, err := s.call(some, size)
		if err != nil {
			return nil, fmt.Errorf("fused: %w", err)
		}
		outputs = append(outputs, rows...)
	}
	return outputs, nil
}

// call takes sequences of one length through the program for size of them.
func (s *Sequences) call(sequences [][][]float64, size int) ([][]float64, error) {
	length, features := len(sequences[0]), s.network.Features
	input := make([]float32, size*length*features)
	for i, sequence := range sequences {
		for t, token := range sequence {
			for k, v := range token {
				input[(i*length+t)*features+k] = float32(v)
			}
		}
	}
	var inputs []any
	for _, x := range s.folded {
		inputs = append(inputs, x)
	}
	output, err := s.exec.Call1(append(inputs, tensors.FromFlatDataAndDimensions(input, size, length, features))...)
	if err != nil {
		return nil, err
	}
	rows := make([][]float64, len(sequences))
	err = tensors.ConstFlatData(output, func(values []float32) {
		for i := range rows {
			rows[i] = make([]float64, length*s.network.Outputs)
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
