package stats

import (
	"cmp"
	"slices"
)

// Holm adjusts p-values for their number: where those that are adjusted to at most α are
// taken for significant, the probability that any true hypothesis is among them is at
// most α, however the p-values depend on each other (Holm, Scandinavian Journal of
// Statistics 6, 1979). The order is kept.
func Holm(p []float64) []float64 {
	n, greatest := len(p), 0.0
	adjusted := make([]float64, n)
	for rank, i := range ascending(p) {
		greatest = max(greatest, min(1, float64(n-rank)*p[i]))
		adjusted[i] = greatest
	}
	return adjusted
}

// BenjaminiHochberg adjusts p-values for their number: where those that are adjusted to
// at most α are taken for significant, the expected share of true hypotheses among them
// is at most α, if the p-values are independent or positively dependent (Benjamini and
// Hochberg, Journal of the Royal Statistical Society B 57, 1995). The order is kept.
func BenjaminiHochberg(p []float64) []float64 {
	n, least := len(p), 1.0
	adjusted := make([]float64, n)
	order := ascending(p)
	for rank, i := range slices.Backward(order) {
		least = min(least, float64(n)/float64(rank+1)*p[i])
		adjusted[i] = least
	}
	return adjusted
}

// ascending returns the indices of values in ascending order of these.
func ascending(values []float64) []int {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(values[i], values[j]) })
	return order
}
