package xie

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/baseline"
	"icrl/policyattention/seed"
	"icrl/policyattention/stats"
)

// off returns the largest difference of what the layer makes of the values v from the values next, in units
// of what rounding explains. A weight of the kernel is right to d² + n + 8 + 2·(largest score)·d² units in the
// last place (the score's rounding is an absolute error of its exponential; sum; quotient), a sum of n of
// them to n more, and both sides have it; the numbers added are at most the largest |v| and the largest
// sum of the parts of an error δ.
func (s Spec) off(t *testing.T, layer *Layer, c *Context, v, next []float64) float64 {
	from, want := testkit.Must(s.Prompt(c, v))(t), testkit.Must(s.Prompt(c, next))(t)
	var scores, difference mat.Dense
	scores.Product(c.X.T(), s.weights(), c.X)
	difference.Sub(layer.Apply(from), want)
	_, _, successor := s.rows()
	difference.Set(successor, s.N, 0) // the query has no successor and nothing reads this
	top := func(x []float64) float64 { return floats.Norm(x, math.Inf(1)) }
	size := max(top(v), top(next)) + s.Alpha*(top(c.R)+(1+s.Gamma)*top(v))
	units := 2 * (float64(s.D*s.D+2*s.N+8) + 2*top(scores.RawMatrix().Data)*float64(s.D*s.D))
	return top(difference.RawMatrix().Data) / (size * units * 0x1p-53)
}

// Each of forty layers of both forms is the algorithm's step to rounding; a step with a millionth more step
// size or discount, or with the kernel's weights transposed, is not. Over depth nothing but rounding adds up.
func TestEachLayerIsAStep(t *testing.T) {
	for _, form := range []Form{TwoHeads, OneHead} {
		rng := seed.New(1)
		c := &Context{baseline.NormalMatrix(3, 101, 1, rng), baseline.NormalMatrix(1, 100, 1, rng).RawRowView(0)}
		right := Spec{Form: form, D: 3, N: 100, Gamma: .9, Alpha: 1, W: baseline.NormalMatrix(3, 3, .6, rng)}
		layer, v := testkit.Must(right.Layer())(t), make([]float64, 101)
		z := testkit.Must(right.Prompt(c, v))(t)
		_, current, _ := right.rows()
		for l := range 40 {
			faster, farther, transposed := right, right, right
			faster.Alpha, farther.Gamma, transposed.W = 1+1e-6, .9+1e-6, mat.DenseCopyOf(right.W.T())
			next := testkit.Must(right.Step(c, v))(t)
			if e := right.off(t, layer, c, v, next); !(e <= 1) {
				t.Errorf("%s, layer %d: off by %.3g times its rounding", form, l, e)
			}
			for i, wrong := range []Spec{faster, farther, transposed} {
				if e := right.off(t, layer, c, v, testkit.Must(wrong.Step(c, v))(t)); l == 1 && e < 100 {
					t.Errorf("%s: wrong step %d is off by %.3g times the rounding only", form, i, e)
				}
			}
			z, v = layer.Apply(z), next
			if e := floats.Distance(z.RawRowView(current), v, math.Inf(1)); e > 1e-10*(1+floats.Norm(v, math.Inf(1))) {
				t.Errorf("%s, layer %d: error %.3g over depth", form, l, e)
			}
		}
	}
}

// A step by hand: x = 0, so that K(j, k) = 1/2 of two transitions; R = 1, 3, v = 2, 4, 8, γ = 1/2: δ = 1 + 2 − 2
// and 3 + 4 − 4, so every value rises by (1 + 3)/2.
func TestStepByHand(t *testing.T) {
	c, v, want := &Context{mat.NewDense(1, 3, nil), []float64{1, 3}}, []float64{2, 4, 8}, []float64{4, 6, 10}
	for _, form := range []Form{TwoHeads, OneHead} {
		spec := Spec{Form: form, D: 1, N: 2, Gamma: .5, Alpha: 1}
		z := testkit.Must(spec.Layer())(t).Apply(testkit.Must(spec.Prompt(c, v))(t))
		_, current, successor := spec.rows()
		if got := testkit.Must(spec.Step(c, v))(t); !floats.Equal(got, want) {
			t.Errorf("v = %v, want %v", got, want)
		}
		if !floats.Equal(z.RawRowView(current), want) || !floats.Equal(z.RawRowView(successor)[:2], want[1:]) {
			t.Errorf("%s: the layer has %v", form, mat.Formatted(z))
		}
	}
}

// kernel returns M [S, S]: row s is the softmax of ⟨x(s), x(u)⟩ weighted by weight(u).
func kernel(x *mat.Dense, weight []float64) *mat.Dense {
	var m mat.Dense
	m.Mul(x, x.T())
	for s := range weight {
		row := m.RawRowView(s)
		floats.AddConst(-floats.Max(row), row)
		for u := range row {
			row[u] = weight[u] * math.Exp(row[u])
		}
		floats.Scale(1/floats.Sum(row), row)
	}
	return &m
}

// table makes layers of the algorithm with α = 1 on a table of states, from zero, where transitions from s
// move by the mean error r(s) + γ Σ p(s, u) v(u) − v(s): ‖v_L − v‖∞ after each layer, over ‖v‖∞.
func table(
	p *baseline.Process, m *mat.Dense, next func(s int) []float64, layers int, exact []float64,
) (left []float64) {
	v, top := make([]float64, len(exact)), floats.Norm(exact, math.Inf(1))
	for range layers {
		delta := mat.NewVecDense(len(v), nil)
		for s := range v {
			delta.SetVec(s, p.Reward(s)+p.Gamma*floats.Dot(next(s), v)-v[s])
		}
		var moved mat.VecDense
		moved.MulVec(m, delta)
		floats.Add(v, moved.RawVector().Data)
		left = append(left, floats.Distance(v, exact, math.Inf(1))/top)
	}
	return left
}

// scaled draws chain k of 5 states and random unit features, times the length with which it has the margin c
// of Assumption 5.1: min_s M(s, s) = (1 + γ)/2 + c, M with the stationary distribution.
func scaled(t *testing.T, k int, gamma, c float64) (p *baseline.Process, x mat.Dense, exact, d []float64) {
	rng := seed.New(9, k)
	p = testkit.Must(baseline.Boyan(5, gamma, rng))(t)
	exact, d, err := p.Solve()
	testkit.Check(t, err)
	u := baseline.NormalMatrix(5, 5, 1, rng)
	for s := range 5 {
		floats.Scale(1/floats.Norm(u.RawRowView(s), 2), u.RawRowView(s))
	}
	for low, high := 0., 60.; high-low > 1e-10; {
		middle, least := (low+high)/2, 1.
		x.Scale(middle, u)
		for s, m := 0, kernel(&x, d); s < 5; s++ {
			least = min(least, m.At(s, s))
		}
		if least < (1+gamma)/2+c {
			low = middle
		} else {
			high = middle
		}
	}
	return p, x, exact, d
}

// Theorem 2: ‖v_L − v‖∞ ≤ (1 − C)^L ‖v_0 − v‖∞ + O(1/√n). Where its condition holds, C > 0, the
// error in the limit of long walks contracts so and even by 1 − 2C (‖I − M + γMP‖∞ ≤ 2(1 − min M(s,s))
// + γ), and what walks leave falls like n^{−1/2}: the exponent is fitted to three lengths and eight chains. The
// condition is sufficient, not necessary: where it just fails 128 layers still leave next to nothing, where it fails
// badly they do not.
func TestTheoremTwo(t *testing.T) {
	const chains, layers = 8, 128
	lengths := []float64{1000, 10_000, 100_000}
	for _, gamma := range []float64{.5, .9} {
		for _, c := range []float64{.04, -.04, -.4 * (1 + gamma)} {
			left, rest := 0., make([]float64, len(lengths))
			for k := range chains {
				p, x, exact, d := scaled(t, k, gamma, c)
				limit := table(p, kernel(&x, d), func(s int) []float64 { return p.Next(s, 0) }, layers, exact)
				left += limit[layers-1] / chains
				for l, e := range limit {
					if c > 0 && e > math.Pow(1-2*c, float64(l+1))+1e-13 { // rounding
						t.Errorf("γ = %v, C = %v: %v is left after %d layers", gamma, c, e, l+1)
					}
				}
				for i, n := range lengths {
					counts, seen := mat.NewDense(5, 5, nil), make([]float64, 5)
					walk := p.Walk(seed.New(9, k, "walk"), int(n))
					for j, s := range walk[:len(walk)-1] {
						counts.Set(s, walk[j+1], counts.At(s, walk[j+1])+1)
						seen[s]++
					}
					for s := range 5 {
						floats.Scale(1/max(1, seen[s]), counts.RawRowView(s))
					}
					rest[i] += table(p, kernel(&x, seen), counts.RawRowView, layers, exact)[layers-1] / chains
				}
			}
			if slope := stats.LogSlope(lengths, rest); c > 0 && (slope < -.7 || slope > -.3) {
				t.Errorf("γ = %v: the error left falls like n^%.2f (%v)", gamma, slope, rest)
			}
			if badly := c < -.1; badly != (left > 1e-4) {
				t.Errorf("γ = %v, C = %v: %v of the error is left after %d layers", gamma, c, left, layers)
			}
		}
	}
}

func TestRefusesBadInput(t *testing.T) {
	good := Spec{Form: OneHead, D: 1, N: 1, Gamma: .5, Alpha: 1}
	layer := func(change func(*Spec)) error {
		s := good
		change(&s)
		_, err := s.Layer()
		return err
	}
	step := func(c *Context, v ...float64) error { _, err := good.Step(c, v); return err }
	two := mat.NewDense(1, 2, nil)
	for want, err := range map[string]error{
		"features of a walk":          step(nil, 0, 0),
		"2 rewards":                   step(&Context{two, []float64{1, 1}}, 0, 0),
		"row 1, column 0":             step(&Context{two, []float64{math.NaN()}}, 0, 0),
		"row 2, column 1":             step(&Context{two, []float64{1}}, 0, math.Inf(1)),
		"and 1 values":                step(&Context{two, []float64{1}}, 0),
		"unknown form":                layer(func(s *Spec) { s.Form = "" }),
		"0 transitions":               layer(func(s *Spec) { s.N = 0 }),
		"discount is 1":               layer(func(s *Spec) { s.Gamma = 1 }),
		"step size is +Inf":           layer(func(s *Spec) { s.Alpha = math.Inf(1) }),
		"kernel's weights are [2, 2]": layer(func(s *Spec) { s.W = mat.NewDense(2, 2, nil) }),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one with %q", err, want)
		}
	}
}
