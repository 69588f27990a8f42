package mdp

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/seed"
)

// rational solves an MDP in exact rational arithmetic, which shares nothing with Optimal: its
// rows of P are divided by their sums, and policy iteration starts from a given policy.
type rational struct {
	*MDP
	terminal []bool
}

// rat returns x, exactly.
func rat(x float64) *big.Rat { return new(big.Rat).SetFloat64(x) }

// backup returns r + γ Σ P v for the pair i.
func (m rational) backup(i int, v []*big.Rat) *big.Rat {
	a := m.R.RawMatrix().Cols
	if m.terminal[i/a] {
		return new(big.Rat)
	}
	states, p := m.next.Row(i)
	sum, total := new(big.Rat), new(big.Rat)
	for k, t := range states {
		sum.Add(sum, new(big.Rat).Mul(rat(p[k]), v[t]))
		total.Add(total, rat(p[k]))
	}
	sum.Mul(sum.Quo(sum, total), rat(m.Gamma))
	return sum.Add(sum, rat(m.R.At(i/a, i%a)))
}

// under returns r^π + γ Σ P^π v of state s for the policy pi [S, A], its row divided by its sum.
func (m rational) under(pi *mat.Dense, s int, v []*big.Rat) *big.Rat {
	sum, total := new(big.Rat), new(big.Rat)
	for a, w := range pi.RawRowView(s) {
		if w != 0 {
			sum.Add(sum, new(big.Rat).Mul(rat(w), m.backup(s*len(pi.RawRowView(s))+a, v)))
			total.Add(total, rat(w))
		}
	}
	return sum.Quo(sum, total)
}

// solve solves (I − γP^π) v = r^π by Gauss–Jordan elimination.
func (m rational) solve(pi *mat.Dense) []*big.Rat {
	n := m.States()
	rows := make([][]*big.Rat, n)
	for s := range rows {
		rows[s] = make([]*big.Rat, n+1)
		unit := make([]*big.Rat, n)
		for t := range unit {
			unit[t] = new(big.Rat)
		}
		r := m.under(pi, s, unit)
		for t := range unit {
			unit[t] = rat(1)
			x := new(big.Rat).Sub(r, m.under(pi, s, unit)) // −γP(t|s)
			if unit[t] = new(big.Rat); s == t {
				x.Add(x, rat(1))
			}
			rows[s][t] = x
		}
		rows[s][n] = r
	}
	for k := range n {
		for p := k; p < n; p++ {
			if rows[p][k].Sign() != 0 {
				rows[k], rows[p] = rows[p], rows[k]
				break
			}
		}
		for t := n; t >= k; t-- {
			rows[k][t] = new(big.Rat).Quo(rows[k][t], rows[k][k])
		}
		for s := range rows {
			if f := rows[s][k]; s != k && f.Sign() != 0 {
				for t := k; t <= n; t++ {
					rows[s][t] = new(big.Rat).Sub(rows[s][t], new(big.Rat).Mul(f, rows[k][t]))
				}
			}
		}
	}
	v := make([]*big.Rat, n)
	for s := range v {
		v[s] = rows[s][n]
	}
	return v
}

// optimal returns V* [S] and which actions are optimal [S·A].
func (m rational) optimal(policy []int) (v []*big.Rat, best []bool) {
	n, a := m.R.Dims()
	for {
		v = m.solve(m.greedy(policy))
		best = make([]bool, n*a)
		changed := false
		for s := range n {
			top := new(big.Rat).Set(v[s])
			for j := range a {
				if !m.Exists(s, j) {
					continue
				}
				switch x := m.backup(s*a+j, v); x.Cmp(top) {
				case 1:
					top, policy[s], changed = x, j, true
				case 0:
					best[s*a+j] = true
				}
			}
		}
		if !changed {
			return v, best
		}
	}
}

// hard draws a small model of what breaks solvers: scales that differ, γ near 1, masks,
// absorbing states, ties, chains that are periodic or nearly apart.
func hard(rng *rand.Rand) Model {
	s, a := 1+rng.IntN(6), 1+rng.IntN(4)
	gammas := []float64{0, .5, .9, .99, .9999, 1 - 1e-6, 1 - 1e-9, 1 - 1e-12, 1 - 0x1p-52, rng.Float64()}
	m := Model{Gamma: gammas[rng.IntN(len(gammas))], R: mat.NewDense(s, a, nil), Normalize: true}
	if ends := rng.IntN(4); ends < 2 && s > 1 {
		if m.Terminal = []int{rng.IntN(s)}; ends == 0 {
			m.Gamma = 1
		}
	}
	scale := func() float64 { return math.Pow(10, -9+21*rng.Float64()) }
	whole, rows, whose := scale(), make([]float64, s), rng.IntN(4)
	for i := range rows {
		rows[i] = scale()
	}
	shape, masked, twice := rng.IntN(6), rng.IntN(3) == 0, a > 1 && rng.IntN(3) == 0
	for i := range s * a {
		if twice && i%a == a-1 { // an action that is there already
			states, p := m.P.Row(i - i%a)
			m.P.State, m.P.P = append(m.P.State, states...), append(m.P.P, p...)
			m.P.EndRow()
			m.R.Set(i/a, i%a, m.R.At(i/a, 0))
			continue
		}
		row := make([]float64, s)
		switch shape {
		case 0:
			dirichlet(rng, row)
		case 1: // deterministic, and so often tied or periodic
			row[rng.IntN(s)] = 1
		case 2:
			row[rng.IntN(s)] += .25
			row[rng.IntN(s)] += .75
		case 3: // nearly apart
			p := math.Pow(10, -15*rng.Float64())
			row[i/a] += 1 - p
			row[rng.IntN(s)] += p
		case 4: // as printed: to six digits
			dirichlet(rng, row)
			for t := range row {
				row[t] = math.Round(row[t]*1e6) / 1e6
			}
		case 5: // a line that often falls back
			row[min(i/a+1, s-1)] += .1
			row[max(i/a-1, 0)] += .9
		}
		if m.Gamma == 1 {
			row[m.Terminal[0]] += .125
		}
		for t, p := range row {
			if p != 0 {
				m.P.Add(t, p/map[bool]float64{true: 1.125, false: 1}[m.Gamma == 1])
			}
		}
		m.P.EndRow()
		r := float64(rng.IntN(7) - 3)
		if rng.IntN(2) == 0 {
			r = 2*rng.Float64() - 1
		}
		r *= []float64{1, whole, rows[i/a], scale()}[whose]
		if masked && i%a > 0 && rng.IntN(3) == 0 {
			r = math.Inf(-1)
		}
		m.R.Set(i/a, i%a, r)
	}
	return m
}

// TestRational holds Optimal and PolicyValue against exact rational arithmetic: the values of
// every state within 1e-9 of max(1, |V|) and, of V*, within the error that is stated, and the same
// optimal actions.
func TestRational(t *testing.T) {
	n := 1000
	if testing.Short() {
		n = 200
	}
	for i := range n {
		rng := seed.New(50, "rational", i)
		model := hard(rng)
		m, err := model.Build()
		if err != nil {
			t.Errorf("problem %d was refused: %v", i, err)
			continue
		}
		got, err := m.Optimal()
		if err != nil {
			t.Errorf("problem %d (γ = %v): %v", i, model.Gamma, err)
			continue
		}
		exact := rational{m, m.isTerminal()}
		want, best := exact.optimal(slices.Clone(got.Policy))
		if s, share := got.Uncertain(); !(share < 1e-9) {
			t.Errorf("problem %d (γ = %v), state %d: certain to %.2g of %v", i, model.Gamma, s, share, got.V[s])
		}
		for s, v := range want {
			if off, size := distance(v, got.V[s]); off > 1e-9*size || off > got.Error[s] {
				t.Errorf("problem %d (γ = %v), state %d: V* = %v, off by %.2g, said %.2g",
					i, model.Gamma, s, got.V[s], off, got.Error[s])
			}
			for a := range m.Actions() {
				// With γ that near 1 and scales 1e21 apart, advantages can be below 1e-30 of values.
				is := best[s*m.Actions()+a]
				if unresolved := m.Gamma > 1-1e-8 && m.Gamma < 1; got.Optimal(s, a) != is && (is || !unresolved) {
					t.Errorf("problem %d (γ = %v), state %d, action %d: optimal %v, want %v",
						i, model.Gamma, s, a, got.Optimal(s, a), is)
				}
			}
		}
		pi := m.Uniform()
		pi.Apply(func(s, _ int, w float64) float64 { return w * math.Pow(rng.Float64(), 30) }, pi)
		for s := range pi.RawMatrix().Rows {
			row := pi.RawRowView(s)
			floats.Scale(1/floats.Sum(row), row)
		}
		most := 0.0
		for s, v := range want {
			off, _ := new(big.Rat).Sub(v, exact.under(pi, s, want)).Float64()
			most = max(most, off)
		}
		if missed := got.Missed(pi); math.Abs(missed-most) > 1e-9*most+1e-25*floats.Norm(got.V, math.Inf(1)) {
			t.Errorf("problem %d (γ = %v): a policy loses %v in a state at once, said %v", i, model.Gamma, most, missed)
		}
		q, err := m.PolicyValue(pi)
		if err != nil {
			t.Errorf("problem %d (γ = %v): %v", i, model.Gamma, err)
			continue
		}
		v := exact.solve(pi)
		for k := range best {
			if s, a := k/m.Actions(), k%m.Actions(); m.Exists(s, a) {
				if off, size := distance(exact.backup(k, v), q.At(s, a)); off > 1e-9*size {
					t.Errorf("problem %d (γ = %v), state %d, action %d: Q^π = %v, off by %.2g",
						i, model.Gamma, s, a, q.At(s, a), off)
				}
			}
		}
	}
}

// distance returns |want − got|, and max(1, |want|).
func distance(want *big.Rat, got float64) (off, size float64) {
	off, _ = new(big.Rat).Sub(want, rat(got)).Float64()
	size, _ = want.Float64()
	return math.Abs(off), max(1, math.Abs(size))
}

// TestRationalBlocks has many small problems side by side as one large one, which is solved by
// iteration: each must come out as it does alone, exactly, whatever the scale of its neighbours.
func TestRationalBlocks(t *testing.T) {
	blocks := map[float64][]Model{}
	for i := range 5000 {
		model := hard(seed.New(51, "blocks", i))
		if g := model.Gamma; len(blocks[g]) < 180 && model.Terminal == nil == (g < 1) {
			blocks[g] = append(blocks[g], model)
		}
	}
	for _, gamma := range []float64{.99, 1 - 1e-9, 1 - 0x1p-52, 1} {
		models := blocks[gamma]
		whole, states, actions := Model{Gamma: gamma, Normalize: true}, 0, 4
		var rewards []float64
		for _, x := range models {
			s, a := x.R.Dims()
			for i := range s * actions {
				r := math.Inf(-1)
				if i%actions < a {
					r = x.R.At(i/actions, i%actions)
					next, p := x.P.Row(i/actions*a + i%actions)
					for k, to := range next {
						whole.P.Add(states+int(to), p[k])
					}
				}
				rewards = append(rewards, r)
				whole.P.EndRow()
			}
			for _, end := range x.Terminal {
				whole.Terminal = append(whole.Terminal, states+end)
			}
			states += s
		}
		whole.R = mat.NewDense(states, actions, rewards)
		got := testkit.Must(testkit.Must(whole.Build())(t).Optimal())(t)
		if _, share := got.Uncertain(); !(share < 1e-9) || len(got.V) <= direct {
			t.Errorf("γ = %v: %d states, certain to %.2g", gamma, len(got.V), share)
		}
		at := 0
		for k, x := range models {
			m := testkit.Must(x.Build())(t)
			n, a := m.R.Dims()
			want, best := rational{m, m.isTerminal()}.optimal(m.anyPolicy())
			for s, v := range want {
				if off, size := distance(v, got.V[at+s]); off > 1e-9*size || off > got.Error[at+s] {
					t.Errorf("γ = %v, block %d, state %d: V* = %v, off by %.2g, said %.2g", gamma, k, s, got.V[at+s],
						off, got.Error[at+s])
				}
				for j := range a {
					if best[s*a+j] && !got.Optimal(at+s, j) {
						t.Errorf("γ = %v, block %d, state %d: action %d is optimal", gamma, k, s, j)
					}
				}
			}
			at += n
		}
	}
}
