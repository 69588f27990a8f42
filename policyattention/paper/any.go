package paper

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/anymdp"
	"icrl/policyattention/control"
	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/pmd"
	"icrl/policyattention/rows"
	"icrl/policyattention/seed"
	"icrl/policyattention/train"
	"icrl/policyattention/transformer/engine"
)

// The study of the actor for any MDP sets it beside exact PMD on problems that nothing was trained or chosen on. An
// identity takes problems of its own of every set, through exact PMD and through both of its read-outs, and what is
// stored of a problem is the loss at the horizons.

// anyRuns are the training runs: the released identities, and without attention the first of these.
func anyRuns() (runs []anymdp.Config) {
	for _, identity := range anymdp.Identities {
		runs = append(runs, anymdp.Standard(identity))
	}
	for _, c := range slices.Clone(runs[:3]) {
		c.Attention = train.None
		runs = append(runs, c)
	}
	return runs
}

// anyWeights are those of the actor for any MDP in runs of another study; other methods have none.
func anyWeights(name string, runs int) (all []method.Weights) {
	if strings.HasPrefix(name, "any") {
		for _, identity := range anymdp.Identities[:runs] {
			all = append(all, method.Last(anymdp.Standard(identity)))
		}
	}
	return all
}

// Any is the study of every set for every training run. Verification computes a problem of some sets again, as many
// as one run has.
func Any(*experiment.Store) (units []experiment.Unit, err error) {
	runs := anyRuns()
	for _, c := range runs {
		for _, row := range anySets {
			u := row.unit(c)
			if u.OneIn = len(runs); row.Fixture != 0 { // those take longest
				u.OneIn *= u.OneIn
			}
			units = append(units, u)
		}
	}
	for _, c := range runs[:3] {
		units = append(units, anyHeads(c, anymdp.Prior), anyHeads(c, anymdp.Network))
	}
	return units, nil
}

// anyHeads asks of a run and a read-out what study heads does of all heads at once, on its problems and contexts.
func anyHeads(c anymdp.Config, readout anymdp.Readout) experiment.Unit {
	key := rows.Key{Method: "any", Recipe: string(readout), S: 8, Seed: int64(c.Seed), Family: string(mdp.Random)}
	h := heads{probe{Root: experiment.PaperProtocol.Sizes[8].HeldOut}, 256, 0, anyHorizons, control.NominalStep}
	return experiment.Unit{
		Block: "heads", Name: c.Name() + "/" + key.Recipe, Key: key, Of: key, Weights: []method.Weights{method.Last(c)},
		Config: map[string]any{"training": c, "readout": readout, "study": h}, OneIn: experiment.WholeOnly,
		Tolerance: anyTolerance,
		Compute: func(_ context.Context, s *experiment.Store, _ []int32, _ *rows.Tables) (*rows.Tables, error) {
			params, err := method.Make(s.Models, method.Last(c), func(p []float32) ([]float32, error) { return p, nil })
			contexts, undrawn := elsewhere(train.Standard(train.Proximal, train.Plain(), 0, 8), h.Root, h.Contexts)
			if err := cmp.Or(err, undrawn); err != nil {
				return nil, err
			}
			act := func(attention train.Attention, params []float32) (control.Actor, error) {
				changed := c
				changed.Attention = attention
				n, err := engine.New[float32](changed.Network(), params)
				if err != nil {
					return nil, err
				}
				return anymdp.NewActor(n.Sequences, readout)
			}
			all, err := h.switched(contexts, c.Attention, c.Network(), params, act)
			t := &rows.Tables{Measures: all}
			t.SetKey(key)
			return t, err
		},
	}
}

// anyTolerance is by how much an excess that is computed again may differ from the stored one, from XLA in float32. An
// error of 1e-6 of a row's separation in each of 40 rounds moves a logit by 4e-5 separations, and a loss by a quarter
// of that for each nat. In the read-out of the network alone the error of an output counts κ·17 nats where a mass is
// at its floor: one loss is 1.3e-3 away, by rounding. This is three times that.
const anyTolerance = 4e-3

func (r anySet) unit(c anymdp.Config) experiment.Unit {
	recipe := c.Changes()
	return experiment.Unit{
		Block: "any", Name: strings.TrimPrefix(c.Name(), "any-") + "/" + r.Name,
		Key: rows.Key{Method: "any", Recipe: recipe, Seed: int64(c.Seed), S: int32(r.States), Family: r.Name},
		Of:  rows.Any{Set: r.Name, Recipe: recipe, Seed: int64(c.Seed)}, Weights: []method.Weights{method.Last(c)},
		Config: struct {
			Row      anySet        `json:"row"`
			Training anymdp.Config `json:"training"`
			Root     uint64        `json:"root"`
			Horizons []int         `json:"horizons"`
		}{r, c, anyRoot, r.horizons()},
		Problems: r.Problems, Rows: len(r.horizons()) * (r.Problems + r.Network + r.Mixed),
		Sample: 1, Chosen: true, Tolerance: anyTolerance,
		Compute: func(ctx context.Context, s *experiment.Store, places []int32, _ *rows.Tables) (*rows.Tables, error) {
			horizons := r.horizons()
			if len(places) < r.Problems { // verification; 40 rounds with many pairs would take a sixth of its time
				horizons = horizons[:2]
				if r.States*r.Actions > 150 {
					horizons = horizons[:1]
				}
			}
			model, err := method.Network(s.Models, c)
			if err != nil {
				return nil, err
			}
			any, err := r.Run(ctx, c.Seed, model.Sequences, places, horizons)
			for i := range any {
				any[i].Recipe = recipe
			}
			return &rows.Tables{Any: any}, err
		},
	}
}

// anyHorizons are the rounds T after which the returned policies are scored, those at cliffs the first two.
var anyHorizons = []int{20, 40, 100}

func (r anySet) horizons() []int {
	if r.Cliff > 0 {
		return anyHorizons[:2]
	}
	return anyHorizons
}

// anySet is a distribution of problems.
type anySet struct {
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
	// Cliff, if not 0, is the most that the worst action of the one state costs: K is drawn
	// log-uniformly from 1 to Cliff. π₀ leaves that action 10⁻³/K, so that it costs nothing at first.
	Cliff float64 `json:",omitempty"`
	Eta   float64 // 0 stands for [pmd.SuggestedSpan] over the range of Q*
	// Fixture, if not 0, is the root of the benchmark's problems, which all identities share.
	Fixture uint64

	Problems int // of an identity, read-out "prior"
	// On the first Network and Mixed of them the network's read-out is run as it is and mixed with the uniform policy.
	Network, Mixed int
}

// anyBase is the set that those of any.json differ from in what they say.
var anyBase = anySet{
	Family: mdp.Random, States: 7, Actions: mdp.Actions, Gamma: mdp.Discount, Least: -1, Most: 1,
	Eta: control.NominalStep, Problems: 100, Network: 100,
}

//go:embed any.json
var anyJSON []byte

// UnmarshalJSON implements json.Unmarshaler: what is not said is that of anyBase.
func (r *anySet) UnmarshalJSON(text []byte) error {
	type said anySet
	*r = anyBase
	return json.Unmarshal(text, (*said)(r))
}

// anySets are the rows of the table.
var anySets = experiment.Embedded[[]anySet](anyJSON)

// anyProblem is a problem and its step size.
type anyProblem struct {
	mdp.Problem
	Eta float64
}

// anyRoot is the root of the problems of the table, first drawn when the recipe was fixed. It was
// chosen on those of other roots, which the model card names.
const anyRoot = 61900

// Pick returns problems of a set for an identity by their places. They are a function of the three.
func (r anySet) Pick(identity uint64, places []int32) ([]anyProblem, error) {
	stream := seed.New(anyRoot, "any", "trial", r.Name, int(identity)).Uint64()
	if r.Fixture != 0 {
		stream = r.Fixture
	}
	drawn, err := r.Family.Pick(stream, r.States, r.Actions, places)
	if err != nil {
		return nil, fmt.Errorf("any: %s: %w", r.Name, err)
	}
	problems := make([]anyProblem, len(drawn))
	for i, p := range drawn {
		if problems[i], err = r.change(p, stream, int(places[i])); err != nil {
			return nil, fmt.Errorf("any: %s: problem %d: %w", r.Name, places[i], err)
		}
	}
	return problems, nil
}

// change makes a problem of the family one of the set.
func (r anySet) change(p mdp.Problem, stream uint64, i int) (anyProblem, error) {
	rewards := mat.DenseCopyOf(p.MDP.R)
	rewards.Apply(func(_, _ int, v float64) float64 {
		return r.Least + float64((r.Most-r.Least)*(v+1)/2)
	}, rewards)
	solved := func() (m *mdp.MDP, optimum *mdp.Optimum, err error) {
		if m, err = mdp.New(r.Gamma, p.MDP.DenseP(), rewards); err == nil {
			optimum, err = m.Optimal()
		}
		return m, optimum, err
	}
	m, optimum, err := solved()
	if err != nil {
		return anyProblem{}, err
	}
	rng := seed.New(stream, "state", i)
	only, mass, everywhere := rng.IntN(r.States), r.Mass, r.Everywhere
	if r.Cliff > 0 {
		worst, cost := floats.MinIdx(optimum.Q.RawRowView(only)), math.Pow(r.Cliff, rng.Float64())
		rewards.Set(only, worst, -cost)
		if m, optimum, err = solved(); err != nil {
			return anyProblem{}, err
		}
		pmd.SetShare(p.Pi0.RawRowView(only), worst, 1e-3/cost)
	}
	out := anyProblem{mdp.Problem{MDP: m, Pi0: p.Pi0}, r.Eta}
	if r.Eta == 0 {
		out.Eta = pmd.SuggestedSpan / (mat.Max(optimum.Q) - mat.Min(optimum.Q))
	}
	if r.Lock {
		mass, everywhere = math.Pow(10, -1-11*rng.Float64()), i%2 == 1
	}
	if mass == 0 {
		return out, nil
	}
	for s := range r.States {
		if everywhere || s == only {
			pmd.SetShare(out.Pi0.RawRowView(s), floats.MaxIdx(optimum.Q.RawRowView(s)), mass)
		}
	}
	return out, nil
}

// Run takes problems of a set for an identity through exact PMD and the read-outs of a network, and scores them at
// horizons: exact PMD's losses in six digits, and by how much others are larger in three. The third read-out is
// the network's with the guard of the paper's Appendix G: each policy is mixed with the uniform one.
func (r anySet) Run(ctx context.Context, identity uint64, forward anymdp.Forward, places []int32,
	horizons []int) (all []rows.Any, err error) {
	problems, undrawn := r.Pick(identity, places)
	prior, noPrior := anymdp.NewActor(forward, anymdp.Prior)
	network, noNetwork := anymdp.NewActor(forward, anymdp.Network)
	if err := errors.Join(undrawn, noPrior, noNetwork); err != nil {
		return nil, err
	}
	readouts := []struct {
		name  string
		actor control.Actor
		n     int // on the first of the set's problems
	}{
		{"exact", control.RuleActor(pmd.PMD), r.Problems}, {"prior", prior, r.Problems},
		{"network", network, r.Network}, {"mixed", control.MixedActor{Actor: network, Phi: .01}, r.Mixed},
	}
	losses := make([][][]float64, len(readouts))
	for k, x := range readouts {
		n, _ := slices.BinarySearch(places, int32(x.n))
		if losses[k], err = anyLosses(ctx, x.actor, problems[:n], horizons); err != nil {
			return nil, fmt.Errorf("any: %s, %s: %w", r.Name, x.name, err)
		}
	}
	for i := range problems {
		for k, x := range readouts {
			for h, horizon := range horizons {
				if exact := digits(losses[0][i][h], 6); k > 0 && i < len(losses[k]) {
					all = append(all, rows.Any{
						Set: r.Name, Seed: int64(identity), Readout: x.name, Round: int32(horizon), Problem: places[i],
						Exact: exact, Excess: digits(losses[k][i][h]-exact, 3),
					})
				}
			}
		}
	}
	return all, nil
}

// together is how many problems share the network's calls at most.
const together = 100

// anyLosses runs an actor with the exact one-step critic on every problem and returns the losses
// [problems][horizons]. Problems that follow each other with one step size share the actor's calls.
func anyLosses(ctx context.Context, actor control.Actor, problems []anyProblem, horizons []int) (all [][]float64,
	err error) {
	for from, to := 0, 0; from < len(problems); from = to {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		loop := control.Loop{Actor: actor, Critic: control.ExactCritic{}, Eta: problems[from].Eta}
		var some []mdp.Problem
		for to = from; to < min(from+together, len(problems)) && problems[to].Eta == loop.Eta; to++ {
			some = append(some, problems[to].Problem)
		}
		losses, err := scored(loop, some, horizons...)
		if err != nil {
			return nil, fmt.Errorf("problems from %d: %w", from, err)
		}
		all = append(all, losses...)
	}
	return all, nil
}

// digits rounds to so many significant digits.
func digits(v float64, n int) float64 {
	short, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'g', n, 64), 64) // it was just written
	return short
}
