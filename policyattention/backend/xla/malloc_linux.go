//go:build cgo

package xla

import "C" // malloc_linux.c
