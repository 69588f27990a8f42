//go:build amd64 && goexperiment.simd

package simd

import (
	"slices"

	"github.com/gomlx/compute"

	. "icrl/internal/avx512"
)

// reduce is the sum or the maximum over axes that follow each other.
func reduce(n *node, inputs []*buffer) writer {
	x, axes := floats(inputs[0]), slices.Sorted(slices.Values(n.Data.([]int)))
	dims := inputs[0].RawShape.Dimensions
	if len(axes) == 0 { // all
		for i := range dims {
			axes = append(axes, i)
		}
	}
	if len(x) == 0 || len(axes) == 0 || axes[len(axes)-1]-axes[0] != len(axes)-1 {
		return nil
	}
	size := func(dims []int) int {
		n := 1
		for _, d := range dims {
			n *= d
		}
		return n
	}
	after := axes[0] + len(axes)
	outer, middle, inner := size(dims[:axes[0]]), size(dims[axes[0]:after]), size(dims[after:])
	return func(out []float32, workers int) {
		parallel(workers, outer, len(x), func(from, to int) {
			for i := from; i < to; i++ {
				src, dst := At(Start(x), i*middle*inner), At(Start(out), i*inner)
				if inner == 1 {
					*(*float32)(dst) = along(n.OpType, src, middle)
				} else {
					across(n.OpType, dst, src, middle, inner)
				}
			}
		})
	}
}

// across reduces rows of inner entries to one.
func across(op compute.OpType, dst, src Pointer, middle, inner int) {
	for j := 0; j < inner; j += Lanes {
		m := First(inner - j)
		total := LoadFirst(At(src, j), m)
		if op == compute.OpTypeReduceMax {
			for i := 1; i < middle; i++ {
				total = maximum(total, LoadFirst(At(src, i*inner+j), m))
			}
		} else {
			for i := 1; i < middle; i++ {
				total = total.Add(LoadFirst(At(src, i*inner+j), m))
			}
		}
		StoreFirst(At(dst, j), total, m)
	}
}

// along reduces n entries.
func along(op compute.OpType, src Pointer, n int) float32 {
	if op == compute.OpTypeReduceMax {
		return alongMax(src, n)
	}
	var total Vector
	for i := 0; i < n; i += Lanes {
		total = total.Add(LoadFirst(At(src, i), First(n-i)))
	}
	return Sum(total)
}

func alongMax(src Pointer, n int) float32 {
	total := Everywhere(*(*float32)(src))
	for i := 0; i < n; i += Lanes {
		m := First(n - i)
		total = maximum(total, LoadFirst(At(src, i), m).Merge(total, m))
	}
	var all [Lanes]float32
	total.Store(&all)
	return slices.Max(all[:])
}

// maximum is the greater of two, and NaN where one is. The processor's is the second of the
// two then.
func maximum(x, y Vector) Vector { return x.Max(y).Merge(x, x.Equal(x)) }
