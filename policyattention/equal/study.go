package equal

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"icrl/policyattention/control"
	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/rows"
)

// Block is the study's block.
const Block experiment.Block = "equal"

// Study adds every method in every condition to a preset whose networks it uses.
type Study struct{}

// Row is a method in a condition at a size.
type Row struct {
	States int `json:"states"`
	Condition
	Method string `json:"method"`
	// Untuned says that the free numbers are the published ones.
	Untuned bool `json:"untuned,omitempty"`
}

// Notes are what a row's numbers were and what it used.
type Notes struct {
	Condition
	Untuned bool      `json:"untuned,omitempty"`
	Values  []float64 `json:"values,omitempty"` // of the method's parameters, in their order
	Tuning  *Tuning   `json:"tuning,omitempty"` // absent where nothing was searched
	Use     []Use     `json:"use"`              // [horizons], mean over problems and runs
	Seconds float64   `json:"seconds"`          // of wall time a problem and run, all rounds
}

// Name names the row, as in S8/generative-48/sarsa.
func (r Row) Name() string {
	name := fmt.Sprintf("S%d/%s", r.States, r.Information)
	if r.N > 0 {
		name += fmt.Sprintf("-%d", r.N)
	}
	name += "/" + r.Method
	if r.Untuned {
		name += "-untuned"
	}
	return name
}

// Plan lists the rows, in the order in which they are measured.
func Plan() (all []Row) {
	for _, states := range Sizes {
		for _, c := range Conditions {
			for _, m := range Methods(c.Information) {
				if !m.can(c, states) {
					continue
				}
				all = append(all, Row{States: states, Condition: c, Method: m.Name})
				if m.Published != nil && c.N <= 20 { // what the paper's comparison has
					all = append(all, Row{States: states, Condition: c, Method: m.Name, Untuned: true})
				}
			}
		}
	}
	return all
}

// Units implements experiment.Study.
func (Study) Units(s *experiment.Store) (units []experiment.Unit, err error) {
	for _, row := range Plan() {
		m, err := Find(row.Information, row.Method)
		if err != nil {
			return nil, err
		}
		units = append(units, row.unit(m, &Networks{store: s}))
	}
	return units, nil
}

// replayed is how many problems verification runs a row's runs again on. Losses are stored to
// five digits; those of networks in float32 have gone through 40 rounds of rounding.
const replayed, rounding, learnedRounding = 2, 1e-5, 2e-3

func (r Row) unit(m Method, n *Networks) experiment.Unit {
	u := experiment.Unit{
		Block: Block, Name: r.Name(), Key: rows.Key{Method: r.Method, S: int32(r.States), Family: string(mdp.Random)},
		Of: rows.Equal{Method: r.Method, S: int32(r.States), Information: string(r.Information), N: int32(r.N), Untuned: r.Untuned},
		Config: struct {
			Row
			Rounds, Problems, Calibrating, Runs int
			Horizons                            []int
			Roots                               Seeds
		}{r, Rounds, Problems, Calibrating, m.runs(r.Condition), Horizons, Roots[r.States]},
		Problems: Problems, Sample: replayed, Tolerance: rounding,
	}
	if m.Learned {
		u.Tolerance = learnedRounding
	}
	if m.Same != nil && m.Same(r.N) {
		u.Sample = -1
	}
	u.Compute = func(ctx context.Context, s *experiment.Store, first int, stored *experiment.Result) (*experiment.Result, error) {
		notes := Notes{Condition: r.Condition, Untuned: r.Untuned}
		var err error
		if stored != nil {
			err = json.Unmarshal(stored.Notes, &notes)
		} else {
			err = r.choose(ctx, n, m, &notes)
		}
		if err != nil {
			return nil, err
		}
		return r.measure(n, m, first, notes)
	}
	return u
}

// choose fills in the numbers of a row: published ones, those of the method that makes the same
// updates, or what a search on calibration problems finds.
func (r Row) choose(ctx context.Context, n *Networks, m Method, notes *Notes) error {
	switch {
	case r.Untuned:
		notes.Values = m.Published(r.States)
	case m.As != "":
		other := r
		other.Method = m.As
		as, err := Find(r.Information, m.As)
		if err != nil {
			return err
		}
		result, err := n.store.Evaluate(ctx, other.unit(as, n))
		if err != nil {
			return err
		}
		var its Notes
		if err := json.Unmarshal(result.Notes, &its); err != nil {
			return err
		}
		notes.Values = its.Values
	case len(m.Parameters) > 0:
		f, err := draw(Roots[r.States].Calibration, r.States, Calibrating)
		if err != nil {
			return err
		}
		values, t, err := m.Tune(n, r.Condition, r.States, f.problems, f.scales)
		if err != nil {
			return err
		}
		notes.Values, notes.Tuning = values, &t
	}
	return nil
}

// measure runs a row on the first problems, all for 0.
func (r Row) measure(n *Networks, m Method, first int, notes Notes) (*experiment.Result, error) {
	if first == 0 {
		first = Problems
	}
	f, err := draw(Roots[r.States].Evaluation, r.States, first)
	if err != nil {
		return nil, err
	}
	out, runs := &experiment.Result{}, m.runs(r.Condition)
	notes.Use, notes.Seconds = make([]Use, len(Horizons)), 0
	for j := range runs {
		x, err := m.Run(Case{
			Networks: n, Condition: r.Condition, States: r.States, Run: j, Values: notes.Values, Untuned: r.Untuned,
			Root: Roots[r.States].Samples + uint64(j),
		}, f.problems, f.scales)
		if err != nil {
			return nil, err
		}
		for h, u := range x.Use {
			notes.Use[h].Transitions += u.Transitions / float64(runs)
			notes.Use[h].Entries += u.Entries / float64(runs)
			notes.Use[h].Operations += u.Operations / float64(runs)
		}
		notes.Seconds += x.Seconds / float64(runs)
		for i, losses := range x.Loss {
			for h, v := range losses {
				short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 5, 64), 64)
				if err != nil {
					return nil, err
				}
				out.Equal = append(out.Equal, rows.Equal{
					Method: r.Method, S: int32(r.States), Information: string(r.Information), N: int32(r.N), Untuned: r.Untuned,
					Run: int32(j), Problem: int32(i), Round: int32(Horizons[h]), Loss: short,
				})
			}
		}
	}
	out.Notes, err = json.Marshal(notes)
	return out, err
}

// fixtures are problems and what their losses are divided by.
type fixtures struct {
	problems []mdp.Problem
	scales   []*control.Scale
}

func draw(root uint64, states, n int) (f fixtures, err error) {
	if f.problems, err = mdp.Random.Draw(root, states, Actions, n); err != nil {
		return f, err
	}
	f.scales, err = control.NewScales(f.problems)
	return f, err
}
