package method

import (
	"fmt"

	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
)

// Information is how a method learns of a problem, where methods are compared with equal
// information: see package equal.
type Information string

const (
	ByModel      Information = "model"      // P and r can be read
	ByGenerative Information = "generative" // N transitions a round from all pairs in turn, the same for all
	ByWindow     Information = "window"     // N transitions a round of a walk without resets
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

// Parameter is a free number of a method, which calibration problems choose.
type Parameter struct {
	Name  string
	Start float64 // where the search begins
	Most  float64 // what it cannot exceed, 0 for no such number
	// Choice says that it is 0 or 1, not a number on a logarithmic scale.
	Choice bool
}

// StartParameter chooses the policy that a method starts from: see StartOf.
var StartParameter = Parameter{Name: "start", Choice: true}

// StartOf returns the policy that a value of StartParameter stands for: 0 is the
// problem's π₀, 1 the uniform one.
func StartOf(value float64) baseline.Start {
	if value == 0 {
		return baseline.Initial
	}
	return baseline.Uniform
}

// Deployed gives the trained networks that methods are compared with.
type Deployed interface {
	// Deployment returns what a recipe of a method deploys with S states in run j.
	Deployment(name Name, recipe string, states, j int) (Deployment, error)
	Models() *Models
}

// Case is one controller to run in a condition.
type Case struct {
	Networks Deployed
	Condition
	States int
	Run    int
	Values []float64 // of the form's parameters
	Root   uint64    // of the samples
	// Untuned says that the values are the published ones.
	Untuned bool
}

// Source returns the condition's source of transitions.
func (c Case) Source() baseline.Source {
	if c.Information == ByGenerative {
		return baseline.Generative{N: c.N, Root: c.Root}
	}
	return baseline.Walk{N: c.N, Root: c.Root}
}

// Form is a method in the conditions of one information.
type Form struct {
	Information Information
	Name        string // the method's, where it is one of the registry
	Label       string // as text writes it
	// Learned says that it has trained identities, of which run j uses number j.
	Learned    bool
	Parameters []Parameter
	// Can reports whether it can run with N transitions a round at S states; nil stands for
	// everywhere.
	Can func(n, states int) bool
	// Published are its numbers as published, where there are any: it is run with them too.
	Published func(states int) []float64
	// As names the form whose numbers it takes instead of a search of its own, since it
	// makes the same updates to within what its description says.
	As string
	// WithModel names the form that it becomes where it can read the model, if there is one.
	WithModel string
	// Proposed says that it is PolicyAttention, on some estimate of Q.
	Proposed bool
	// Improves says that it is an actor of PMD on estimated values, and no rule of its own.
	Improves bool
	// Same reports whether its rounds with N transitions are those of another condition, so
	// that verification repeats them there alone; nil stands for never.
	Same func(n int) bool
	New  func(Case) (control.Controller, error)
}

// Form returns the method's form in an information, if it has one.
func (m Method) Form(i Information) (Form, bool) {
	for _, f := range m.Informed {
		if f.Information == i {
			f.Name = string(m.Name)
			return f, true
		}
	}
	return Form{}, false
}

// Paced is a controller whose rounds are not the condition's: it has a number of
// transitions a round of its own.
type Paced interface {
	control.Controller
	// Own returns the number of its own rounds that are complete after k rounds.
	Own(k int) int
}
