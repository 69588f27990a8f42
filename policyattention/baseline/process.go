package baseline

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/mdp"
)

// Process is a Markov reward process: an MDP with A = 1.
type Process struct {
	*mdp.MDP
	Start []float64 // [S], distribution of the first state
}

// Reward is the reward on leaving the state s.
func (p *Process) Reward(s int) float64 { return p.MDP.Reward(s, 0) }

// Solve returns the values v [S], v = r + γPv, and the stationary distribution d [S], dᵀP = dᵀ. It returns an
// error if there is more than one.
func (p *Process) Solve() (v, d []float64, err error) {
	values, err := p.PolicyValue(mdp.UniformPolicy(p.States(), 1))
	if err != nil {
		return nil, nil, fmt.Errorf("baseline: %w", err)
	}
	n := p.States()
	// dᵀ(I − P) = 0, with the last equation, which the others imply, replaced by Σd = 1.
	a, b := mat.NewDense(n, n, nil), mat.NewVecDense(n, nil)
	for i := range n {
		for j, x := range p.Next(i, 0) {
			a.Set(j, i, -x)
		}
		a.Set(i, i, 1+a.At(i, i))
		a.Set(n-1, i, 1)
	}
	b.SetVec(n-1, 1)
	var stationary mat.VecDense
	if err := stationary.SolveVec(a, b); err != nil {
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

// Boyan draws a Boyan chain (Wang et al., Algorithm 2): from state i to i+1 with a probability uniform on [.01, .99),
// else to i+2; from the last but one to the last; from the last to any state, with probabilities proportional to
// numbers uniform on [.01, .99), as are those of the first state. Rewards are uniform on [−1, 1).
func Boyan(states int, gamma float64, rng *rand.Rand) (*Process, error) {
	if states < 3 {
		return nil, fmt.Errorf("baseline: a Boyan chain of %d states, want at least 3", states)
	}
	p := mat.NewDense(states, states, nil)
	for i := range states - 2 {
		forward := .01 + .98*rng.Float64()
		p.Set(i, i+1, forward)
		p.Set(i, i+2, 1-forward)
	}
	p.Set(states-2, states-1, 1)
	proportional := func() []float64 {
		row := make([]float64, states)
		for i := range row {
			row[i] = .01 + .98*rng.Float64()
		}
		floats.Scale(1/floats.Sum(row), row)
		return row
	}
	p.SetRow(states-1, proportional())
	start := proportional()
	chain, err := mdp.New(gamma, p, UniformMatrix(states, 1, rng))
	return &Process{chain, start}, err
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
	rows, cols := z.Dims()
	for i := range rows {
		for j := range cols {
			if x := z.At(i, j); math.IsNaN(x) || math.IsInf(x, 0) {
				return fmt.Errorf("row %d, column %d of the prompt is %v, want a finite number", i, j, x)
			}
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
