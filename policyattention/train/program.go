package train

import (
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"golang.org/x/sync/errgroup"

	"icrl/policyattention/backend"
	"icrl/policyattention/transformer"
	"icrl/policyattention/transformer/fused"
)

// maxBatch is how many contexts a call of a program takes at most.
const maxBatch = 64

// maxCores is how many cores a program uses at most: each compiles it for itself.
const maxCores = 8

// program takes contexts through a network without changing it. On xla:cpu it shares
// them out to the processor cores; elsewhere the backend is its only core.
type program struct {
	network transformer.Config
	fold    *Exec // on the first core
	cores   []forwardCore
	cpu     bool
}

type forwardCore struct {
	*backend.Core
	forward *Exec
}

// weights are the folded parameters of a network on each core of a program: the first
// inputs of its calls.
type weights [][]any

func newProgram(b compute.Backend, c Config) (*program, error) {
	p := &program{network: c.Network(), cpu: backend.IsXLACPU(b)}
	n := maxCores
	if backend.IsGo(b) {
		n = 1 // it shares out a call itself
	}
	own, err := backend.Cores(b, n)
	if err != nil {
		return nil, err
	}
	for _, core := range own {
		p.cores = append(p.cores, forwardCore{Core: core})
	}
	p.fold, err = NewExec(own[0].Backend, func(params *Node) []*Node { return fused.Bind(p.network, params).Fold() })
	for i := 0; i < len(own) && err == nil; i++ {
		p.cores[i].forward, err = NewExec(own[i].Backend, func(in []*Node) *Node {
			folded, tokens := in[:len(in)-1], in[len(in)-1]
			return Squeeze(fused.BindFolded(p.network, folded).Tail(tokens, c.outputs(tokens.Shape().Dimensions[1])), -1)
		})
	}
	if err != nil {
		p.close()
		return nil, fmt.Errorf("train: %w", err)
	}
	return p, nil
}

// load folds a flat parameter vector and gives the result to all cores.
func (p *program) load(params []float32) (weights, error) {
	if len(params) != p.network.Size() {
		return nil, fmt.Errorf("train: %d parameters, want %d", len(params), p.network.Size())
	}
	for i, v := range params {
		if x := float64(v); math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("train: parameter %d is %v, want a finite number", i, v)
		}
	}
	all := make(weights, len(p.cores))
	var folded []*tensors.Tensor
	err := p.cores[0].Do(func() (err error) {
		folded, err = p.fold.Call(tensors.FromFlatDataAndDimensions(params, len(params)))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	for _, x := range folded {
		all[0] = append(all[0], x)
		for i := 1; i < len(all); i++ {
			own, err := x.LocalClone()
			if err != nil {
				return nil, fmt.Errorf("train: copying weights: %w", err)
			}
			all[i] = append(all[i], own)
		}
	}
	return all, nil
}

// forward returns the network's output for each state-action pair of n contexts,
// [n, S·A]; encode writes the tokens [tokens, features] of context i, at the same time
// as those of others.
func (p *program) forward(w weights, n, tokens int, encode func(i int, into []float32)) ([]float32, error) {
	batch := p.batch(n, tokens)
	outputs := make([][]float32, (n+batch-1)/batch) // by call
	var all errgroup.Group
	for k, core := range p.cores {
		if k >= len(outputs) {
			break
		}
		all.Go(func() error {
			return core.Do(func() (err error) {
				for call := k; call < len(outputs) && err == nil; call += len(p.cores) {
					first := call * batch
					outputs[call], err = p.call(core, w[k], min(batch, n-first), tokens, func(i int, into []float32) { encode(first+i, into) })
				}
				return err
			})
		})
	}
	if err := all.Wait(); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	return slices.Concat(outputs...), nil
}

// batch is how many of n contexts a call takes: on a CPU as many as make the work of
// all cores equal where n is at most maxBatch, and not more than fit into their caches
// (see maxTokens). More than maxBatch go by the program that is compiled for so many.
func (p *program) batch(n, tokens int) int {
	n = min(n, maxBatch)
	if !p.cpu {
		return n
	}
	calls := len(p.cores)
	for calls < maxParts && n*tokens > calls*maxTokens {
		calls *= 2
	}
	return (n + calls - 1) / calls
}

// padded is n or how many contexts more a call takes on a CPU, so that all its vectors
// of 16 tokens are full: a product's last, partial ones are summed in another order, and
// results would depend on the other contexts in the call.
func (p *program) padded(n, tokens int) int {
	if !p.cpu {
		return n
	}
	for n*tokens%16 != 0 {
		n++
	}
	return n
}

// call is forward for contexts that a core takes at once.
func (p *program) call(core forwardCore, folded []any, n, tokens int, encode func(i int, into []float32)) ([]float32, error) {
	size := tokens * p.network.Features
	input := make([]float32, p.padded(n, tokens)*size)
	for i := range n {
		encode(i, input[i*size:][:size])
	}
	batch := tensors.FromFlatDataAndDimensions(input, len(input)/size, tokens, p.network.Features)
	output, err := core.forward.Call1(append(slices.Clone(folded), batch)...)
	if err != nil {
		return nil, err
	}
	values, err := flat(output)
	if err != nil {
		return nil, err
	}
	return values[:n*len(values)*size/len(input)], output.FinalizeAll()
}

func (p *program) close() {
	if p.fold != nil {
		p.fold.Finalize()
	}
	for _, core := range p.cores {
		if core.forward != nil {
			core.forward.Finalize()
		}
		core.Close()
	}
}
