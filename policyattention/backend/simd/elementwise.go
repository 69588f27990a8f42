//go:build amd64 && goexperiment.simd

package simd

import (
	"simd/archsimd"

	"github.com/gomlx/compute"

	. "icrl/internal/avx512"
)

// binary is the sum, difference, product, quotient or maximum of two tensors, with
// broadcasting.
func binary(n *node, inputs []*buffer) writer {
	x, y := floats(inputs[0]), floats(inputs[1])
	r := broadcast(n.Shape.Dimensions, inputs[0].RawShape.Dimensions, inputs[1].RawShape.Dimensions)
	if x == nil || y == nil || r == nil {
		return nil
	}
	return func(out []float32, workers int) {
		parallel(workers, r.count, len(out), func(from, to int) {
			for i := from; i < to; i++ {
				a, b := r.start(i)
				binaryRow(n.OpType, At(Start(out), i*r.length), At(Start(x), a), At(Start(y), b), r.step[0], r.step[1], r.length)
			}
		})
	}
}

// rows tells how two operands are broadcast: the result is count rows of length entries,
// and along a row the entries of an operand follow each other (step 1) or are one (0).
type rows struct {
	count, length int
	step          [2]int
	dims          []int    // of the axes but the last
	strides       [2][]int // of each operand on them
}

// broadcast returns the rows of a result, or nil for operands of another rank that are
// no scalars.
func broadcast(out []int, operands ...[]int) *rows {
	r := &rows{}
	strides := [2][]int{make([]int, len(out)), make([]int, len(out))}
	for i, x := range operands {
		if len(x) != len(out) {
			if len(x) > 0 {
				return nil
			}
			continue
		}
		for axis, size := len(x)-1, 1; axis >= 0; axis-- {
			if x[axis] > 1 {
				strides[i][axis] = size
			}
			size *= x[axis]
		}
	}
	// Axes on which both operands go on as on the next one are one with it.
	var dims []int
	var merged [2][]int
	for axis, d := range out {
		if d == 1 {
			continue
		}
		last := len(dims) - 1
		if last >= 0 && merged[0][last] == strides[0][axis]*d && merged[1][last] == strides[1][axis]*d {
			dims[last] *= d
			merged[0][last], merged[1][last] = strides[0][axis], strides[1][axis]
			continue
		}
		dims = append(dims, d)
		merged[0], merged[1] = append(merged[0], strides[0][axis]), append(merged[1], strides[1][axis])
	}
	if len(dims) == 0 {
		dims, merged = []int{1}, [2][]int{{0}, {0}}
	}
	last := len(dims) - 1
	r.length, r.step = dims[last], [2]int{merged[0][last], merged[1][last]}
	r.dims, r.strides = dims[:last], [2][]int{merged[0][:last], merged[1][:last]}
	r.count = 1
	for _, d := range r.dims {
		r.count *= d
	}
	return r
}

// start returns where row i of the result has its operands.
func (r *rows) start(i int) (x, y int) {
	for axis := len(r.dims) - 1; axis >= 0; axis-- {
		at := i % r.dims[axis]
		i /= r.dims[axis]
		x, y = x+at*r.strides[0][axis], y+at*r.strides[1][axis]
	}
	return x, y
}

// repeated is where an operand is read along a row: at x, or in all, which it fills with an
// entry that is the same all along (step 0).
func repeated(x Pointer, step int, all *[Lanes]float32) Pointer {
	if step != 0 {
		return x
	}
	Everywhere(*(*float32)(x)).Store(all)
	return Pointer(all)
}

// binaryRow writes a row of n entries.
func binaryRow(op compute.OpType, out, x, y Pointer, stepX, stepY, n int) {
	var one, two [Lanes]float32
	x, y = repeated(x, stepX, &one), repeated(y, stepY, &two)
	all := First(Lanes)
	for i := 0; i < n; i += Lanes {
		m := all
		if n-i < Lanes {
			m = First(n - i)
		}
		a, b := LoadFirst(At(x, i*stepX), m), LoadFirst(At(y, i*stepY), m)
		switch op {
		case compute.OpTypeAdd:
			a = a.Add(b)
		case compute.OpTypeSub:
			a = a.Sub(b)
		case compute.OpTypeMul:
			a = a.Mul(b)
		case compute.OpTypeDiv:
			a = a.Div(b)
		case compute.OpTypeMax:
			a = maximum(a, b)
		}
		StoreFirst(At(out, i), a, m)
	}
}

// where takes the entries of the second or the third input, by a condition of the
// result's shape.
func where(n *node, inputs []*buffer) writer {
	condition, ok := inputs[0].Flat.([]bool)
	x, y := floats(inputs[1]), floats(inputs[2])
	r := broadcast(n.Shape.Dimensions, inputs[1].RawShape.Dimensions, inputs[2].RawShape.Dimensions)
	if !ok || x == nil || y == nil || r == nil || len(condition) != n.Shape.Size() {
		return nil
	}
	return func(out []float32, workers int) {
		parallel(workers, r.count, len(out), func(from, to int) {
			for i := from; i < to; i++ {
				a, b := r.start(i)
				whereRow(At(Start(out), i*r.length), condition[i*r.length:][:r.length], At(Start(x), a), At(Start(y), b), r.step[0], r.step[1])
			}
		})
	}
}

func whereRow(out Pointer, condition []bool, x, y Pointer, stepX, stepY int) {
	var one, two [Lanes]float32
	x, y = repeated(x, stepX, &one), repeated(y, stepY, &two)
	n := len(condition)
	var zero archsimd.Int32x16
	for i := 0; i < n; i += Lanes {
		m := First(n - i)
		var c [Lanes]int8
		p := (*[Lanes]int8)(Pointer(&c))
		if n-i >= Lanes {
			p = (*[Lanes]int8)(Pointer(&condition[i]))
		} else {
			for j, b := range condition[i:] {
				if b {
					c[j] = 1
				}
			}
		}
		chosen := archsimd.LoadInt8x16(p).ExtendToInt32().NotEqual(zero)
		StoreFirst(At(out, i), LoadFirst(At(x, i*stepX), m).Merge(LoadFirst(At(y, i*stepY), m), chosen), m)
	}
}

// unary is a function of each entry, the work of so many sums.
func unary(f func(x Vector) Vector, work int) func(n *node, inputs []*buffer) writer {
	const piece = 1 << 12
	return func(n *node, inputs []*buffer) writer {
		x := floats(inputs[0])
		if x == nil {
			return nil
		}
		return func(out []float32, workers int) {
			parallel(workers, (len(x)+piece-1)/piece, work*len(x), func(from, to int) {
				for i := from * piece; i < min(to*piece, len(x)); i += Lanes {
					m := First(len(x) - i)
					StoreFirst(At(Start(out), i), f(LoadFirst(At(Start(x), i), m)), m)
				}
			})
		}
	}
}
