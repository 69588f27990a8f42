package decoder

import (
	"fmt"

	"gonum.org/v1/gonum/mat"
)

// hiddenPlus and hiddenMinus are the two units of the ReLU map.
var (
	hiddenPlus  = Field{Name: "relu.plus", Note: "the target where it is positive, on packets", Offset: 0, Len: 1, Scalar: true}
	hiddenMinus = Field{Name: "relu.minus", Note: "minus the target where it is negative, on packets", Offset: 1, Len: 1, Scalar: true}
)

// Hidden lists the units of the ReLU map in block 0.
var Hidden = []Field{hiddenPlus, hiddenMinus}

// build returns the decoder's network, its legend and its two readouts for the
// margins of the certificate.
//
// Block 0, head 0 is the actor. An actor query for state s scores the memory of
// (s',a') with κ·1[s=s'] + ν + log π(a'|s') + ηQ(s',a') and other queries with
// 0. Within the group s'=s the common κ+ν cancels in the softmax, which leaves
// softmax(log π + ηQ) = PMD_η(π,Q)(·|s) over the values e_{a'}. Other states
// carry at most (S−1)e^{−κ+2ηB} and the at most S visible queries at most
// Se^{−(κ+ν)+ηB} times the mass of the group: the printed R_act.
//
// Block 0, head 1 looks up Q. A packet scores a memory with τ₁ for each of
// state, action and role that agree with its successor (s',a'), so the right
// memory gets 3τ₁, S+A−2 memories 2τ₁, (S−1)(A−1) memories τ₁, and the M packets
// 0: the printed R₁. The ReLU map then forms y = r + γQ(s',a') on packets and
// nothing elsewhere.
//
// Block 1, head 0 averages. A critic query (s,a) scores a packet with τ₂ for
// each of state, action and role that agree with its predecessor, plus the
// packet's log weight: m packets get 3τ₂, all others at most 2τ₂, and the 2SA
// memories and queries 0: the printed R₂. A log weight is a coordinate of the
// key like any other, so weighted packets remain ordinary softmax attention: a
// packet of weight w counts as w packets.
//
// Block 1, head 1 is idle: the paper counts two heads in each block, and
// nothing is left to do.
func build(c *Certificate, l *Layout) (*Network, Legend) {
	d, dh := l.Width(), l.HeadDim()
	n := &Network{Width: d, HeadDim: dh}
	for range 2 {
		b := Block{}
		for range 2 {
			b.Heads = append(b.Heads, Head{
				Q: mat.NewDense(dh, d, nil), K: mat.NewDense(dh, d, nil),
				V: mat.NewDense(dh, d, nil), O: mat.NewDense(d, dh, nil),
			})
		}
		n.Blocks = append(n.Blocks, b)
	}
	n.Blocks[0].W1, n.Blocks[0].W2 = mat.NewDense(2, d, nil), mat.NewDense(d, 2, nil)

	var legend Legend
	matrix, prefix := map[string]*mat.Dense{}, ""
	for _, w := range n.matrices() {
		matrix[w.name] = w.m
	}
	link := func(name string, to, from Field, value float64, symbol, why string) {
		for i := range to.Len {
			j := i
			if from.Len == 1 {
				j = 0
			}
			matrix[prefix+name].Set(to.Offset+i, from.Offset+j, value)
		}
		legend = append(legend, Link{prefix + name, to, from, value, symbol, why})
	}
	head := func(block, index int, name string) {
		n.Blocks[block].Heads[index].Name = name
		prefix = fmt.Sprintf("block.%d.head.%d.", block, index)
	}

	head(0, 0, "actor")
	link("q", l.SlotState, l.QueryState, c.Kappa, "κ", "ask for memories of the query's state")
	link("q", l.SlotX, l.IsActor, c.Nu, "ν", "ask for memories rather than queries")
	link("q", l.SlotY, l.IsActor, 1, "1", "add log π to the score")
	link("q", l.SlotZ, l.Step, 1, "1", "add ηQ to the score")
	link("k", l.SlotState, l.MemoryState, 1, "1", "offer the memory's state")
	link("k", l.SlotX, l.IsMemory, 1, "1", "be a memory")
	link("k", l.SlotY, l.LogPolicy, 1, "1", "offer log π(a|s)")
	link("k", l.SlotZ, l.Value, 1, "1", "offer Q(s,a)")
	link("v", l.SlotAction, l.MemoryAction, 1, "1", "a memory stands for its action")
	link("v", l.SlotAction, l.IsActor, 1/float64(c.Actions), "1/A", "a query stands for the uniform row, so every output is a distribution")
	link("o", l.PolicyAction, l.SlotAction, 1, "1", "write the row of the policy")

	head(0, 1, "lookup")
	link("q", l.SlotState, l.SuccessorState, c.Tau1, "τ₁", "ask for the successor's state")
	link("q", l.SlotAction, l.SuccessorAction, c.Tau1, "τ₁", "ask for the successor's action")
	link("q", l.SlotX, l.IsPacket, c.Tau1, "τ₁", "ask for memories")
	link("k", l.SlotState, l.MemoryState, 1, "1", "offer the memory's state")
	link("k", l.SlotAction, l.MemoryAction, 1, "1", "offer the memory's action")
	link("k", l.SlotX, l.IsMemory, 1, "1", "be a memory")
	link("v", l.SlotZ, l.Value, 1, "1", "carry Q(s,a)")
	link("o", l.Looked, l.SlotZ, 1, "1", "write the value looked up")

	// relu(y + C(role−1)) − relu(−y + C(role−1)) is y on packets; elsewhere
	// |y| ≤ γB ≤ C keeps both units shut.
	prefix = "block.0.map."
	for _, unit := range []struct {
		field Field
		sign  float64
		mark  string
	}{{hiddenPlus, 1, ""}, {hiddenMinus, -1, "−"}} {
		link("w1", unit.field, l.IsPacket, c.B, "B", "open on packets")
		link("w1", unit.field, l.One, -c.B, "−B", "closed elsewhere")
		link("w1", unit.field, l.Reward, unit.sign, unit.mark+"1", "the reward")
		link("w1", unit.field, l.Looked, unit.sign*c.Gamma, unit.mark+"γ", "plus γ times the value looked up")
		link("w2", l.Target, unit.field, unit.sign, unit.mark+"1", "put the signs together again")
	}

	head(1, 0, "predecessor")
	link("q", l.SlotState, l.QueryState, c.Tau2, "τ₂", "ask for packets from the query's state")
	link("q", l.SlotAction, l.QueryAction, c.Tau2, "τ₂", "ask for packets from the query's action")
	link("q", l.SlotX, l.IsCritic, c.Tau2, "τ₂", "ask for packets")
	link("q", l.SlotY, l.IsCritic, 1, "1", "add the log weight to the score")
	link("k", l.SlotState, l.PacketState, 1, "1", "offer the packet's state")
	link("k", l.SlotAction, l.PacketAction, 1, "1", "offer the packet's action")
	link("k", l.SlotX, l.IsPacket, 1, "1", "be a packet")
	link("k", l.SlotY, l.LogWeight, 1, "1", "offer the log weight")
	link("v", l.SlotZ, l.Target, 1, "1", "carry the target")
	link("o", l.Average, l.SlotZ, 1, "1", "write the mean target")

	head(1, 1, "idle")
	return n, legend
}

// readouts returns the affine maps from an actor query to the returned row of
// the policy, mixed with φ/A, and from a critic query to the new value.
func readouts(c *Certificate, l *Layout) (policy, value *Readout) {
	policy = &Readout{Name: "policy", W: mat.NewDense(c.Actions, l.Width(), nil), Bias: make([]float64, c.Actions)}
	for a := range c.Actions {
		policy.W.Set(a, l.PolicyAction.Offset+a, 1-c.Phi)
		policy.Bias[a] = c.Phi / float64(c.Actions)
	}
	value = &Readout{Name: "value", W: mat.NewDense(1, l.Width(), nil), Bias: make([]float64, 1)}
	value.W.Set(0, l.Average.Offset, 1)
	return policy, value
}
