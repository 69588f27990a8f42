package mdp

import "math"

// double is an unevaluated sum hi+lo of two float64 with |lo| at most half an ulp of hi:
// some 106 bits (Dekker, 1971).
type double struct{ hi, lo float64 }

func (x double) float() float64 { return x.hi + x.lo }

// twoSum returns a+b exactly (Knuth).
func twoSum(a, b float64) double {
	sum := a + b
	part := sum - a
	return double{sum, (a - (sum - part)) + (b - part)}
}

// twoProduct returns a·b exactly, but for underflow, by halves of the factors (Dekker): math.FMA is slow
// beside other arithmetic where the processor's wide registers were in use, as after each preemption.
func twoProduct(a, b float64) double {
	const split, large = 1<<27 + 1, 0x1p990
	p := float64(a * b)
	if !(math.Abs(a) < large && math.Abs(b) < large) {
		return double{p, math.FMA(a, b, -p)}
	}
	c, d := float64(split*a), float64(split*b)
	high, other := c-(c-a), d-(d-b)
	low, rest := a-high, b-other
	return double{p, float64(low*rest) + (float64(low*other) + (float64(high*rest) + (float64(high*other) - p)))}
}

// normal returns hi+lo where |hi| ≥ |lo| (Dekker's fast sum).
func normal(hi, lo float64) double {
	sum := hi + lo
	return double{sum, lo - (sum - hi)}
}

// plus returns x+b.
func (x double) plus(b float64) double {
	sum := twoSum(x.hi, b)
	return normal(sum.hi, sum.lo+x.lo)
}

// add returns x+y, with a relative error of some 2⁻¹⁰⁴ whatever their signs.
func (x double) add(y double) double {
	hi, lo := twoSum(x.hi, y.hi), twoSum(x.lo, y.lo)
	hi = normal(hi.hi, hi.lo+lo.hi)
	return normal(hi.hi, hi.lo+lo.lo)
}

// minus returns x−y, rounded.
func (x double) minus(y double) float64 { return x.add(double{-y.hi, -y.lo}).float() }

// times returns x·b.
func (x double) times(b float64) double {
	p := twoProduct(x.hi, b)
	return normal(p.hi, p.lo+float64(x.lo*b))
}

// over returns x/y: a quotient, and one more of what is left.
func (x double) over(y double) double {
	q := x.hi / y.hi
	rest := x.add(y.times(-q))
	return normal(q, rest.float()/y.hi)
}
