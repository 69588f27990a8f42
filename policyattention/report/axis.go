package report

import (
	"math"
	"strconv"

	"gonum.org/v1/plot"
)

// decades ticks a logarithmic axis at powers of ten, of which at most seven are
// labelled, and on short axes at their double and fivefold. Axes that span less
// than a factor of six are ticked like linear ones.
type decades struct{}

// Ticks implements plot.Ticker.
func (decades) Ticks(lo, hi float64) []plot.Tick {
	if !(lo > 0) || hi < 6*lo { // nothing to take logarithms of, or a short axis
		return even(lo, hi)
	}
	first, last := int(math.Floor(math.Log10(lo))), int(math.Ceil(math.Log10(hi)))
	every := (last-first)/7 + 1
	var ticks []plot.Tick
	for e := first; e <= last; e++ {
		for digit := 1; digit < 10; digit++ {
			if digit > 1 && every > 1 {
				break
			}
			label := strconv.Itoa(digit) + "e" + strconv.Itoa(e)
			value, _ := strconv.ParseFloat(label, 64)
			if value < lo || value > hi {
				continue // gonum would leave room for its label
			}
			labelled := digit == 1 && e%every == 0 || last-first <= 2 && (digit == 2 || digit == 5)
			switch {
			case !labelled:
				label = ""
			case -4 < e && e < 4:
				label = strconv.FormatFloat(value, 'f', -1, 64)
			}
			ticks = append(ticks, plot.Tick{Value: value, Label: label})
		}
	}
	return ticks
}

// even returns up to seven ticks, at multiples of 1, 2 or 5 times a power of ten.
func even(lo, hi float64) (ticks []plot.Tick) {
	raw := (hi - lo) / 5
	if !(raw > 0) || math.IsInf(raw, 0) {
		return []plot.Tick{{Value: lo, Label: strconv.FormatFloat(lo, 'g', 6, 64)}}
	}
	unit := math.Pow(10, math.Floor(math.Log10(raw)))
	step := 10 * unit
	for _, k := range []float64{5, 2, 1} {
		if k*unit >= raw {
			step = k * unit
		}
	}
	for k := math.Ceil(lo/step - 1e-9); k*step <= hi+1e-9*step; k++ {
		value := k*step + 0 // without the sign of a zero
		ticks = append(ticks, plot.Tick{Value: value, Label: strconv.FormatFloat(value, 'g', 6, 64)})
	}
	return ticks
}
