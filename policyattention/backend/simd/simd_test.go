//go:build amd64 && goexperiment.simd

package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/compute/shapes"

	"icrl/internal/testkit"
)

// installed skips a test where no kernels are wanted, and fails it where they are not in
// place: then a new version of the library has other types.
func installed(t *testing.T) {
	t.Helper()
	if !wanted() {
		t.Skip("no AVX-512 here, or GOMLX_SIMD_AVX512 switches it off")
	}
	if !active {
		t.Fatal("the library's types are no longer those in library.go, so its executors stay")
	}
}

// both computes a function of the inputs with the library's executors and with the
// kernels. It fails the test if no kernel took the operation op.
func both(t *testing.T, op compute.OpType, build func(f compute.Function, x []compute.Value) (compute.Value, error), inputs ...input) (want, got []float32) {
	t.Helper()
	backend, err := gobackend.New("ops_sequential")
	check(t, err)
	builder := backend.Builder(t.Name())
	f := builder.Main()
	var values []compute.Value
	var buffers []compute.Buffer
	for i, x := range inputs {
		shape := shapes.Make(dtypes.FromAny(x.entry()), x.dims...)
		v, err := f.Parameter(fmt.Sprint("x", i), shape, nil)
		check(t, err)
		b, err := backend.BufferFromFlatData(0, x.flat, shape)
		check(t, err)
		values, buffers = append(values, v), append(buffers, b)
	}
	y, err := build(f, values)
	check(t, err)
	check(t, f.Return([]compute.Value{y}, nil))
	program, err := builder.Compile()
	check(t, err)
	run := func() []float32 {
		out, err := program.Execute(buffers, nil, 0)
		check(t, err)
		shape, err := out[0].Shape()
		check(t, err)
		flat := make([]float32, shape.Size())
		check(t, out[0].ToFlatData(flat))
		return flat
	}

	table := nodeExecutors
	defer func() { nodeExecutors = table }()
	if !empty(inputs) { // of which the library's products take none
		nodeExecutors = library
		want = run()
	}
	taken := false
	k := kernels[op]
	counted := kernel{inPlace: k.inPlace, prepare: func(n *node, inputs []*buffer) writer {
		f := k.prepare(n, inputs)
		taken = taken || f != nil
		return f
	}}
	nodeExecutors[op] = counted.executor(op)
	got = run()
	if !taken && len(got) > 0 {
		t.Errorf("%s: the kernel did not take it", op)
	}
	return want, got
}

func empty(inputs []input) bool {
	return slices.ContainsFunc(inputs, func(x input) bool { return size(x.dims) == 0 })
}

type input struct {
	flat any
	dims []int
}

func (x input) entry() any {
	if _, ok := x.flat.([]bool); ok {
		return false
	}
	return float32(0)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func size(dims []int) int {
	n := 1
	for _, d := range dims {
		n *= d
	}
	return n
}

// random draws a tensor of standard normal entries.
func random(rng *rand.Rand, dims ...int) input {
	x := make([]float32, size(dims))
	for i := range x {
		x[i] = float32(rng.NormFloat64())
	}
	return input{x, dims}
}

// closeTo compares entry by entry: |got − want| ≤ tolerance·max(1, |want|), and what is no
// number or infinite is so in both.
func closeTo(t *testing.T, want, got []float32, tolerance float64) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("%d entries, want %d", len(got), len(want))
	}
	for i := range want {
		w, g := float64(want[i]), float64(got[i])
		if math.IsNaN(w) && math.IsNaN(g) || w == g {
			continue
		}
		if !(math.Abs(g-w) <= tolerance*max(1, math.Abs(w))) {
			t.Fatalf("entry %d of %d is %v, want %v", i, len(want), g, w)
		}
	}
}

// Products of matrices of all kinds of sizes. A sum of k products of normal numbers is
// about √k, and takes k roundings of 2⁻²⁴ of it: 1e-5·√k leaves room.
func TestDot(t *testing.T) {
	installed(t)
	rng := rand.New(rand.NewPCG(1, 1))
	for _, c := range [][4]int{ // batch, m, n, k
		{1, 1, 1, 1}, {1, 4, 32, 256}, {2, 5, 33, 257}, {3, 24, 24, 16}, {3, 16, 24, 24}, {1, 3, 31, 700},
		{1, 7, 1, 45}, {2, 2, 17, 3}, {5, 66, 66, 16}, {1, 64, 1536, 64}, {1, 6, 40, 513}, {1, 9, 16, 15},
		{0, 2, 3, 4}, {2, 0, 3, 4}, {2, 2, 3, 0},
	} {
		batch, m, n, k := c[0], c[1], c[2], c[3]
		for _, transposed := range []bool{false, true} {
			right, axis := []int{batch, k, n}, 1
			if transposed {
				right, axis = []int{batch, n, k}, 2
			}
			t.Run(fmt.Sprint(c, transposed), func(t *testing.T) {
				want, got := both(t, compute.OpTypeDotGeneral, func(f compute.Function, x []compute.Value) (compute.Value, error) {
					return f.DotGeneral(x[0], []int{2}, []int{0}, x[1], []int{axis}, []int{0}, compute.DotGeneralConfig{})
				}, random(rng, batch, m, k), random(rng, right...))
				if k == 0 {
					want = make([]float32, batch*m*n)
				}
				closeTo(t, want, got, 1e-5*math.Sqrt(float64(k)))
			})
		}
	}
}

// A transposition moves entries and changes none.
func TestTranspose(t *testing.T) {
	installed(t)
	rng := rand.New(rand.NewPCG(2, 1))
	for range 300 {
		dims := make([]int, 1+rng.IntN(5))
		for i := range dims {
			dims[i] = 1 + rng.IntN([]int{3, 9, 40}[rng.IntN(3)])
		}
		if size(dims) > 1<<17 {
			continue
		}
		axes := rng.Perm(len(dims))
		want, got := both(t, compute.OpTypeTranspose, func(f compute.Function, x []compute.Value) (compute.Value, error) {
			return f.Transpose(x[0], axes...)
		}, random(rng, dims...))
		for i := range want {
			if want[i] != got[i] {
				t.Fatalf("%v %v: entry %d is %v, want %v", dims, axes, i, got[i], want[i])
			}
		}
	}
}

// Sums, products and the like are rounded once, by the library and by the processor alike.
func TestBinary(t *testing.T) {
	installed(t)
	rng := rand.New(rand.NewPCG(3, 1))
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for op, f := range map[compute.OpType]func(f compute.Function, x, y compute.Value) (compute.Value, error){
		compute.OpTypeAdd: compute.Function.Add,
		compute.OpTypeSub: compute.Function.Sub,
		compute.OpTypeMul: compute.Function.Mul,
		compute.OpTypeDiv: compute.Function.Div,
		compute.OpTypeMax: compute.Function.Max,
	} {
		for i := range 200 {
			x, y := make([]int, rng.IntN(5)), []int(nil)
			for i := range x {
				x[i] = 1 + rng.IntN([]int{3, 9, 40}[rng.IntN(3)])
			}
			if i%10 == 0 && len(x) > 0 {
				x[0] = 0
			}
			y = append(y, x...)
			for i := range x { // broadcast some axes
				switch rng.IntN(4) {
				case 0:
					x[i] = min(x[i], 1)
				case 1:
					y[i] = min(y[i], 1)
				}
			}
			if rng.IntN(8) == 0 {
				y = nil
			}
			a, b := random(rng, x...), random(rng, y...)
			for _, v := range []input{a, b} {
				if flat := v.flat.([]float32); len(flat) > 0 && i%3 == 0 {
					flat[rng.IntN(len(flat))] = []float32{nan, inf, -inf, 0}[rng.IntN(4)]
				}
			}
			want, got := both(t, op, func(g compute.Function, v []compute.Value) (compute.Value, error) {
				return f(g, v[0], v[1])
			}, a, b)
			closeTo(t, want, got, 0)
		}
	}
}

func TestWhere(t *testing.T) {
	installed(t)
	rng := rand.New(rand.NewPCG(4, 1))
	for _, dims := range [][]int{{1}, {3, 5}, {64, 16}, {7, 33}, {0, 4}} {
		c := make([]bool, size(dims))
		for i := range c {
			c[i] = rng.IntN(2) == 0
		}
		for _, operands := range [][2][]int{{dims, dims}, {dims, nil}, {nil, dims}, {nil, nil}} {
			want, got := both(t, compute.OpTypeWhere, func(f compute.Function, x []compute.Value) (compute.Value, error) {
				return f.Where(x[0], x[1], x[2])
			}, input{c, dims}, random(rng, operands[0]...), random(rng, operands[1]...))
			closeTo(t, want, got, 0)
		}
	}
}

// Exponentials are within two units in the last place, 2·2⁻²³, of those of math.Exp.
func TestExp(t *testing.T) {
	installed(t)
	x := []float32{0, 1, -1, 88.72, 88.8, 100, -87, -87.5, -103, -104, -200, -1e9, 1e9,
		float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))}
	for v := float32(-90); v < 89; v += .0137 {
		x = append(x, v)
	}
	want, got := both(t, compute.OpTypeExp, func(f compute.Function, x []compute.Value) (compute.Value, error) { return f.Exp(x[0]) }, input{x, []int{len(x)}})
	for i := range x {
		w, g := float64(want[i]), float64(got[i])
		if w == g || math.IsNaN(w) && math.IsNaN(g) {
			continue
		}
		if !(math.Abs(g-w) <= math.Max(2*math.Abs(w)*0x1p-23, 0x1p-149)) {
			t.Errorf("exp(%v) = %v, want %v", x[i], g, w)
		}
	}
}

// Square roots are rounded as IEEE 754 says, so that there is one answer.
func TestSqrt(t *testing.T) {
	installed(t)
	rng := rand.New(rand.NewPCG(5, 2))
	x := []float32{0, 1, 2, -1, 1e-40, float32(math.Inf(1)), float32(math.NaN())}
	for range 100 {
		x = append(x, float32(math.Exp(20*rng.NormFloat64())))
	}
	want, got := both(t, compute.OpTypeSqrt, func(f compute.Function, x []compute.Value) (compute.Value, error) { return f.Sqrt(x[0]) }, input{x, []int{len(x)}})
	closeTo(t, want, got, 0)
}

// A function takes the place of its last input where nothing else reads that, and leaves the
// input alone where something does.
func TestStandInPlace(t *testing.T) {
	installed(t)
	const name = "test of a function in place"
	StandInPlace(name, func(in, out [][]float32, _ int) error {
		for i := range out[0] {
			out[0][i] += in[0][i]
		}
		return nil
	})
	b := testkit.Must(gobackend.New("ops_sequential"))(t)
	builder := b.Builder(name)
	shape := shapes.Make(dtypes.Float32, 3)
	f := testkit.Must(builder.NewFunction(name))(t)
	x := testkit.Must(f.Parameter("x", shape, nil))(t)
	testkit.Must(f.Parameter("y", shape, nil))(t)
	check(t, f.Return([]compute.Value{x}, nil))
	main := builder.Main()
	var in []compute.Value
	for _, name := range []string{"a", "b"} {
		in = append(in, testkit.Must(main.Parameter(name, shape, nil))(t))
	}
	// sum is read again after it was added to, twice is not.
	sum := testkit.Must(main.Add(in[0], in[1]))(t)
	twice := testkit.Must(main.Call(f, in[0], sum))(t)[0]
	thrice := testkit.Must(main.Call(f, in[0], twice))(t)[0]
	check(t, main.Return([]compute.Value{sum, thrice}, nil))
	program := testkit.Must(builder.Compile())(t)
	var buffers []compute.Buffer
	for _, v := range [][]float32{{1, 2, 3}, {10, 20, 30}} {
		buffers = append(buffers, testkit.Must(b.BufferFromFlatData(0, v, shape))(t))
	}
	out := testkit.Must(program.Execute(buffers, nil, 0))(t)
	for i, want := range [][]float32{{11, 22, 33}, {13, 26, 39}} {
		got := make([]float32, 3)
		check(t, out[i].ToFlatData(got))
		if !slices.Equal(got, want) {
			t.Errorf("output %d is %v, want %v", i, got, want)
		}
	}
}

// The kernel adds in another order: n roundings of 2⁻²⁴ of sums about √n.
func TestReduce(t *testing.T) {
	installed(t)
	rng := rand.New(rand.NewPCG(5, 1))
	for op, f := range map[compute.OpType]func(f compute.Function, x compute.Value, axes ...int) (compute.Value, error){
		compute.OpTypeReduceSum: compute.Function.ReduceSum,
		compute.OpTypeReduceMax: compute.Function.ReduceMax,
	} {
		for range 100 {
			dims := make([]int, 1+rng.IntN(4))
			for i := range dims {
				dims[i] = 1 + rng.IntN([]int{3, 9, 40}[rng.IntN(3)])
			}
			from := rng.IntN(len(dims))
			var axes []int
			for axis := from; axis <= from+rng.IntN(len(dims)-from); axis++ {
				axes = append(axes, axis)
			}
			if len(axes) == 0 {
				continue
			}
			want, got := both(t, op, func(g compute.Function, x []compute.Value) (compute.Value, error) {
				return f(g, x[0], axes...)
			}, random(rng, dims...))
			closeTo(t, want, got, 1e-5*math.Sqrt(float64(size(dims))))
		}
	}
}

func TestSlice(t *testing.T) {
	installed(t)
	rng := rand.New(rand.NewPCG(6, 1))
	for range 200 {
		dims := make([]int, 1+rng.IntN(4))
		from, to := make([]int, len(dims)), make([]int, len(dims))
		for i := range dims {
			dims[i] = 1 + rng.IntN(20)
			if rng.IntN(2) == 0 {
				to[i] = dims[i]
			} else {
				from[i] = rng.IntN(dims[i])
				to[i] = from[i] + 1 + rng.IntN(dims[i]-from[i])
			}
		}
		want, got := both(t, compute.OpTypeSlice, func(f compute.Function, x []compute.Value) (compute.Value, error) {
			return f.Slice(x[0], from, to, nil)
		}, random(rng, dims...))
		closeTo(t, want, got, 0)
	}
}
