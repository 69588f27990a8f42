//go:build !js

package anymdp

import (
	"math"
	"slices"

	"github.com/gomlx/gomlx/core/tensors"

	"icrl/policyattention/train"
	"icrl/policyattention/transformer/engine"
)

// objective is loss in plain Go: its tokens, a state of empty ones after those of the examples, and
// updates, priors and scales [N, A].
type objective struct {
	engine.Stored
	update, prior, scale []float32
}

func (c Config) inGo(data []*tensors.Tensor) (engine.Objective, error) {
	x, err := train.Values[float32](data...)
	if err != nil {
		return nil, err
	}
	return objective{engine.Stored{Values: x[0], T: c.Actions, K: c.Actions}, x[1], x[2], x[3]}, nil
}

// Pass implements engine.Objective.
func (o objective) Pass(examples int) engine.Pass { return o.Stored.Pass(examples + 1) }

// Tokens implements engine.Objective.
func (o objective) Tokens(examples []int32, into []float32) {
	n := len(into) / (len(examples) + 1)
	o.Stored.Tokens(examples, into[:len(into)-n])
	for i, v := range slices.Repeat(Empty(), o.T) {
		into[len(into)-n+i] = float32(v)
	}
}

// Slopes implements engine.Objective. That of p·F − softplus F − p·X, p = σ(F), is p(1−p)(F − X)
// for F.
func (o objective) Slopes(examples []int32, batch int, outputs []float32) (loss float64) {
	empty := outputs[len(examples)*o.K*Outputs:]
	zero, sum := [Outputs]float64{float64(empty[0]), float64(empty[1])}, [Outputs]float64{}
	clear(empty)
	alone, added := make([]float64, o.K), make([]float64, o.K)
	for i, example := range examples {
		y := outputs[i*o.K*Outputs:][:o.K*Outputs]
		update, prior, scale := o.update[int(example)*o.K:][:o.K], o.prior[int(example)*o.K:][:o.K],
			o.scale[int(example)*o.K:][:o.K]
		for a := range o.K {
			alone[a] = float64(scale[a])*Carrier*(float64(y[2*a])-zero[0]) - float64(prior[a])
			added[a] = Carrier * (float64(y[2*a+1]) - zero[1])
		}
		clear(y)
		for a := range o.K {
			for b := range a { // the pair in the other order is the same
				x := float64(update[a]) - float64(update[b])
				gap, larger := math.Abs(x), float64(max(scale[a], scale[b]))
				for k, pair := range [Outputs]struct{ f, t float64 }{
					{alone[a] - alone[b], sharp / (gap + larger*tiedNetwork)}, {added[a] - added[b], sharp / (gap +
						tied)},
				} {
					f, x, share := pair.t*pair.f, pair.t*x, 2/float64(batch*o.K*o.K)
					p, entropy := softplus(f)
					_, least := softplus(x)
					loss += share * (p*(f-x) - entropy + least)
					slope := share * pair.t * p * (1 - p) * (f - x) * Carrier
					up, down := slope, slope
					if k == 0 {
						up, down = slope*float64(scale[a]), slope*float64(scale[b])
					}
					y[2*a+k] += float32(up)
					y[2*b+k] -= float32(down)
					sum[k] += up - down
				}
			}
		}
	}
	empty[0], empty[1] = float32(-sum[0]), float32(-sum[1])
	return loss
}

// softplus returns log(1 + eˣ) and its slope σ(x).
func softplus(x float64) (slope, y float64) {
	e := math.Exp(-math.Abs(x))
	if slope = 1 / (1 + e); x < 0 {
		slope *= e
	}
	return slope, max(x, 0) + math.Log1p(e)
}
