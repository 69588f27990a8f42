// Package usage tells what this process has used. Wall time means little on a machine that
// others use too.
package usage

import (
	"runtime"
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
	peak := int64(self().Maxrss)
	if runtime.GOOS != "darwin" {
		peak *= 1024 // Linux counts kilobytes, macOS bytes
	}
	return peak
}

func self() (u syscall.Rusage) {
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return syscall.Rusage{}
	}
	return u
}
