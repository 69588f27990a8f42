package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// memory is that of the machine, in MiB.
func memory() (float64, error) {
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		return 0, fmt.Errorf("memory of the machine: %w", err)
	}
	return float64(info.Totalram) * float64(info.Unit) / (1 << 20), nil
}
