package decoder

import "fmt"

// Field is a named run of coordinates of a token, of slots of a head, or of
// hidden units.
type Field struct {
	Name   string // for instance "memory.state"
	Note   string // what it holds
	Offset int    // of its first coordinate
	Len    int
	Scalar bool // a single number, labelled without index
}

// Label returns the name of coordinate i of the field: "memory.state[3]", or
// "reward" for a scalar.
func (f Field) Label(i int) string {
	if f.Scalar {
		return f.Name
	}
	return fmt.Sprintf("%s[%d]", f.Name, i)
}

// Layout names the 6S+6A+14 coordinates of a token and the S+A+3 slots of a
// head. Every role keeps its state and action in fields of its own, so a linear
// key map that reads one role's fields sees zeros in all others: linear maps
// are gated by role for free.
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
	field := func(f *Field, name, note string, length int) {
		offset := 0
		if len(*list) > 0 {
			offset = end(*list)
		}
		*f = Field{Name: name, Note: note, Offset: offset, Len: length}
		*list = append(*list, *f)
	}
	scalar := func(f *Field, name, note string) {
		field(f, name, note, 1)
		f.Scalar, (*list)[len(*list)-1].Scalar = true, true
	}
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

	// The flags come before the numbers they gate: the ReLU map then adds
	// C·role − C·one, exactly zero on packets, before anything is rounded.
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
func (l *Layout) Width() int { return end(l.Token) }

// HeadDim returns the head dimension S+A+3.
func (l *Layout) HeadDim() int { return end(l.Slots) }

func end(fields []Field) int {
	last := fields[len(fields)-1]
	return last.Offset + last.Len
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

// Explain returns the link to which entry (row, col) of a matrix belongs, and
// false if the entry is zero.
func (l Legend) Explain(matrix string, row, col int) (Link, bool) {
	for _, k := range l {
		i, j := row-k.To.Offset, col-k.From.Offset
		if k.Matrix == matrix && i >= 0 && i < k.To.Len && j >= 0 && j < k.From.Len && (k.From.Len == 1 || i == j) {
			return k, true
		}
	}
	return Link{}, false
}
