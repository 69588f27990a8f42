//go:build cgo && !noxla

package backend

import "C" // malloc_linux.c
