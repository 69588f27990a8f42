// Package distill is the baseline Algorithm Distillation (Laskin et al. 2023,
// arXiv 2210.14215): a causal Transformer that is trained to predict the actions
// in learning histories of a source algorithm, and then learns in its context
// without any change of weights.
//
// The source is tabular actor–critic, started from the uniform policy, with one
// update every [baseline.Window] transitions. A token is what an agent has just
// seen: the action and reward before (zeros in the first token of a history)
// and the state now, with its position in the context. From the token of step t
// and those before it the network predicts a_t.
package distill

import (
	"fmt"

	"icrl/policyattention/baseline"
	"icrl/policyattention/mdp"
	"icrl/policyattention/transformer"
)

// Config is everything that trained weights depend on, but for the backend's
// arithmetic.
type Config struct {
	Method    string             `json:"method"` // always "algorithm-distillation"
	Seed      uint64             `json:"seed"`   // root of histories, weights and order
	States    int                `json:"states"`
	Actions   int                `json:"actions"`
	Source    baseline.StepSizes `json:"source"`    // step sizes of the source algorithm
	Histories int                `json:"histories"` // one MDP each
	Length    int                `json:"length"`    // transitions a history
	Context   int                `json:"context"`   // tokens that the network sees
	Batch     int                `json:"batch"`     // windows of Context tokens a step
	Steps     int                `json:"steps"`
	Layers    int                `json:"layers"`
	Heads     int                `json:"heads"`
	Width     int                `json:"width"`
	Hidden    int                `json:"hidden"`
	Optimizer transformer.AdamW  `json:"optimizer"`
}

const name = "algorithm-distillation"

// Paper is the paper's recipe after its one repair: 2,000 histories of 1,000
// steps, context 200, batch 128, 40,000 steps. The paper gives the number of
// parameters, 1.14M, without the shape; this one has 1,138,467 at S=8. Its
// source actor rate is 4; the critic's rate is ours, the source hardly depends
// on it.
func Paper(seed uint64, states int) Config {
	return Config{
		Method: name, Seed: seed, States: states, Actions: mdp.Actions,
		Source:    baseline.StepSizes{Alpha: 4, Beta: 0.2},
		Histories: 2000, Length: 1000, Context: 200, Batch: 128, Steps: 40_000,
		Layers: 4, Heads: 4, Width: 160, Hidden: 536,
		Optimizer: transformer.StandardAdamW(),
	}
}

// FirstAttempt is the recipe with which the paper's first qualification failed:
// context 800, batch 32, 20,000 steps.
func FirstAttempt(seed uint64, states int) Config {
	c := Paper(seed, states)
	c.Context, c.Batch, c.Steps = 800, 32, 20_000
	return c
}

// CPU is a budget for machines without a GPU. It differs from Paper in what
// decides whether in-context learning sets in at all within some thousand small
// steps: a context of three rounds instead of ten, and a smaller network at a
// larger learning rate. A source that learns faster helps too, and is the
// caller's choice.
func CPU(seed uint64, states int) Config {
	c := Paper(seed, states)
	c.Histories, c.Context, c.Batch, c.Steps = 1000, 60, 32, 3000
	c.Layers, c.Width, c.Hidden = 2, 64, 64
	c.Optimizer.LearningRate = 2e-3
	return c
}

// ShortContext returns the control to a recipe: the same with a context of a
// round and the query after it, so that nothing is remembered between rounds.
func (c Config) ShortContext() Config {
	c.Context = baseline.Window + 1
	return c
}

// Validate reports the first field that makes no sense.
func (c Config) Validate() error {
	bad := func(format string, args ...any) error { return fmt.Errorf("distill: "+format, args...) }
	switch {
	case c.Method != name:
		return bad("method is %q, want %q", c.Method, name)
	case c.States < 2 || c.Actions < 2:
		return bad("S=%d states and A=%d actions, want at least two of each", c.States, c.Actions)
	case !(c.Source.Alpha >= 0 && c.Source.Alpha < 1e6 && c.Source.Beta >= 0 && c.Source.Beta < 1e6):
		return bad("source step sizes %+v, want finite numbers ≥ 0", c.Source)
	case c.Context <= baseline.Window:
		return bad("context of %d tokens, want more than the %d of a round", c.Context, baseline.Window)
	case c.Length%baseline.Window != 0 || c.Length < c.Context:
		return bad("histories of %d steps, want a multiple of %d and at least the context, %d", c.Length,
			baseline.Window, c.Context)
	case c.Histories < 1 || c.Batch < 1 || c.Steps < 1:
		return bad("%d histories, batch %d, %d steps, want at least one of each", c.Histories, c.Batch, c.Steps)
	case c.Histories*c.Length > 1<<30:
		return bad("%d histories of %d steps are more than 2³⁰ tokens", c.Histories, c.Length)
	}
	if err := c.Optimizer.Validate(); err != nil {
		return bad("%w", err)
	}
	return c.Network().Validate()
}

// Network returns the shape of the network. Its features are one-hots of the
// previous action, of the state and of the position, and the previous reward;
// the embedding of the position one-hot is a learned positional embedding.
func (c Config) Network() transformer.Config {
	return transformer.Config{
		Features: c.Actions + 1 + c.States + c.Context,
		Layers:   c.Layers, Heads: c.Heads, Width: c.Width, Hidden: c.Hidden, Outputs: c.Actions,
	}
}
