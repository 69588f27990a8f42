//go:build amd64 && goexperiment.simd

package simd

import (
	"fmt"
	"reflect"
	"simd/archsimd"
	"slices"
	"strings"
	"unsafe"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/dtypes"
	"github.com/gomlx/compute/gobackend"
	"github.com/gomlx/compute/shapes"
	"github.com/gomlx/compute/support/envutil"
)

// nodeExecutors is the library's table of what executes an operation. It lies in an
// internal package, and so do the types of its arguments, which the types below repeat.
// Where they have become others, matches says so and the table is left as it is.
//
//go:linkname nodeExecutors github.com/gomlx/compute/internal/gobackend.nodeExecutors
var nodeExecutors [compute.OpTypeLast]executor

// multiExecutors is the same for operations of several results.
//
//go:linkname multiExecutors github.com/gomlx/compute/internal/gobackend.MultiOutputsNodeExecutors
var multiExecutors [compute.OpTypeLast]multiExecutor

type multiExecutor func(backend unsafe.Pointer, n *node, inputs []*buffer, owned []bool) ([]*buffer, error)

// executor computes a node. It may give an input that it owns as its output, and then
// takes it out of inputs.
type executor func(backend unsafe.Pointer, n *node, inputs []*buffer, owned []bool) (*buffer, error)

// buffer is a tensor: Flat is a slice of its entries in row-major order.
type buffer struct {
	RawBackend unsafe.Pointer
	RawShape   shapes.Shape
	InUse      bool
	IsUserFed  bool
	RawBytes   []byte
	Flat       any
}

// node is an operation in a compiled graph.
type node struct {
	Index              int
	Inputs             []*node
	CapturedInputs     [][]*node
	OpType             compute.OpType
	Shape              shapes.Shape
	Builder            unsafe.Pointer
	Function           unsafe.Pointer
	MultiOutputsShapes []shapes.Shape
	MultiOutputsNodes  []*node
	IsNodeSelectOutput bool
	SelectOutputIdx    int
	Data               any
}

// dotData is Data of a product of [BatchSize, LHSCrossSize, ContractingSize] with
// [BatchSize, ContractingSize, RHSCrossSize], whose last two axes are exchanged where
// Layout is 1.
type dotData struct {
	InputDType, OutputDType                                dtypes.DType
	Config                                                 compute.DotGeneralConfig
	Layout                                                 int
	LHSContractingAxes, LHSBatchAxes                       []int
	RHSContractingAxes, RHSBatchAxes                       []int
	BatchSize, LHSCrossSize, RHSCrossSize, ContractingSize int
	Implementation                                         unsafe.Pointer
}

// sliceData is Data of a slice.
type sliceData struct{ Starts, Limits, Strides []int }

// callData is Data of a call of a function.
type callData struct{ Target unsafe.Pointer }

// functionName returns the name of a function of the library.
var functionName func(function unsafe.Pointer) string

// standsIn returns what stands in for a function of a graph, if anything does.
func standsIn(name string) (f standIn, ok bool) {
	name, _, _ = strings.Cut(name, "#")
	found, ok := functions.Load(name)
	if ok {
		f = found.(standIn)
	}
	return f, ok
}

// dataOf returns Data of a node as a *T.
func dataOf[T any](n *node) *T { return (*T)(word(n.Data)) }

// word is the pointer that an interface of a pointer or a function holds.
func word(x any) unsafe.Pointer { return (*[2]unsafe.Pointer)(unsafe.Pointer(&x))[1] }

// getBuffer takes a buffer for a shape from the pool of a backend.
var getBuffer func(backend unsafe.Pointer, shape shapes.Shape) (*buffer, error)

// workers is how many goroutines a backend may use.
var workers func(backend unsafe.Pointer) int

// library keeps the executors that kernels stand in for.
var library [compute.OpTypeLast]executor

// libraryCall is the library's executor of calls of functions.
var libraryCall multiExecutor

func init() {
	library, libraryCall = nodeExecutors, multiExecutors[compute.OpTypeCall]
	if active = wanted() && matches(); active {
		for op, k := range kernels {
			nodeExecutors[op] = k.executor(op)
		}
		multiExecutors[compute.OpTypeCall] = call
	}
}

// call has what stands in for a function compute it, if anything does.
func call(backend unsafe.Pointer, n *node, inputs []*buffer, owned []bool) ([]*buffer, error) {
	name := functionName(dataOf[callData](n).Target)
	function, ok := standsIn(name)
	if !ok {
		return libraryCall(backend, n, inputs, owned)
	}
	outputs := make([]*buffer, len(n.MultiOutputsShapes))
	var ins, outs [][]float32
	for _, x := range inputs {
		ins = append(ins, floats(x))
	}
	other := slices.ContainsFunc(n.MultiOutputsShapes, func(s shapes.Shape) bool { return s.DType != dtypes.Float32 })
	if other || slices.ContainsFunc(ins, func(x []float32) bool { return x == nil }) {
		return nil, fmt.Errorf("simd: an input or output of %s is not of float32", name)
	}
	last := len(inputs) - 1
	for i, shape := range n.MultiOutputsShapes {
		if function.inPlace && owned[last] {
			outputs[i], inputs[last] = inputs[last], nil
		} else {
			var err error
			if outputs[i], err = getBuffer(backend, shape); err != nil {
				return nil, err
			}
			if function.inPlace {
				copy(floats(outputs[i]), ins[last])
			}
		}
		outs = append(outs, floats(outputs[i]))
	}
	return outputs, function.f(ins, outs, workers(backend))
}

// wanted says whether the processor has AVX-512 and the environment does not switch it off.
func wanted() bool {
	return archsimd.X86.AVX512() && envutil.MustReadBool(envutil.SIMD_AVX512_Env, true)
}

// matches says whether the library's types are those above, and sets getBuffer and workers.
func matches() bool {
	b, err := gobackend.New("")
	if err != nil {
		return false
	}
	take, ok := reflect.TypeOf(b).MethodByName("GetBuffer")
	if !ok || take.Type.NumIn() != 2 || take.Type.In(1) != reflect.TypeFor[shapes.Shape]() || take.Type.NumOut() != 2 {
		return false
	}
	call := word(take.Func.Interface())
	getBuffer = *(*func(unsafe.Pointer, shapes.Shape) (*buffer, error))(unsafe.Pointer(&call))
	pool, ok := reflect.TypeOf(b).Elem().FieldByName("Workers")
	if !ok || pool.Type.Kind() != reflect.Pointer {
		return false
	}
	method, ok := pool.Type.MethodByName("AdjustedMaxParallelism")
	if !ok || method.Type.NumIn() != 1 || method.Type.NumOut() != 1 || method.Type.Out(0).Kind() != reflect.Int {
		return false
	}
	count := word(method.Func.Interface())
	most := *(*func(unsafe.Pointer) int)(unsafe.Pointer(&count))
	workers = func(backend unsafe.Pointer) int {
		return most(*(*unsafe.Pointer)(unsafe.Add(backend, pool.Offset)))
	}

	f := b.Builder("types").Main()
	x, err := f.Parameter("x", shapes.Make(dtypes.Float32, 2, 2), nil)
	if err != nil || !same[node](reflect.TypeOf(x)) || !same[buffer](take.Type.Out(0)) {
		return false
	}
	product, err := f.DotGeneral(x, []int{1}, nil, x, []int{0}, nil, compute.DotGeneralConfig{})
	if err != nil {
		return false
	}
	// The product is a node, or one that reshapes it.
	p := (*node)(word(product))
	for p.Data == nil && len(p.Inputs) > 0 {
		p = p.Inputs[0]
	}
	if !matchesCall(b.Builder("call")) {
		return false
	}
	part, err := f.Slice(x, []int{0, 0}, []int{1, 2}, nil)
	return err == nil && same[dotData](reflect.TypeOf(p.Data)) && same[sliceData](reflect.TypeOf((*node)(word(part)).Data))
}

// matchesCall says whether calls of functions are as above, and sets functionName.
func matchesCall(b compute.Builder) bool {
	const name = "called"
	f, err := b.NewFunction(name)
	if err != nil {
		return false
	}
	x, err := f.Parameter("x", shapes.Make(dtypes.Float32, 2), nil)
	if err != nil || f.Return([]compute.Value{x}, nil) != nil {
		return false
	}
	y, err := b.Main().Parameter("y", shapes.Make(dtypes.Float32, 2), nil)
	if err != nil {
		return false
	}
	called, err := b.Main().Call(f, y)
	if err != nil || len(called) != 1 {
		return false
	}
	n := (*node)(word(called[0])) // the call's only result, which names the call
	if len(n.Inputs) != 1 || !same[callData](reflect.TypeOf(n.Inputs[0].Data)) || dataOf[callData](n.Inputs[0]).Target != word(f) {
		return false
	}
	method, ok := reflect.TypeOf(f).MethodByName("Name")
	if !ok || method.Type.NumIn() != 1 || method.Type.NumOut() != 1 || method.Type.Out(0).Kind() != reflect.String {
		return false
	}
	named := word(method.Func.Interface())
	functionName = *(*func(unsafe.Pointer) string)(unsafe.Pointer(&named))
	return functionName(word(f)) == name
}

// same says that theirs is a pointer to a struct with the fields of T, where they are in T.
func same[T any](theirs reflect.Type) bool {
	ours := reflect.TypeFor[T]()
	if theirs.Kind() != reflect.Pointer || theirs.Elem().Kind() != reflect.Struct || theirs.Elem().NumField() != ours.NumField() {
		return false
	}
	for i := range ours.NumField() {
		x, y := ours.Field(i), theirs.Elem().Field(i)
		if !strings.EqualFold(x.Name, y.Name) || x.Offset != y.Offset || x.Type.Size() != y.Type.Size() {
			return false
		}
	}
	return true
}
