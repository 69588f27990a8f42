package baseline

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"icrl/policyattention/seed"
)

// Recipe is how a network of some hundred parameters learns to evaluate: on one Boyan chain after another, by TD
// errors of windows that slide along a walk.
type Recipe struct {
	States    int
	D         int // length of features
	N         int // transitions in a context
	Layers    int
	OneHot    bool // features are one-hot, D = States; else uniform on [−1, 1)
	Gamma     float64
	Processes int     // chains
	Batches   int     // a chain, each from a walk of its own
	Batch     int     // TD errors in a batch
	Rate      float64 // of Adam
	Decay     float64 // penalty Decay·‖params‖²/2, as torch's Adam has it; not AdamW's decay
	Seed      uint64
}

// WangRecipe is the setting of Wang et al. (their main.py and README).
func WangRecipe() Recipe {
	return Recipe{
		States: 10, D: 4, N: 30, Layers: 3, Gamma: .9,
		Processes: 4000, Batches: 5, Batch: 64, Rate: 1e-3, Decay: 1e-6, Seed: 1,
	}
}

// Validate reports the first field that makes no sense.
func (r Recipe) Validate() error {
	switch {
	case min(r.D, r.N, r.Layers, r.Processes, r.Batches, r.Batch) < 1:
		return fmt.Errorf("baseline: recipe %+v, want at least one of everything", r)
	case r.OneHot && r.D != r.States:
		return fmt.Errorf("baseline: one-hot features of length %d for %d states", r.D, r.States)
	case !(r.Gamma >= 0 && r.Gamma < 1):
		return fmt.Errorf("baseline: discount is %v, want 0 ≤ γ < 1", r.Gamma)
	case !(r.Rate > 0 && r.Rate < 1e6 && r.Decay >= 0 && r.Decay < 1e6):
		return fmt.Errorf("baseline: learning rate %v and decay %v, want a positive and a non-negative number", r.Rate,
			r.Decay)
	}
	return nil
}

// Process draws chain i and the features of its states [S, D].
func (r Recipe) Process(i int) (*Process, *mat.Dense, error) {
	rng := seed.New(r.Seed, "mrp", "process", i)
	features := UniformMatrix(r.States, r.D, rng)
	if r.OneHot {
		features = Identity(r.D)
	}
	p, err := Boyan(r.States, r.Gamma, rng)
	return p, features, err
}

// Fresh shows f chains that were not trained on, in features [S, D], with their exact values [S], their stationary
// distribution [S] and a walk [N+1]. They are drawn from a stream of a name.
func (r Recipe) Fresh(name string, chains int,
	f func(p *Process, features *mat.Dense, exact, stationary []float64, walk []int) error) error {
	r.Seed = seed.New(r.Seed, name, "likeness").Uint64()
	for k := range chains {
		var exact, stationary []float64
		p, features, err := r.Process(k)
		if err == nil {
			exact, stationary, err = p.Solve()
		}
		if err == nil {
			err = f(p, features, exact, stationary, p.Walk(seed.New(r.Seed, "walk", k), r.N))
		}
		if err != nil {
			return fmt.Errorf("%s: chain %d: %w", name, k, err)
		}
	}
	return nil
}

// Evaluator is a network that a recipe trains.
type Evaluator interface {
	// Prompt returns what a context of a walk's states [N+2] shows; the last is the query. All prompts have one shape.
	Prompt(p *Process, features *mat.Dense, walk []int) (*mat.Dense, error)
	// Values builds the values [B] of the queries of prompts [B, rows, columns]: each element of the list is one
	// network, which shares no parameter with the others.
	Values(params, prompts *graph.Node) []*graph.Node
}

// batch returns the prompts [Batch+1, rows, columns] of a step's windows, which slide along a walk, and the rewards
// [Batch] of the queries but the last.
func (r Recipe) batch(n Evaluator, step int) (prompts, rewards *tensors.Tensor, err error) {
	p, features, err := r.Process(step / r.Batches)
	if err != nil {
		return nil, nil, err
	}
	walk := p.Walk(seed.New(r.Seed, "mrp", "walk", step), r.N+1+r.Batch)
	var flat, earned []float64
	var rows, columns int
	for b := range r.Batch + 1 {
		z, err := n.Prompt(p, features, walk[b:][:r.N+2])
		if err != nil {
			return nil, nil, err
		}
		rows, columns = z.Dims()
		flat, earned = append(flat, z.RawMatrix().Data...), append(earned, p.Reward(walk[b+r.N+1]))
	}
	prompts = tensors.FromFlatDataAndDimensions(flat, r.Batch+1, rows, columns)
	return prompts, tensors.FromFlatDataAndDimensions(earned[:r.Batch], r.Batch), nil
}

// loss builds the mean squared TD errors of the queries, with detached targets.
func (r Recipe) loss(n Evaluator, params, prompts, rewards *graph.Node) *graph.Node {
	sum := graph.ScalarZero(params.Graph(), params.DType())
	for _, v := range n.Values(params, prompts) {
		next, now := graph.SliceAxis(v, 0, graph.AxisRange(1)), graph.SliceAxis(v, 0, graph.AxisRange(0, r.Batch))
		target := graph.Add(rewards, graph.MulScalar(graph.StopGradient(next), r.Gamma))
		sum = graph.Add(sum, graph.ReduceAllMean(graph.Square(graph.Sub(target, now))))
	}
	return sum
}

// Train returns the parameters after training from params, in float64. When ctx is done it returns ctx's cause; the
// other errors are those of the recipe, and a loss that is not finite.
func (r Recipe) Train(ctx context.Context, on compute.Backend, n Evaluator, params []float64) ([]float64, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	store := model.NewStore()
	variable := store.RootScope().VariableWithValue("params", params)
	adam := optimizer.Adam().LearningRate(r.Rate).Epsilon(1e-8).Done()
	exec, err := model.NewExec(on, store, func(scope *model.Scope, in []*graph.Node) *graph.Node {
		scope.SetTraining(in[0].Graph(), true) // else a backend may take the variable for a constant
		p := variable.NodeValue(in[0].Graph())
		loss := r.loss(n, p, in[0], in[1])
		penalty := graph.MulScalar(graph.ReduceAllSum(graph.Square(p)), r.Decay/2)
		adam.UpdateGraph(scope, p.Graph(), graph.Add(loss, penalty))
		return loss
	})
	if err != nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	defer exec.Finalize()
	for step := range r.Processes * r.Batches {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		prompts, rewards, err := r.batch(n, step)
		if err != nil {
			return nil, fmt.Errorf("baseline: step %d: %w", step, err)
		}
		out, err := exec.Call1(prompts, rewards)
		if err != nil {
			return nil, fmt.Errorf("baseline: step %d: %w", step, err)
		}
		if loss := tensors.ToScalar[float64](out); math.IsNaN(loss) || math.IsInf(loss, 0) {
			return nil, fmt.Errorf("baseline: step %d: the loss is %v", step, loss)
		}
	}
	trained, err := variable.Value()
	if err != nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	return tensors.CopyFlatData[float64](trained)
}

// Trainer trains one of Variants, of which the first is the paper's, and measures the weights; nothing is stored.
type Trainer struct {
	Variants []string
	Train    func(context.Context, compute.Backend, Training) ([]Number, error)
}

// Training is what a Trainer is told.
type Training struct {
	Variant   string
	Seed      uint64 // the first of Seeds
	Seeds     int
	Processes int // that are trained on, one after the other; 0 for as many as in the paper
}

// Number is a measured number, and where there is one, the paper's or what the algorithm has.
type Number struct {
	Quantity  string  `json:"quantity"`
	Here      float64 `json:"here"`
	Error     float64 `json:"standard_error,omitempty"` // of Here, over seeds; 0 for one seed
	Published float64 `json:"published,omitempty"`
	Read      float64 `json:"read,omitempty"` // Published was read off a figure to ± this
}

// Numbers returns the quantities with the means over seeds of what a training with the recipe measures of each.
func (r Recipe) Numbers(
	t Training, quantities []Number, measure func(Recipe) ([]float64, error),
) ([]Number, error) {
	if t.Seeds < 1 {
		return nil, fmt.Errorf("baseline: %d seeds, want at least one", t.Seeds)
	}
	if t.Processes != 0 {
		r.Processes = t.Processes
	}
	all, values := slices.Clone(quantities), make([][]float64, len(quantities))
	for i := range t.Seeds {
		r.Seed = t.Seed + uint64(i)
		x, err := measure(r)
		if err != nil {
			return nil, err
		}
		for i := range all {
			values[i] = append(values[i], x[i])
		}
	}
	for i, x := range values {
		mean, deviation := stat.MeanStdDev(x, nil)
		all[i].Here = mean
		if t.Seeds > 1 {
			all[i].Error = stat.StdErr(deviation, float64(t.Seeds))
		}
	}
	return all, nil
}
