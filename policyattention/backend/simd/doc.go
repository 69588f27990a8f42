// Package simd gives GoMLX's backend in pure Go kernels for float32 that work on vectors of
// 512 bits, and lets functions of Go stand in for functions of a graph. Import it for the
// kernels; they need no call.
//
// The kernels are matrix products, transpositions, slices, sums, products and the like entry by
// entry, exponentials, square roots, and sums and maxima along axes: what the networks here
// spend their time on. The library's own executors take an entry at a time in most of these, and small
// matrices at a tenth of the processor's speed. Everything else, and every other type of
// entry, stays with the library.
//
// Kernels are in place where a program is built with GOEXPERIMENT=simd for x86-64, the
// processor has AVX-512, and GOMLX_SIMD_AVX512 is not "false". Results differ from the
// library's by rounding: sums are added in another order and exponentials are within two
// units in the last place. How many goroutines work on an operation changes no result.
//
// The library has no way to register an executor from outside, so this package reaches for
// its table by the name of the symbol, and compares the types that it repeats with the
// library's before it changes anything. With a version of the library in which one of them
// is another, the library's executors stay.
package simd

var active bool

// Active says whether the kernels are in place.
func Active() bool { return active }
