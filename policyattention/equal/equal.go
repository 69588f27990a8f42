// Package equal asks how much of a method's lead is its update rule and how much what it
// is told: every method runs in every condition of information in which it can, on the
// same problems and, where it sees samples, on as many transitions as all others.
//
// Information is the model, generative samples, or an on-policy walk without resets. What
// a controller uses is counted by the environment that it is handed, package mdp's Meter.
// Free numbers such as step sizes are chosen by one rule on calibration problems: see
// Tune.
package equal

import (
	"fmt"
	"slices"

	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
)

// Information is how a method learns of a problem.
type Information string

const (
	Model      Information = "model"      // P and r can be read
	Generative Information = "generative" // N transitions a round from all pairs in turn, the same for all
	Window     Information = "window"     // N transitions a round of a walk without resets
)

// Condition is an information and how much of it a round has.
type Condition struct {
	Information Information `json:"information"`
	N           int         `json:"n,omitempty"` // transitions a round; 0 with the model
}

// String returns for instance "generative, n = 48".
func (c Condition) String() string {
	if c.N == 0 {
		return string(c.Information)
	}
	return fmt.Sprintf("%s, n = %d", c.Information, c.N)
}

// Conditions lists all conditions.
var Conditions = []Condition{
	{Model, 0}, {Generative, 20}, {Generative, 48}, {Generative, 144}, {Generative, 480}, {Window, 20}, {Window, 144},
}

// Sizes are the numbers of states, Horizons the rounds T whose losses are kept, and
// Rounds how many there are.
var (
	Sizes    = []int{8, 16}
	Horizons = []int{1, 2, 3, 5, 10, 20, 40}
)

// Rounds and Problems are those of every evaluation.
const (
	Actions, Rounds, Problems = 3, 40, 64
	// Calibrating is the number of problems that free numbers are chosen on.
	Calibrating = 24
	// Runs is how many streams of samples, and identities of a learned method, there are.
	Runs = 3
)

// Seeds are roots of random streams.
type Seeds struct {
	Evaluation  uint64 `json:"evaluation"`  // problems that nothing is chosen on
	Calibration uint64 `json:"calibration"` // problems that free numbers are chosen on
	Samples     uint64 `json:"samples"`     // run j has the stream of samples Samples + j
	Choosing    uint64 `json:"choosing"`    // samples on calibration problems
}

// Roots are the seeds of each size. No other block uses them.
var Roots = map[int]Seeds{
	8:  {Evaluation: 38400, Calibration: 88400, Samples: 26_080, Choosing: 26_089},
	16: {Evaluation: 39400, Calibration: 89400, Samples: 26_160, Choosing: 26_169},
}

// Parameter is a free number of a method.
type Parameter struct {
	Name  string
	Start float64 // where the search begins
	Most  float64 // what it cannot exceed, 0 for no such number
	// Choice says that it is 0 or 1, not a number on a logarithmic scale.
	Choice bool
}

// The free numbers there are.
var (
	etaOf     = Parameter{Name: "η", Start: .8}
	weightOf  = Parameter{Name: "w", Start: .5, Most: 1}
	tdOf      = Parameter{Name: "β", Start: .2, Most: 1}
	alphaOf   = Parameter{Name: "α", Start: .2, Most: 1}
	epsilonOf = Parameter{Name: "ε", Start: .2, Most: 1}
	actorOf   = Parameter{Name: "α", Start: 16}
	criticOf  = Parameter{Name: "β", Start: .4}
	startOf   = Parameter{Name: "start", Choice: true} // 0: the problem's π₀, 1: uniform
)

// start returns the policy that the value of startOf stands for.
func start(value float64) baseline.Start {
	if value == 0 {
		return baseline.Initial
	}
	return baseline.Uniform
}

// Method is a method in the conditions of one information.
type Method struct {
	Name  string
	Label string // as text writes it
	// Learned says that it has trained identities, of which run j uses number j.
	Learned bool
	// Identities is how many there are where weights are left out of the repository; 0
	// stands for Runs.
	Identities int
	Parameters []Parameter
	// Can reports whether it can run with N transitions a round at S states; nil stands for
	// everywhere.
	Can func(n, states int) bool
	// Published are its numbers as published, where there are any: it is run with them too.
	Published func(states int) []float64
	// As names the method whose numbers it takes instead of a search of its own, since it
	// makes the same updates to within what its description says.
	As  string
	New func(Case) (control.Controller, error)
}

// Case is one controller to run.
type Case struct {
	Networks *Networks
	Condition
	States int
	Run    int
	Values []float64 // of the method's parameters
	Root   uint64    // of the samples
	// Untuned says that the values are the published ones.
	Untuned bool
}

// runs returns how many runs a method has in a condition.
func (m Method) runs(c Condition) int {
	switch {
	case m.Identities > 0:
		return m.Identities
	case c.Information == Model && !m.Learned:
		return 1
	}
	return Runs
}

// can reports whether the method runs in a condition of its information.
func (m Method) can(c Condition, states int) bool { return m.Can == nil || m.Can(c.N, states) }

// Methods lists the methods of an information, in the order of tables.
func Methods(i Information) []Method { return slices.Clone(methods[i]) }

// Find returns the method called name.
func Find(i Information, name string) (Method, error) {
	for _, m := range methods[i] {
		if m.Name == name {
			return m, nil
		}
	}
	return Method{}, fmt.Errorf("equal: no method %q in the information %q", name, i)
}
