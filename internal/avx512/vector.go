//go:build amd64 && goexperiment.simd

package avx512

import (
	"simd/archsimd"
	"unsafe"
)

type (
	// Pointer is the address of a float32.
	Pointer = unsafe.Pointer
	// Vector is Lanes entries.
	Vector = archsimd.Float32x16
	// Mask chooses lanes of a Vector.
	Mask = archsimd.Mask32x16
)

// Lanes is the number of float32 in a vector.
const Lanes = 16

// At is the address of entry i of the float32 that start at p. It may lie outside of them,
// for masks that leave out what does.
//
//go:nocheckptr
func At(p Pointer, i int) Pointer { return unsafe.Add(p, 4*i) }

// Start is the address of the first entry of x.
func Start(x []float32) Pointer { return Pointer(unsafe.SliceData(x)) }

// Load loads the vector at p.
//
//go:nocheckptr
func Load(p Pointer) Vector { return archsimd.LoadFloat32x16((*[Lanes]float32)(p)) }

// Store stores x at p.
//
//go:nocheckptr
func Store(p Pointer, x Vector) { x.Store((*[Lanes]float32)(p)) }

// First is the mask of the first n lanes, of all from 16 on.
func First(n int) Mask { return archsimd.Mask32x16FromBits(uint16(1<<min(n, Lanes) - 1)) }

// LoadFirst loads the lanes of a mask and touches no others, which are 0.
//
//go:nocheckptr
func LoadFirst(p Pointer, m Mask) Vector {
	return archsimd.LoadMaskedFloat32x16((*[Lanes]float32)(p), m)
}

// StoreFirst stores the lanes of a mask and touches no others.
//
//go:nocheckptr
func StoreFirst(p Pointer, x Vector, m Mask) { x.StoreMasked((*[Lanes]float32)(p), m) }

// Everywhere is x in all lanes.
func Everywhere(x float32) Vector { return archsimd.BroadcastFloat32x16(x) }

// Sum adds the lanes of x.
func Sum(x Vector) float32 {
	x8 := x.GetHi().Add(x.GetLo())
	x4 := x8.GetHi().Add(x8.GetLo())
	x4 = x4.AddPairs(x4)
	return x4.GetElem(0) + x4.GetElem(1)
}

// Exponential is eˣ = 2ⁿ·eʳ with n the integer next to x/log 2 and |r| ≤ log(2)/2, to two
// units in the last place. The series of eʳ ends where its next term is below 2⁻²⁴.
func Exponential(x Vector) Vector {
	// Beyond these, e^x is 0 and +Inf. Where x is NaN, the second one is taken.
	t := Everywhere(89).Min(Everywhere(-105).Max(x))
	n := t.Mul(Everywhere(1.44269504)).RoundToEvenScaled(0)
	// log 2 in two parts, the first of which has few enough digits for an exact product.
	r := n.MulAdd(Everywhere(-0.693359375), t)
	r = n.MulAdd(Everywhere(2.12194440e-4), r)
	y := Everywhere(1. / 5040)
	y = y.MulAdd(r, Everywhere(1./720))
	y = y.MulAdd(r, Everywhere(1./120))
	y = y.MulAdd(r, Everywhere(1./24))
	y = y.MulAdd(r, Everywhere(1./6))
	y = y.MulAdd(r, Everywhere(.5))
	y = y.MulAdd(r, Everywhere(1))
	y = y.MulAdd(r, Everywhere(1))
	return y.Scale(n)
}

// CopyRow copies n entries.
func CopyRow(dst, src Pointer, n int) {
	i := 0
	for ; i+Lanes <= n; i += Lanes {
		Store(At(dst, i), Load(At(src, i)))
	}
	if i < n {
		m := First(n - i)
		StoreFirst(At(dst, i), LoadFirst(At(src, i), m), m)
	}
}
