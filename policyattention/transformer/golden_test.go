package transformer

import (
	"strings"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"github.com/sbinet/npyio/npz"

	"icrl/internal/testkit"
)

// goldenShape is the network of testdata/jax.npz and testdata/torch.npz.
var goldenShape = Config{Features: 5, Layers: 3, Heads: 2, Width: 8, Hidden: 12, Outputs: 1}

// proximal is Σ_s KL(π ‖ prior) − ⟨π, gain⟩, a mean over the batch, of the policies that
// the network writes; prior holds logarithms, both are [B, S, A].
func proximal(params, tokens, prior, gain *Node) *Node {
	logits := Reshape(Bind(goldenShape, params).Vectors(tokens), prior.Shape().Dimensions...)
	logp := LogSoftmax(logits, -1)
	total := ReduceAllSum(Mul(Exp(logp), Sub(Sub(logp, prior), gain)))
	return DivScalar(total, float64(prior.Shape().Dimensions[0]))
}

// The definition against the same network in JAX 0.10.2 with optax 0.2.8 and in PyTorch
// 2.15.0, in float64 (policyattention/bench/peers/golden.py writes the files): outputs, and the gradient in
// every tensor. All add up the same numbers in other orders: 1e-11 leaves a factor of some hundred over what was seen.
func TestGoldenValues(t *testing.T) {
	for _, framework := range []string{"jax", "torch"} {
		t.Run(framework, func(t *testing.T) { testGolden(t, framework) })
	}
}

// array is one of NumPy's, in row-major order.
type array struct {
	Shape []int
	Data  []float64
}

func testGolden(t *testing.T, framework string) {
	file := testkit.Must(npz.Open("testdata/" + framework + ".npz"))(t)
	defer file.Close()
	golden := map[string]array{}
	for _, name := range file.Keys() {
		a := array{Shape: file.Header(name).Descr.Shape}
		testkit.Check(t, file.Read(name, &a.Data))
		golden[strings.TrimSuffix(name, ".npy")] = a
	}
	b := testkit.Backend(t)
	input := func(name string) *tensors.Tensor {
		a := golden[name]
		return tensors.FromFlatDataAndDimensions(a.Data, a.Shape...)
	}
	out := testkit.Run(t, b, func(in []*Node) []*Node {
		return []*Node{
			Bind(goldenShape, in[0]).Vectors(in[1]),
			Gradient(proximal(in[0], in[1], in[2], in[3]), in[0])[0],
		}
	}, input("params"), input("tokens"), input("prior"), input("gain"))
	testkit.Near(t, "outputs", tensors.MustCopyFlatData[float64](out[0]), golden["outputs"].Data, 1e-11, 1)
	gradient := tensors.MustCopyFlatData[float64](out[1])
	for _, p := range goldenShape.Layout() {
		want := golden["gradient"].Data[p.Offset:][:p.Size()]
		testkit.Near(t, "gradient of "+p.Name, gradient[p.Offset:][:p.Size()], want, 1e-11, 1)
	}
}
