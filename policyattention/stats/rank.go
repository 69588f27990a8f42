package stats

import (
	"math"

	"gonum.org/v1/gonum/stat/distuv"
)

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

// RankP returns the two-sided p-value of Spearman's coefficient rho of two lists of n > 2
// values, for the hypothesis that every order of one of them is equally likely: that of
// Student's t with n−2 degrees of freedom at ρ√((n−2)/(1−ρ²)), an approximation.
func RankP(rho float64, n int) float64 {
	freedom := float64(n - 2)
	t := distuv.StudentsT{Sigma: 1, Nu: freedom}
	return 2 * t.CDF(-math.Abs(rho)*math.Sqrt(freedom/(1-rho*rho)))
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
