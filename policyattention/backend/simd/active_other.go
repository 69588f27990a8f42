//go:build !(amd64 && goexperiment.simd)

package simd

// Active says that the kernels are in place.
func Active() bool { return false }
