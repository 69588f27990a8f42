package plain

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/numeric"
	"icrl/policyattention/control"
	"icrl/policyattention/pmd"
)

// Actor is a trained actor of package train in plain Go. It implements
// control.Actor: π̂_{k+1} is the softmax of the network's outputs.
type Actor struct {
	Network      *Network
	States       int  // S it was trained for, the width of the state one-hot
	Actions      int  // A
	LogPolicy    bool // tokens hold log π, not below −30, instead of π
	PriorReadout bool // log π is added to the outputs
}

// Act implements control.Actor. It returns an error on problems of another shape and on
// invalid contexts: an invalid policy π, a Q or an η that is not finite.
func (a *Actor) Act(batch []control.Context) ([]*mat.Dense, error) {
	policies := make([]*mat.Dense, len(batch))
	for i, x := range batch {
		if err := x.Check(a.States, a.Actions); err != nil {
			return nil, fmt.Errorf("plain: problem %d: %w", x.Problem, err)
		}
		logits, err := a.Network.Forward(a.tokens(x))
		if err != nil {
			return nil, err
		}
		next := mat.NewDense(a.States, a.Actions, logits)
		for s := range a.States {
			row := next.RawRowView(s)
			for j := range row {
				if a.PriorReadout {
					row[j] += numeric.Log(x.Pi.At(s, j))
				}
				if math.IsNaN(row[j]) {
					return nil, fmt.Errorf("plain: problem %d: the network's output is not a number", x.Problem)
				}
			}
			pmd.Softmax(row)
		}
		policies[i] = next
	}
	return policies, nil
}

// tokens are, for each pair (s,a), the one-hots of s and a, π or log π, Q and η.
// Numbers are rounded to float32, which is what the network was trained on.
func (a *Actor) tokens(x control.Context) [][]float64 {
	var tokens [][]float64
	for s := range a.States {
		for j := range a.Actions {
			p := x.Pi.At(s, j)
			if a.LogPolicy {
				p = math.Max(numeric.Log(p), control.LogFloor)
			}
			token := make([]float64, a.States+a.Actions+3)
			token[s], token[a.States+j] = 1, 1
			for i, v := range []float64{p, x.Q.At(s, j), x.Eta} {
				token[a.States+a.Actions+i] = float64(float32(v))
			}
			tokens = append(tokens, token)
		}
	}
	return tokens
}
