package wang

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/field/mrp"
	"icrl/policyattention/seed"
)

// constructed returns the parameters of TD(0) with the given step size, as a trained network
// would hold them, with the sign of (P, Q).
func constructed(n Network, step, sign float64) []float64 {
	params := make([]float64, n.Size())
	p, q := n.td0()
	for l := range n.blocks() {
		toP, toQ := n.Weights(params, l)
		for i := range p {
			for j := range p {
				toP.Set(i, j, sign*step*p[i][j])
				toQ.Set(i, j, sign*q[i][j])
			}
		}
	}
	params[len(params)-1] = step
	return params
}

// TD(0) is like TD(0) in every measure and with both signs; random weights are not.
func TestLikenessOfConstructedWeights(t *testing.T) {
	for _, sequential := range []bool{false, true} {
		tr := Recipe(1)
		tr.Sequential = sequential
		for _, sign := range []float64{1, -1} {
			trained := &Trained{Training: tr, After: []int{1}, Params: [][]float64{constructed(tr.Network, .7, sign)}}
			l, err := trained.Likeness("", 0, 5, 3)
			if err != nil {
				t.Fatal(err)
			}
			if l.ValueDifference > 1e-25 || math.Abs(l.Implicit-1) > 1e-12 || math.Abs(l.Sensitivity-1) > 1e-9 || l.Error != l.ErrorTD && math.Abs(l.Error-l.ErrorTD) > 1e-12 {
				t.Errorf("%+v", l)
			}
			for _, row := range trained.WeightRows("") {
				if math.Abs(row.Corner-.7) > 1e-15 || row.OthersP != 0 || row.Left != -4 || row.Right != 4 || row.OthersQ != 0 || row.SignedQ == 0 {
					t.Errorf("%+v", row)
				}
			}
		}
		random := &Trained{Training: tr, After: []int{1}, Params: [][]float64{weights(tr.Network, 3)}}
		l, err := random.Likeness("", 0, 5, 3)
		if err != nil {
			t.Fatal(err)
		}
		if l.ValueDifference < 1e-3 || l.Implicit > .9 {
			t.Errorf("random weights are like TD(0): %+v", l)
		}
		// The value of linear attention is linear in the query.
		if math.Abs(l.Implicit-l.Sensitivity) > 1e-8 {
			t.Errorf("cosines %v and %v of one linear function", l.Implicit, l.Sensitivity)
		}
	}
}

func TestNearestRecoversLinearValues(t *testing.T) {
	features := mrp.Features(10, 4, seed.New(1))
	want := []float64{1, -2, .5, 3}
	var v mat.VecDense
	v.MulVec(features, mat.NewVecDense(4, want))
	d := make([]float64, 10)
	for i := range d {
		d[i] = float64(i+1) / 55
	}
	got, err := nearest(features, d, v.RawVector().Data)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-12 {
			t.Errorf("w[%d] = %v, want %v", i, got[i], want[i])
		}
	}
}

// By hand: d = 1, P and Q [3, 3] of the entries 1 … 9, signs mixed.
func TestWeightRowByHand(t *testing.T) {
	p := mat.NewDense(3, 3, []float64{1, -2, 3, -4, 5, -6, 7, -8, -9})
	q := mat.NewDense(3, 3, []float64{9, -8, 7, -6, 5, -4, 3, -2, 1})
	got := weightRow(p, q, 1)
	want := WeightRow{Corner: 9, OthersP: 36. / 8, Left: -9, Right: 8, OthersQ: 28. / 7, SignedQ: (45. + 9 - 8) / 7}
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// Queries of one prompt have the values that each has alone.
func TestValuesOfQueries(t *testing.T) {
	for _, attention := range []Attention{Linear, OverKeys, OverQueries} {
		n := Network{D: 3, N: 5, Layers: 2, Attention: attention}
		rng := seed.New(1, "queries")
		params := n.initial(rng)
		c := &Context{Phi: mat.NewDense(3, 5, nil), Next: mat.NewDense(3, 5, nil), R: make([]float64, 5), Queries: mat.NewDense(3, 4, nil)}
		for _, x := range [][]float64{c.Phi.RawMatrix().Data, c.Next.RawMatrix().Data, c.R, c.Queries.RawMatrix().Data} {
			for i := range x {
				x[i] = rng.NormFloat64()
			}
		}
		got, err := n.values(params, c, c.Queries)
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range got {
			one := *c
			one.Queries = mat.NewDense(3, 1, mat.Col(nil, k, c.Queries))
			want, err := n.value(params, testkit.Must(one.Prompt(0))(t))
			if err != nil || math.Abs(v-want) > 1e-14 { // sums of a few numbers of order one
				t.Errorf("%s: query %d has the value %v, alone %v, %v", attention, k, v, want, err)
			}
		}
		if len(got) != 4 {
			t.Errorf("%s: %d values", attention, len(got))
		}
	}
}
