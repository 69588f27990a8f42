package experiment

import (
	_ "embed"
	"encoding/json"
	"fmt"

	"icrl/policyattention/baseline"
	"icrl/policyattention/method"
)

//go:embed protocol.json
var protocolJSON []byte

// PaperProtocol is the paper's protocol: protocol.json in this package is the one place of
// every seed, root, horizon and margin.
var PaperProtocol = Embedded[Protocol](protocolJSON)

// Embedded returns the value of JSON that is part of the program. It panics if it is none.
func Embedded[T any](text []byte) (v T) {
	if err := json.Unmarshal(text, &v); err != nil {
		panic(fmt.Sprintf("experiment: %.40s…: %v", text, err))
	}
	return v
}

// Protocol is what is fixed before any evaluation.
type Protocol struct {
	Actions       int       `json:"actions"`
	Eta           float64   `json:"eta"`     // step size at deployment
	Rounds        int       `json:"rounds"`  // T of every trajectory
	Long          []int     `json:"long"`    // further horizons, the last the T of their trajectories
	Mixture       float64   `json:"mixture"` // φ
	HeldOutRounds int       `json:"held_out_rounds"`
	SuppliedEta   []float64 `json:"supplied_eta"`
	Fit           struct {  // grid of the refitted step size
		Lo float64 `json:"lo"`
		Hi float64 `json:"hi"`
		By float64 `json:"by"`
	} `json:"fit"`
	Sizes map[int]Size `json:"sizes"` // by number of states
}

// Size is what the protocol fixes for one number of states.
type Size struct {
	Runs       []method.Identity `json:"runs"`       // the paper's number of identities
	Evaluation uint64            `json:"evaluation"` // root of the evaluation problems
	Headline   uint64            `json:"headline"`   // root of the headline block's problems, which nothing else has
	Oracle     uint64            `json:"oracle"`     // root of the oracle block's problems, 0 where there are none
	HeldOut    uint64            `json:"held_out"`   // root of the one-step inputs, likewise
	// Of the sampled methods.
	Calibration   uint64 `json:"calibration"`   // root of the tuning block's problems
	Qualification uint64 `json:"qualification"` // root of the qualification block's
	// Fresh are roots of the qualification block's problems for methods whose recipe was
	// changed after problems of the common root had been looked at.
	Fresh map[method.Name]uint64 `json:"fresh,omitempty"`
	// Tuned are step sizes that the tuning block chose on calibration problems, or that
	// a source states, by what they are of.
	Tuned map[string]baseline.StepSizes `json:"tuned"`
}
