package train

import (
	"fmt"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"icrl/policyattention/pmd"
	"icrl/policyattention/transformer/engine"
)

// Inside is what an actor's attention does, on contexts of problems that it was not trained on.
type Inside struct {
	RowL1 float64 // mean ‖π̂ − PMD(π, Q, η)‖₁ over states and contexts
	Heads []Head  // layer by layer
	// PriorR2 and GainR2 [Layers+1] are R² of linear maps from a token, as embedded and after each
	// layer, to its log π and ηQ: fitted in one half of the contexts, measured in the other.
	PriorR2, GainR2 []float64
}

// Head is a head of a layer, counted from 1.
type Head struct {
	Layer int
	// Own, State and Others are the mean attention of a pair to itself, to other actions of its state
	// and to other states. They sum to 1.
	Own, State, Others float64
	Without            float64 // RowL1 with what this head alone writes set to 0
}

// Inspect takes an actor apart on contexts of as many problems, drawn as in training from another root.
// It returns an error for a critic, and for an actor whose pairs do not all attend to each other.
func (m *Model) Inspect(root uint64, contexts int) (*Inside, error) {
	c := m.Config
	if c.Objective == Critic || c.Attention != Everything {
		return nil, fmt.Errorf("train: %s with attention %q, want an actor with the paper's", c.Objective, c.Attention)
	}
	c.Task, c.Seed, c.MDPs, c.Examples, c.Batch = root, root, contexts, contexts, 1
	examples, err := c.examples()
	if err != nil {
		return nil, err
	}
	x := &inspection{m, c.Network().Features, c.States() * c.Actions, examples}
	in := &Inside{}
	if in.RowL1, err = x.rowL1(m.params); err != nil {
		return nil, err
	}
	if err := x.trace(in); err != nil {
		return nil, err
	}
	for i := range in.Heads {
		if in.Heads[i].Without, err = x.rowL1(x.without(in.Heads[i].Layer-1, i%c.Heads)); err != nil {
			return nil, err
		}
	}
	return in, nil
}

// inspection is an actor with the arrays of examples.
type inspection struct {
	*Model
	features, pairs int
	examples        []array // tokens, log π and ηQ
}

// rowL1 is the mean row-L1 distance to PMD's policy of the actor with other parameters.
func (x *inspection) rowL1(params []float32) (float64, error) {
	n, err := engine.New[float32](x.Config.Network(), params)
	if err != nil {
		return 0, fmt.Errorf("train: %w", err)
	}
	tokens, prior, gain := x.examples[0].values, x.examples[1].values, x.examples[2].values
	out, err := n.Forward(engine.Pass{B: len(prior) / x.pairs, T: x.pairs, K: x.pairs}, tokens)
	if err != nil {
		return 0, fmt.Errorf("train: %w", err)
	}
	sum, actions := 0., x.Config.Actions
	for at := 0; at < len(out); at += actions {
		p, q := make([]float64, actions), make([]float64, actions)
		for a := range p {
			p[a], q[a] = float64(out[at+a]), float64(prior[at+a])+float64(gain[at+a])
			if x.Config.Recipe.Readout == PriorReadout {
				p[a] += float64(prior[at+a])
			}
		}
		pmd.Softmax(p)
		pmd.Softmax(q)
		sum += floats.Distance(p, q, 1)
	}
	return sum / float64(len(out)/actions), nil
}

// without are the parameters with what a head writes set to 0.
func (x *inspection) without(layer, head int) []float32 {
	c, params := x.Config, append([]float32(nil), x.params...)
	for _, t := range c.Network().Layout() {
		if t.Name == fmt.Sprintf("blocks.%d.out.weight", layer) {
			rows := c.Width / c.Heads * c.Width
			clear(params[t.Offset+head*rows:][:rows])
		}
	}
	return params
}

// trace fills in the attention of heads and what tokens hold layer by layer.
func (x *inspection) trace(in *Inside) error {
	c, n := x.Config, x.examples[0].shape[0]
	for i := range c.Layers * c.Heads {
		in.Heads = append(in.Heads, Head{Layer: i/c.Heads + 1})
	}
	held := make([][]float64, c.Layers+1) // rows of Width, after each layer
	for i := range n {
		tokens := make([][]float64, x.pairs)
		for j := range tokens {
			for _, v := range x.examples[0].values[(i*x.pairs+j)*x.features:][:x.features] {
				tokens[j] = append(tokens[j], float64(v))
			}
		}
		t, err := x.network.Trace(tokens)
		if err != nil {
			return fmt.Errorf("train: %w", err)
		}
		for _, row := range t.Embedded {
			held[0] = append(held[0], row...)
		}
		for l, b := range t.Blocks {
			for _, row := range b.Output {
				held[l+1] = append(held[l+1], row...)
			}
			for h, weights := range b.Weights {
				in.Heads[l*c.Heads+h].add(weights, c.Actions, 1/float64(n*x.pairs))
			}
		}
	}
	for _, rows := range held {
		r2, err := x.readOut(mat.NewDense(n*x.pairs, c.Width, rows))
		if err != nil {
			return err
		}
		in.PriorR2, in.GainR2 = append(in.PriorR2, r2[0]), append(in.GainR2, r2[1])
	}
	return nil
}

// add adds the attention [queries][seen] of pairs, row by row, to other pairs.
func (h *Head) add(weights [][]float64, actions int, share float64) {
	for query, row := range weights {
		for key, w := range row {
			switch {
			case key == query:
				h.Own += share * w
			case key/actions == query/actions:
				h.State += share * w
			default:
				h.Others += share * w
			}
		}
	}
}

// readOut is R² of log π and of ηQ in the second half of the tokens, by least squares in the first.
func (x *inspection) readOut(tokens *mat.Dense) (r2 [2]float64, err error) {
	n, width := tokens.Dims()
	with := mat.NewDense(n, width+1, nil)
	with.Augment(tokens, mat.NewDense(n, 1, constant(n, 1)))
	var svd mat.SVD
	if !svd.Factorize(with.Slice(0, n/2, 0, width+1), mat.SVDThin) {
		return r2, fmt.Errorf("train: no singular values of %d tokens", n/2)
	}
	for k := range r2 {
		y := make([]float64, n)
		for i, v := range x.examples[1+k].values {
			y[i] = float64(v)
		}
		var fitted, said mat.Dense
		svd.SolveTo(&fitted, mat.NewDense(n/2, 1, y[:n/2]), svd.Rank(1e-5))
		said.Mul(with.Slice(n/2, n, 0, width+1), &fitted)
		r2[k] = stat.RSquaredFrom(said.RawMatrix().Data, y[n/2:], nil)
	}
	return r2, nil
}

func constant(n int, v float64) []float64 {
	all := make([]float64, n)
	floats.AddConst(v, all)
	return all
}
