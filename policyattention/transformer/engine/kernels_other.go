//go:build !amd64

package engine

func paths() []string                   { return []string{"portable"} }
func vectors(*kernels[float32], string) {}
