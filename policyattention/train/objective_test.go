package train

import (
	"math"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
	"icrl/policyattention/transformer/fused"
)

// TestActorObjectives compares the graphs with float64 formulas, among them the
// identity ℓ_prox(p) − ℓ_prox(q) = KL(p‖q) for q = PMD_η(π,Q).
func TestActorObjectives(t *testing.T) {
	const states, actions = 40, 3
	rng := seed.New(1, "test", "objectives")
	p, pi := mdp.RandomPolicy(rng, states, actions), mdp.RandomPolicy(rng, states, actions)
	q := mat.NewDense(states, actions, nil)
	for i := range q.RawMatrix().Data {
		q.RawMatrix().Data[i] = 4*rng.Float64() - 2
	}
	const eta = 0.8
	target := testkit.Must(pmd.Step(pi, q, eta))(t)
	logs := func(x *mat.Dense) (out []float32) {
		for _, v := range x.RawMatrix().Data {
			out = append(out, float32(math.Log(v)))
		}
		return out
	}
	var gain []float32
	for _, v := range q.RawMatrix().Data {
		gain = append(gain, float32(eta*v))
	}
	inputs := []any{}
	for _, x := range [][]float32{logs(p), logs(pi), gain} {
		inputs = append(inputs, tensors.FromFlatDataAndDimensions(x, 1, states, actions))
	}
	backend := testkit.Backend(t)
	rows := func(o Objective) []float32 {
		exec := testkit.Must(NewExec(backend, o.rows))(t)
		x := testkit.Must(exec.Call1(inputs...))(t)
		return tensors.MustCopyFlatData[float32](x)
	}
	proximal, direct, reward := rows(Proximal), rows(PMDTarget), rows(RewardOnly)
	for s := range states {
		one := func(x *mat.Dense) *mat.Dense { return x.Slice(s, s+1, 0, actions).(*mat.Dense) }
		prox := func(x *mat.Dense) float64 { return pmd.ProximalLoss(one(x), one(pi), one(q), eta) }
		expected := 0.0
		for a, v := range p.RawRowView(s) {
			expected -= eta * v * q.At(s, a)
		}
		for _, c := range []struct {
			name      string
			got, want float64
		}{
			{"ℓ_prox", float64(proximal[s]), prox(p)},
			{"proximal excess", float64(proximal[s]) - prox(target), pmd.KL(p.RawRowView(s), target.RawRowView(s))},
			{"KL(q‖p)", float64(direct[s]), pmd.KL(target.RawRowView(s), p.RawRowView(s))},
			{"−η⟨p,Q⟩", float64(reward[s]), expected},
		} {
			// Sums of three float32 terms of magnitude below ten.
			if math.Abs(c.got-c.want) > 1e-5 {
				t.Errorf("state %d: %s is %v, want %v", s, c.name, c.got, c.want)
			}
		}
	}
}

// TestGradients compares the gradient of every objective, through the network,
// with central differences in a few random directions.
func TestGradients(t *testing.T) {
	for _, o := range Objectives {
		for _, recipe := range recipesOf(o) {
			c := tiny(o)
			c.Recipe = recipe
			var parts []any
			for _, x := range testkit.Must(c.data())(t) {
				parts = append(parts, x)
			}
			exec, err := NewExec(testkit.Backend(t), func(inputs []*Node) []*Node {
				network := fused.Bind(c.Network(), inputs[0])
				loss := c.loss(network, inputs[1:])
				return []*Node{loss, network.Gradient(loss)}
			})
			if err != nil {
				t.Fatal(err)
			}
			evaluate := func(params []float32) (float64, []float32) {
				out := testkit.Must(exec.Call(append([]any{tensors.FromFlatDataAndDimensions(params, len(params))},
					parts...)...))(t)
				return float64(tensors.ToScalar[float32](out[0])), tensors.MustCopyFlatData[float32](out[1])
			}
			params := c.start()
			start, grad := evaluate(params)
			rng := seed.New(2, "test", "directions")
			for range 3 {
				direction := make([]float64, len(params))
				norm, want := 0.0, 0.0
				for i := range direction {
					direction[i] = rng.NormFloat64()
					norm += direction[i] * direction[i]
				}
				const h = 3e-3 // length of a step: rounding of about 1e-6/h, curvature of about h², of a loss of 1
				at := func(sign float64) float64 {
					moved := make([]float32, len(params))
					for i, v := range params {
						moved[i] = v + float32(sign*h*direction[i]/math.Sqrt(norm))
					}
					loss, _ := evaluate(moved)
					return loss
				}
				for i, g := range grad {
					want += float64(g) * direction[i] / math.Sqrt(norm)
				}
				got := (at(1) - at(-1)) / (2 * h)
				if math.Abs(got-want) > 1e-3*max(1, start)+1e-2*math.Abs(want) {
					t.Errorf("%s, %s: differences give %v, the gradient %v", o, recipe.Name, got, want)
				}
			}
		}
	}
}
