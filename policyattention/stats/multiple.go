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
	adjusted, order := make([]float64, n), make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(p[i], p[j]) })
	for rank, i := range order {
		greatest = max(greatest, min(1, float64(n-rank)*p[i]))
		adjusted[i] = greatest
	}
	return adjusted
}
