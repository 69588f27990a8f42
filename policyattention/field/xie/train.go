package xie

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
//
// The network is one layer with a shift, applied Layers times, under the paper's sparsity
// masks: of A the block of features [d, d] is trained and of V the row of values with its
// columns of reward, successor's value and value; all else stays zero. The paper's sizes are
// not known to us. These are Wang et al.'s, whose loss it is too: the squared TD error of the
// query's value with a detached target.
type Training struct {
	Method    string  `json:"method"`  // always "xie"
	OneHot    bool    `json:"one_hot"` // features are one-hot states, d = States; else uniform on [−1, 1)
	D         int     `json:"d"`
	N         int     `json:"n"` // transitions of a walk
	Layers    int     `json:"layers"`
	States    int     `json:"states"`
	Gamma     float64 `json:"gamma"`
	Processes int     `json:"processes"` // Boyan chains, one after the other
	Batches   int     `json:"batches"`   // a process, each from a walk of its own
	Batch     int     `json:"batch"`     // TD errors a batch, of windows that slide by one
	Rate      float64 `json:"rate"`      // of Adam
	Decay     float64 `json:"decay"`     // L2 penalty, added to the gradient
	Seed      uint64  `json:"seed"`
}

const method = "xie"

// Recipe has Wang et al.'s sizes.
func Recipe(root uint64) Training {
	return Training{
		Method: method, D: 4, N: 30, Layers: 3, States: 10, Gamma: .9,
		Processes: 4000, Batches: 5, Batch: 64, Rate: 1e-3, Decay: 1e-6, Seed: root,
	}
}

// Validate returns an error that names the first field that makes no sense.
func (t Training) Validate() error {
	switch {
	case t.Method != method:
		return fmt.Errorf("xie: method is %q, want %q", t.Method, method)
	case t.D < 1 || t.N < 1 || t.Layers < 1:
		return fmt.Errorf("xie: %d layers for %d transitions in features of length %d, want at least one of each", t.Layers, t.N, t.D)
	case t.OneHot && t.D != t.States:
		return fmt.Errorf("xie: one-hot features of length %d for %d states", t.D, t.States)
	case t.States < 3:
		return fmt.Errorf("xie: Boyan chains of %d states, want at least 3", t.States)
	case !(t.Gamma >= 0 && t.Gamma < 1):
		return fmt.Errorf("xie: discount is %v, want 0 ≤ γ < 1", t.Gamma)
	case t.Processes < 1 || t.Batches < 1 || t.Batch < 1:
		return fmt.Errorf("xie: %d processes, %d batches a process, %d errors a batch, want at least one of each", t.Processes, t.Batches, t.Batch)
	case !(t.Rate > 0 && t.Rate < 1e6 && t.Decay >= 0 && t.Decay < 1e6):
		return fmt.Errorf("xie: learning rate %v and decay %v, want a positive and a non-negative number", t.Rate, t.Decay)
	}
	return nil
}

// Weights are the free numbers of a layer.
type Weights struct {
	A                        *mat.Dense // [d, d]: a source k and a column j have the score x_kᵀ A x_j
	Reward, Successor, Value float64    // V's row of values; the algorithm has α, αγ, −α
}

// Size is the number of parameters: A, the three numbers of V, and the step size and the
// temperature of the algorithm that is fitted beside.
func (t Training) Size() int { return t.D*t.D + 5 }

// Weights returns those of the network.
func (t Training) Weights(params []float64) Weights {
	n := t.D * t.D
	return Weights{mat.NewDense(t.D, t.D, params[:n]), params[n], params[n+1], params[n+2]}
}

// Fitted returns weighted softmax TD with the step size and the temperature τ, W = τI, that
// were fitted on the same batches.
func (t Training) Fitted(params []float64) Spec {
	n := t.D * t.D
	w := mat.NewDense(t.D, t.D, nil)
	for i := range t.D {
		w.Set(i, i, params[n+4])
	}
	return Spec{Form: OneHead, D: t.D, N: t.N, Gamma: t.Gamma, Alpha: params[n+3], W: w}
}

// initial draws the network's parameters from N(0, .1²); the algorithm starts at α = τ = 1.
func (t Training) initial() []float64 {
	rng := seed.New(t.Seed, "xie", "weights")
	params := mrp.Normal(1, t.Size(), .1, rng).RawRowView(0)
	params[t.Size()-2], params[t.Size()-1] = 1, 1
	return params
}

// Layer returns the trained layer with all its zeros.
func (t Training) Layer(w Weights) (*Layer, error) {
	spec := Spec{Form: OneHead, D: t.D, N: t.N, Gamma: t.Gamma, Alpha: 1, W: mat.DenseCopyOf(w.A.T())}
	layer, err := spec.Layer()
	if err != nil {
		return nil, err
	}
	v := layer.Heads[0].V
	v.Set(spec.current(), spec.reward(), w.Reward)
	v.Set(spec.current(), spec.successor(), w.Successor)
	v.Set(spec.current(), spec.current(), w.Value)
	return layer, nil
}

// values builds the values [B] of the queries of walks x [B, d, n+1] with rewards r [B, n]. A
// layer changes values only, so the kernel is the same in all of them.
func (t Training) values(a, reward, successor, value, x, r *Node) *Node {
	sources := SliceAxis(x, 2, AxisRange(0, t.N))
	kernel := Softmax(Einsum("bki,bkj->bij", sources, Einsum("kl,blj->bkj", a, x)), 1) // [B, n, n+1]
	v := MulScalar(ReduceSum(x, 1), 0)                                                 // [B, n+1]
	for range t.Layers {
		delta := Add(Mul(r, reward), Add(Mul(SliceAxis(v, 1, AxisRange(1)), successor), Mul(SliceAxis(v, 1, AxisRange(0, t.N)), value)))
		v = Add(v, Einsum("bij,bi->bj", kernel, delta))
	}
	return Reshape(SliceAxis(v, 1, AxisRange(t.N)), -1)
}

// graph builds the values [B] of the queries by the network and by the fitted algorithm.
func (t Training) graph(params, x, r *Node) (network, algorithm *Node) {
	n := t.D * t.D
	number := func(i int) *Node { return Reshape(SliceAxis(params, 0, AxisRange(i, i+1)), 1, 1) }
	a := Reshape(SliceAxis(params, 0, AxisRange(0, n)), t.D, t.D)
	network = t.values(a, number(n), number(n+1), number(n+2), x, r)
	step := number(n + 3)
	scaled := Mul(DiagonalWithValue(ScalarOne(params.Graph(), params.DType()), t.D), number(n+4))
	return network, t.values(scaled, step, MulScalar(step, t.Gamma), Neg(step), x, r)
}

// loss builds the mean squared TD error with detached targets, of the network and, added to
// it, of the fitted algorithm: they share no parameter.
func (t Training) loss(params *Node, batch []*Node) *Node {
	network, algorithm := t.graph(params, batch[0], batch[1])
	squared := func(v *Node) *Node {
		target := Add(batch[2], MulScalar(StopGradient(SliceAxis(v, 0, AxisRange(1))), t.Gamma))
		return ReduceAllMean(Square(Sub(target, SliceAxis(v, 0, AxisRange(0, t.Batch)))))
	}
	return Add(squared(network), squared(algorithm))
}

// process draws process i and its features [S, d].
func (t Training) process(i int) (*mrp.Process, *mat.Dense, error) {
	rng := seed.New(t.Seed, "xie", "process", i)
	features := mrp.Features(t.States, t.D, rng)
	if t.OneHot {
		features.Zero()
		for s := range t.States {
			features.Set(s, s, 1)
		}
	}
	process, err := mrp.Boyan(t.States, t.Gamma, rng)
	return process, features, err
}

// batch returns the inputs of loss for a step: features [Batch+1, d, n+1] and rewards
// [Batch+1, n] of windows that slide along one walk, and the rewards [Batch] of the queries but
// the last.
func (t Training) batch(step int) ([]*tensors.Tensor, error) {
	process, features, err := t.process(step / t.Batches)
	if err != nil {
		return nil, err
	}
	walk := process.Walk(seed.New(t.Seed, "xie", "train", step), t.N+t.Batch)
	var x, r, query []float64
	for b := range t.Batch + 1 {
		c, err := Window(process, features, walk[b:b+t.N+1])
		if err != nil {
			return nil, err
		}
		x, r = append(x, c.X.RawMatrix().Data...), append(r, c.R...)
		if b < t.Batch {
			query = append(query, process.R[walk[b+t.N]])
		}
	}
	return []*tensors.Tensor{
		tensors.FromFlatDataAndDimensions(x, t.Batch+1, t.D, t.N+1),
		tensors.FromFlatDataAndDimensions(r, t.Batch+1, t.N),
		tensors.FromFlatDataAndDimensions(query, t.Batch),
	}, nil
}

// keptProcesses are the numbers of processes after which weights are kept.
var keptProcesses = []int{10, 100, 500, 1000, 2000, 3000}

// Trained is a network with its weights over training.
type Trained struct {
	Training
	After  []int       // numbers of processes, ascending
	Params [][]float64 // after each of them, see Training.Weights
	Losses []float64   // means since the one before of the squared TD error of the network plus that of the algorithm
}

// Schedule implements fit.Recipe.
func (t Training) Schedule() (processes, steps int) { return t.Processes, t.Batches }

// Run trains in the file path, see fit.Job.Run.
func (t Training) Run(ctx context.Context, on compute.Backend, path string) (*Trained, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	return trained(fit.RunProcesses(ctx, on, path, t, keptProcesses, fit.Job{
		Init: t.initial(), Rate: t.Rate, Decay: t.Decay, Batch: t.batch, Loss: t.loss,
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
