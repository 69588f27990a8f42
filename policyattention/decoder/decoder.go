// Package decoder is the paper's fixed decoder: a two-block, two-head causal softmax Transformer with hand-made weights
// that runs one round of policy mirror descent in context, actor, environment and one-step critic, with printed error
// bounds (Section 3 of the paper), and its compilation to a network with layer normalization (Section 4).
//
// The attention network itself is in network.go with its textbook pass, and in pass.go a fast one with a key–value
// cache that leaves out what cannot reach a readout.
//
// A decoder is made in three steps, none of which sees an MDP: Caps declares what inputs will be like, Certify computes
// margins and bounds, New writes the weights. It is then used on any MDP and history within the caps:
//
//	d, err := decoder.New(decoder.Caps{States: 8, Actions: 3, Gamma: .9, …})
//	next, err := d.Improve(pi, q, eta)                  // actor call
//	packets := decoder.Sample(env, next, d.Packets, rng) // environment
//	q, err = d.Backup(next, q, packets)                 // critic call
//
// Policies π and values Q are [S, A]. A call computes in a fixed order, with the same bits on every platform.
package decoder

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/numeric"
	"icrl/policyattention/mdp"
)

// MaxLogit is the greatest η_max·B. Within it the score of logZero, which stands for log 0 in a memory, lies more
// than 745 below that of the state's best action, so the softmax weight underflows to exactly zero.
const (
	MaxLogit = 2000
	logZero  = -1e4
)

// Inputs may exceed the caps by rounding. The certificate's bounds hold for all that is accepted:
//
//   - slack is the share by which |Q| and |r| may exceed B and r_max: a backup of values at ±B may come out some ulps
//     beyond. It is charged in the bounds, which are those for r_max(1+slack) and limit = B(1+slack); as limit is
//     r_max(1+slack) plus γ·limit, targets stay within it. The margins stay as printed. Clipping Q instead would cost
//     more: the actor would act on another Q than the one that ζ is measured with, which moves its logits by up to
//     ηB·slack, whatever ε_r is, where the charge is 2ηB·slack of a ζ of at most ε_r.
//   - a probability may lie below a normalized decoder's floor by the same share, which is charged too, see depth.
//   - balance is the share by which the weights of a pair's packets may differ from m, see predecessorRatio.
//   - the rows of P and π sum to one within mdp.Tolerance, see actorRatio and DeltaRows.
const (
	slack   = 1e-9
	balance = 1e-6
)

// Decoder is a network with fixed weights, its certificate and its legend. It is read-only and safe for concurrent use.
type Decoder struct {
	*Certificate
	Layout  *Layout
	Legend  Legend
	Policy  *Readout // from an actor query to a row of π̂_{k+1} [A]
	Value   *Readout // from a critic query to Q_{k+1}(s,a) [1]
	Carrier *Carrier // how payloads enter a normalized network; nil otherwise
	Network *Network // of traces, to read: its weights are changed by Edit

	actor, critic *program // of calls, compiled from Network
}

// New returns the decoder of Theorem 1 for the caps. It returns an error that names the cap if one is out of range.
func New(caps Caps) (*Decoder, error) {
	d, err := uncompiled(caps)
	if err != nil {
		return nil, err
	}
	return d, d.compile()
}

// uncompiled certifies and writes the weights, which [NewNormalized] changes before passes are prepared.
func uncompiled(caps Caps) (*Decoder, error) {
	c, err := Certify(caps)
	if err != nil {
		return nil, err
	}
	d := &Decoder{Certificate: c, Layout: NewLayout(c.States, c.Actions)}
	d.Network, d.Legend = build(c, d.Layout)
	d.Policy, d.Value = readouts(c, d.Layout)
	return d, nil
}

// Edit changes weights, for traces and calls alike, while neither runs. The certificate and the legend stay
// those of the weights before. It returns an error that names a weight that is not finite; d is of no use then.
func (d *Decoder) Edit(change func(n *Network)) error {
	change(d.Network)
	return d.compile()
}

// compile prepares the passes; it must follow every change of a weight.
func (d *Decoder) compile() (err error) {
	if d.actor, err = d.Network.compile(d.Policy); err == nil {
		d.critic, err = d.Network.compile(d.Value)
	}
	return err
}

// Improve is an actor call: it returns π̂_{k+1} [S, A] for the policy pi and the values q, both [S, A], and the step
// size eta. It returns an error that names the cap if an input is outside.
func (d *Decoder) Improve(pi, q *mat.Dense, eta float64) (*mat.Dense, error) {
	if err := d.checkActor(pi, q, eta); err != nil {
		return nil, err
	}
	pass := d.actor.start()
	defer d.actor.passes.Put(pass)
	t := d.tokens()
	for i := range d.States * d.Actions {
		pass.push(t.memory(i, pi, q))
	}
	next := mat.NewDense(d.States, d.Actions, nil)
	for s := range d.States {
		pass.read(next.RawRowView(s), t.actorQuery(s, eta))
		leave(next.RawRowView(s), q.RawRowView(s))
	}
	return next, nil
}

// leave takes the leaked mass μ from the actions of a row that do not exist, which is
// then no further from PMD's, p: ‖row/(1−μ) − p‖₁ ≤ ‖row − p‖₁ + μ over those that do.
func leave(row, q []float64) {
	if !slices.ContainsFunc(q, missing) {
		return
	}
	sum := 0.0
	for a, v := range q {
		if missing(v) {
			row[a] = 0
		}
		sum += row[a]
	}
	for a := range row {
		row[a] /= sum
	}
}

// Backup is a critic call: it returns Q_{k+1} [S, A] for the returned policy pi = π̂_{k+1} and the values q = Q_k,
// both [S, A], and packets drawn under pi with m of them (or total weight m) from every state and action. Actions that
// do not exist have the value −Inf, no mass and no packets. It returns an error that names the cap that is violated.
func (d *Decoder) Backup(pi, q *mat.Dense, packets []Packet) (*mat.Dense, error) {
	if err := d.checkCritic(pi, q, packets); err != nil {
		return nil, err
	}
	pass := d.critic.start()
	defer d.critic.passes.Put(pass)
	t := d.tokens()
	for i := range d.States * d.Actions {
		pass.push(t.memory(i, pi, q))
	}
	for _, p := range packets {
		pass.push(t.packet(p))
	}
	next := mat.DenseCopyOf(q)
	for i, v := range next.RawMatrix().Data {
		if !missing(v) {
			pass.read(next.RawMatrix().Data[i:i+1], t.criticQuery(i))
		}
	}
	return next, nil
}

// tokens makes the tokens of a call one after the other, each in place of the one before.
type tokens struct {
	*Decoder
	payload, token []float64 // one buffer without a carrier
}

func (d *Decoder) tokens() *tokens {
	t := &tokens{Decoder: d, payload: make([]float64, d.Layout.Width())}
	t.token = t.payload
	if d.Carrier != nil {
		t.token = make([]float64, d.Network.Width)
	}
	return t
}

// of returns the token of the given entries and of the constant.
func (t *tokens) of(entries ...entry) []float64 {
	clear(t.payload)
	t.payload[t.Layout.One.Offset] = 1
	for _, e := range entries {
		t.payload[e.at] = e.value
	}
	if t.Carrier != nil {
		t.Carrier.embed(t.token, t.payload)
	}
	return t.token
}

// memory returns the memory of the pair s·A+a.
func (t *tokens) memory(pair int, pi, q *mat.Dense) []float64 {
	l, s, a := t.Layout, pair/t.Actions, pair%t.Actions
	value := q.At(s, a)
	if missing(value) {
		value = 0
	}
	return t.of(entry{l.MemoryState.Offset + s, 1}, entry{l.MemoryAction.Offset + a, 1}, entry{l.IsMemory.Offset, 1},
		entry{l.LogPolicy.Offset, max(logZero, numeric.Log(pi.At(s, a)))}, entry{l.Value.Offset, value})
}

func (t *tokens) actorQuery(s int, eta float64) []float64 {
	l := t.Layout
	return t.of(entry{l.QueryState.Offset + s, 1}, entry{l.IsActor.Offset, 1}, entry{l.Step.Offset, eta})
}

func (t *tokens) packet(p Packet) []float64 {
	l := t.Layout
	return t.of(entry{l.PacketState.Offset + p.State, 1}, entry{l.PacketAction.Offset + p.Action, 1},
		entry{l.SuccessorState.Offset + p.NextState, 1}, entry{l.SuccessorAction.Offset + p.NextAction, 1},
		entry{l.IsPacket.Offset, 1}, entry{l.Reward.Offset, p.Reward}, entry{l.LogWeight.Offset, p.LogWeight})
}

// criticQuery returns the query of a pair s·A+a.
func (t *tokens) criticQuery(pair int) []float64 {
	l := t.Layout
	return t.of(entry{l.QueryState.Offset + pair/t.Actions, 1}, entry{l.QueryAction.Offset + pair%t.Actions, 1},
		entry{l.IsCritic.Offset, 1})
}

// missing says whether a value marks an action that does not exist: its memory holds log 0, and nothing asks for it.
func missing(q float64) bool { return math.IsInf(q, -1) }

// checkMemories names the cap that the policy or the values violate.
func (d *Decoder) checkMemories(pi, q *mat.Dense) error {
	if err := mdp.CheckPolicy(pi, d.States, d.Actions); err != nil {
		return fmt.Errorf("decoder: caps states, actions = %d, %d: %w", d.States, d.Actions, err)
	}
	if q == nil {
		return errors.New("decoder: Q is missing")
	}
	if s, a := q.Dims(); s != d.States || a != d.Actions {
		return fmt.Errorf("decoder: Q is [%d, %d], the caps states and actions say [%d, %d]", s, a, d.States, d.Actions)
	}
	for s := range d.States {
		for a, v := range q.RawRowView(s) {
			switch p := pi.At(s, a); {
			case missing(v) && p == 0 && d.Norm == nil:
			case !(math.Abs(v) <= d.limit()):
				return fmt.Errorf("decoder: Q(s=%d,a=%d) is %.6g, beyond the cap B = r_max/(1−gamma) = %.6g", s, a, v,
					d.B)
			case d.Norm != nil && p < d.least():
				return fmt.Errorf("decoder: π(a=%d|s=%d) is %v, below the cap floor = %g of a normalized decoder", a,
					s, p, d.Floor)
			}
		}
	}
	return nil
}

func (d *Decoder) checkActor(pi, q *mat.Dense, eta float64) error {
	if !(eta >= d.EtaMin && eta <= d.EtaMax) {
		return fmt.Errorf("decoder: step size η is %v, outside the caps eta_min = %g and eta_max = %g", eta, d.EtaMin,
			d.EtaMax)
	}
	return d.checkMemories(pi, q)
}

func (d *Decoder) checkCritic(pi, q *mat.Dense, packets []Packet) error {
	if err := d.checkMemories(pi, q); err != nil {
		return err
	}
	if len(packets) > d.Visible {
		return fmt.Errorf("decoder: %d packets, more than the %d that the caps allow", len(packets), d.Visible)
	}
	mass := make([]float64, d.States*d.Actions)
	for i, p := range packets {
		switch {
		case min(p.State, p.NextState) < 0 || max(p.State, p.NextState) >= d.States ||
			min(p.Action, p.NextAction) < 0 || max(p.Action, p.NextAction) >= d.Actions:
			return fmt.Errorf("decoder: packet %d is %+v, the caps states and actions say [%d, %d]", i, p, d.States,
				d.Actions)
		case !(math.Abs(p.Reward) <= d.RMax*(1+slack)):
			return fmt.Errorf("decoder: packet %d has reward %v, beyond the cap r_max = %g", i, p.Reward, d.RMax)
		case math.IsNaN(p.LogWeight) || math.IsInf(p.LogWeight, 0):
			return fmt.Errorf("decoder: packet %d has log weight %v, want a finite number", i, p.LogWeight)
		case d.Norm != nil && math.Abs(p.LogWeight) > d.depth():
			return fmt.Errorf("decoder: packet %d has log weight %v, beyond −log of a normalized decoder's cap "+
				"floor = %g", i, p.LogWeight, d.Floor)
		}
		mass[p.State*d.Actions+p.Action] += numeric.Exp(p.LogWeight)
	}
	m := float64(d.Packets)
	for i, w := range mass {
		none := missing(q.RawMatrix().Data[i]) && w == 0
		if !none && !(math.Abs(w-m) <= balance*m) {
			return fmt.Errorf("decoder: packets from (s=%d,a=%d) weigh %v, want balanced packets "+
				"with the cap packets = %d from every pair", i/d.Actions, i%d.Actions, w, d.Packets)
		}
	}
	return nil
}
