package decoder

import (
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
)

// Lecture is an example that is small enough to be drawn whole, with the paper's step size and
// number of rounds.
var Lecture = struct {
	Caps Caps
	Root uint64 // of the problem and its packets
}{
	Caps: Caps{States: 3, Actions: 2, Gamma: mdp.Discount, RMax: 1, EtaMin: control.NominalStep,
		EtaMax: control.NominalStep, Rounds: 40, Routing: 1e-3, Alpha: .05, Packets: 2},
	Root: 4,
}
