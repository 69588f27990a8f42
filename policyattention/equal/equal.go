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

	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/method/all"
)

// What methods of a module of its own say of themselves in the same words is in package
// method.
type (
	Information = method.Information
	Condition   = method.Condition
	Parameter   = method.Parameter
	Case        = method.Case
)

const (
	Model      = method.ByModel
	Generative = method.ByGenerative
	Window     = method.ByWindow
)

// Conditions lists all conditions.
var Conditions = []Condition{
	{Information: Model, N: 0}, {Information: Generative, N: 20}, {Information: Generative, N: 48}, {Information: Generative, N: 144}, {Information: Generative, N: 480}, {Information: Window, N: 20}, {Information: Window, N: 144},
}

// Sizes are the numbers of states, Horizons the rounds T whose losses are kept, and
// Rounds how many there are.
var (
	Sizes    = []int{8, 16}
	Horizons = []int{1, 2, 3, 5, 10, 20, 40}
)

// Rounds and Problems are those of every evaluation.
const (
	Actions, Rounds, Problems = mdp.Actions, 40, 64
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

// Method is a method in the conditions of one information.
type Method method.Form

// runs returns how many runs a method has in a condition.
func (m Method) runs(c Condition) int {
	if c.Information == Model && !m.Learned {
		return 1
	}
	return Runs
}

// can reports whether the method runs in a condition of its information.
func (m Method) can(c Condition, states int) bool { return m.Can == nil || m.Can(c.N, states) }

// Methods lists the methods of an information, in the order of tables: PMD and PolicyAttention on
// estimates, those of the registry, the references.
func Methods(i Information) []Method {
	return slices.Concat(improving[i], Registered(i), references[i])
}

// Registered lists the forms that the registry's methods have in an information.
func Registered(i Information) (list []Method) {
	for _, m := range all.Methods {
		if f, ok := m.Form(i); ok {
			list = append(list, Method(f))
		}
	}
	return list
}

// Find returns the method called name.
func Find(i Information, name string) (Method, error) {
	for _, m := range Methods(i) {
		if m.Name == name {
			return m, nil
		}
	}
	return Method{}, fmt.Errorf("equal: no method %q in the information %q, want one of %q", name, i, Names(i))
}

// Names lists the names of the methods of an information.
func Names(i Information) (names []string) {
	for _, m := range Methods(i) {
		names = append(names, m.Name)
	}
	return names
}
