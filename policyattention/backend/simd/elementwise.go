//go:build amd64 && goexperiment.simd

package simd

import (
	"simd/archsimd"

	"github.com/gomlx/compute"
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
				binaryRow(n.OpType, at(start(out), i*r.length), at(start(x), a), at(start(y), b), r.step[0], r.step[1], r.length)
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
func repeated(x pointer, step int, all *[lanes]float32) pointer {
	if step != 0 {
		return x
	}
	everywhere(*(*float32)(x)).Store(all)
	return pointer(all)
}

// binaryRow writes a row of n entries.
func binaryRow(op compute.OpType, out, x, y pointer, stepX, stepY, n int) {
	var one, two [lanes]float32
	x, y = repeated(x, stepX, &one), repeated(y, stepY, &two)
	all := first(lanes)
	for i := 0; i < n; i += lanes {
		m := all
		if n-i < lanes {
			m = first(n - i)
		}
		a, b := loadFirst(at(x, i*stepX), m), loadFirst(at(y, i*stepY), m)
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
		storeFirst(at(out, i), a, m)
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
				whereRow(at(start(out), i*r.length), condition[i*r.length:][:r.length], at(start(x), a), at(start(y), b), r.step[0], r.step[1])
			}
		})
	}
}

func whereRow(out pointer, condition []bool, x, y pointer, stepX, stepY int) {
	var one, two [lanes]float32
	x, y = repeated(x, stepX, &one), repeated(y, stepY, &two)
	n := len(condition)
	var zero archsimd.Int32x16
	for i := 0; i < n; i += lanes {
		m := first(n - i)
		var c [lanes]int8
		p := (*[lanes]int8)(pointer(&c))
		if n-i >= lanes {
			p = (*[lanes]int8)(pointer(&condition[i]))
		} else {
			for j, b := range condition[i:] {
				if b {
					c[j] = 1
				}
			}
		}
		chosen := archsimd.LoadInt8x16(p).ExtendToInt32().NotEqual(zero)
		storeFirst(at(out, i), loadFirst(at(x, i*stepX), m).Merge(loadFirst(at(y, i*stepY), m), chosen), m)
	}
}

// exp is the exponential of each entry.
func exp(n *node, inputs []*buffer) writer {
	x := floats(inputs[0])
	if x == nil {
		return nil
	}
	const piece = 1 << 12
	return func(out []float32, workers int) {
		parallel(workers, (len(x)+piece-1)/piece, 8*len(x), func(from, to int) {
			for i := from * piece; i < min(to*piece, len(x)); i += lanes {
				m := first(len(x) - i)
				storeFirst(at(start(out), i), exponential(loadFirst(at(start(x), i), m)), m)
			}
		})
	}
}

// exponential is eˣ = 2ⁿ·eʳ with n the integer next to x/log 2 and |r| ≤ log(2)/2, to two
// units in the last place. The series of eʳ ends where its next term is below 2⁻²⁴.
func exponential(x vector) vector {
	// Beyond these, e^x is 0 and +Inf. Where x is NaN, the second one is taken.
	t := everywhere(89).Min(everywhere(-105).Max(x))
	n := t.Mul(everywhere(1.44269504)).RoundToEvenScaled(0)
	// log 2 in two parts, the first of which has few enough digits for an exact product.
	r := n.MulAdd(everywhere(-0.693359375), t)
	r = n.MulAdd(everywhere(2.12194440e-4), r)
	y := everywhere(1. / 5040)
	y = y.MulAdd(r, everywhere(1./720))
	y = y.MulAdd(r, everywhere(1./120))
	y = y.MulAdd(r, everywhere(1./24))
	y = y.MulAdd(r, everywhere(1./6))
	y = y.MulAdd(r, everywhere(.5))
	y = y.MulAdd(r, everywhere(1))
	y = y.MulAdd(r, everywhere(1))
	return y.Scale(n)
}
