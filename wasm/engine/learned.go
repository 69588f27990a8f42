package engine

import (
	"errors"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/anymdp"
	"icrl/policyattention/control"
	network "icrl/policyattention/transformer/engine"
)

// Readout of the trained actor: the one that the released weights are used with.
const Readout = anymdp.Prior

var errNoWeights = errors.New("no weights of a trained actor are loaded")

// SetLearned gives the page its trained actor.
func (e *Engine) SetLearned(n *network.Network[float64]) error {
	actor, err := anymdp.NewActor(n.Sequences, Readout)
	if err != nil {
		return err
	}
	e.network, e.actor = n, actor
	delete(e.rounds, Learned)
	return nil
}

// Compare returns the trained actor's policy on the decoder's context of round k.
func (e *Engine) Compare(k int) (*mat.Dense, error) {
	if e.actor == nil {
		return nil, errNoWeights
	}
	r, err := e.Round(Decoder, k)
	if err != nil {
		return nil, err
	}
	next, err := e.actor.Act([]control.Context{{Round: k, MDP: e.Phases[e.PhaseAt(k)].Problem.MDP, Pi: r.Pi, Q: r.Q,
		Eta: e.Settings.Eta}})
	if err != nil {
		return nil, err
	}
	return next[0].Pi, nil
}

// Look takes state s of the decoder's context of round k through the trained network.
func (e *Engine) Look(k, s int) (*anymdp.Trace, error) {
	if e.network == nil {
		return nil, errNoWeights
	}
	r, err := e.Round(Decoder, k)
	if err != nil {
		return nil, err
	}
	if states := e.Decoder.States; s < 0 || s >= states {
		return nil, fmt.Errorf("state %d of a problem with %d", s, states)
	}
	return anymdp.NewTrace(e.network, Readout, r.Pi.RawRowView(s), r.Q.RawRowView(s), e.Settings.Eta)
}

// LearnedMatrix returns rows from…to−1 of a matrix of the trained network, by name:
//
//	tokens                                  [A, features]
//	block.b.weight                          [heads·A, A], the attention of each head
//	block.b.query, .key, .value, .mixed     [A, width], the heads' side by side
//	block.b.attended, .output               [A, width]
//	block.b.units                           [A, hidden]
//	results                                 [A, 4]: both outputs, the logit, π̂
func LearnedMatrix(t *anymdp.Trace, name string, from, to int) ([][]float64, error) {
	all := map[string][][]float64{"tokens": t.Pass.Tokens}
	for a, o := range t.Pass.Outputs {
		all["results"] = append(all["results"], []float64{o[0], o[1], t.Logits[a], t.Policy[a]})
	}
	for i, b := range t.Pass.Blocks {
		block := fmt.Sprintf("block.%d.", i)
		all[block+"weight"] = slices.Concat(b.Weights...)
		all[block+"query"], all[block+"key"], all[block+"value"], all[block+"mixed"] = b.Query, b.Key, b.Value, b.Mixed
		all[block+"attended"], all[block+"units"], all[block+"output"] = b.Attended, b.Units, b.Output
	}
	return window(all[name], name, from, to)
}
