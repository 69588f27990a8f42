//go:build amd64 && goexperiment.simd

package simd

// slice is a box of a tensor.
func slice(n *node, inputs []*buffer) writer {
	d, x, dims := dataOf[sliceData](n), floats(inputs[0]), inputs[0].RawShape.Dimensions
	if x == nil || len(dims) == 0 {
		return nil
	}
	for _, s := range d.Strides {
		if s != 1 {
			return nil
		}
	}
	// Axes after the first that is cut are whole: rows of the result lie together in x.
	rank, length := len(dims), 1
	cut := rank - 1
	for ; cut > 0 && n.Shape.Dimensions[cut] == dims[cut]; cut-- {
		length *= dims[cut]
	}
	stride := length // in x, of axis cut
	length *= n.Shape.Dimensions[cut]
	offset := d.Starts[cut] * stride
	return func(out []float32, workers int) {
		parallel(workers, len(out)/length, len(out), func(from, to int) {
			for i := from; i < to; i++ {
				src, rest, size := offset, i, stride*dims[cut]
				for axis := cut - 1; axis >= 0; axis-- {
					src += (d.Starts[axis] + rest%n.Shape.Dimensions[axis]) * size
					rest, size = rest/n.Shape.Dimensions[axis], size*dims[axis]
				}
				copy(out[i*length:][:length], x[src:])
			}
		})
	}
}
