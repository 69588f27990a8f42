package decoder

import (
	"fmt"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// Field is a named run of coordinates of a token, of slots of a head, or of hidden units.
type Field struct {
	Name   string // for instance "memory.state"
	Note   string // what it holds
	Offset int    // of its first coordinate
	Len    int
	Scalar bool // a single number, labelled without index
}

// Label returns the name of coordinate i of the field: "memory.state[3]", or "reward" for a scalar.
func (f Field) Label(i int) string {
	if f.Scalar {
		return f.Name
	}
	return fmt.Sprintf("%s[%d]", f.Name, i)
}

// Layout names the 6S+6A+14 coordinates of a token and the S+A+3 slots of a head. Every role keeps its state and action
// in fields of its own, so a linear key map that reads one role's fields sees zeros in all others: gated for free.
type Layout struct {
	MemoryState, MemoryAction       Field
	PacketState, PacketAction       Field
	SuccessorState, SuccessorAction Field
	QueryState, QueryAction         Field
	PolicyState, PolicyAction       Field
	BackupState, BackupAction       Field

	IsMemory, IsActor, IsPacket, IsCritic, One Field
	LogPolicy, Value, Step, Reward, LogWeight  Field
	Looked, Target, Average, Unassigned        Field

	SlotState, SlotAction, SlotX, SlotY, SlotZ Field

	Token []Field // the fields of a token in order
	Slots []Field // the fields of queries, keys and values in order
}

// NewLayout returns the layout for the given numbers of states and actions.
func NewLayout(states, actions int) *Layout {
	l := &Layout{}
	list := &l.Token
	add := func(to *Field, f Field) {
		f.Offset = width(*list)
		*to, *list = f, append(*list, f)
	}
	field := func(f *Field, name, note string, length int) { add(f, Field{Name: name, Note: note, Len: length}) }
	scalar := func(f *Field, name, note string) { add(f, Field{Name: name, Note: note, Len: 1, Scalar: true}) }
	// A field for the one-hot state and one for the one-hot action of a role.
	pair := func(state, action *Field, name, note string) {
		field(state, name+".state", "state of "+note+", one-hot", states)
		field(action, name+".action", "action of "+note+", one-hot", actions)
	}
	pair(&l.MemoryState, &l.MemoryAction, "memory", "a memory")
	pair(&l.PacketState, &l.PacketAction, "packet", "a transition packet")
	pair(&l.SuccessorState, &l.SuccessorAction, "successor", "a transition packet's successor")
	pair(&l.QueryState, &l.QueryAction, "query", "a query (an actor query has no action)")
	field(&l.PolicyState, "policy.state", "output field of head 0, no weight writes here", states)
	field(&l.PolicyAction, "policy.action", "output field of head 0: the returned row of the policy", actions)
	field(&l.BackupState, "backup.state", "output field of head 1, no weight writes here", states)
	field(&l.BackupAction, "backup.action", "output field of head 1, no weight writes here", actions)

	// The flags come before the numbers they gate: the ReLU map first adds C·role − C·one, exactly 0 on packets.
	scalar(&l.IsMemory, "role.memory", "1 on memories")
	scalar(&l.IsActor, "role.actor", "1 on actor queries")
	scalar(&l.IsPacket, "role.packet", "1 on transition packets")
	scalar(&l.IsCritic, "role.critic", "1 on critic queries")
	scalar(&l.One, "one", "1 on every token")
	scalar(&l.LogPolicy, "log policy", "log π(a|s) of a memory")
	scalar(&l.Value, "value", "Q(s,a) of a memory")
	scalar(&l.Step, "step", "η of an actor query")
	scalar(&l.Reward, "reward", "r of a transition packet")
	scalar(&l.LogWeight, "log weight", "log weight of a transition packet, 0 for a sampled one")
	scalar(&l.Looked, "looked-up value", "written by the lookup head: Q(s',a')")
	scalar(&l.Target, "target", "written by the ReLU map: y = r + γ Q(s',a') on packets, 0 elsewhere")
	scalar(&l.Average, "average", "written by the predecessor head: the mean target, Q_{k+1}(s,a)")
	scalar(&l.Unassigned, "unassigned", "left over from the printed width; no weight touches it")

	list = &l.Slots
	field(&l.SlotState, "slot.state", "compares states", states)
	field(&l.SlotAction, "slot.action", "compares actions; carries a row of the policy", actions)
	scalar(&l.SlotX, "slot.x", "compares roles")
	scalar(&l.SlotY, "slot.y", "adds a logarithm to the score: log π or a log weight")
	scalar(&l.SlotZ, "slot.z", "adds ηQ to the score; carries a number")
	return l
}

// Width returns the payload width 6S+6A+14.
func (l *Layout) Width() int { return width(l.Token) }

// HeadDim returns the head dimension S+A+3.
func (l *Layout) HeadDim() int { return width(l.Slots) }

func width(fields []Field) (sum int) {
	for _, f := range fields {
		sum += f.Len
	}
	return sum
}

// Link is one entry of the legend: a run of equal weights in one matrix, from
// coordinate i of From (column) to coordinate i of To (row), or from the scalar
// From to every coordinate of To. Every non-zero weight belongs to one link.
type Link struct {
	Matrix   string // its name: "block.0.head.1.q"
	To, From Field
	Value    float64
	Symbol   string // the value as a formula: "κ", "1/A"
	Why      string
}

// Legend lists every non-zero weight of a network.
type Legend []Link

// Explain returns the link to which entry (row, col) of a matrix belongs, and false if the entry is zero.
func (l Legend) Explain(matrix string, row, col int) (Link, bool) {
	for _, k := range l {
		i, j := row-k.To.Offset, col-k.From.Offset
		if k.Matrix == matrix && i >= 0 && i < k.To.Len && j >= 0 && j < k.From.Len && (k.From.Len == 1 || i == j) {
			return k, true
		}
	}
	return Link{}, false
}

// Hidden lists the two units of the ReLU map in block 0.
var Hidden = []Field{
	{Name: "relu.plus", Note: "the target where it is positive, on packets", Offset: 0, Len: 1, Scalar: true},
	{Name: "relu.minus", Note: "minus the target where it is negative, on packets", Offset: 1, Len: 1, Scalar: true},
}

// build returns the decoder's network and its legend for the margins of the certificate.
func build(c *Certificate, l *Layout) (n *Network, legend Legend) {
	d, dh := l.Width(), l.HeadDim()
	head := func(name string) Head {
		return Head{Name: name, Q: mat.NewDense(dh, d, nil), K: mat.NewDense(dh, d, nil), V: mat.NewDense(dh, d, nil),
			O: mat.NewDense(d, dh, nil)}
	}
	// The last head is idle: the paper counts two in each block, and nothing is left to do.
	n = &Network{Width: d, HeadDim: dh, Blocks: []Block{
		{Heads: []Head{head("actor"), head("lookup")}, W1: mat.NewDense(2, d, nil), W2: mat.NewDense(d, 2, nil)},
		{Heads: []Head{head("predecessor"), head("idle")}},
	}}
	n.Blocks[1].Heads[0].Shift = l.SlotY.Offset
	matrix := map[string]*mat.Dense{}
	for _, m := range n.Matrices() {
		matrix[m.Name] = m.Matrix
	}
	link := func(name string, to, from Field, value float64, symbol, why string) {
		for i := range to.Len {
			matrix[name].Set(to.Offset+i, from.Offset+min(i, from.Len-1), value)
		}
		legend = append(legend, Link{name, to, from, value, symbol, why})
	}

	// An actor query for state s scores the memory of (s',a') with κ·1[s=s'] + ν + log π(a'|s') + ηQ(s',a') and
	// other queries with 0. Within the group s'=s the common κ+ν cancels in the softmax, which leaves softmax(log π
	// + ηQ) = PMD_η(π,Q)(·|s) over the values e_{a'}. Other states carry at most (S−1)e^{−κ+2ηB} and the at
	// most S visible queries at most Se^{−(κ+ν)+ηB} times the mass of the group: the printed R_act.
	link("block.0.head.0.q", l.SlotState, l.QueryState, c.Kappa, "κ", "ask for memories of the query's state")
	link("block.0.head.0.q", l.SlotX, l.IsActor, c.Nu, "ν", "ask for memories rather than queries")
	link("block.0.head.0.q", l.SlotY, l.IsActor, 1, "1", "add log π to the score")
	link("block.0.head.0.q", l.SlotZ, l.Step, 1, "1", "add ηQ to the score")
	link("block.0.head.0.k", l.SlotState, l.MemoryState, 1, "1", "offer the memory's state")
	link("block.0.head.0.k", l.SlotX, l.IsMemory, 1, "1", "be a memory")
	link("block.0.head.0.k", l.SlotY, l.LogPolicy, 1, "1", "offer log π(a|s)")
	link("block.0.head.0.k", l.SlotZ, l.Value, 1, "1", "offer Q(s,a)")
	link("block.0.head.0.v", l.SlotAction, l.MemoryAction, 1, "1", "a memory stands for its action")
	link("block.0.head.0.v", l.SlotAction, l.IsActor, 1/float64(c.Actions), "1/A",
		"a query stands for the uniform row, so every output is a distribution")
	link("block.0.head.0.o", l.PolicyAction, l.SlotAction, 1, "1", "write the row of the policy")

	// A packet scores a memory with τ₁ for each of state, action and role that agree with its successor (s',a'):
	// the right one gets 3τ₁, S+A−2 others 2τ₁, (S−1)(A−1) more τ₁, and the M packets 0: R₁.
	link("block.0.head.1.q", l.SlotState, l.SuccessorState, c.Tau1, "τ₁", "ask for the successor's state")
	link("block.0.head.1.q", l.SlotAction, l.SuccessorAction, c.Tau1, "τ₁", "ask for the successor's action")
	link("block.0.head.1.q", l.SlotX, l.IsPacket, c.Tau1, "τ₁", "ask for memories")
	link("block.0.head.1.k", l.SlotState, l.MemoryState, 1, "1", "offer the memory's state")
	link("block.0.head.1.k", l.SlotAction, l.MemoryAction, 1, "1", "offer the memory's action")
	link("block.0.head.1.k", l.SlotX, l.IsMemory, 1, "1", "be a memory")
	link("block.0.head.1.v", l.SlotZ, l.Value, 1, "1", "carry Q(s,a)")
	link("block.0.head.1.o", l.Looked, l.SlotZ, 1, "1", "write the value looked up")

	// relu(y + C(role−1)) − relu(−y + C(role−1)) is y = r + γQ(s',a') on packets, else 0: |y| ≤ γB ≤ C.
	for i, sign := range []float64{1, -1} {
		unit, mark := Hidden[i], []string{"", "−"}[i]
		link("block.0.map.w1", unit, l.IsPacket, c.B, "B", "open on packets")
		link("block.0.map.w1", unit, l.One, -c.B, "−B", "closed elsewhere")
		link("block.0.map.w1", unit, l.Reward, sign, mark+"1", "the reward")
		link("block.0.map.w1", unit, l.Looked, sign*c.Gamma, mark+"γ", "plus γ times the value looked up")
		link("block.0.map.w2", l.Target, unit, sign, mark+"1", "put the signs together again")
	}

	// A critic query (s,a) averages: it scores a packet with τ₂ for each of state, action and role that agree with
	// its predecessor, plus the packet's log weight: m packets get 3τ₂, all others at most 2τ₂, and the 2SA
	// memories and queries 0: the printed R₂. A log weight is a coordinate of the key like any other, so weighted
	// packets remain ordinary softmax attention: a packet of weight w counts as w packets.
	link("block.1.head.0.q", l.SlotState, l.QueryState, c.Tau2, "τ₂",
		"ask for packets from the query's state")
	link("block.1.head.0.q", l.SlotAction, l.QueryAction, c.Tau2, "τ₂",
		"ask for packets from the query's action")
	link("block.1.head.0.q", l.SlotX, l.IsCritic, c.Tau2, "τ₂", "ask for packets")
	link("block.1.head.0.q", l.SlotY, l.IsCritic, 1, "1", "add the log weight to the score")
	link("block.1.head.0.k", l.SlotState, l.PacketState, 1, "1", "offer the packet's state")
	link("block.1.head.0.k", l.SlotAction, l.PacketAction, 1, "1", "offer the packet's action")
	link("block.1.head.0.k", l.SlotX, l.IsPacket, 1, "1", "be a packet")
	link("block.1.head.0.k", l.SlotY, l.LogWeight, 1, "1", "offer the log weight")
	link("block.1.head.0.v", l.SlotZ, l.Target, 1, "1", "carry the target")
	link("block.1.head.0.o", l.Average, l.SlotZ, 1, "1", "write the mean target")
	return n, legend
}

// readouts returns those of an actor query, a row of the policy mixed with φ/A, and of a critic query, the new value.
func readouts(c *Certificate, l *Layout) (policy, value *Readout) {
	policy = &Readout{Name: "policy", W: mat.NewDense(c.Actions, l.Width(), nil),
		Bias: slices.Repeat([]float64{c.Phi / float64(c.Actions)}, c.Actions)}
	for a := range c.Actions {
		policy.W.Set(a, l.PolicyAction.Offset+a, 1-c.Phi)
	}
	value = &Readout{Name: "value", W: mat.NewDense(1, l.Width(), nil), Bias: []float64{0}}
	value.W.Set(0, l.Average.Offset, 1)
	return policy, value
}
