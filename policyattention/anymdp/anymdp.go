// Package anymdp is one trained actor for any finite MDP: any numbers of states and
// actions, any discount factor, any scale and offset of rewards, any step size.
//
// The network is the pre-LN softmax Transformer of package transformer (four layers, four heads, width 64) without the
// causal mask. A sequence is one state: each of its A actions is a token, tokens carry no positions, and states are not
// seen together. So the actor is equivariant to renaming states and actions by construction, and S and A are whatever
// the problem has.
//
// # Tokens
//
// For a row π of the policy and x = ηQ of one state, in nats,
//
//	Δ_a  = max_b x_b − x_a                         what an action is worth less than the best
//	d_a  = Δ_a + min {Δ_b > 0}                     the action's own unit
//	ℓ_a  = max(log π_a − max_b log π_b, −16)       the log mass of an action, at most 0
//	s_a  = d_a − ℓ_a                               the scale of an action
//
// the token of action a is
//
//	[ −Δ_a / κd_a | ℓ_a / κs_a | −Δ_a / κs_a | 1 ]
//
// with κ = 100. Nothing but ratios is left: the tokens of (c log π, cηQ) are those of (log π, ηQ), and an offset
// of Q changes none. That is PMD's own invariance, whose logits log π + ηQ are homogeneous of degree one. Every
// action is measured by its own distance from the best, which is taken in float64: an action that costs 10¹² changes
// no digit of the others. The last entry is a carrier as in the paper's normalized compilation (Appendix C): with the
// others below 1/κ, LayerNorm divides by nearly the same number for every token, and a small error of the network is a
// small error relative to the action's own scale.
//
// # Read-outs
//
// The network writes two numbers per token, o₀ and o₁, which are 0 for the empty token,
// [0 | 0 | 0 | 1] in a state by itself. The row's logits are
//
//	Network:  κ s_a o₀
//	Prior:    log π_a + κ d_a o₁
//
// The empty token's zeros are held in training: without them most of a network's error is a bias that has to cancel to
// within a small part of 1/κ. The tokens hold log π and ηQ already, so that it learns neither a logarithm nor a
// product: in the first read-out it has to write their sum, in the second ηQ, at the scale of the action. Neither adds
// ηQ to the logits: what the network does not learn is missing. Where o₁ is wrong by less than a fifth of 1/κ, the
// best action's share grows against every other's, so that it cannot lock up.
package anymdp

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/numeric"
	"icrl/policyattention/control"
	"icrl/policyattention/pmd"
	"icrl/policyattention/transformer"
	"icrl/policyattention/transformer/engine"
)

const (
	// Features is the number of features of a token, Outputs what is written for each.
	Features, Outputs = 4, 2
	Carrier           = 100 // κ
	// LogFloor is the least log mass that a token tells, relative to the likeliest action. The read-out that adds
	// log π keeps any mass; that of the network alone leaves no action less than about e⁻¹⁶ = 1e-7, which is a
	// guard like the paper's mixture with φ = 1e-7 A and costs as much.
	LogFloor = -16
)

// Readout names what becomes of the outputs.
type Readout string

const (
	Network Readout = "network" // the network alone writes the logits
	Prior   Readout = "prior"   // log π is added to them
)

// Row is one state's tokens and what its read-outs need.
type Row struct {
	Tokens [][]float64 // [A][Features]
	Log    []float64   // log π [A], −Inf for an action without mass
	Unit   []float64   // d [A], in nats, at least 0
	Scale  []float64   // s [A], in nats, at least 0
}

// NewRow encodes a state: a row π of a policy [A] and its Q [A] at step size eta. It
// returns an error if ηQ has entries, or differences of entries, that are not finite.
func NewRow(pi, q []float64, eta float64) (*Row, error) {
	log, mass, x := make([]float64, len(pi)), make([]float64, len(pi)), make([]float64, len(pi))
	best, top := math.Inf(-1), math.Inf(-1)
	for a, p := range pi {
		x[a], log[a] = float64(eta*q[a]), numeric.Log(p)
		best, top = math.Max(best, x[a]), math.Max(top, log[a])
	}
	for a := range x {
		x[a] -= best
		if math.IsNaN(x[a]) || math.IsInf(x[a], 0) {
			return nil, fmt.Errorf("anymdp: ηQ spans %v nats in a state, want a finite number", -x[a])
		}
		mass[a] = math.Max(log[a]-top, LogFloor)
	}
	r := Encode(x, mass)
	r.Log = log
	return r, nil
}

// Encode returns the row of an update x = ηQ [A] and log masses [A], both relative to the
// largest, so that each is at most 0, and at any distance below.
func Encode(update, mass []float64) *Row {
	n := len(update)
	r := &Row{Tokens: make([][]float64, n), Log: mass, Unit: make([]float64, n), Scale: make([]float64, n)}
	nearest := 0. // where all are equal
	for _, x := range update {
		if x < 0 && (nearest == 0 || x > nearest) {
			nearest = x
		}
	}
	for a, x := range update {
		r.Unit[a] = -x - nearest
		r.Scale[a] = r.Unit[a] - mass[a]
		r.Tokens[a] = []float64{ratio(x, r.Unit[a]), ratio(mass[a], r.Scale[a]), ratio(x, r.Scale[a]), 1}
	}
	return r
}

// ratio returns x/(κy), where |x| ≤ y, and 0 for 0/0, rounded to float32, as networks are trained on.
func ratio(x, y float64) float64 {
	if y == 0 {
		return 0
	}
	return float64(float32(x / y / Carrier))
}

// Logits returns the row's logits [A] that the network's outputs [A·Outputs] mean.
func (r *Row) Logits(readout Readout, outputs []float64) []float64 {
	logits := make([]float64, len(r.Unit))
	for a := range logits {
		o := outputs[a*Outputs:]
		if readout == Prior {
			logits[a] = r.Log[a] + float64(Carrier*r.Unit[a]*o[1])
		} else {
			logits[a] = Carrier * r.Scale[a] * o[0]
		}
	}
	return logits
}

// Forward takes tokens [n][A][Features] of n states, each with A of its own, to a network's outputs [n][A·Outputs].
type Forward func(tokens [][][]float64) ([][]float64, error)

// Actor is the update rule that a network has learned. A batch may mix contexts of all shapes, and of one problem.
type Actor struct {
	Forward Forward
	Readout Readout
}

// NewActor returns the actor of a network. It returns an error for an unknown read-out, and without a network.
func NewActor(forward Forward, readout Readout) (*Actor, error) {
	if forward == nil {
		return nil, errors.New("anymdp: the network is missing; Released returns the released one's")
	}
	if readout != Network && readout != Prior {
		return nil, fmt.Errorf("anymdp: unknown read-out %q, want %q or %q", readout, Network, Prior)
	}
	return &Actor{Forward: forward, Readout: readout}, nil
}

// Act implements control.Actor, with logarithms. It refuses invalid contexts, and outputs that are not finite.
func (m *Actor) Act(batch []control.Context) ([]pmd.Policy, error) {
	policies := make([]pmd.Policy, len(batch))
	var asked []place
	for i, x := range batch {
		if x.Pi == nil || x.Pi.IsEmpty() {
			return nil, fmt.Errorf("anymdp: problem %d: the policy is missing", x.Problem)
		}
		states, actions := x.Pi.Dims()
		if err := x.Check(states, actions); err != nil {
			return nil, fmt.Errorf("anymdp: problem %d: %w", x.Problem, err)
		}
		policies[i] = pmd.Policy{Pi: mat.NewDense(states, actions, nil), Log: mat.NewDense(states, actions, nil)}
		for s := range states {
			p := place{problem: x.Problem, state: s}
			p.pi, p.log = policies[i].Pi.RawRowView(s), policies[i].Log.RawRowView(s)
			var pi, q []float64 // of the actions that the state has
			for a, v := range x.Q.RawRowView(s) {
				p.log[a] = math.Inf(-1)
				if !math.IsInf(v, -1) {
					p.actions, pi, q = append(p.actions, a), append(pi, x.Pi.At(s, a)), append(q, v)
				}
			}
			var err error
			if p.row, err = NewRow(pi, q, x.Eta); err != nil {
				return nil, fmt.Errorf("%w (problem %d, state %d)", err, p.problem, p.state)
			}
			for j, a := range p.actions {
				if x.LogPi != nil { // which may lie below every float64's
					p.row.Log[j] = x.LogPi.At(s, a)
				}
			}
			asked = append(asked, p)
		}
	}
	// States with the same number of actions go through the network together.
	slices.SortStableFunc(asked, func(x, y place) int { return len(x.actions) - len(y.actions) })
	tokens := make([][][]float64, len(asked))
	for i, p := range asked {
		tokens[i] = p.row.Tokens
	}
	outputs, err := m.Forward(tokens)
	if err != nil {
		return nil, fmt.Errorf("anymdp: %w", err)
	}
	for i, p := range asked {
		for j, z := range p.row.Logits(m.Readout, outputs[i]) {
			if math.IsNaN(z) || math.IsInf(z, 1) {
				return nil, fmt.Errorf("anymdp: problem %d, state %d: a logit is %v", p.problem, p.state, z)
			}
			p.log[p.actions[j]] = z
		}
		pmd.LogSoftmax(p.pi, p.log)
	}
	return policies, nil
}

// place is a state of a context.
type place struct {
	problem, state int
	actions        []int // that the state has
	row            *Row
	pi, log        []float64 // its row of the policy, and the logarithms
}

// Shape is the shape of the network.
func Shape() transformer.Config {
	c := transformer.Standard(Features)
	c.Outputs, c.Unordered = Outputs, true
	return c
}

// NewNetwork returns the network of a shape whose parameters tensor supplies by name, in plain Go: in float64, with the
// same bits on every platform. It returns tensor's errors, and one for another size or a value that is not finite.
func NewNetwork(shape transformer.Config, tensor func(string) ([]float32, error)) (*engine.Network[float64], error) {
	params, err := transformer.Flat(shape.Layout(), tensor)
	if err != nil {
		return nil, fmt.Errorf("anymdp: %w", err)
	}
	return engine.New[float64](shape, params)
}

// Trace is one state's way through the network, with every intermediate result: what Actor makes of a row.
type Trace struct {
	Pass   *engine.Trace
	Logits []float64 // [A]
	Policy []float64 // [A], their softmax
}

// NewTrace takes what NewRow does through the network: a row π of a policy [A] and its Q [A] at step size eta.
func NewTrace(n *engine.Network[float64], readout Readout, pi, q []float64, eta float64) (*Trace, error) {
	row, err := NewRow(pi, q, eta)
	if err != nil {
		return nil, err
	}
	pass, err := n.Trace(slices.Concat(row.Tokens...))
	if err != nil {
		return nil, err
	}
	logits := row.Logits(readout, slices.Concat(pass.Outputs...))
	t := &Trace{pass, logits, slices.Clone(logits)}
	pmd.Softmax(t.Policy)
	return t, nil
}
