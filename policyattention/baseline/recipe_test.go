package baseline

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/mdp"
	"icrl/policyattention/seed"
)

// Values are the series Σ γᵏPᵏr, by repeated products (.9⁴⁰⁰ is 5·10⁻¹⁹). A walk of 4·10⁵ steps
// visits each state as often as the stationary distribution says, within five standard deviations of independent
// draws times 3 for their correlation. The chain has its shape.
func TestBoyan(t *testing.T) {
	p := testkit.Must(WangRecipe().Process(1))(t)
	v, d, err := p.Solve()
	testkit.Check(t, err)
	sum, factor := make([]float64, 10), 1.
	power := mat.NewDense(10, 10, nil)
	chain := mat.NewDense(10, 10, nil)
	for i := range 10 {
		power.Set(i, i, 1)
		chain.SetRow(i, p.Next(i, 0))
	}
	for range 400 {
		for i := range sum {
			for j := range sum {
				sum[i] += factor * power.At(i, j) * p.Reward(j, 0)
			}
		}
		var next mat.Dense
		next.Mul(power, chain)
		power, factor = &next, .9*factor
	}
	const n = 400_000
	counts := make([]float64, 10)
	for _, state := range p.Walk(seed.New(2), n) {
		counts[state] += 1. / n
	}
	for i := range 10 {
		if math.Abs(v[i]-sum[i]) > 1e-12 {
			t.Errorf("v(%d) = %v, the series gives %v", i, v[i], sum[i])
		}
		if math.Abs(counts[i]-d[i]) > 15*math.Sqrt(d[i]*(1-d[i])/n) {
			t.Errorf("state %d is visited with frequency %v, stationary %v", i, counts[i], d[i])
		}
		for j, x := range p.Next(i, 0) {
			if allowed := i == 9 || i == 8 && j == 9 || i < 8 && (j == i+1 || j == i+2); (x > 0) != allowed {
				t.Errorf("P(%d|%d) = %v", j, i, x)
			}
		}
	}
}

// Columns or rows, whichever are fewer, are orthonormal.
func TestOrthogonal(t *testing.T) {
	for _, d := range [][2]int{{7, 3}, {3, 7}, {5, 5}} {
		w := OrthogonalMatrix(d[0], d[1], seed.New(1))
		var gram mat.Dense
		if d[0] < d[1] {
			gram.Mul(w, w.T())
		} else {
			gram.Mul(w.T(), w)
		}
		n, _ := gram.Dims()
		if one := mat.NewDiagDense(n, slices.Repeat([]float64{1}, n)); !mat.EqualApprox(&gram, one, 1e-14) {
			t.Errorf("%v: the Gram matrix is %v", d, mat.Formatted(&gram))
		}
	}
}

// quadratic is a network of one query's features, v = φᵀw, whose prompt is the query.
type quadratic struct{ Recipe }

func (q quadratic) Start() []float64 { return append(make([]float64, q.D-3), 1, -2, 3) }

func (q quadratic) Prompt(p *Process, walk []int) (*mat.Dense, error) {
	return mat.NewDense(q.D, 1, slices.Clone(p.Features.RawRowView(walk[len(walk)-1]))), nil
}

func (q quadratic) Values(params, prompts *graph.Node) []*graph.Node {
	return []*graph.Node{graph.Einsum("bd,d->b", graph.Squeeze(prompts, 2), params)}
}

// Measure returns 1, 2 and 6 for the seeds 5, 6 and 7.
func (q quadratic) Measure([]float64) ([]float64, error) {
	return []float64{map[uint64]float64{5: 1, 6: 2, 7: 6}[q.Seed]}, nil
}

// Steps are those of Adam as torch writes it, with weight_decay added to the gradient (Kingma and Ba,
// algorithm 1), of semi-gradient TD(0), each made here by hand.
func TestTrainIsAdam(t *testing.T) {
	r := WangRecipe()
	r.D, r.N, r.Processes, r.Batches, r.Batch, r.Rate, r.Decay = 3, 4, 3, 2, 6, .05, .3
	n := quadratic{r}
	got := testkit.Must(r.Train(context.Background(), testkit.Backend(t), n))(t)
	x, m, v := n.Start(), make([]float64, 3), make([]float64, 3)
	for step := range 6 {
		prompts, rewards, err := r.batch(n, step)
		testkit.Check(t, err)
		phi, earned := tensors.MustCopyFlatData[float64](prompts), tensors.MustCopyFlatData[float64](rewards)
		g := make([]float64, 3)
		value := func(b int) (sum float64) {
			for i := range x {
				sum += x[i] * phi[3*b+i]
			}
			return sum
		}
		for b := range 6 {
			delta := earned[b] + .9*value(b+1) - value(b)
			for i := range g {
				g[i] -= 2 * delta * phi[3*b+i] / 6
			}
		}
		steps := float64(step + 1)
		for i := range x {
			g[i] += r.Decay * x[i]
			m[i], v[i] = .9*m[i]+.1*g[i], .999*v[i]+.001*g[i]*g[i]
		}
		for i := range x {
			x[i] -= r.Rate * (m[i] / (1 - math.Pow(.9, steps))) / (math.Sqrt(v[i]/(1-math.Pow(.999, steps))) + 1e-8)
		}
	}
	for i := range x {
		if math.Abs(got[i]-x[i]) > 1e-12 {
			t.Errorf("x[%d] = %v, want %v", i, got[i], x[i])
		}
	}
}

func TestRecipeRefuses(t *testing.T) {
	on, stop := testkit.Backend(t), errors.New("stop")
	stopped, cancel := context.WithCancelCause(context.Background())
	cancel(stop)
	train := func(ctx context.Context, change func(*Recipe)) error {
		r := WangRecipe()
		change(&r)
		_, err := r.Train(ctx, on, quadratic{r})
		return err
	}
	boyan := func(states int, gamma float64) error {
		_, err := Recipe{States: states, D: 1, Gamma: gamma}.Process(1)
		return err
	}
	two := testkit.Must(mdp.New(.5, mat.NewDense(2, 2, []float64{1, 0, 0, 1}), mat.NewDense(2, 1, nil)))(t)
	_, _, several := (&Process{MDP: two, Start: []float64{1, 0}}).Solve()
	for want, err := range map[string]error{
		"stop":                        train(stopped, func(*Recipe) {}),
		"at least one of everything":  train(t.Context(), func(r *Recipe) { r.Batches = 0 }),
		"of 2 states, want":           train(t.Context(), func(r *Recipe) { r.States = 2 }),
		"one-hot":                     train(t.Context(), func(r *Recipe) { r.OneHot = true }),
		"gamma is NaN":                train(t.Context(), func(r *Recipe) { r.Gamma = math.NaN() }),
		"learning rate 0":             train(t.Context(), func(r *Recipe) { r.Rate = 0 }),
		"of 2 states":                 boyan(2, .9),
		"gamma is 1":                  boyan(3, 1),
		"the stationary distribution": several,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one with %q", err, want)
		}
	}
}

// By hand: 1, 2, 6 have the mean 3 and the squared deviations 4 + 1 + 9, over 3·2.
func TestNumbers(t *testing.T) {
	network := func(r Recipe) Evaluator { return quadratic{r} }
	quantities, asked := []Number{{Quantity: "q", Published: 2}}, Training{Seed: 5, Seeds: 3, Processes: 1}
	got := testkit.Must(WangRecipe().Numbers(t.Context(), testkit.Backend(t), asked, quantities, network))(t)[0]
	if got.Here != 3 || math.Abs(got.Error-math.Sqrt(14./6)) > 1e-15 || got.Published != 2 {
		t.Errorf("%+v", got)
	}
}
