package plain

import (
	"math"
	"strings"
	"testing"

	"github.com/gomlx/gomlx/core/graph"
	gomlx "github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/backend"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/seed"
	"icrl/policyattention/train"
	"icrl/policyattention/transformer"
)

// tensors looks up the parts of a flat parameter vector.
func tensors(c transformer.Config, params []float32) func(string) ([]float32, error) {
	parts := map[string][]float32{}
	for _, t := range c.Layout() {
		parts[t.Name] = params[t.Offset : t.Offset+t.Size()]
	}
	return func(name string) ([]float32, error) { return parts[name], nil }
}

// TestAgainstGoMLX compares the actor with the deployed one of package train on
// random weights. The latter computes in float32: policies differ by a few
// hundred of its units, 6e-8 each.
func TestAgainstGoMLX(t *testing.T) {
	b, err := backend.New("go")
	if err != nil {
		t.Fatal(err)
	}
	for _, recipe := range []train.Recipe{train.Plain(), train.Prior()} {
		config := train.Standard(train.Proximal, recipe, 1, 4)
		network := config.Network()
		params := network.Init(seed.New(2, "weights"))
		for i := range params { // biases and gains of random weights are trivial otherwise
			params[i] += float32(0.02 * (seed.New(3, i).Float64() - 0.5))
		}
		model, err := train.NewModel(b, config, 0, params)
		if err != nil {
			t.Fatal(err)
		}
		deployed, err := model.Actor()
		if err != nil {
			t.Fatal(err)
		}
		n, err := New(network.Features, network.Layers, network.Heads, network.Width, network.Hidden, tensors(network, params))
		if err != nil {
			t.Fatal(err)
		}
		actor := &Actor{
			Network: n, States: 4, Actions: 3,
			LogPolicy: recipe.Policy == train.LogPolicy, PriorReadout: recipe.Readout == train.PriorReadout,
		}
		problems, err := mdp.Random.Draw(4, 4, 3, 8)
		if err != nil {
			t.Fatal(err)
		}
		var batch []control.Context
		for i, p := range problems {
			q, err := p.MDP.PolicyValue(p.Pi0)
			if err != nil {
				t.Fatal(err)
			}
			batch = append(batch, control.Context{Problem: i, MDP: p.MDP, Pi: p.Pi0, Q: q, Eta: 0.8})
		}
		want, err := deployed.Act(batch)
		if err != nil {
			t.Fatal(err)
		}
		got, err := actor.Act(batch)
		if err != nil {
			t.Fatal(err)
		}
		worst := 0.0
		for i := range want {
			worst = math.Max(worst, mdp.MaxAbsDiff(got[i], want[i]))
		}
		t.Logf("%s: policies differ by at most %.2g", recipe.Name, worst)
		if worst > 2e-5 {
			t.Errorf("%s: policies differ by %v", recipe.Name, worst)
		}
	}
}

func TestRefusals(t *testing.T) {
	c := transformer.Config{Features: 5, Layers: 1, Heads: 2, Width: 4, Hidden: 3, Outputs: 1}
	good := tensors(c, c.Init(seed.New(1)))
	build := func(tensor func(string) ([]float32, error)) (*Network, error) {
		return New(c.Features, c.Layers, c.Heads, c.Width, c.Hidden, tensor)
	}
	n, err := build(good)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Forward([][]float64{{1, 2}}); err == nil {
		t.Error("a token of 2 features was taken")
	}
	actor := &Actor{Network: n, States: 2, Actions: 2}
	if _, err := actor.Act([]control.Context{{Pi: mat.NewDense(3, 2, nil)}}); err == nil || !strings.Contains(err.Error(), "policy is [3, 2]") {
		t.Errorf("a problem of another size: %v", err)
	}
	table := func(v float64) *mat.Dense { return mat.NewDense(2, 2, []float64{v, v, v, v}) }
	for want, x := range map[string]control.Context{
		"policy is missing":     {},
		"Q is missing":          {Pi: table(.5)},
		"Q is [1, 2]":           {Pi: table(.5), Q: mat.NewDense(1, 2, nil)},
		"policy row s=0":        {Pi: table(.6), Q: table(1)},
		"Q has entry (s=0,a=0)": {Pi: table(.5), Q: table(math.NaN())},
		"step size eta is -1":   {Pi: table(.5), Q: table(1), Eta: -1},
	} {
		if _, err := actor.Act([]control.Context{x}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	if _, err := build(func(name string) ([]float32, error) {
		values, err := good(name)
		if name == "blocks.0.up.weight" {
			values = values[1:]
		}
		return values, err
	}); err == nil || !strings.Contains(err.Error(), "blocks.0.up.weight has 11 values, want 12") {
		t.Errorf("a short tensor: %v", err)
	}
	if _, err := build(func(name string) ([]float32, error) {
		values, err := good(name)
		if name == "head.bias" {
			values = []float32{float32(math.NaN())}
		}
		return values, err
	}); err == nil {
		t.Error("NaN was taken for a weight")
	}
	for _, shape := range [][5]int{{0, 1, 1, 4, 3}, {5, 1, 3, 4, 3}, {5, 1, 1, 1 << 20, 3}} {
		if _, err := New(shape[0], shape[1], shape[2], shape[3], shape[4], good); err == nil {
			t.Errorf("shape %v was taken", shape)
		}
	}
}

// An unordered network with several outputs is GoMLX's, to float64's rounding.
func TestUnorderedAgainstGoMLX(t *testing.T) {
	b, err := backend.New("go")
	if err != nil {
		t.Fatal(err)
	}
	c := transformer.Config{Features: 4, Layers: 3, Heads: 2, Width: 8, Hidden: 12, Outputs: 2, Unordered: true}
	params, rng := c.Init(seed.New(4, "weights")), seed.New(5, "tokens")
	n, err := NewUnordered(c.Features, c.Layers, c.Heads, c.Width, c.Hidden, c.Outputs, tensors(c, params))
	if err != nil {
		t.Fatal(err)
	}
	const length = 9
	var rows [][]float64
	var flat []float64
	for range length {
		row := []float64{rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64(), rng.NormFloat64()}
		rows, flat = append(rows, row), append(flat, row...)
	}
	wide := make([]float64, len(params))
	for i, v := range params {
		wide[i] = float64(v)
	}
	exec, err := graph.NewExec(b, func(in []*graph.Node) *graph.Node { return c.Bind(in[0]).Vectors(in[1]) })
	if err != nil {
		t.Fatal(err)
	}
	defer exec.Finalize()
	out, err := exec.Call1(gomlx.FromFlatDataAndDimensions(wide, len(wide)), gomlx.FromFlatDataAndDimensions(flat, 1, length, c.Features))
	if err != nil {
		t.Fatal(err)
	}
	got, err := n.Vectors(rows)
	if err != nil {
		t.Fatal(err)
	}
	gomlx.MustConstFlatData(out, func(want []float64) {
		for i, w := range want {
			if g := got[i/2][i%2]; math.Abs(g-w) > 1e-12*(1+math.Abs(w)) {
				t.Errorf("output %d of token %d is %v, want %v", i%2, i/2, g, w)
			}
		}
	})
}
