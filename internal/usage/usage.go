// Package usage tells what this process has used. Wall time means little on a machine that
// others use too.
package usage

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Processor returns the processor time of all threads so far, or 0 where the system does
// not tell.
func Processor() time.Duration {
	u := self()
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Peak returns the largest memory so far in bytes, or 0 where the system does not tell.
func Peak() int64 {
	// On Linux, what getrusage says begins with the peak of the program that started this one.
	if status, err := os.ReadFile("/proc/self/status"); err == nil {
		for line := range strings.Lines(string(status)) {
			var kilobytes int64
			if n, _ := fmt.Sscanf(line, "VmHWM: %d kB", &kilobytes); n == 1 {
				return kilobytes * 1024
			}
		}
	}
	peak := int64(self().Maxrss)
	if runtime.GOOS != "darwin" {
		peak *= 1024 // macOS counts bytes, others kilobytes
	}
	return peak
}

func self() (u syscall.Rusage) {
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return syscall.Rusage{}
	}
	return u
}
