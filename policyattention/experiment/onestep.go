package experiment

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/npz"
	"icrl/policyattention/artifact"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
	"icrl/policyattention/stats"
)

const (
	distancesFile = "distances.csv.gz"
	stepsFile     = "steps.csv.gz"
)

// OneStepConfig is a same-context comparison with the fixed rules. Its contexts
// are rounds of exact PMD runs on the fixtures, stopped after 0 to Rounds
// rounds, with η uniform on [EtaMin, EtaMax]; the refitted step uses the same
// (π, Q) with each supplied η.
type OneStepConfig struct {
	Actor    method.Actor `json:"actor"`
	Rounds   int          `json:"rounds"`
	EtaMin   float64      `json:"eta_min"`
	EtaMax   float64      `json:"eta_max"`
	Supplied []float64    `json:"supplied"`
	FitLo    float64      `json:"fit_lo"`
	FitHi    float64      `json:"fit_hi"`
	FitBy    float64      `json:"fit_by"`
}

// OneStep is the same-context comparison of an actor with the fixed rules.
type OneStep struct {
	// Rounds and Etas [N] are the round and the step size of each input.
	Rounds, Etas []float64
	// Distances [N] are the mean row-L1 distances of each input to each rule.
	Distances []map[pmd.Rule]float64
	// Supplied, Fitted and Misfit [E] are supplied step sizes, the PMD step size
	// nearest to what the actor did with them, and the mean row-L1 that remains.
	Supplied, Fitted, Misfit []float64

	contexts []control.Context // the inputs, not stored
	next     []*mat.Dense      // what the actor returned for them [N]
	supplied [][]*mat.Dense    // and for each supplied step size [E][N]
}

// MeanDistance returns the mean row-L1 distance to a rule over all inputs.
func (o *OneStep) MeanDistance(rule pmd.Rule) float64 {
	sum := 0.0
	for _, d := range o.Distances {
		sum += d[rule]
	}
	return sum / float64(len(o.Distances))
}

// MeanFitted returns the mean refitted step size over the supplied ones.
func (o *OneStep) MeanFitted() float64 {
	sum := 0.0
	for _, v := range o.Fitted {
		sum += v
	}
	return sum / float64(len(o.Fitted))
}

func (o *OneStep) summary() map[string]artifact.Values {
	distances, steps := artifact.Values{}, artifact.Values{"mean_fitted_eta": o.MeanFitted()}
	for _, rule := range pmd.Rules {
		distances[string(rule)] = o.MeanDistance(rule)
	}
	var pmdDistances []float64
	for _, d := range o.Distances {
		pmdDistances = append(pmdDistances, d[pmd.PMD])
	}
	distances["median_pmd"] = stats.Median(pmdDistances)
	return map[string]artifact.Values{"mean_row_l1": distances, "steps": steps}
}

// inputs returns the contexts: rounds of exact PMD runs.
func (c *OneStepConfig) inputs(f Fixtures, problems []mdp.Problem) ([]control.Context, error) {
	contexts := make([]control.Context, len(problems))
	for i, p := range problems {
		rng := seed.New(f.Root, "one-step", i)
		rounds, eta := rng.IntN(c.Rounds+1), c.EtaMin+(c.EtaMax-c.EtaMin)*rng.Float64()
		x := control.Context{Problem: i, Round: rounds, MDP: p.MDP, Pi: p.Pi0, Eta: eta}
		var err error
		if x.Q, err = p.MDP.PolicyValue(p.Pi0); err != nil {
			return nil, err
		}
		for range rounds {
			if x.Pi, err = pmd.Step(x.Pi, x.Q, eta); err != nil {
				return nil, err
			}
			x.Q = p.MDP.EvaluationBackup(x.Pi, x.Q)
		}
		contexts[i] = x
	}
	return contexts, nil
}

func (c *OneStepConfig) weights() []method.Weights { return c.Actor.Weights() }

func (c *OneStepConfig) compute(s *Store, dir string, _ Cell, f Fixtures, problems []mdp.Problem) (map[string]artifact.Values, error) {
	actor, err := c.Actor.Actor(s.models)
	if err != nil {
		return nil, err
	}
	contexts, err := c.inputs(f, problems)
	if err != nil {
		return nil, err
	}
	o := &OneStep{contexts: contexts}
	if o.next, err = control.Act(actor, contexts); err != nil {
		return nil, err
	}
	for _, eta := range c.Supplied {
		next, err := control.Act(actor, withEta(contexts, eta))
		if err != nil {
			return nil, err
		}
		o.supplied = append(o.supplied, next)
	}
	if err := c.compare(o); err != nil {
		return nil, err
	}
	return o.summary(), o.write(dir)
}

func withEta(contexts []control.Context, eta float64) []control.Context {
	out := make([]control.Context, len(contexts))
	for i, x := range contexts {
		x.Eta = eta
		out[i] = x
	}
	return out
}

// compare fills in distances and fits from the actor's answers.
func (c *OneStepConfig) compare(o *OneStep) error {
	for i, x := range o.contexts {
		distances := map[pmd.Rule]float64{}
		for _, rule := range pmd.Rules {
			target, err := rule.Update(x.Pi, x.Q, x.Eta)
			if err != nil {
				return fmt.Errorf("input %d: %w", i, err)
			}
			distances[rule] = pmd.RowL1(o.next[i], target)
		}
		o.Rounds, o.Etas = append(o.Rounds, float64(x.Round)), append(o.Etas, x.Eta)
		o.Distances = append(o.Distances, distances)
	}
	o.Supplied = c.Supplied
	o.Fitted, o.Misfit = make([]float64, len(c.Supplied)), make([]float64, len(c.Supplied))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for e := range c.Supplied {
		group.Go(func() (err error) {
			updates := make([]pmd.Update, len(o.contexts))
			for i, x := range o.contexts {
				updates[i] = pmd.Update{Pi: x.Pi, Q: x.Q, Next: o.supplied[e][i]}
			}
			o.Fitted[e], o.Misfit[e], err = pmd.FitStep(updates, c.FitLo, c.FitHi, c.FitBy)
			return err
		})
	}
	return group.Wait()
}

func distancesHeader() []string {
	header := []string{"input", "round", "eta"}
	for _, rule := range pmd.Rules {
		header = append(header, string(rule))
	}
	return header
}

var stepsHeader = []string{"supplied", "fitted", "row_l1"}

func (o *OneStep) distanceRows() [][]float64 {
	rows := make([][]float64, len(o.Distances))
	for i, d := range o.Distances {
		rows[i] = []float64{float64(i), o.Rounds[i], o.Etas[i]}
		for _, rule := range pmd.Rules {
			rows[i] = append(rows[i], d[rule])
		}
	}
	return rows
}

func (o *OneStep) stepRows() [][]float64 {
	rows := make([][]float64, len(o.Supplied))
	for e := range rows {
		rows[e] = []float64{o.Supplied[e], o.Fitted[e], o.Misfit[e]}
	}
	return rows
}

func (o *OneStep) write(dir string) error {
	if err := artifact.WriteTable(filepath.Join(dir, distancesFile), distancesHeader(), o.distanceRows()); err != nil {
		return err
	}
	if err := artifact.WriteTable(filepath.Join(dir, stepsFile), stepsHeader, o.stepRows()); err != nil {
		return err
	}
	return artifact.WriteArrays(filepath.Join(dir, policiesFile), map[string]npz.Array{
		"next": artifact.Stack([][]*mat.Dense{o.next}), "supplied": artifact.Stack(o.supplied),
	})
}

func (c *OneStepConfig) read(e *Evaluation) error {
	rows, err := readInputs(e.path(distancesFile), distancesHeader(), e.Config.Fixtures.Problems)
	if err != nil {
		return err
	}
	o := &OneStep{}
	for _, row := range rows {
		d := map[pmd.Rule]float64{}
		for j, rule := range pmd.Rules {
			d[rule] = row[3+j]
		}
		o.Rounds, o.Etas, o.Distances = append(o.Rounds, row[1]), append(o.Etas, row[2]), append(o.Distances, d)
	}
	path := e.path(stepsFile)
	if rows, err = artifact.ReadTable(path, stepsHeader); err != nil {
		return err
	}
	if len(rows) != len(c.Supplied) {
		return fmt.Errorf("experiment: %s has %d rows, want %d", path, len(rows), len(c.Supplied))
	}
	for _, row := range rows {
		o.Supplied, o.Fitted, o.Misfit = append(o.Supplied, row[0]), append(o.Fitted, row[1]), append(o.Misfit, row[2])
	}
	e.OneStep = o
	return nil
}

// readInputs reads a table of n one-step inputs, which its first column counts
// from 0.
func readInputs(path string, header []string, n int) ([][]float64, error) {
	rows, err := artifact.ReadTable(path, header)
	if err != nil {
		return nil, err
	}
	if len(rows) != n {
		return nil, fmt.Errorf("experiment: %s has %d rows, want %d", path, len(rows), n)
	}
	for i, row := range rows {
		if row[0] != float64(i) {
			return nil, fmt.Errorf("experiment: %s: row %d is of input %v", path, i+1, row[0])
		}
	}
	return rows, nil
}

func (c *OneStepConfig) verify(s *Store, v *Verification, e *Evaluation, problems []mdp.Problem) error {
	policies, f := e.path(policiesFile), e.Config.Fixtures
	arrays, ok := v.arrays(policies)
	if !ok {
		return nil
	}
	contexts, err := c.inputs(f, problems)
	if err != nil {
		return err
	}
	o := &OneStep{contexts: contexts}
	next, err := artifact.Unstack(arrays["next"], 1, len(problems), f.States, f.Actions)
	if err != nil {
		v.add(policies, 0, "array next: %v", err)
		return nil
	}
	o.next = next[0]
	if o.supplied, err = artifact.Unstack(arrays["supplied"], len(c.Supplied), len(problems), f.States, f.Actions); err != nil {
		v.add(policies, 0, "array supplied: %v", err)
		return nil
	}
	if s.asks(v, e.Config) {
		asked, want := slices.Clone(contexts), slices.Clone(o.next)
		for i, eta := range c.Supplied {
			asked, want = append(asked, withEta(contexts, eta)...), append(want, o.supplied[i]...)
		}
		done := v.during(acting)
		actor, err := c.Actor.Actor(s.models)
		if err != nil {
			done()
			v.add(e.path(artifact.ManifestFile), 0, "its actor: %v", err)
			return s.backendError()
		}
		got, err := control.Act(actor, asked)
		done()
		if err != nil {
			v.add(policies, 0, "the actor on the inputs: %v", err)
			return nil
		}
		v.compareTables(policies, "actor", asked, got, want, s.replayTolerance(e.Cell))
	}
	defer v.during(stepping)()
	if err := c.compare(o); err != nil {
		v.add(policies, 0, "%v", err)
		return nil
	}
	v.compareTable(e.path(distancesFile), distancesHeader(), o.distanceRows())
	v.compareTable(e.path(stepsFile), stepsHeader, o.stepRows())
	v.compareSummary(e, o.summary(), scoreTolerance)
	return nil
}
