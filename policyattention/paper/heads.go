package paper

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/pmd"
	"icrl/policyattention/rows"
	"icrl/policyattention/stats"
	"icrl/policyattention/train"
	"icrl/policyattention/transformer"
)

// probe is a study of a trained actor on problems of its own.
type probe struct {
	Actor *Weights `json:"actor"`
	Root  uint64   `json:"root"` // of problems and contexts
}

// Weights implements method.Study.
func (p probe) Weights() []method.Weights { return p.Actor.Weights() }

// OwnProblems implements method.Study: contexts are drawn as in training.
func (probe) OwnProblems() bool { return true }

// measured is an actor beside exact PMD.
type measured struct {
	rowL1  float64   // mean of ‖π̂ − PMD(π, Q, η)‖₁ over states and contexts
	ratios []float64 // mean loss of the loop after rounds over exact PMD's
	locked []float64 // share of problems where it is more than .05 behind
}

// measure sets actors beside exact PMD in contexts, and in loops of some rounds on n problems of the same size.
func (p probe) measure(contexts []control.Context, n int, rounds []int, eta float64, actors ...control.Actor) (
	all []measured, err error) {
	states, actions := contexts[0].Q.Dims()
	problems, err := mdp.Random.Draw(p.Root, states, actions, n)
	if err != nil {
		return nil, err
	}
	loop := control.ExactPMD(eta)
	steps, err := loop.Actor.Act(contexts)
	exact, failed := scored(loop, problems, rounds...)
	if err := cmp.Or(err, failed); err != nil {
		return nil, err
	}
	for _, loop.Actor = range actors {
		policies, err := loop.Actor.Act(contexts)
		losses, failed := scored(loop, problems, rounds...)
		if err := cmp.Or(err, failed); err != nil {
			return nil, err
		}
		var m measured
		for i := range contexts {
			m.rowL1 += pmd.RowL1(policies[i].Pi, steps[i].Pi)
		}
		m.rowL1 /= float64(len(contexts))
		for k := range rounds {
			learned, reference := make([]float64, n), make([]float64, n)
			for i := range n {
				learned[i], reference[i] = losses[i][k], exact[i][k]
			}
			m.ratios = append(m.ratios, stats.Mean(learned)/stats.Mean(reference))
			floats.Sub(learned, reference)
			m.locked = append(m.locked, stats.TailOf(learned, .05).Above)
		}
		all = append(all, m)
	}
	return all, nil
}

// heads is the study of what attention does in a trained actor, and of what its tokens hold.
type heads struct {
	probe
	Contexts int     `json:"contexts"` // and problems of the loop
	Alone    int     `json:"alone"`    // problems on which each head alone is removed from it
	Rounds   []int   `json:"rounds"`   // of loops; on those problems the second
	Eta      float64 `json:"eta"`
}

func headsOf(s method.Setting) (method.Study, error) {
	w, err := weights(train.Proximal, s)
	return heads{probe{w, s.Root}, 256, 32, anyHorizons, s.Eta}, err
}

// Compute implements method.Study: by layer, or by layer + head/100, heads counted from 1.
func (h heads) Compute(m *method.Models, _ []mdp.Problem) (all rows.Tables, err error) {
	model, err := h.Actor.model(m)
	if err != nil {
		return all, err
	}
	all.Measures, err = h.inspect(model)
	return all, err
}

// inspect takes an actor apart. Quantities are those of switched and
//
//	own, state, action, others
//	                   mean attention of a head's pairs to themselves, other actions of their state, their action in
//	                   other states, and all else; as layer 0 that of equal weights for all that they see
//	without            mean row-L1 of one step with what this head alone writes set to 0, over that of the whole actor
//	loop_without       mean loss of the loop without this head over that with it, on the first Alone problems
//	prior_r2, gain_r2  R² of linear maps from a token, as embedded (layer 0) and after each layer, to its log π and
//	                   ηQ: fitted in one half of the contexts, measured in the other
func (h heads) inspect(model *train.Model) (all []rows.Measure, err error) {
	c := model.Config
	act := func(attention train.Attention, params []float32) (control.Actor, error) {
		changed := c
		changed.Attention = attention
		m, err := train.NewModel(changed, params)
		if err != nil {
			return nil, err
		}
		return m.Actor()
	}
	contexts, err := elsewhere(c, h.Root, h.Contexts)
	if err != nil {
		return nil, err
	}
	all, err = h.switched(contexts, c.Attention, c.Network(), model.Params, act)
	attention, tokens, failed := traces(model, contexts)
	if err := cmp.Or(err, failed); err != nil {
		return nil, err
	}
	add := func(quantity string, x, value float64) {
		all = append(all, rows.Measure{Quantity: quantity, X: x, Value: value})
	}
	var places []float64
	var actors []control.Actor
	for i, to := range attention { // the first is of equal weights, beside the whole actor
		place, params := 0., model.Params
		if head := i - 1; head >= 0 {
			place = float64(100*(head/c.Heads+1)+head%c.Heads+1) / 100
			params = silenced(c.Network(), params, head)
		}
		for k, whom := range []string{"own", "state", "action", "others"} {
			add(whom, place, to[k])
		}
		actor, err := act(c.Attention, params)
		if err != nil {
			return nil, err
		}
		places, actors = append(places, place), append(actors, actor)
	}
	found, err := h.measure(contexts, h.Alone, h.Rounds[1:2], h.Eta, actors...)
	if err != nil {
		return nil, err
	}
	for i, place := range places[1:] {
		add("without", place, found[i+1].rowL1/found[0].rowL1)
		add("loop_without", place, found[i+1].ratios[0]/found[0].ratios[0])
	}
	var prior, gain []float64
	for _, x := range contexts {
		for i, p := range x.Pi.RawMatrix().Data {
			prior = append(prior, max(math.Log(p), control.LogFloor))
			gain = append(gain, x.Eta*x.Q.RawMatrix().Data[i])
		}
	}
	for layer, held := range tokens {
		r2, err := readOut(held, prior, gain)
		if err != nil {
			return nil, err
		}
		add("prior_r2", float64(layer), r2[0])
		add("gain_r2", float64(layer), r2[1])
	}
	return all, nil
}

// switched are a network as it was trained, one with its parameters whose tokens see themselves alone (itself), and
// one whose heads write nothing (silent), as actors that act makes: rowL1 at X = 1, after more rounds their ratios.
func (h heads) switched(contexts []control.Context, attention train.Attention, shape transformer.Config,
	params []float32, act func(train.Attention, []float32) (control.Actor, error)) (all []rows.Measure, err error) {
	silent := params
	for head := range shape.Layers * shape.Heads {
		silent = silenced(shape, silent, head)
	}
	trained, err := act(attention, params)
	itself, unmade := act(train.None, params)
	mute, failed := act(attention, silent)
	if err := cmp.Or(err, unmade, failed); err != nil {
		return nil, err
	}
	found, err := h.measure(contexts, h.Contexts, h.Rounds, h.Eta, trained, itself, mute)
	for i, m := range found {
		how := []string{"trained", "itself", "silent"}[i]
		all = append(all, rows.Measure{Quantity: how, X: 1, Value: m.rowL1})
		for k, ratio := range m.ratios {
			all = append(all, rows.Measure{Quantity: how, X: float64(h.Rounds[k]), Value: ratio})
		}
	}
	return all, err
}

// elsewhere are n contexts of as many other MDPs, drawn as in training.
func elsewhere(c train.Config, root uint64, n int) ([]control.Context, error) {
	c.Task, c.Seed, c.MDPs, c.Examples, c.Batch = root, root, n, n, 1
	return c.Contexts()
}

// silenced are the parameters of a network with what a head, counted over all layers, writes set to 0.
func silenced(c transformer.Config, params []float32, head int) []float32 {
	params = slices.Clone(params)
	size := c.Width / c.Heads * c.Width
	for _, t := range c.Layout() {
		if t.Name == fmt.Sprintf("blocks.%d.out.weight", head/c.Heads) {
			clear(params[t.Offset+head%c.Heads*size:][:size])
		}
	}
	return params
}

// traces returns the mean attention to a pair itself, its state, its action and all else, of equal weights and of each
// head, and the tokens [contexts·S·A, Width] as embedded and after each layer.
func traces(model *train.Model, contexts []control.Context) (attention [][4]float64, held []*mat.Dense, err error) {
	c := model.Config
	pairs := c.States() * c.Actions
	n, group := float64(len(contexts)*pairs), cmp.Or(c.Network().Group, pairs)
	attention = make([][4]float64, 1+c.Layers*c.Heads)
	for range c.Layers + 1 {
		held = append(held, mat.NewDense(len(contexts)*pairs, c.Width, nil))
	}
	for i, x := range contexts {
		t, err := model.Trace(x)
		if err != nil {
			return nil, nil, err
		}
		for j, row := range t.Embedded {
			held[0].SetRow(i*pairs+j, row)
		}
		for l, b := range t.Blocks {
			for j, row := range b.Output {
				held[l+1].SetRow(i*pairs+j, row)
			}
			for head, weights := range b.Weights {
				for query, row := range weights {
					for key, w := range row {
						key += query / group * group
						to := 3
						if key == query {
							to = 0
						} else if key/c.Actions == query/c.Actions {
							to = 1
						} else if key%c.Actions == query%c.Actions {
							to = 2
						}
						attention[1+l*c.Heads+head][to] += w / n
						attention[0][to] += 1 / float64(len(row)*c.Layers*c.Heads) / n
					}
				}
			}
		}
	}
	return attention, held, nil
}

// readOut is R² of each y in the second half of the tokens, by least squares in the first.
func readOut(tokens *mat.Dense, ys ...[]float64) (r2 []float64, err error) {
	n, width := tokens.Dims()
	with := mat.NewDense(n, width+1, nil)
	with.Augment(tokens, mat.NewDense(n, 1, slices.Repeat([]float64{1}, n)))
	var svd mat.SVD
	if !svd.Factorize(with.Slice(0, n/2, 0, width+1), mat.SVDThin) {
		return nil, fmt.Errorf("paper: no singular values of %d tokens", n/2)
	}
	for _, y := range ys {
		var fitted, said mat.Dense
		svd.SolveTo(&fitted, mat.NewDense(n/2, 1, y[:n/2]), svd.Rank(1e-5))
		said.Mul(with.Slice(n/2, n, 0, width+1), &fitted)
		r2 = append(r2, stat.RSquaredFrom(said.RawMatrix().Data, y[n/2:], nil))
	}
	return r2, nil
}

// sizes is the study of a trained actor on problems of sizes that it was not trained on, and of its own.
type sizes struct {
	probe
	Sizes    []int   `json:"sizes"`
	Problems int     `json:"problems"` // a size, and contexts
	Rounds   int     `json:"rounds"`
	Eta      float64 `json:"eta"`
}

func sizesOf(s method.Setting) (method.Study, error) {
	w, err := weights(train.Proximal, s)
	return sizes{probe{w, s.Root}, []int{4, 8, 16}, 256, s.Rounds, s.Eta}, err
}

// Compute implements method.Study: by size what is measured, as row_l1, mean_ratio and locked.
func (x sizes) Compute(m *method.Models, _ []mdp.Problem) (all rows.Tables, err error) {
	model, err := x.Actor.model(m)
	if err != nil {
		return all, err
	}
	for _, states := range x.Sizes {
		other, err := resized(model, states)
		if err != nil {
			return all, err
		}
		contexts, err := elsewhere(other.Config, x.Root, x.Problems)
		actor, unmade := other.Actor()
		if err := cmp.Or(err, unmade); err != nil {
			return all, err
		}
		found, err := x.measure(contexts, x.Problems, []int{x.Rounds}, x.Eta, actor)
		if err != nil {
			return all, err
		}
		size, own := float64(states), found[0]
		all.Measures = append(all.Measures, rows.Measure{Quantity: "row_l1", X: size, Value: own.rowL1},
			rows.Measure{Quantity: "mean_ratio", X: size, Value: own.ratios[0]},
			rows.Measure{Quantity: "locked", X: size, Value: own.locked[0]})
	}
	return all, nil
}

// resized is an actor for another number of states, with the same layers: state s is embedded as state s mod S.
func resized(model *train.Model, states int) (*train.Model, error) {
	c, own := model.Config, model.Config.States()
	c.Sizes, c.Slots = []int{states}, states
	var params []float32
	for s := range states {
		params = append(params, model.Params[s%own*c.Width:][:c.Width]...)
	}
	return train.NewModel(c, append(params, model.Params[own*c.Width:]...))
}
