package stats

// Ranks returns the rank of each value, from 1.
func Ranks(values []float64) []int {
	r := make([]int, len(values))
	for i, v := range values {
		r[i] = 1
		for _, w := range values {
			if w < v {
				r[i]++
			}
		}
	}
	return r
}

// RankCorrelation returns Spearman's coefficient of two lists without ties.
func RankCorrelation(x, y []float64) float64 {
	a, b, sum, n := Ranks(x), Ranks(y), 0.0, float64(len(x))
	for i := range a {
		d := float64(a[i] - b[i])
		sum += d * d
	}
	return 1 - 6*sum/(n*(n*n-1))
}

// Inversions counts the pairs that two lists order differently.
func Inversions(x, y []float64) (count int) {
	for i := range x {
		for j := range i {
			if (x[i]-x[j])*(y[i]-y[j]) < 0 {
				count++
			}
		}
	}
	return count
}
