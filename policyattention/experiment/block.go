package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"icrl/policyattention/baseline"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/rows"
	"icrl/policyattention/train"
)

// Block is a group of units that answers one question of the paper.
type Block string

// The blocks that are known by more than their line in blocks.
const (
	Benchmark Block = "benchmark"
	Frontier  Block = "frontier"
	Long      Block = "long"
	Trial     Block = "try"
)

// block says what the cells of a block are: to add one, add a line to blocks.
type block struct {
	Kind     kind
	Problems set // says from which root problems are drawn, and how many
	// Rounds are in the rows, all where it is nil; Policies are those whose policies are stored.
	Rounds, Policies func(Protocol) []int
	Alone            bool // only losses are kept, no residuals
	Brief            bool // with Alone: no round 0, nor what is the same in all rounds, for thousands of problems
	Families         []mdp.Family
	Temperatures     []float64 // of atTemperatures
	OneIn            int       // see Unit
}

// kind is what a cell computes.
type kind int

const (
	closedLoop     kind = iota // rows.Round
	stepSizes                  // rows.Tuned: a closed loop's losses by step size
	atTemperatures             // rows.Tuned: those of the last policy by temperature, as Alpha
	oneStep                    // rows.Rule and rows.Fit: an actor beside fixed rules, at several η
	oneStepAt                  // the same at the deployed η alone
	oneBackup                  // rows.Backup: a critic beside the exact backup
)

// set names problems of the protocol.
type set int

const (
	evaluation set = iota
	headline
	oracle
	heldOut
	calibration   // of the tuning
	sharpening    // the first of them
	ownCheck      // of a training run: see train.CalibrationRoot
	qualification // of the sampled methods
)

func horizons(Protocol) []int  { return baseline.Horizons }
func shortest(Protocol) []int  { return baseline.Horizons[:1] }
func longest(Protocol) []int   { return baseline.Horizons[1:] }
func upTo100(p Protocol) []int { return append(slices.Clone(baseline.Horizons), p.Long[0]) }
func long(p Protocol) []int    { return p.Long }
func last(p Protocol) []int    { return p.Long[len(p.Long)-1:] }

var blocks = map[Block]block{
	"oracle":       {Problems: oracle, Alone: true},            // exact PMD on many problems
	"confirmation": {Policies: horizons},                       // S = 4, fresh identities
	"shift":        {Policies: horizons, Families: mdp.Shifts}, // four families without retraining
	Benchmark:      {Policies: horizons},                       // S = 8 and 16, retrained
	Frontier:       {},                                         // weights along training
	"prior":        {Policies: horizons},                       // the recipe prior at the paper's budget
	Trial:          {Policies: horizons},                       // variations of one's own, see the command try

	"headline":      {Problems: headline, Rounds: upTo100, Alone: true, Brief: true}, // thousands a size
	"critics":       {Policies: longest, Rounds: horizons, Alone: true},              // that see samples, the same
	Long:            {Policies: last, Rounds: long, Alone: true},                     // more than the paper's
	"qualification": {Problems: qualification, Policies: longest, Alone: true},       // are methods as published?

	"tuning": {Kind: stepSizes, Problems: calibration}, // step sizes

	// Losses at temperatures; of the benchmark's loops, again; of the headline's, as returned and greedy.
	"sharpness": {Kind: atTemperatures, Temperatures: Temperatures, Problems: sharpening, Rounds: shortest, OneIn: 3},
	"sharpened": {Kind: atTemperatures, Temperatures: Temperatures, Rounds: shortest},

	"headline-greedy": {Kind: atTemperatures, Temperatures: []float64{1, 0}, Problems: headline, Rounds: shortest},

	"mechanism":   {Kind: oneStep, Problems: heldOut},    // one-step inputs: which rule was learned?
	"ablation":    {Kind: oneStep, Problems: heldOut},    // the same of networks without attention
	"calibration": {Kind: oneStepAt, Problems: ownCheck}, // one-step inputs of each run's calibration root
	"backups":     {Kind: oneBackup, Problems: heldOut},  // one-step backups of critics that see samples
	"heads":       {Problems: heldOut, OneIn: WholeOnly}, // what attention does in trained networks
	"sizes":       {Problems: heldOut, OneIn: 40},        // those of headline at sizes that they were not trained on
}

// named returns method-S8-18100, with the recipe where it is not plain, and the family and
// the step where there are any. It is unique within a block.
func named(k rows.Key) string {
	name := k.Method
	if k.Recipe != "" && k.Recipe != "plain" {
		name += "-" + k.Recipe
	}
	if k.Family != string(mdp.Random) {
		name += "-" + k.Family
	}
	name += fmt.Sprintf("-S%d", k.S)
	for _, n := range []int64{k.Seed, int64(k.Step)} {
		if n != 0 {
			name += fmt.Sprintf("-%d", n)
		}
	}
	return name
}

// Fixtures names the problems of a cell.
type Fixtures struct {
	Family   mdp.Family `json:"family"`
	Root     uint64     `json:"root"`
	States   int        `json:"states"`
	Actions  int        `json:"actions"`
	Problems int        `json:"problems"`
}

// pick returns problems by their places.
func (f Fixtures) pick(places []int32) ([]mdp.Problem, error) {
	return f.Family.Pick(f.Root, f.States, f.Actions, places)
}

// setting returns what the cell and the protocol fix for a method, and the problems from a set.
func (p Preset) setting(k rows.Key, from set) (s method.Setting, f Fixtures, err error) {
	size, ok := p.Protocol.Sizes[int(k.S)]
	if !ok {
		return s, f, fmt.Errorf("the protocol has no size S=%d", k.S)
	}
	s = method.Setting{
		Recipe: k.Recipe, States: int(k.S), Actions: p.Protocol.Actions, Rounds: p.Protocol.Rounds, Eta: p.Protocol.Eta,
		Mixture: p.Protocol.Mixture, Steps: p.Steps, Step: int(k.Step),
		Snapshots: map[method.Name][]int{}, Limits: p.Limits[k.Method], Tuned: size.Tuned,
	}
	if k.Seed != 0 {
		i := slices.IndexFunc(size.Runs, func(r method.Identity) bool { return r.Model == uint64(k.Seed) })
		if i < 0 {
			return s, f, fmt.Errorf("the protocol has no run with model seed %d at S=%d", k.Seed, k.S)
		}
		s.Identity = size.Runs[i]
		for _, r := range p.Rows {
			if r.Block == Frontier && r.Recipe == k.Recipe && slices.Contains(r.Sizes, s.States) && i < r.Runs {
				s.Snapshots[r.Method] = p.Snapshots
			}
		}
	}
	drawn := map[set]struct {
		root uint64
		n    int
	}{
		evaluation: {size.Evaluation, p.Problems}, headline: {size.Headline, p.Headline[s.States]},
		oracle: {size.Oracle, p.Oracle}, heldOut: {size.HeldOut, p.HeldOut},
		ownCheck:    {train.CalibrationRoot(s.Identity.Task), p.HeldOut},
		calibration: {size.Calibration, p.Calibrating}, sharpening: {size.Calibration, p.Problems},
		qualification: {cmp.Or(size.Fresh[k.Method], size.Qualification), cmp.Or(p.Qualifying[k.Method], p.Problems)},
	}[from]
	s.Root = drawn.root
	return s, Fixtures{mdp.Family(k.Family), s.Root, s.States, s.Actions, drawn.n}, nil
}

// Unit returns the unit of a cell: one evaluation of a block. It returns an error if there is no such cell.
func (p Preset) Unit(of Block, key rows.Key) (u Unit, err error) {
	b, ok := blocks[of]
	u = Unit{Block: of, Name: named(key), Key: key, Of: key, OneIn: b.OneIn}
	defer func() {
		if err != nil {
			err = fmt.Errorf("experiment: cell %s: %w", u.Path(), err)
		}
	}()
	if !ok {
		return u, fmt.Errorf("there is no block %q", of)
	}
	m, err := p.Methods.Find(key.Method)
	if err != nil {
		return u, err
	}
	s, f, err := p.setting(key, b.Problems)
	if err != nil {
		return u, err
	}
	u.Problems = f.Problems
	var c computation
	if ask := m.Studies[string(of)]; ask != nil {
		own, err := ask(s)
		if err != nil {
			return u, err
		}
		u.Weights, u.Tolerance = own.Weights(), walking
		if method.Networks(u.Weights) {
			u.Tolerance = network
		}
		if own.OwnProblems() {
			u.Problems, c = 0, study{nil, own}
		} else {
			u.Sample, c = min(inputs, f.Problems), study{&f, own}
		}
	} else if key.Seed == 0 && !m.Untrained {
		return u, errors.New("it has no model seed")
	} else if c, err = p.computation(&u, b, m, s, f); err != nil {
		return u, err
	}
	u.Config = c
	u.Compute = func(_ context.Context, s *Store, at []int32, stored *rows.Tables) (*rows.Tables, error) {
		problems, err := f.pick(at)
		if err != nil {
			return nil, err
		}
		r, err := c.compute(s, at, problems, stored)
		if err == nil {
			r.SetKey(key)
		}
		return r, err
	}
	return u, nil
}

// computation returns what a block asks of a method, and says in u how it is verified.
func (p Preset) computation(u *Unit, b block, m method.Method, s method.Setting, f Fixtures) (computation, error) {
	var deployment method.Deployment
	var actor method.Actor
	var critic method.Critic
	u.Tolerance, u.Sample, u.Chosen = exactly, min(u.Problems, p.Problems), b.Kind != stepSizes
	if m.Deploy != nil {
		var err error
		if deployment, err = m.Deploy(s); err != nil {
			return nil, err
		}
		if parts, ok := deployment.(method.Separable); ok {
			actor, critic = parts.Parts()
		}
		u.Weights, u.Tolerance = deployment.Weights(), walking
		if u.Chosen {
			u.Sample = min(ofLearners, u.Sample)
		}
	}
	if method.Networks(u.Weights) {
		n := sampled
		if b.Brief {
			n = ofThousands
		}
		if _, walks := deployment.(method.Learner); walks { // it is asked for every action
			n = sampled / 2
		}
		u.Tolerance, u.Sample = cmp.Or(m.Tolerance, network), min(n, u.Sample)
		// A last policy is 400 dependent rounds away. Where mass is just moving from one action to another an error
		// is large: one of 1e-6 in π₀ is 6e-5 after round 400 on problem 48 of PMD-target at S = 8, the one on which
		// entries have differed by 8e-4 between processors, and below 1e-5 on the 63 others.
		if u.Block == Long {
			u.Tolerance, u.Sample = 10*u.Tolerance, min(sampled/2, u.Sample)
		}
	}
	plain := train.Plain()
	contexts := Inputs{f, p.Protocol.HeldOutRounds, plain.EtaMin, plain.EtaMax}
	switch b.Kind {
	case oneStep, oneStepAt:
		if actor == nil {
			return nil, errors.New("the block asks an actor, and the method has none")
		}
		u.Weights, u.Sample = actor.Weights(), min(inputs, f.Problems)
		fit := p.Protocol.Fit
		c := Rules{contexts, actor, p.Protocol.SuppliedEta, fit.Lo, fit.Hi, fit.By}
		if b.Kind == oneStepAt { // η as deployed, not as in training
			c.EtaMin, c.EtaMax, c.Supplied = p.Protocol.Eta, p.Protocol.Eta, []float64{p.Protocol.Eta}
		}
		return c, nil
	case oneBackup:
		if critic == nil {
			return nil, errors.New("the block asks a critic, and the method has none")
		}
		u.Weights, u.Tolerance, u.Sample = critic.Weights(), ofCritic, min(inputs, f.Problems)
		return OneBackup{contexts, critic}, nil
	}
	loop := &Loop{Problems: f, Rounds: p.Protocol.Rounds, Eta: p.Protocol.Eta, Temperatures: b.Temperatures,
		Deployment: deployment, block: b}
	if b.Rounds != nil {
		loop.Tabled = b.Rounds(*p.Protocol)
		loop.Rounds = slices.Max(loop.Tabled)
	}
	if b.Policies != nil {
		loop.Kept = b.Policies(*p.Protocol)
	}
	return loop, nil
}

// Tolerances of what verification computes again, relative where numbers are large, on top of [rows.Rounding].
const (
	exactly  = 1e-10 // linear solves of one system differ by rounding between platforms
	walking  = 1e-8  // forty dependent rounds in float64
	network  = 2e-4  // those of a network in float32, by another backend or on another processor
	ofCritic = 2e-3  // what a critic's network returns
)

// sampled is on how many problems the runs of networks are computed again, half as many where they walk, ofThousands
// where there are thousands, and ofLearners those of methods without, all but tunings on problems that a new seed
// chooses each time: who replaces half of a network's problems is found in 15 of 16 verifications where four are
// computed again, in 3 of 4 where two are (networks that walk, and block long).
const sampled, ofThousands, ofLearners, inputs = 4, 7, 16, 18
