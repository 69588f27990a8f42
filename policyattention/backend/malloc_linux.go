//go:build cgo

package backend

/*
#include <limits.h>
#include <stdlib.h>
#include <malloc.h>

// Only glibc's allocator has these settings.
static void keep_freed_memory(void) {
#ifdef __GLIBC__
	mallopt(M_MMAP_MAX, 0);
	mallopt(M_TRIM_THRESHOLD, INT_MAX);
#endif
}
*/
import "C"

import (
	"os"
	"sync"
)

// tuneMalloc makes glibc keep freed memory instead of giving it back to the kernel.
//
// XLA on the CPU allocates the temporary buffers of a computation anew at each execution.
// Blocks that large are mapped and unmapped every time, and most of a small network's
// training step then goes into page faults. Settings of the user's own, through glibc's
// environment variables, are left as they are.
var tuneMalloc = sync.OnceFunc(func() {
	for _, name := range []string{"MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_", "GLIBC_TUNABLES"} {
		if os.Getenv(name) != "" {
			return
		}
	}
	C.keep_freed_memory()
})
