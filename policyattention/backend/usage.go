package backend

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// ProcessorTime returns the processor time of all threads of this process so far, or 0 where the system does
// not tell.
func ProcessorTime() time.Duration {
	u := self()
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// PeakMemory returns the largest memory of this process so far in bytes, or 0 where the system does not tell.
func PeakMemory() int64 {
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
	syscall.Getrusage(syscall.RUSAGE_SELF, &u) //nolint:errcheck // zeros are what is said then
	return u
}
