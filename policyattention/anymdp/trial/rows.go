// Package trial measures an actor for any MDP beside exact PMD on problems that nothing
// was trained or chosen on.
//
// A Row is a distribution of problems. An identity takes problems of its own of every row, through
// exact PMD and through both of its read-outs, and what is stored of a problem is the loss
// at the horizons.
package trial

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
)

// Horizons are the rounds T after which the returned policies are scored.
var Horizons = []int{20, 40, 100, 400}

// Row is a distribution of problems.
type Row struct {
	Name            string
	Family          mdp.Family
	States, Actions int
	Gamma           float64
	// Rewards of the family, in [−1, 1], are mapped to [Least, Most].
	Least, Most float64
	// Mass, if not 0, is what π₀ leaves the best action, by Q*, of one state drawn
	// uniformly, or Everywhere. The other actions share the rest as in the family's π₀.
	Mass       float64
	Everywhere bool
	// Lock, if set, draws Mass for every problem log-uniformly from 10⁻¹² to 10⁻¹, and
	// every other problem has it Everywhere.
	Lock bool
	Eta  float64 // 0 stands for the step size that [pmd.SuggestStep] suggests
	// Fixture, if not 0, is the root of the benchmark's problems, which all identities share.
	Fixture uint64

	Problems int // of an identity, read-out "prior"
	// On the first Network and Mixed of them the network's read-out is run as it is and
	// mixed with the uniform policy.
	Network, Mixed int
}

// base is the row that others differ from in one thing.
var base = Row{
	Family: mdp.Random, States: 7, Actions: mdp.Actions, Gamma: mdp.Discount, Least: -1, Most: 1,
	Eta: control.NominalStep, Problems: 200, Network: 200,
}

// Rows are the rows of the table.
var Rows = allRows()

func allRows() (all []Row) {
	add := func(name string, change func(*Row)) {
		r := base
		r.Name = name
		change(&r)
		all = append(all, r)
	}
	for _, size := range [][2]int{{3, 32}, {7, 18}, {12, 9}, {24, 5}, {48, 3}, {100, 2}} {
		add(fmt.Sprintf("S = %d, A = %d", size[0], size[1]), func(r *Row) {
			r.States, r.Actions, r.Network = size[0], size[1], 40
		})
	}
	for _, gamma := range []float64{.5, .8, .9, .95, .99} {
		add(fmt.Sprintf("γ = %v", gamma), func(r *Row) { r.Gamma = gamma })
	}
	for _, mass := range []float64{1e-3, 1e-6, 1e-12} {
		add(fmt.Sprintf("mass %.0e, one state", mass), func(r *Row) { r.Mass = mass })
		add(fmt.Sprintf("mass %.0e, all states", mass), func(r *Row) { r.Mass, r.Everywhere = mass, true })
	}
	for _, span := range [][2]float64{{-1, -.5}, {0, 1}, {9, 10}, {-.1, .1}, {-3, 3}, {-30, 30}} {
		add(fmt.Sprintf("r in [%v, %v]", span[0], span[1]), func(r *Row) { r.Least, r.Most = span[0], span[1] })
	}
	for _, family := range mdp.Shifts {
		add(string(family), func(r *Row) { r.Family = family })
	}
	add("suggested η", func(r *Row) { r.Eta = 0 })
	for _, states := range []int{4, 8, 16} {
		add(fmt.Sprintf("lock-up, S = %d", states), func(r *Row) {
			r.States, r.Lock = states, true
			r.Problems, r.Network = 2000, 2000
			if states == 4 {
				r.Mixed = 20
			}
		})
	}
	for i, root := range []uint64{34100, 38100, 39100} {
		add(fmt.Sprintf("benchmark, S = %d", 4<<i), func(r *Row) {
			r.States, r.Fixture = 4<<i, root
			r.Problems, r.Network = 64, 64
		})
	}
	return all
}

// Problem is a problem and its step size.
type Problem struct {
	mdp.Problem
	Eta float64
}

// Root is the root of the problems of the table. While the recipe was made others were looked at.
const Root = 31900

// Draw returns the problems of a row for an identity. They are a function of the two.
func (r Row) Draw(identity uint64) ([]Problem, error) {
	stream := seed.New(Root, "any", "trial", r.Name, int(identity)).Uint64()
	if r.Fixture != 0 {
		stream = r.Fixture
	}
	drawn, err := r.Family.Draw(stream, r.States, r.Actions, r.Problems)
	if err != nil {
		return nil, fmt.Errorf("trial: %s: %w", r.Name, err)
	}
	problems := make([]Problem, len(drawn))
	for i, p := range drawn {
		if problems[i], err = r.change(p, stream, i); err != nil {
			return nil, fmt.Errorf("trial: %s: problem %d: %w", r.Name, i, err)
		}
	}
	return problems, nil
}

// change makes a problem of the family one of the row.
func (r Row) change(p mdp.Problem, stream uint64, i int) (Problem, error) {
	rewards := mat.DenseCopyOf(p.MDP.R)
	rewards.Apply(func(_, _ int, v float64) float64 {
		return r.Least + float64((r.Most-r.Least)*(v+1)/2)
	}, rewards)
	m, err := mdp.New(r.Gamma, p.MDP.DenseP(), rewards)
	if err != nil {
		return Problem{}, err
	}
	out := Problem{mdp.Problem{MDP: m, Pi0: p.Pi0}, r.Eta}
	optimum, err := m.Optimal()
	if err != nil {
		return Problem{}, err
	}
	if r.Eta == 0 {
		out.Eta = pmd.SuggestStep(optimum.Q, pmd.SuggestedSpan)
	}
	rng := seed.New(stream, "state", i)
	only, mass, everywhere := rng.IntN(r.States), r.Mass, r.Everywhere
	if r.Lock {
		mass, everywhere = math.Pow(10, -1-11*rng.Float64()), i%2 == 1
	}
	if mass == 0 {
		return out, nil
	}
	for s := range r.States {
		if everywhere || s == only {
			pmd.Starve(out.Pi0.RawRowView(s), floats.MaxIdx(optimum.Q.RawRowView(s)), mass)
		}
	}
	return out, nil
}
