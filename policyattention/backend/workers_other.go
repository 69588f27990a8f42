//go:build !linux

package backend

// Threads are neither listed nor rested here.
func workers() ([]int, error) { return nil, nil }

func restWorkers([]int) error { return nil }
