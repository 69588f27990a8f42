package wang

import (
	"context"
	"fmt"

	"github.com/gomlx/compute"
	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/field/fit"
	"icrl/policyattention/field/mrp"
	"icrl/policyattention/seed"
)

// Training is everything that trained weights depend on, but for the backend's arithmetic.
type Training struct {
	Method string `json:"method"` // always "wang"
	Network
	States        int     `json:"states"`
	Gamma         float64 `json:"gamma"`
	Representable bool    `json:"representable"` // rewards such that the features represent the values
	Processes     int     `json:"processes"`     // Boyan chains, one after the other
	Batches       int     `json:"batches"`       // a process, each from a walk of its own
	Batch         int     `json:"batch"`         // TD errors a batch, of windows that slide by one
	Rate          float64 `json:"rate"`          // of Adam
	Decay         float64 `json:"decay"`         // L2 penalty, added to the gradient
	Seed          uint64  `json:"seed"`
}

const method = "wang"

// Recipe is the paper's standard setting. The text trains on 4,000 processes, the public
// code on 5,000 by default; 5,000 holds the first 4,000.
func Recipe(root uint64) Training {
	return Training{
		Method:  method,
		Network: Network{D: 4, N: 30, Layers: 3, Attention: Linear},
		States:  10, Gamma: .9, Processes: 4000, Batches: 5, Batch: 64, Rate: 1e-3, Decay: 1e-6, Seed: root,
	}
}

// Validate returns an error that names the first field that makes no sense.
func (t Training) Validate() error {
	switch {
	case t.Method != method:
		return fmt.Errorf("wang: method is %q, want %q", t.Method, method)
	case t.States < 3:
		return fmt.Errorf("wang: Boyan chains of %d states, want at least 3", t.States)
	case !(t.Gamma >= 0 && t.Gamma < 1):
		return fmt.Errorf("wang: discount is %v, want 0 ≤ γ < 1", t.Gamma)
	case t.Processes < 1 || t.Batches < 1 || t.Batch < 1:
		return fmt.Errorf("wang: %d processes, %d batches a process, %d errors a batch, want at least one of each", t.Processes, t.Batches, t.Batch)
	case !(t.Rate > 0 && t.Rate < 1e6 && t.Decay >= 0 && t.Decay < 1e6):
		return fmt.Errorf("wang: learning rate %v and decay %v, want a positive and a non-negative number", t.Rate, t.Decay)
	}
	return t.Network.validate()
}

// keptProcesses are the numbers of processes after which weights are kept.
var keptProcesses = []int{10, 100, 500, 1000, 2000, 3000, 4000, 5000}

// Trained is a network with its weights over training.
type Trained struct {
	Training
	After  []int       // numbers of processes, ascending
	Params [][]float64 // after each of them, see Network.Weights
	Losses []float64   // means since the one before of the squared TD error of the network plus that of TD(0)
}

// Schedule implements fit.Recipe.
func (t Training) Schedule() (processes, steps int) { return t.Processes, t.Batches }

// Run trains in the file path, see fit.Job.Run.
func (t Training) Run(ctx context.Context, on compute.Backend, path string) (*Trained, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	return trained(fit.RunProcesses(ctx, on, path, t, keptProcesses, fit.Job{
		Init: t.initial(seed.New(t.Seed, "wang", "weights")), Rate: t.Rate, Decay: t.Decay, Batch: t.batch, Loss: t.loss,
	}))
}

// Read reads a finished training.
func Read(path string) (*Trained, error) { return trained(fit.ReadProcesses[Training](path)) }

func trained(t *fit.Trained[Training], err error) (*Trained, error) {
	if err != nil {
		return nil, err
	}
	return &Trained{t.Recipe, t.After, t.Params, t.Losses}, nil
}

// process draws process i and its features [S, d].
func (t Training) process(i int) (*mrp.Process, *mat.Dense, error) {
	rng := seed.New(t.Seed, "wang", "process", i)
	features := mrp.Features(t.States, t.D, rng)
	process, err := mrp.Boyan(t.States, t.Gamma, rng)
	if err != nil || !t.Representable {
		return process, features, err
	}
	w := make([]float64, t.D)
	for j := range w {
		w[j] = rng.NormFloat64()
	}
	var v mat.VecDense
	v.MulVec(features, mat.NewVecDense(t.D, w))
	process, err = process.WithValues(v.RawVector().Data)
	return process, features, err
}

// batch returns the inputs of loss for a step: prompts [Batch+1, 2d+1, n+1] of windows that
// slide along one walk, and the rewards [Batch] of the queries but the last. The query is the
// state after the window's last successor, as in the public code.
func (t Training) batch(step int) ([]*tensors.Tensor, error) {
	process, features, err := t.process(step / t.Batches)
	if err != nil {
		return nil, err
	}
	walk := process.Walk(seed.New(t.Seed, "wang", "walk", step), t.N+1+t.Batch)
	prompts := make([]float64, 0, (t.Batch+1)*t.rows()*(t.N+1))
	rewards := make([]float64, t.Batch)
	for b := range t.Batch + 1 {
		c, err := Window(process, features, walk[b:b+t.N+1])
		if err != nil {
			return nil, err
		}
		query := walk[b+t.N+1]
		c.Queries.SetCol(0, features.RawRowView(query))
		z, err := c.Prompt(0)
		if err != nil {
			return nil, err
		}
		prompts = append(prompts, z.RawMatrix().Data...)
		if b < t.Batch {
			rewards[b] = process.R[query]
		}
	}
	return []*tensors.Tensor{
		tensors.FromFlatDataAndDimensions(prompts, t.Batch+1, t.rows(), t.N+1),
		tensors.FromFlatDataAndDimensions(rewards, t.Batch),
	}, nil
}

// loss builds the mean squared TD error with detached targets, of the network and, added to
// it, of the TD(0) that is fitted beside: they share no parameter.
func (t Training) loss(params *Node, batch []*Node) *Node {
	values, td := t.graph(params, batch[0])
	rewards := batch[1]
	squared := func(v *Node) *Node {
		target := Add(rewards, MulScalar(StopGradient(SliceAxis(v, 0, AxisRange(1))), t.Gamma))
		return ReduceAllMean(Square(Sub(target, SliceAxis(v, 0, AxisRange(0, t.Batch)))))
	}
	return Add(squared(values), squared(td))
}
