// Package method says what the experiments need to know of a method: how it is
// called and shown, how it is trained, and how it becomes a controller.
//
// A Method is one value. Package experiment carries out what it describes, with
// training that survives kills, stored results, verification and estimates, and knows
// no method by name. The methods of the paper are listed in package all; a program of
// one's own adds a value to that list, or makes another: the example of package experiment
// does.
package method

import (
	"fmt"
	"image/color"
	"slices"
	"strings"

	"icrl/internal/npz"
	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
)

// Name names a method in cells, on the command line and in files.
type Name string

// Method is a way to make controllers.
type Method struct {
	Name   Name
	Label  string     // as text writes it
	Colour color.RGBA // in figures; apart from the others' for colour-blind readers
	Dashes []float64  // of its line where many are drawn, in points; for print in grey

	// Sampled says that it sees sampled transitions only. It then has no critic tables
	// of its own, and its policies are compared with exact PMD's by the exact critic.
	Sampled bool
	// Untrained says that there is nothing to train, so that it has no identities.
	Untrained bool
	// Signal, Access and Cost say what it learns from, what it is given online in a
	// round, and what a training run costs in the paper (Table 4).
	Signal, Access, Cost string

	// Replay, where it is not 0, is the method's own [Method.ReplayTolerance].
	Replay float64

	// Recipes are what "*" stands for in a row of a preset.
	Recipes []string
	// Printed are the recipes that the paper has numbers for, by its own choice of step
	// sizes or budget or the same at a smaller budget; all, where there are none.
	Printed []string
	// Tuned are the recipes at step sizes that calibration problems chose.
	Tuned []string
	// StageOf, where it is not nil, says of a recipe that is the beginning of another,
	// longer one which that is and, as text says it, what part of it; "" for others. The
	// parts of a recipe come before it in a plan, in their order.
	StageOf func(recipe string) (whole, stage string)
	// Imitates, where it is not nil, says of a recipe that learns from the histories of another
	// method which that is, with its recipe; "" for others.
	Imitates func(recipe string) (Name, string)
	// Variants are the recipes of a sampled method that the paper's sentences on it are held to.
	Variants []Variant
	// Retuned pairs a recipe with the same at step sizes that calibration problems chose.
	Retuned [][2]string
	// Control, where it is not nil, says that a recipe qualifies only if it beats its own control.
	Control *OwnControl
	// Tuning says how tables and figures show the step sizes that were tried.
	Tuning Tuning
	// Figure is the figure of its qualification, where it has one: of its imitation of a teacher
	// if Qualify is not nil, else of its losses within a life.
	Figure Figure
	// Notes are what the tables "benchmark", "qualification" and "tuning" say of it below.
	Notes map[string][]string
	// Measures are what its qualification is judged by.
	Measures []Measure
	// Limits names the numbers of its recipes that a preset can bound.
	Limits []string

	// Deploy returns the controller that a cell asks for; nil stands for exact PMD. It
	// returns an error if there is no such recipe at that size.
	Deploy func(Setting) (Deployment, error)
	// Tune and Qualify, where they are not nil, replace the closed loop in the blocks
	// "tuning" and "qualification".
	Tune, Qualify func(Setting) (Study, error)
	// Informed are its forms where methods are compared with equal information, at most one
	// for each.
	Informed []Form
	// Growth, where it is not nil, is what the study of growing costs measures of its training.
	Growth *Growth
	// Race, where it is not nil, is what its training is timed at beside other programs.
	Race *Race
}

// Growth says how the cost of a training run is measured along an axis, at S = 8.
type Growth struct {
	Name, Axis, Unit string  // of the series; the unit of work as in "a step"
	Budget           float64 // units in one run of the paper's budget
	X                []float64
	Recipe           string
	Limits           func(x int) Limits // of the recipe
}

// Race says how the training of a network is timed beside programs in other languages.
type Race struct {
	Training Shared
	States   int
	Arrays   []string // what those programs call the arrays of the data
	// How many steps' losses are compared first, and how many steps a program makes in one call
	// that makes several.
	Parity, Scan int
}

// Variant is a recipe as the paper has it, or with a choice of ours.
type Variant struct {
	Recipe, Label string
	Tuned         bool   // with step sizes of our own, which the paper's numbers are not of
	Budget        string // how its budget differs from the paper's
	Fitted        string // what was chosen so that it agrees
	// Why its loss, its growth with S, and the lead over it differ from the paper's.
	Loss, Growth, Lead string
}

// OwnControl is the same recipe with nothing remembered between rounds.
type OwnControl struct {
	Suffix string // of the recipe
	Whose  string // as in "the short context's"
}

// Of returns the recipe of a recipe's control; "" for a control, and for a method without one.
func (c *OwnControl) Of(recipe string) string {
	if c == nil || strings.HasSuffix(recipe, c.Suffix) {
		return ""
	}
	return recipe + c.Suffix
}

// Tuning is how step sizes that were tried are shown.
type Tuning struct {
	Says  string // in the title of a panel
	Axis  string // the step size along it
	Grids []Grid
}

// Grid is a recipe of the block "tuning", and how text tells it from the others.
type Grid struct{ Recipe, Label string }

// Figure is a figure by its name and title.
type Figure struct{ Name, Title string }

// ReplayTolerance is absolute for the probabilities that the method's actor returns when it
// is asked again in a stored context, by another backend or on another processor, both in
// float32. The largest difference seen is 1.3e-6 with pure Go and 9.5e-7 with XLA on another
// processor; the tolerance is fifteen times that.
func (m Method) ReplayTolerance() float64 {
	if m.Replay != 0 {
		return m.Replay
	}
	return 2e-5
}

// HasPrinted reports whether the paper has numbers for a recipe; an empty one stands
// for all that the method has.
func (m Method) HasPrinted(recipe string) bool {
	return recipe == "" || len(m.Printed) == 0 || slices.Contains(m.Printed, recipe)
}

// Whole returns the recipe that a recipe is the beginning of, or else itself.
func (m Method) Whole(recipe string) string {
	if m.StageOf != nil {
		if whole, _ := m.StageOf(recipe); whole != "" {
			return whole
		}
	}
	return recipe
}

// Registry is a list of methods, in the order of tables.
type Registry []Method

// Find returns the method called name.
func (r Registry) Find(name Name) (Method, error) {
	for _, m := range r {
		if m.Name == name {
			return m, nil
		}
	}
	return Method{}, fmt.Errorf("method: no method %q, want one of %q", name, r.Names())
}

// Has reports whether there is a method called name.
func (r Registry) Has(name Name) bool {
	return slices.ContainsFunc(r, func(m Method) bool { return m.Name == name })
}

// Sampled reports whether the method called name sees sampled transitions only.
func (r Registry) Sampled(name Name) bool {
	m, err := r.Find(name)
	return err == nil && m.Sampled
}

// Names lists the methods.
func (r Registry) Names() []Name {
	var names []Name
	for _, m := range r {
		names = append(names, m.Name)
	}
	return names
}

// Setting is what a cell and the protocol fix when they ask for a controller.
type Setting struct {
	Recipe          string
	States, Actions int
	Identity        Identity
	Rounds          int     // of the closed loop
	Eta             float64 // of the closed loop
	Root            uint64  // of the problems that the controller runs on
	Mixture         float64 // φ of a mixture with the uniform policy
	// Train are the numbers of states to train on, and Slots the largest that the
	// network takes, where they are not States.
	Train []int
	Slots int
	// Steps are the optimizer steps that the preset gives to an actor or a critic; methods
	// with a budget of their own have Limits. Step is the one after which weights are
	// deployed, 0 for the last.
	Steps, Step int
	// Snapshots are the steps before the last after which the weights of this identity
	// are looked at, by method and for this recipe.
	Snapshots map[Name][]int
	Limits    Limits
	Tuned     map[string]baseline.StepSizes // step sizes that calibration problems chose
	Shrinkage float64                       // of the mean of samples, which they chose too
}

// Identity is one trained identity.
type Identity struct {
	Model uint64 `json:"model"` // seed of the weights and of the order of examples
	Task  uint64 `json:"task"`  // root of the training problems
}

// Limits bound numbers of a recipe, such as "steps", by name.
type Limits map[string]int

// Bound makes n at most the limit called name, if there is one.
func (l Limits) Bound(n *int, name string) {
	if most, ok := l[name]; ok {
		*n = min(*n, most)
	}
}

// Deployment is a controller as data. Its JSON is an object, and its members become
// members of a closed loop's configuration, of which every hash depends on every byte.
type Deployment interface {
	// Weights lists the weights that it needs.
	Weights() []Weights
	// Controller returns the controller. Whatever it samples comes from streams below
	// root or below a seed of its own.
	Controller(m *Models, eta float64, root uint64) (control.Controller, error)
}

// Separable is a Deployment whose actor and critic can be asked one by one, in contexts of
// any origin. A nil part is the exact one.
type Separable interface {
	Deployment
	Parts() (Actor, Critic)
}

// Actor is a trained actor as data.
type Actor interface {
	Weights() []Weights
	Actor(*Models) (control.Actor, error)
}

// Critic is a trained critic as data; what it samples comes from streams below root.
type Critic interface {
	Weights() []Weights
	Critic(m *Models, root uint64) (control.Critic, error)
}

// Learner is a Deployment that learns online with step sizes, or whose source does.
type Learner interface {
	Deployment
	StepSizes() baseline.StepSizes
}

// Arrays are arrays of numbers by name, as a cell's file of them holds them.
type Arrays = map[string]npz.Array

// Recorder is a controller whose run depends on discrete choices, such as actions
// drawn from a network's probabilities: rounding that differs between machines could
// change one, and so all that follows. It stores its choices, and verification repeats
// the run with them.
type Recorder interface {
	control.Controller
	// Record is Run that also returns arrays [N, …] of the choices, by name.
	Record(problems []mdp.Problem, rounds int) ([]control.Trajectory, Arrays, error)
	// Replay repeats the run on some of the first problems with the recorded choices,
	// whose arrays may go on after them. It returns an error if a choice cannot have been
	// made with probabilities that differ by at most tolerance.
	Replay(problems []mdp.Problem, rounds int, recorded Arrays, tolerance float64) ([]control.Trajectory, error)
}

// Recorded is a Deployment that says which arrays its controller, a Recorder, stores.
type Recorded interface {
	Deployment
	Records() []string
}

// Measure is a number that a method's qualification is judged by.
type Measure struct {
	Name string
	// Of returns it from the scored closed loop, or from the summary of a study.
	Of func(scored []control.Scored, summary map[string]map[string]float64) (float64, error)
	// Round, if not 0, is the round after which it is the median loss. Tables have the tail of these
	// losses beside it.
	Round int
}

// Summarized is a Measure that stands in the summary of a study.
func Summarized(name, group, quantity string) Measure {
	return Measure{Name: name, Of: func(_ []control.Scored, summary map[string]map[string]float64) (float64, error) {
		v, ok := summary[group][quantity]
		if !ok {
			return 0, fmt.Errorf("method: the summary has no %s %s", group, quantity)
		}
		return v, nil
	}}
}

// Study is an evaluation other than a closed loop. Verification computes it again and
// compares tables and summary. Its JSON is its configuration.
type Study interface {
	Key() string // the member of the cell's configuration that it is
	Weights() []Weights
	Tables() []Table
	Compute(m *Models, problems []mdp.Problem) (*Result, error)
	// Read returns what a stored result says in a form of the study's own.
	Read(Result) (any, error)
}

// OwnProblems is a Study that draws its problems itself; it gets none.
type OwnProblems interface {
	Study
	OwnProblems()
}

// Table describes a file of numbers.
type Table struct {
	File    string
	Columns []string
}

// Result is the result of a study.
type Result struct {
	Rows    [][][]float64 // of each of its tables
	Summary map[string]map[string]float64
	// Policies were scored and Updates of policies made to compute it.
	Policies, Updates int
}
