package numeric

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"math/big"
	"testing"

	"icrl/policyattention/seed"
)

const prec = 160 // bits: about a hundred more than the result needs

func bf(x float64) *big.Float { return new(big.Float).SetPrec(prec).SetFloat64(x) }

// bigExp is e^x by halving the argument 24 times and summing Taylor's series.
func bigExp(x float64) *big.Float {
	const halvings = 24
	r := bf(x)
	r.SetMantExp(r, -halvings)
	sum, term := bf(1), bf(1)
	for n := 1; n < 30; n++ {
		term.Mul(term, r).Quo(term, bf(float64(n)))
		sum.Add(sum, term)
	}
	for range halvings {
		sum.Mul(sum, sum)
	}
	return sum
}

// bigLog is y0 + log(x·e^{−y0}) with y0 = Log(x) and the second logarithm, of
// a number within 1e-13 of one, from its series: whatever the error of y0, the
// sum is right to its fourth power.
func bigLog(x float64) *big.Float {
	y0 := Log(x)
	e := bigExp(y0)
	d := new(big.Float).SetPrec(prec).Quo(bf(x), e)
	d.Sub(d, bf(1))
	d2 := new(big.Float).SetPrec(prec).Mul(d, d)
	d3 := new(big.Float).SetPrec(prec).Mul(d2, d)
	d2.Quo(d2, bf(2))
	d3.Quo(d3, bf(3))
	return d.Sub(d, d2).Add(d, d3).Add(d, bf(y0))
}

// ulps is |got − want| in units of the last place of want.
func ulps(got float64, want *big.Float) float64 {
	w, _ := want.Float64()
	next := math.Nextafter(math.Abs(w), math.Inf(1))
	d := new(big.Float).SetPrec(prec).Sub(bf(got), want)
	d.Quo(d, bf(next-math.Abs(w)))
	u, _ := d.Float64()
	return math.Abs(u)
}

func TestExpError(t *testing.T) {
	rng := seed.New(1, "numeric", "exp")
	for _, c := range []struct {
		name   string
		lo, hi float64
		n      int
		atMost float64 // ulps
	}{
		{"unit", -1, 1, 20000, 0.55},
		{"scores", -60, 30, 20000, 0.55},
		{"normal", -708.39, 709.78, 20000, 0.55},
		{"subnormal", -745.1, -708.4, 5000, 1.03},
	} {
		worst := 0.
		for range c.n {
			x := c.lo + (c.hi-c.lo)*rng.Float64()
			worst = max(worst, ulps(Exp(x), bigExp(x)))
		}
		t.Logf("%s: worst error %.4f ulp over %d arguments", c.name, worst, c.n)
		if worst > c.atMost {
			t.Errorf("%s: worst error %.4f ulp, want at most %g", c.name, worst, c.atMost)
		}
	}
}

func TestLogError(t *testing.T) {
	rng := seed.New(1, "numeric", "log")
	draws := map[string]func() float64{
		"probabilities": rng.Float64,
		"near one":      func() float64 { return 1 + 0.01*(rng.Float64()-.5) },
		"all exponents": func() float64 { return math.Ldexp(1+rng.Float64(), rng.IntN(2098)-1074) },
	}
	for name, draw := range draws {
		worst := 0.
		for range 20000 {
			if x := draw(); x > 0 && x != 1 {
				worst = max(worst, ulps(Log(x), bigLog(x)))
			}
		}
		t.Logf("%s: worst error %.4f ulp", name, worst)
		if worst > 1 {
			t.Errorf("%s: worst error %.4f ulp, want at most 1", name, worst)
		}
	}
}

func TestSpecialValues(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	below := math.Nextafter(Underflow, 0)
	for _, c := range []struct{ name, got, want any }{
		{"exp(0)", Exp(0), 1.},
		{"exp(-inf)", Exp(-inf), 0.},
		{"exp(inf)", Exp(inf), inf},
		{"exp(overflow)", Exp(overflow) < inf, true},
		{"exp(next after overflow)", Exp(math.Nextafter(overflow, inf)), inf},
		{"exp(Underflow)", Exp(Underflow), 0.},
		{"exp(just above Underflow)", Exp(below), math.SmallestNonzeroFloat64},
		{"log(1)", Log(1), 0.},
		{"log(0)", Log(0), -inf},
		{"log(inf)", Log(inf), inf},
		{"log(-1) is NaN", math.IsNaN(Log(-1)), true},
		{"exp(NaN) is NaN", math.IsNaN(Exp(nan)), true},
		{"log(NaN) is NaN", math.IsNaN(Log(nan)), true},
		{"log(smallest) is −1074 ln 2", Log(math.SmallestNonzeroFloat64), -744.4400719213812},
	} {
		if c.got != c.want {
			t.Errorf("%s = %v, want %v", c.name, c.got, c.want)
		}
	}
	// Every integer power of two is exact after a round trip through Log.
	for e := -1074; e < 1024; e++ {
		x := math.Ldexp(1, e)
		if got, want := Log(x), float64(e)*math.Ln2; math.Abs(got-want) > 1e-15*math.Abs(want) {
			t.Errorf("Log(2^%d) = %v, want %v", e, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	root := bf(2)
	for range 5 {
		root.Sqrt(root)
	}
	v := bf(1)
	for j, e := range exp2 {
		hi, _ := v.Float64()
		d := new(big.Float).SetPrec(prec).Sub(v, bf(hi))
		tail, _ := d.Quo(d, v).Float64()
		if math.Float64frombits(e.bits) != hi || math.Abs(e.tail-tail) > 1e-30 {
			t.Errorf("exp2[%d] = {%#x %x}, want {%#x %x}", j, e.bits, e.tail, math.Float64bits(hi), tail)
		}
		v.Mul(v, root)
	}
}

// TestBits is the same on every platform: run it with GOOS=js GOARCH=wasm too.
func TestBits(t *testing.T) {
	rng := seed.New(1, "numeric", "bits")
	h := fnv.New64a()
	var b [8]byte
	for range 200000 {
		x := -746 + 1460*rng.Float64()
		for _, y := range []float64{Exp(x), Exp(x / 64), Log(math.Abs(x)), Log(rng.Float64())} {
			binary.LittleEndian.PutUint64(b[:], math.Float64bits(y))
			h.Write(b[:])
		}
	}
	if got := fmt.Sprintf("%x", h.Sum64()); got != golden {
		t.Errorf("bits of 800,000 results hash to %s, want %s", got, golden)
	}
}

const golden = "2edc778fe848fb4"

// The products are rounded one by one and summed from the first: fused or in another order,
// the last two of these sums would come out otherwise.
func TestDot(t *testing.T) {
	const tiny = 0x1p-30
	for _, c := range []struct {
		x, y []float64
		want float64
	}{
		{nil, nil, 0},
		{[]float64{1, 2, 3}, []float64{4, -5, 6}, 12},
		{[]float64{-1, 1 + tiny}, []float64{1 - 0x1p-60, 1 - tiny}, 0},
		{[]float64{1, 0x1p53, -0x1p53}, []float64{1, 1, 1}, 0},
	} {
		if got := Dot(c.x, c.y); got != c.want {
			t.Errorf("Dot(%v, %v) = %v, want %v", c.x, c.y, got, c.want)
		}
	}
}
