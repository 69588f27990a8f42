//go:build cgo

package backend

import "C" // malloc_linux.c
