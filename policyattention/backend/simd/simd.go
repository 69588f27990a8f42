//go:build amd64 && goexperiment.simd

package simd

import (
	"simd/archsimd"
	"sync"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"

	. "icrl/internal/avx512"
)

// kernel computes an operation on float32.
type kernel struct {
	// prepare returns what writes the entries of the result, or nil if the kernel does not
	// take such a node.
	prepare func(n *node, inputs []*buffer) writer
	// inPlace says that an input of the result's shape may take the result.
	inPlace bool
}

// A writer writes the entries of a result, in at most so many goroutines.
type writer func(out []float32, workers int)

var kernels = map[compute.OpType]kernel{
	compute.OpTypeDotGeneral: {prepare: dot},
	compute.OpTypeTranspose:  {prepare: transpose},
	compute.OpTypeSlice:      {prepare: slice},
	compute.OpTypeAdd:        {binary, true},
	compute.OpTypeSub:        {binary, true},
	compute.OpTypeMul:        {binary, true},
	compute.OpTypeDiv:        {binary, true},
	compute.OpTypeMax:        {binary, true},
	compute.OpTypeWhere:      {where, true},
	compute.OpTypeExp:        {unary(Exponential, 8), true},
	compute.OpTypeSqrt:       {unary(Vector.Sqrt, 4), true},
	compute.OpTypeReduceSum:  {prepare: reduce},
	compute.OpTypeReduceMax:  {prepare: reduce},
}

// executor is the kernel where it takes a node, and the library's executor elsewhere.
func (k kernel) executor(op compute.OpType) executor {
	return func(backend Pointer, n *node, inputs []*buffer, owned []bool) (*buffer, error) {
		if n.Shape.DType != dtypes.Float32 || n.Shape.IsDynamic() {
			return library[op](backend, n, inputs, owned)
		}
		if n.Shape.Size() == 0 {
			return getBuffer(backend, n.Shape)
		}
		f := k.prepare(n, inputs)
		if f == nil {
			return library[op](backend, n, inputs, owned)
		}
		out, err := k.output(backend, n, inputs, owned)
		if err != nil {
			return nil, err
		}
		f(out.Flat.([]float32), workers(backend))
		return out, nil
	}
}

func (k kernel) output(backend Pointer, n *node, inputs []*buffer, owned []bool) (*buffer, error) {
	for i, x := range inputs {
		if k.inPlace && owned[i] && x.RawShape.Equal(n.Shape) {
			inputs[i] = nil
			return x, nil
		}
	}
	return getBuffer(backend, n.Shape)
}

// floats returns the entries of a buffer of float32, and nil for another.
func floats(x *buffer) []float32 {
	flat, _ := x.Flat.([]float32)
	return flat
}

// share is the least number of entries, or of multiplications by 16, worth a goroutine.
const share = 1 << 15

// parallel calls f for parts of 0 … n−1 in at most so many goroutines, as many as size, the
// work of all of them, is worth. The parts change no result.
func parallel(workers, n, size int, f func(from, to int)) {
	parts := min(n, workers, 1+size/share)
	part := func(from, to int) {
		f(from, to)
		// Go's other code works on the lower parts of the registers, and slowly while the
		// upper ones hold something.
		archsimd.ClearAVXUpperBits()
	}
	if parts <= 1 {
		part(0, n)
		return
	}
	var wait sync.WaitGroup
	for i := 1; i < parts; i++ {
		wait.Go(func() { part(i*n/parts, (i+1)*n/parts) })
	}
	part(0, n/parts)
	wait.Wait()
}
