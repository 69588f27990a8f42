//go:build !linux

package backend

// Threads are neither listed nor rested here, nor kept on a processor.
func workers() ([]int, error) { return nil, nil }

func rest([]int) error { return nil }

func restMonitor() error { return nil }

func processors() ([]int, error) { return nil, nil }

func stay(int) error { return nil }
