package mrp

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/seed"
)

func families(t *testing.T) map[string]*Process {
	t.Helper()
	boyan, err := Boyan(10, .9, seed.New(1, "boyan"))
	if err != nil {
		t.Fatal(err)
	}
	loop, err := Loop(7, .9, .5, seed.New(1, "loop"))
	if err != nil {
		t.Fatal(err)
	}
	return map[string]*Process{"boyan": boyan, "loop": loop}
}

func TestValuesAndStationary(t *testing.T) {
	for name, p := range families(t) {
		v, err := p.Values()
		if err != nil {
			t.Fatal(err)
		}
		d, err := p.Stationary()
		if err != nil {
			t.Fatal(err)
		}
		// The series Σ γᵏPᵏr and the mean of μPᵏ, by repeated products: both are what
		// the solved equations define. .9⁴⁰⁰ is 5·10⁻¹⁹.
		s := p.States()
		sum, term := mat.NewVecDense(s, nil), mat.NewVecDense(s, append([]float64(nil), p.R...))
		for range 400 {
			sum.AddVec(sum, term)
			var next mat.VecDense
			next.MulVec(p.P, term)
			term.ScaleVec(p.Gamma, &next)
		}
		for i := range v {
			if math.Abs(v[i]-sum.AtVec(i)) > 1e-12 {
				t.Errorf("%s: v(%d) = %v, the series gives %v", name, i, v[i], sum.AtVec(i))
			}
		}
		// A walk of 4·10⁵ steps visits each state as often as d says, within five
		// standard deviations of independent draws times 3 for their correlation.
		const n = 400_000
		counts := make([]float64, s)
		for _, state := range p.Walk(seed.New(2, name), n) {
			counts[state]++
		}
		for i := range d {
			if got := counts[i] / n; math.Abs(got-d[i]) > 15*math.Sqrt(d[i]*(1-d[i])/n) {
				t.Errorf("%s: state %d is visited with frequency %v, stationary %v", name, i, got, d[i])
			}
		}
	}
}

func TestBoyanHasItsShape(t *testing.T) {
	p := families(t)["boyan"].P
	for i := range 10 {
		for j := range 10 {
			allowed := i == 9 || i == 8 && j == 9 || i < 8 && (j == i+1 || j == i+2)
			if (p.At(i, j) > 0) != allowed {
				t.Errorf("P(%d|%d) = %v", j, i, p.At(i, j))
			}
		}
	}
}

func TestLoopHasItsShape(t *testing.T) {
	empty, err := Loop(6, .9, 1, seed.New(3))
	if err != nil {
		t.Fatal(err)
	}
	full, err := Loop(6, .9, 0, seed.New(3))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 6 {
		for j := range 6 {
			if got, want := empty.P.At(i, j) > 0, j == (i+1)%6; got != want {
				t.Errorf("threshold 1: P(%d|%d) = %v", j, i, empty.P.At(i, j))
			}
			if got, want := full.P.At(i, j) > 0, j != i; got != want {
				t.Errorf("threshold 0: P(%d|%d) = %v", j, i, full.P.At(i, j))
			}
		}
	}
}

func TestWithValues(t *testing.T) {
	p := families(t)["loop"]
	want := []float64{1, -2, 3, 0, .5, 7, -1}
	q, err := p.WithValues(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := q.Values()
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-12 {
			t.Errorf("v(%d) = %v, want %v", i, got[i], want[i])
		}
	}
	if got := Expect([]float64{.25, .75}, []float64{1, 2}, []float64{3, 1}); got != .25*4+.75 {
		t.Errorf("Expect = %v", got)
	}
}

func TestRefusesBadInput(t *testing.T) {
	ok := mat.NewDense(2, 2, []float64{.5, .5, 1, 0})
	r, mu := []float64{1, 2}, []float64{1, 0}
	for want, build := range map[string]func() (*Process, error){
		"gamma is 1":        func() (*Process, error) { return New(1, ok, r, mu) },
		"gamma is NaN":      func() (*Process, error) { return New(math.NaN(), ok, r, mu) },
		"must not be empty": func() (*Process, error) { return New(.9, nil, r, mu) },
		"rewards [1]":       func() (*Process, error) { return New(.9, ok, r[:1], mu) },
		"P(·|s=1) sums to":  func() (*Process, error) { return New(.9, mat.NewDense(2, 2, []float64{1, 0, .4, .5}), r, mu) },
		"has entry 0":       func() (*Process, error) { return New(.9, mat.NewDense(2, 2, []float64{-1, 2, .5, .5}), r, mu) },
		"first state sums":  func() (*Process, error) { return New(.9, ok, r, []float64{.1, .2}) },
		"r(s=0) is +Inf":    func() (*Process, error) { return New(.9, ok, []float64{math.Inf(1), 0}, mu) },
		"of 2 states":       func() (*Process, error) { return Boyan(2, .9, seed.New(1)) },
		"of 1 states":       func() (*Process, error) { return Loop(1, .9, .5, seed.New(1)) },
		"threshold is 2":    func() (*Process, error) { return Loop(4, .9, 2, seed.New(1)) },
	} {
		if _, err := build(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got error %v, want one with %q", err, want)
		}
	}
	two, err := New(.5, mat.NewDense(2, 2, []float64{1, 0, 0, 1}), r, mu)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := two.Stationary(); err == nil {
		t.Error("two recurrent classes have no unique stationary distribution, but there was no error")
	}
}
