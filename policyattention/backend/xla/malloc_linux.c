//go:build cgo

// Makes glibc's allocator keep freed memory instead of giving it back to the kernel.
//
// XLA on the CPU allocates the temporary buffers of a computation anew at each execution.
// By default they are mapped and unmapped each time, and page faults then cost a good part
// of a training step. The heaps of threads are unmapped when they are empty, unless less
// than the padding would remain mapped: hence padding of the size of such a heap. It is
// address space, not memory. Settings of the user's own, in glibc's variables, come first.
#include <limits.h>
#include <malloc.h>
#include <stdlib.h>

#ifdef __GLIBC__
__attribute__((constructor)) static void keep_freed_memory(void) {
	static const char *own[] = {"MALLOC_MMAP_MAX_", "MALLOC_TRIM_THRESHOLD_", "MALLOC_TOP_PAD_", "GLIBC_TUNABLES"};
	for (size_t i = 0; i < sizeof own / sizeof *own; i++)
		if (getenv(own[i]) != NULL)
			return;
	mallopt(M_MMAP_MAX, 0);
	mallopt(M_TRIM_THRESHOLD, INT_MAX);
	mallopt(M_TOP_PAD, 64 << 20);
}
#endif
