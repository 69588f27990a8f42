//go:build amd64 && goexperiment.simd

package simd

import (
	"simd/archsimd"
	"unsafe"
)

type (
	pointer = unsafe.Pointer
	vector  = archsimd.Float32x16
	mask    = archsimd.Mask32x16
)

// lanes is the number of float32 in a vector.
const lanes = 16

// at is the address of entry i of the float32 that start at p. It may lie outside of them,
// for masks that leave out what does.
//
//go:nocheckptr
func at(p pointer, i int) pointer { return unsafe.Add(p, 4*i) }

func start(x []float32) pointer { return pointer(unsafe.SliceData(x)) }

func load(p pointer) vector { return archsimd.LoadFloat32x16((*[lanes]float32)(p)) }

func store(p pointer, x vector) { x.Store((*[lanes]float32)(p)) }

// first is the mask of the first n lanes, of all from 16 on.
func first(n int) mask { return archsimd.Mask32x16FromBits(uint16(1<<min(n, lanes) - 1)) }

// loadFirst loads the lanes of a mask and touches no others.
//
//go:nocheckptr
func loadFirst(p pointer, m mask) vector {
	return archsimd.LoadMaskedFloat32x16((*[lanes]float32)(p), m)
}

// storeFirst stores the lanes of a mask and touches no others.
//
//go:nocheckptr
func storeFirst(p pointer, x vector, m mask) { x.StoreMasked((*[lanes]float32)(p), m) }

// everywhere is x in all lanes.
func everywhere(x float32) vector { return archsimd.BroadcastFloat32x16(x) }
