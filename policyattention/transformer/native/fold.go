//go:build amd64 && goexperiment.simd

package native

import (
	"fmt"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	. "icrl/internal/avx512"
	"icrl/policyattention/transformer"
)

// foldedPlaces is where Fold puts what it makes of parameters: maps whose panels are ready, and no
// norms.
func foldedPlaces(c transformer.Config) *places {
	w, r := &places{}, &room{}
	part := func(in, out int) linear {
		return linear{in: in, out: out, bias: r.place(out), panels: r.place(PackedSize(in, out))}
	}
	w.embed = part(c.Features+1, c.Width)
	for l := range c.Layers {
		in := c.Width
		if l == 0 {
			in = c.Features + 1
		}
		w.body = append(w.body, block{
			q: part(in, c.Width), k: part(in, c.Width), v: part(in, c.Width), out: part(c.Width, c.Width),
			up: part(c.Width, c.Hidden), down: part(c.Hidden, c.Width),
		})
	}
	w.head = part(c.Width, c.Outputs)
	w.size = r.size
	return w
}

// FoldedSize is the number of entries that Fold writes.
func FoldedSize(c transformer.Config) int { return foldedPlaces(c).size }

// Fold folds parameters [Size] for Infer, to [FoldedSize]. It takes products of
// parameters that a pass would multiply activations with one after the other:
//
//   - what is added to the residual stream is centred over features, so that LayerNorm has no
//     mean to take off;
//   - gains and biases of LayerNorm go into the linear map that follows;
//   - before the first block, tokens go through the embedding, a division by their
//     activations' root mean square, and the map to queries, keys and values. Division comes
//     first, and the two maps are one of Features + 1 inputs.
//
// It returns an error for a slice of another length.
func Fold(c transformer.Config, params, into []float32) error {
	if len(params) != c.Size() || len(into) != FoldedSize(c) {
		return fmt.Errorf("native: %d parameters folded into %d entries, want %d into %d", len(params), len(into), c.Size(), FoldedSize(c))
	}
	clear(into)
	p := map[string]*mat.Dense{} // vectors are of one row
	for _, t := range c.Layout() {
		rows, columns := 1, t.Shape[len(t.Shape)-1]
		if len(t.Shape) == 2 {
			rows = t.Shape[0]
		}
		p[t.Name] = mat.NewDense(rows, columns, nil)
		for i, v := range params[t.Offset:][:t.Size()] {
			p[t.Name].RawMatrix().Data[i] = float64(v)
		}
	}
	w := foldedPlaces(c)
	write := func(l linear, from mat.Matrix, bias mat.Matrix) {
		panels, shift := single(from), single(bias)
		Pack(At(Start(into), l.panels), Start(panels), l.out, l.in, l.out)
		copy(into[l.bias:], shift)
	}
	embed := mat.NewDense(c.Features+1, c.Width, nil) // a token has a 1 after its features
	embed.Stack(p["embed.weight"], p["embed.bias"])
	centre(embed)
	write(w.embed, embed, mat.NewDense(1, c.Width, nil))
	for l, to := range w.body {
		name := fmt.Sprintf("blocks.%d.", l)
		weight, bias := absorb(p, name+"norm1", name+"qkv")
		if l == 0 {
			var both mat.Dense
			both.Mul(embed, weight)
			weight = &both
		}
		for i, third := range []linear{to.q, to.k, to.v} {
			in, _ := weight.Dims()
			write(third, weight.Slice(0, in, i*c.Width, (i+1)*c.Width), bias.Slice(0, 1, i*c.Width, (i+1)*c.Width))
		}
		for _, residual := range []string{name + "out", name + "down"} {
			centre(p[residual+".weight"])
			centre(p[residual+".bias"])
		}
		write(to.out, p[name+"out.weight"], p[name+"out.bias"])
		weight, bias = absorb(p, name+"norm2", name+"up")
		write(to.up, weight, bias)
		write(to.down, p[name+"down.weight"], p[name+"down.bias"])
	}
	weight, bias := absorb(p, "norm", "head")
	write(w.head, weight, bias)
	return nil
}

// absorb is a linear map with the gain and the bias of the LayerNorm before it.
func absorb(p map[string]*mat.Dense, norm, linear string) (weight, bias *mat.Dense) {
	weight, bias = &mat.Dense{}, &mat.Dense{}
	bias.Mul(p[norm+".bias"], p[linear+".weight"])
	bias.Add(bias, p[linear+".bias"])
	weight.Mul(mat.NewDiagDense(len(p[norm+".gain"].RawMatrix().Data), p[norm+".gain"].RawMatrix().Data), p[linear+".weight"])
	return weight, bias
}

// centre takes the mean off each row.
func centre(m *mat.Dense) {
	rows, columns := m.Dims()
	for i := range rows {
		floats.AddConst(-floats.Sum(m.RawRowView(i))/float64(columns), m.RawRowView(i))
	}
}

// single is a matrix in float32, row by row.
func single(m mat.Matrix) []float32 {
	rows, columns := m.Dims()
	x := make([]float32, 0, rows*columns)
	for i := range rows {
		for j := range columns {
			x = append(x, float32(m.At(i, j)))
		}
	}
	return x
}
