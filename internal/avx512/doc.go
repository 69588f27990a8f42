// Package avx512 is what kernels on vectors of 512 bits are made of: vectors at addresses,
// products of matrices and transpositions, of float32. It is empty where a program is not
// built with GOEXPERIMENT=simd for x86-64, and to be called only where the processor has
// AVX-512.
//
// After kernels, and before other code, call archsimd.ClearAVXUpperBits: Go's other code works
// on the lower parts of the registers, and slowly while the upper ones hold something.
package avx512
