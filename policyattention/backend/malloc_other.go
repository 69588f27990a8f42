//go:build !linux || !cgo

package backend

func tuneMalloc() {} // a setting of glibc
