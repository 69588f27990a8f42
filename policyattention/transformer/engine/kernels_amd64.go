package engine

import (
	"math"
	"unsafe"

	"golang.org/x/sys/cpu"

	"icrl/internal/numeric"
)

// paths are the sets of kernels for float32 that this processor can run, the fastest first.
func paths() (all []string) {
	avx2 := cpu.X86.HasAVX2 && cpu.X86.HasFMA && cpu.X86.HasPOPCNT
	if avx2 && cpu.X86.HasAVX512F && cpu.X86.HasAVX512BW && cpu.X86.HasAVX512DQ && cpu.X86.HasAVX512VL {
		all = append(all, "avx512")
	}
	if avx2 {
		all = append(all, "avx2")
	}
	return append(all, "portable")
}

// vectors replaces kernels by those of a path. What is not a product or a softmax takes little
// time, and has no kernels of its own for AVX-512.
func vectors(k *kernels[float32], path string) {
	if path == "portable" {
		return
	}
	k.softmaxBack, k.normalize, k.normalizeBack, k.reluBack = softmaxBack, normalize, normalizeBack, reluBack
	k.exchange, k.adamw = exchange, adamw
	k.tile, k.softmax = func(t tile[float32]) { product(t, false) }, softmaxAVX2
	if path == "avx512" {
		k.tile, k.softmax = func(t tile[float32]) { product(t, true) }, softmaxAVX512
	}
}

// tile32 is a tile as the functions in assembly read it. Distances are in bytes.
type tile32 struct {
	c, a, b, init                 unsafe.Pointer
	k, rowA, stepA, rowB, rowC, m int
	mask, add                     uint64 // lanes of the last vector, lanes of C that are added
	floor                         float32
}

//lint:file-ignore U1000 constants are read in assembly

// counted are lanes of 16 that count and 16 that do not: from entry 16−n on, the first n of 16 do.
var counted = [32]int32{-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1}

// powers are 2ʳ for |r| ≤ 1/2, from the highest power on, to 2e-9 relative before rounding; the least exponents of
// weights: with AVX-512, where it keeps those of rounded scores finite, and without, below which weights are 0; −∞.
var powers = [10]float32{
	0.0001534581242594868, 0.0013399930903688073, 0.009618489071726799, 0.05550328642129898, 0.24022646248340607,
	0.6931471824645996, 1, -200, -127, float32(math.Inf(-1)),
}

// bias8 is that of exponents, and later8 −i in lane i.
var bias8, one8, later8 = [8]int32{127, 127, 127, 127, 127, 127, 127, 127}, [8]int32{1, 1, 1, 1, 1, 1, 1, 1},
	[8]int32{0, -1, -2, -3, -4, -5, -6, -7}

// tiles1, tiles2 and tiles4 compute the m rows of a tile with so many vectors of columns, tiles16 with 16 columns: with
// init, plus C where lanes of add are set, and at least floor. The sums of 12 or 6 rows at a time stay in registers.
//
//go:noescape
func tiles1(t *tile32)

//go:noescape
func tiles2(t *tile32)

//go:noescape
func tiles4(t *tile32)

//go:noescape
func tiles16(t *tile32)

//go:noescape
func softmax16(scores unsafe.Pointer, stride, seen, some int, factor float32)

//go:noescape
func softmax8(scores unsafe.Pointer, stride, seen, some int, factor float32)

//go:noescape
func softmaxBack16(slopes, weights unsafe.Pointer, strideSlopes, strideWeights, keys int, scale float32)

//go:noescape
func normalize8(x, normal, y, inverse, gain, bias unsafe.Pointer, n, width, strideX, strideNormal, strideY int,
	share, epsilon float32)

//go:noescape
func normalizeBack8(dy, normal, dx, inverse, gain, dGain, dBias unsafe.Pointer, n, width, strideDY, strideNormal,
	strideDX int, share float32)

//go:noescape
func reluBack8(slopes, y unsafe.Pointer, n, width, strideSlopes, strideY int)

//go:noescape
func exchange8(dst, src unsafe.Pointer, to, from int)

//go:noescape
func adamw8(params, gradient, m, v, average unsafe.Pointer, n int, rates *[10]float32)

func start(x []float32) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(x)) }

// terms are about how many of a sum are added at once, so that the part of B fits into the first cache.
const terms = 80

var zeros [panel]float32

// product computes a tile, parts of its sums one after the other.
func product(t tile[float32], wide bool) {
	if t.m == 0 {
		return // the functions in assembly compute at least one row
	}
	parts := (t.k + terms - 1) / terms
	for i := range parts {
		from, to := i*t.k/parts, (i+1)*t.k/parts
		x := tile32{c: start(t.c), a: start(t.a[from*t.stepA:]), b: start(t.b[from*t.rowB:]),
			init: unsafe.Pointer(&zeros), k: to - from, rowA: 4 * t.rowA, stepA: 4 * t.stepA, rowB: 4 * t.rowB,
			rowC: 4 * t.rowC, m: t.m, floor: float32(math.Inf(-1))}
		if t.add || i > 0 {
			x.add = 1<<lanes - 1
		}
		if t.bias != nil && i == 0 {
			x.init = start(t.bias)
		}
		if t.relu && i == parts-1 {
			x.floor = 0
		}
		columns(x, t.n, wide)
	}
}

// columns computes a tile of n columns, as many at a time as there are functions for.
func columns(t tile32, n int, wide bool) {
	for width := lanes; n > 0; n -= width {
		switch {
		case wide && n > 3*lanes:
			width = 4 * lanes
		case wide && n > lanes:
			width = 2 * lanes
		default:
			width = lanes
		}
		x := t // which the functions write to
		x.mask = 1<<((min(n, width)-1)%lanes+1) - 1
		switch {
		case !wide:
			tiles16(&x)
		case width == lanes:
			tiles1(&x)
		case width == 2*lanes:
			tiles2(&x)
		default:
			tiles4(&x)
		}
		t.b, t.c, t.init = unsafe.Add(t.b, 4*width), unsafe.Add(t.c, 4*width), unsafe.Add(t.init, 4*width)
	}
}

func softmaxAVX512(scores matrix[float32], seen, some int, root float32) {
	softmax16(start(scores.data), 4*scores.stride, seen, some, math.Log2E/root)
}

func softmaxAVX2(scores matrix[float32], seen, some int, root float32) {
	softmax8(start(scores.data), 4*scores.stride, seen, some, math.Log2E/root)
	more := min(lanes/2, some) // that the other half sees
	softmax8(start(scores.data[lanes/2:]), 4*scores.stride, seen+more, some-more, math.Log2E/root)
}

func softmaxBack(slopes, weights matrix[float32], keys int, root float32) {
	softmaxBack16(start(slopes.data), start(weights.data), 4*slopes.stride, 4*weights.stride, keys, 1/root)
}

// Rows of other widths than multiples of 8 are for the portable kernels.
func normalize(x, normal, y matrix[float32], inverse, gain, bias []float32, n, width int) {
	if width%8 != 0 || n == 0 {
		portableNormalize(x, normal, y, inverse, gain, bias, n, width)
		return
	}
	normalize8(start(x.data), start(normal.data), start(y.data), start(inverse), start(gain), start(bias),
		n, width, 4*x.stride, 4*normal.stride, 4*y.stride, 1/float32(width), numeric.LayerNormEpsilon)
}

func normalizeBack(dy, normal, dx matrix[float32], inverse, gain, dGain, dBias []float32, n, width int) {
	if width%8 != 0 || n == 0 {
		portableNormalizeBack(dy, normal, dx, inverse, gain, dGain, dBias, n, width)
		return
	}
	normalizeBack8(start(dy.data), start(normal.data), start(dx.data), start(inverse), start(gain), start(dGain),
		start(dBias), n, width, 4*dy.stride, 4*normal.stride, 4*dx.stride, -1/float32(width))
}

func reluBack(slopes, y matrix[float32], n, width int) {
	if width%8 != 0 || n == 0 {
		portableReluBack(slopes, y, n, width)
		return
	}
	reluBack8(start(slopes.data), start(y.data), n, width, 4*slopes.stride, 4*y.stride)
}

// exchange takes blocks of 8 rows and columns, and what is left over entry by entry.
func exchange(dst, src matrix[float32], rows, columns int) {
	for i := 0; i+8 <= rows; i += 8 {
		for j := 0; j+8 <= columns; j += 8 {
			exchange8(start(dst.data[j*dst.stride+i:]), start(src.data[i*src.stride+j:]), 4*dst.stride, 4*src.stride)
		}
	}
	right, below := columns/8*8, rows/8*8
	portableExchange(dst.from(right), src.columns(right), below, columns-right)
	portableExchange(dst.columns(below), src.from(below), rows-below, columns)
}

func adamw(params, gradient, m, v, average []float32, r *[10]float32) {
	n := len(gradient) / 8 * 8
	if n > 0 {
		adamw8(start(params), start(gradient), start(m), start(v), start(average), n, r)
	}
	portableAdamW(params[n:], gradient[n:], m[n:], v[n:], average[n:], r)
}
