//go:build amd64 && goexperiment.simd

package simd

import . "icrl/internal/avx512"

// transpose exchanges axes: axis i of the result is axis Data[i] of the input.
func transpose(n *node, inputs []*buffer) writer {
	x, axes := floats(inputs[0]), n.Data.([]int)
	if x == nil {
		return nil
	}
	dims, strides := merged(inputs[0].RawShape.Dimensions, axes)
	rank := len(dims)
	// The axis that is minor in the input.
	inner := 0
	for i, s := range strides {
		if s == 1 {
			inner = i
		}
	}
	columns, rows := dims[inner], dims[rank-1]
	// The result's strides.
	to := make([]int, rank)
	for i, size := rank-1, 1; i >= 0; i-- {
		to[i], size = size, size*dims[i]
	}
	outer := len(x) / max(1, rows)
	if inner != rank-1 {
		outer /= columns
	}
	return func(out []float32, workers int) {
		parallel(workers, outer, len(x), func(first, last int) {
			for i := first; i < last; i++ {
				src, dst, rest := Start(x), Start(out), i
				for axis := rank - 2; axis >= 0; axis-- {
					if axis != inner {
						src, dst = At(src, rest%dims[axis]*strides[axis]), At(dst, rest%dims[axis]*to[axis])
						rest /= dims[axis]
					}
				}
				if inner == rank-1 {
					CopyRow(dst, src, rows)
				} else {
					Exchange(dst, src, rows, columns, strides[rank-1], to[inner])
				}
			}
		})
	}
}

// merged returns the dimensions of the result of a transposition of x, and for each the
// stride in x; axes that are neighbours in both are one, and those of one entry left out.
func merged(x, axes []int) (dims, strides []int) {
	stride := make([]int, len(x))
	for i, size := len(x)-1, 1; i >= 0; i-- {
		stride[i], size = size, size*x[i]
	}
	for _, axis := range axes {
		if x[axis] == 1 {
			continue
		}
		if last := len(dims) - 1; last >= 0 && strides[last] == stride[axis]*x[axis] {
			dims[last], strides[last] = dims[last]*x[axis], stride[axis]
		} else {
			dims, strides = append(dims, x[axis]), append(strides, stride[axis])
		}
	}
	if len(dims) == 0 {
		return []int{1}, []int{1}
	}
	return dims, strides
}
