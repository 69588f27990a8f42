package baseline

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/gomlx/gomlx/ml/model"
	"github.com/gomlx/gomlx/ml/train/optimizer"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"icrl/policyattention/mdp"
	"icrl/policyattention/seed"
)

// Recipe is how a small network learns to evaluate: on Boyan chains, by TD errors of windows that slide along a walk.
type Recipe struct {
	States, Layers   int
	D, N             int  // length of features, transitions in a context
	OneHot           bool // features are one-hot, D = States; else uniform on [−1, 1)
	Gamma            float64
	Processes, Fresh int     // chains that are trained on, and others that weights are measured on
	Batches, Batch   int     // a chain, each from a walk of its own; TD errors in a batch
	Rate             float64 // of Adam
	Decay            float64 // penalty Decay·‖params‖²/2, as torch's Adam has it; not AdamW's decay
	Seed             uint64
}

// WangRecipe is the setting of Wang et al. (their main.py and README).
func WangRecipe() Recipe {
	return Recipe{States: 10, D: 4, N: 30, Layers: 3, Gamma: .9,
		Processes: 4000, Fresh: 32, Batches: 5, Batch: 64, Rate: 1e-3, Decay: 1e-6, Seed: 1}
}

// Validate reports the first field that makes no sense; Process reports those of the chain.
func (r Recipe) Validate() error {
	switch {
	case min(r.D, r.N, r.Layers, r.Processes, r.Fresh, r.Batches, r.Batch) < 1:
		return fmt.Errorf("baseline: recipe %+v, want at least one of everything", r)
	case r.OneHot && r.D != r.States:
		return fmt.Errorf("baseline: one-hot features of length %d for %d states", r.D, r.States)
	case !(r.Rate > 0 && r.Rate < 1e6 && r.Decay >= 0 && r.Decay < 1e6):
		return fmt.Errorf("baseline: learning rate %v and decay %v, want numbers > 0 and ≥ 0", r.Rate, r.Decay)
	}
	return nil
}

// EachFresh shows f the chains that were not trained on, with their exact values [S], their stationary distribution [S]
// and a walk [N+1]. They are drawn from a stream of a name.
func (r Recipe) EachFresh(name string, f func(p *Process, exact, stationary []float64, walk []int) error) error {
	r.Seed = seed.New(r.Seed, name, "likeness").Uint64()
	for k := range r.Fresh {
		var exact, stationary []float64
		p, err := r.Process(k)
		if err == nil {
			exact, stationary, err = p.Solve()
		}
		if err == nil {
			err = f(p, exact, stationary, p.Walk(seed.New(r.Seed, "walk", k), r.N))
		}
		if err != nil {
			return fmt.Errorf("%s: chain %d: %w", name, k, err)
		}
	}
	return nil
}

// Evaluator is a network that a recipe trains.
type Evaluator interface {
	// Start draws the parameters before training.
	Start() []float64
	// Prompt returns what a context of a walk's states [N+2] shows; the last is the query. All prompts have one shape.
	Prompt(p *Process, walk []int) (*mat.Dense, error)
	// Values builds the values [B] of the queries of prompts [B, rows, columns]: each element of the list is one
	// network, which shares no parameter with the others.
	Values(params, prompts *graph.Node) []*graph.Node
	// Measure returns numbers of trained parameters, on fresh chains.
	Measure(params []float64) ([]float64, error)
}

// batch returns the prompts [Batch+1, rows, columns] of a step's windows, and the rewards [Batch] of the first queries.
func (r Recipe) batch(n Evaluator, step int) (prompts, rewards *tensors.Tensor, err error) {
	p, err := r.Process(step / r.Batches)
	if err != nil {
		return nil, nil, err
	}
	walk := p.Walk(seed.New(r.Seed, "mrp", "walk", step), r.N+1+r.Batch)
	var flat, earned []float64
	var rows, columns int
	for b := range r.Batch + 1 {
		z, err := n.Prompt(p, walk[b:][:r.N+2])
		if err != nil {
			return nil, nil, err
		}
		rows, columns = z.Dims()
		flat, earned = append(flat, z.RawMatrix().Data...), append(earned, p.Reward(walk[b+r.N+1], 0))
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

// Train returns the parameters after training, in float64. When ctx is done it returns ctx's cause; the other errors
// are those of the recipe, and a loss that is not finite.
func (r Recipe) Train(ctx context.Context, on compute.Backend, n Evaluator) ([]float64, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	store := model.NewStore()
	variable := store.RootScope().VariableWithValue("params", n.Start())
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
		var out *tensors.Tensor
		if err == nil {
			out, err = exec.Call1(prompts, rewards)
		}
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

// Numbers returns the quantities with the means over seeds of what a network that is trained with the recipe measures.
func (r Recipe) Numbers(ctx context.Context, on compute.Backend, t Training, quantities []Number,
	network func(Recipe) Evaluator) ([]Number, error) {
	if t.Seeds < 1 {
		return nil, fmt.Errorf("baseline: %d seeds, want at least one", t.Seeds)
	}
	r.Processes = cmp.Or(t.Processes, r.Processes)
	all, values := slices.Clone(quantities), make([][]float64, len(quantities))
	for i := range t.Seeds {
		r.Seed = t.Seed + uint64(i)
		n := network(r)
		params, err := r.Train(ctx, on, n)
		if err != nil {
			return nil, err
		}
		measured, err := n.Measure(params)
		if err != nil {
			return nil, err
		}
		for i, x := range measured {
			values[i] = append(values[i], x)
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

// Process is a Markov reward process: an MDP with A = 1.
type Process struct {
	*mdp.MDP
	Start    []float64  // [S], distribution of the first state
	Features *mat.Dense // [S, D] of the states
}

// Solve returns the values v [S], v = r + γPv, and the only stationary distribution d [S], dᵀP = dᵀ, or an error.
func (p *Process) Solve() (v, d []float64, err error) {
	values, err := p.PolicyValue(mdp.UniformPolicy(p.States(), 1))
	if err != nil {
		return nil, nil, fmt.Errorf("baseline: %w", err)
	}
	// dᵀ(I − P) = 0, with the last equation, which the others imply, replaced by Σd = 1.
	n := p.States()
	var a mat.Dense
	a.Sub(Identity(n), p.DenseP().T())
	a.SetRow(n-1, slices.Repeat([]float64{1}, n))
	b, stationary := mat.NewVecDense(n, nil), new(mat.VecDense)
	b.SetVec(n-1, 1)
	if err := stationary.SolveVec(&a, b); err != nil {
		return nil, nil, fmt.Errorf("baseline: the stationary distribution: %w", err)
	}
	return values.RawMatrix().Data, stationary.RawVector().Data, nil
}

// Walk draws a first state and n transitions: the states [n+1].
func (p *Process) Walk(rng *rand.Rand, n int) []int {
	states := make([]int, n+1)
	states[0] = mdp.Sample(rng, p.Start)
	for i := range n {
		states[i+1] = mdp.Sample(rng, p.Next(states[i], 0))
	}
	return states
}

// Process draws features and Boyan chain i (Wang et al., Algorithm 2): from state s to s+1 with a probability uniform
// on [.01, .99), else to s+2; from the last but one to the last; from the last to any state, with probabilities
// proportional to numbers uniform on [.01, .99), as are those of the first state. Rewards are uniform on [−1, 1).
func (r Recipe) Process(i int) (*Process, error) {
	if r.States < 3 {
		return nil, fmt.Errorf("baseline: a Boyan chain of %d states, want at least 3", r.States)
	}
	rng, p := seed.New(r.Seed, "mrp", "process", i), mat.NewDense(r.States, r.States, nil)
	features := UniformMatrix(r.States, r.D, rng)
	if r.OneHot {
		features = Identity(r.D)
	}
	for s := range r.States - 2 {
		forward := .01 + .98*rng.Float64()
		p.Set(s, s+1, forward)
		p.Set(s, s+2, 1-forward)
	}
	p.Set(r.States-2, r.States-1, 1)
	proportional := func() []float64 {
		row := make([]float64, r.States)
		for i := range row {
			row[i] = .01 + .98*rng.Float64()
		}
		floats.Scale(1/floats.Sum(row), row)
		return row
	}
	p.SetRow(r.States-1, proportional())
	start := proportional()
	chain, err := mdp.New(r.Gamma, p, UniformMatrix(r.States, 1, rng))
	return &Process{chain, start, features}, err
}

// UniformMatrix draws a matrix [rows, cols] of numbers uniform on [−1, 1).
func UniformMatrix(rows, cols int, rng *rand.Rand) *mat.Dense {
	m := mat.NewDense(rows, cols, nil)
	m.Apply(func(_, _ int, _ float64) float64 { return 2*rng.Float64() - 1 }, m)
	return m
}

// Normal draws n independent normal numbers with mean 0.
func Normal(n int, deviation float64, rng *rand.Rand) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = deviation * rng.NormFloat64()
	}
	return x
}

// NormalMatrix draws a matrix [rows, cols] of them.
func NormalMatrix(rows, cols int, deviation float64, rng *rand.Rand) *mat.Dense {
	return mat.NewDense(rows, cols, Normal(rows*cols, deviation, rng))
}

// OrthogonalMatrix draws a matrix [rows, cols] with orthonormal rows or columns, whichever are fewer: the Q of a QR
// decomposition of a normal matrix with signs such that R's diagonal is positive.
func OrthogonalMatrix(rows, cols int, rng *rand.Rand) *mat.Dense {
	long, short := max(rows, cols), min(rows, cols)
	normal := NormalMatrix(long, short, 1, rng)
	var qr mat.QR
	qr.Factorize(normal)
	var q, r mat.Dense
	qr.QTo(&q)
	qr.RTo(&r)
	normal.Apply(func(i, j int, _ float64) float64 { return math.Copysign(q.At(i, j), q.At(i, j)*r.At(j, j)) }, normal)
	if rows < cols {
		return mat.DenseCopyOf(normal.T())
	}
	return normal
}

// Identity returns the matrix with n ones on its diagonal, and what more stands there.
func Identity(n int, more ...float64) *mat.Dense {
	list := append(slices.Repeat([]float64{1}, n), more...)
	return mat.DenseCopyOf(mat.NewDiagDense(len(list), list))
}

// Finite reports the first number of a prompt that is not finite.
func Finite(z *mat.Dense) error {
	_, cols := z.Dims()
	for i, x := range z.RawMatrix().Data {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("row %d, column %d of the prompt is %v, want a finite number", i/cols, i%cols, x)
		}
	}
	return nil
}

// Expect returns Σ_s weight(s)·(a(s) − b(s))², the squared error of a against b.
func Expect(weight, a, b []float64) float64 {
	sum := 0.0
	for i, w := range weight {
		sum += w * (a[i] - b[i]) * (a[i] - b[i])
	}
	return sum
}
