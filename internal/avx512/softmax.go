//go:build amd64 && goexperiment.simd

package avx512

import "math"

// Softmax replaces scores by the weights softmax(scale·score) of a vector of queries. They have
// a row for each key, stride entries apart. All lanes see the first seen keys, of the next some
// ones lane i sees the first i, and the weights of the others are 0. There is at least one key,
// and lane 0 sees one.
//
// In Go it takes twice as long: the compiler keeps no constants in registers over a loop.
func Softmax(scores Pointer, stride, seen, some int, scale float32) {
	softmax(scores, 4*stride, seen, some, scale*float32(math.Log2E))
}

//go:noescape
func softmax(scores Pointer, stride, seen, some int, factor float32)
