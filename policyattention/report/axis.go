package report

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// decades ticks a logarithmic axis at powers of ten and, where there are few of them, labels their double and
// fivefold too. Axes that span less than a factor of six are ticked like linear ones.
func decades(lo, hi float64) (ticks []plot.Tick) {
	if !(lo > 0) || hi < 6*lo { // nothing to take logarithms of, or a short axis
		return even(lo, hi)
	}
	for _, t := range (plot.LogTicks{Prec: -1}).Ticks(lo/10, hi) { // of numbers below 1, gonum leaves a decade out
		if t.Value < lo || t.Value > hi {
			continue // gonum would leave room for its label
		}
		if digit := strconv.FormatFloat(t.Value, 'e', 0, 64)[0]; hi < 100*lo && (digit == '2' || digit == '5') {
			t.Label = strconv.FormatFloat(t.Value, 'g', 1, 64)
		}
		ticks = append(ticks, t)
	}
	return ticks
}

// even returns up to seven ticks, at multiples of 1, 2 or 5 times a power of ten: round ones, unlike gonum's.
func even(lo, hi float64) (ticks []plot.Tick) {
	unit := math.Pow(10, math.Floor(math.Log10((hi-lo)/5)))
	step := 10 * unit
	for _, k := range []float64{5, 2, 1} {
		if 5*k*unit >= hi-lo {
			step = k * unit
		}
	}
	for k := math.Ceil(lo/step - 1e-9); k*step <= hi+1e-9*step; k++ {
		value := k*step + 0 // without the sign of a zero
		ticks = append(ticks, plot.Tick{Value: value, Label: strconv.FormatFloat(value, 'g', 6, 64)})
	}
	return ticks
}
