package experiment

import (
	"maps"
	"slices"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/npz"
	"icrl/policyattention/artifact"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
)

// walkTolerance is absolute for the policies of forty dependent rounds in
// float64.
const walkTolerance = 1e-8

// Share is one in how many problems the loops of networks are run again for where not all of
// their rounds are stored, the first ones: problems are drawn independently, so that these are a
// sample.
const Share = 8

// storedLoop is a closed loop as its artifact holds it.
type storedLoop struct {
	*Evaluation
	*LoopConfig
	problems []mdp.Problem
	arrays   map[string]npz.Array
	kept     []int          // rounds whose policies are stored [K]
	policies [][]*mat.Dense // of the kept rounds [N][K]
	rows     [][]float64    // of the rounds
}

func (l *LoopConfig) verify(s *Store, v *Verification, e *Evaluation, problems []mdp.Problem) error {
	arrays, ok := v.arrays(e.path(policiesFile))
	if !ok {
		return nil
	}
	stored := storedLoop{Evaluation: e, LoopConfig: l, problems: problems, arrays: arrays, kept: e.Cell.kept(l)}
	if !stored.readPolicies(v) || !stored.readRounds(v) {
		return nil
	}
	asked := len(problems)
	if !s.asks(v, e.Config) {
		asked = 0
	} else if e.Cell.Block == Tuning {
		// Its lives would take longer than all else, and it is read for the kept
		// rounds alone.
		asked = min(asked, s.Preset.Problems)
	}
	if asked > 0 && len(stored.kept) <= l.Rounds && method.Networks(l.weights()) {
		some := (asked + v.share - 1) / v.share
		asked, v.Sampled = some, v.Sampled+asked-some
	}
	if err := stored.scoreFrom(asked, v); err != nil || asked == 0 {
		return err
	}
	stored.problems, stored.policies = problems[:asked], stored.policies[:asked]
	trajectories, err := stored.again(s, v)
	if err != nil || trajectories == nil {
		return err
	}
	done := v.during(scoring)
	scored, err := control.Score(stored.problems, trajectories)
	done()
	if err != nil {
		v.add(e.path(policiesFile), 0, "%v", err)
		return nil
	}
	defer v.during(reading)()
	v.Rescored += asked * (l.Rounds + 1)
	want := l.roundRows(scored)
	// Where a loop was run again because not all of its policies are stored, the
	// other rounds, and residuals between rounds, are as close as its answers.
	between := l.repeatTolerance()
	if method.Networks(l.weights()) {
		between = relivedTolerance
		if asked == len(problems) {
			v.compareSummary(e, l.summarize(scored), medianTolerance)
		}
	}
	v.compareRows(e.path(roundsFile), roundsHeader, stored.rows[:len(want)], want, func(row, column int) float64 {
		round, loss := int(want[row][1]), column <= slices.Index(roundsHeader, "e0")
		if len(stored.kept) > l.Rounds || loss && (round == 0 || slices.Contains(stored.kept, round)) {
			return scoreTolerance
		}
		return between
	})
	return nil
}

// repeatTolerance is absolute for the policies of a loop that is run again.
func (l *LoopConfig) repeatTolerance() float64 {
	switch {
	case method.Networks(l.weights()):
		return policyTolerance
	case l.Deployment != nil:
		return walkTolerance
	}
	return scoreTolerance
}

// tables returns an array of tables [N][k], [S, A] each, which is called name.
func (l *storedLoop) tables(name string, k int) ([][]*mat.Dense, error) {
	return artifact.Unstack(l.arrays[name], l.Config.Fixtures.Problems, k, l.Config.Fixtures.States, l.Config.Fixtures.Actions)
}

// readPolicies reads the stored policies and reports whether they are policies.
func (l *storedLoop) readPolicies(v *Verification) bool {
	path := l.path(policiesFile)
	names := []string{"policies", "rounds"}
	if l.learnsCritic() && len(l.kept) > l.Rounds {
		names = append(names, "q")
	}
	if recorded, ok := l.Deployment.(method.Recorded); ok {
		names = append(names, recorded.Records()...)
	}
	slices.Sort(names)
	if got := slices.Sorted(maps.Keys(l.arrays)); !slices.Equal(got, names) {
		v.add(path, 0, "it holds the arrays %q, want %q", got, names)
		return false
	}
	if got := l.arrays["rounds"].Data; !slices.Equal(got, roundArray(l.kept).Data) {
		v.add(path, 0, "array rounds is %v, want %v", got, l.kept)
		return false
	}
	var err error
	if l.policies, err = l.tables("policies", len(l.kept)); err != nil {
		v.add(path, 0, "array policies: %v", err)
		return false
	}
	for i, some := range l.policies {
		for j, pi := range some {
			if err := l.problems[i].MDP.CheckPolicy(pi); err != nil {
				v.add(path, i+1, "round %d: %v", l.kept[j], err)
				return false
			}
		}
	}
	return true
}

// readRounds reads the table of rounds, compares the summary with it, and reports
// whether it is one.
func (l *storedLoop) readRounds(v *Verification) bool {
	defer v.during(reading)()
	path := l.path(roundsFile)
	rows, err := artifact.ReadTable(path, roundsHeader)
	var scored []control.Scored
	if err == nil {
		scored, err = l.scored(path, l.Config.Fixtures, rows)
	}
	if err != nil {
		v.add(path, 0, "%v", err)
		return false
	}
	l.rows = rows
	l.checkResiduals(path, v)
	v.compareSummary(l.Evaluation, l.summarize(scored), scoreTolerance)
	return true
}

// checkResiduals reports residuals that no policies can have: the largest row-L1 is
// at least the mean, at most the sum, and at most 2, and no residual is negative.
func (l *storedLoop) checkResiduals(path string, v *Verification) {
	const slack = scoreTolerance
	states, found := float64(l.Config.Fixtures.States), 0
	for n, row := range l.rows {
		zeta, mean, delta, defect := row[5], row[6], row[7], row[8]
		if mean > zeta+slack || zeta > states*mean+slack || zeta > 2+slack || mean < 0 || delta < 0 || defect < -slack {
			if found++; found <= most {
				v.add(path, n+1, "no policies have residuals zeta %v, row_l1 %v, delta %v, defect %v", zeta, mean, delta, defect)
			}
		}
	}
}

// scoreFrom scores the stored policies from the problem first on, where the other
// rounds are not run again, and compares with the table: with all of it where all
// rounds are stored, so that only the network's answers go unchecked.
func (l *storedLoop) scoreFrom(first int, v *Verification) error {
	if first == len(l.problems) {
		return nil
	}
	if len(l.kept) > l.Rounds {
		trajectories, err := l.recorded(v)
		if err != nil || trajectories == nil {
			return err
		}
		defer v.during(scoring)()
		scored, err := control.Score(l.problems, trajectories)
		if err != nil {
			v.add(l.path(policiesFile), 0, "%v", err)
			return nil
		}
		v.Rescored += len(trajectories) * len(l.kept)
		v.compareRows(l.path(roundsFile), roundsHeader, l.rows, l.roundRows(scored), asScores)
		return nil
	}
	defer v.during(scoring)()
	trajectories := make([]control.Trajectory, len(l.problems)-first)
	for i := range trajectories {
		trajectories[i].Policies = append([]*mat.Dense{l.problems[first+i].Pi0}, l.policies[first+i]...)
	}
	scored, err := control.Score(l.problems[first:], trajectories)
	if err != nil {
		v.add(l.path(policiesFile), 0, "%v", err)
		return nil
	}
	v.Rescored += len(trajectories) * len(l.kept)
	want, tabled := slices.Clone(l.rows), l.tabled()
	loss, gap := slices.Index(roundsHeader, "loss"), slices.Index(roundsHeader, "gap")
	for i, again := range scored {
		rows := want[(first+i)*len(tabled):][:len(tabled)]
		for k := range rows {
			rows[k] = slices.Clone(rows[k])
			rows[k][gap] = again.Gap
		}
		for j, k := range append([]int{0}, l.kept...) {
			rows[slices.Index(tabled, k)][loss] = again.Loss[j]
		}
	}
	v.compareRows(l.path(roundsFile), roundsHeader, l.rows, want, asScores)
	return nil
}

// again runs the loop again, in the way that what is stored of it allows, and
// returns trajectories with the stored policies in them; none where it could not. Asking
// an actor and a critic in the stored contexts tells most; a controller that is neither,
// or of which not all rounds are stored, is run from its start, by its record where it
// keeps one.
func (l *storedLoop) again(s *Store, v *Verification) ([]control.Trajectory, error) {
	done := v.during(again(s.Preset.label(l.Cell.Method)))
	controller, err := l.controller(s, l.Config.Fixtures.Root)
	if err != nil {
		done()
		v.add(l.path(artifact.ManifestFile), 0, "its controller: %v", err)
		return nil, s.backendError()
	}
	if loop, ok := controller.(control.Loop); ok && len(l.kept) > l.Rounds {
		done()
		return l.replay(s, loop, v)
	}
	var trajectories []control.Trajectory
	if recorder, ok := controller.(method.Recorder); ok {
		trajectories, err = recorder.Replay(l.problems, l.Rounds, l.arrays, policyTolerance)
	} else {
		trajectories, err = controller.Run(l.problems, l.Rounds)
	}
	done()
	if err != nil {
		v.add(l.path(policiesFile), 0, "its controller: %v", err)
		return nil, nil
	}
	return l.compared(trajectories, v)
}

// recorded returns the stored trajectories, of which all rounds are kept, with
// their critic tables; none where these cannot be read.
func (l *storedLoop) recorded(v *Verification) ([]control.Trajectory, error) {
	path := l.path(policiesFile)
	trajectories := make([]control.Trajectory, len(l.problems))
	for i, p := range l.problems {
		if mdp.MaxAbsDiff(l.policies[i][0], p.Pi0) != 0 {
			v.add(path, i+1, "the policy of round 0 is not the problem's π₀")
			return nil, nil
		}
		trajectories[i].Policies = l.policies[i]
	}
	if err := l.followed(l.problems, trajectories); err != nil || !l.learnsCritic() {
		return trajectories, err
	}
	tables, err := l.tables("q", l.Rounds)
	if err != nil {
		v.add(path, 0, "array q: %v", err)
		return nil, nil
	}
	for i := range trajectories {
		if mdp.MaxAbsDiff(tables[i][0], trajectories[i].Q[0]) > scoreTolerance {
			v.add(path, i+1, "Q_0 is not the value of π₀")
		}
		trajectories[i].Q = tables[i]
	}
	return trajectories, nil
}

// replay asks for every stored update again, in its stored context, and returns
// the stored trajectories with their critic tables.
func (l *storedLoop) replay(s *Store, loop control.Loop, v *Verification) ([]control.Trajectory, error) {
	path := l.path(policiesFile)
	trajectories, err := l.recorded(v)
	if err != nil || trajectories == nil {
		return nil, err
	}
	if l.learnsCritic() {
		var contexts []control.Context
		var want []*mat.Dense
		for i, p := range l.problems {
			tables := trajectories[i].Q
			for k := range l.Rounds - 1 {
				contexts = append(contexts, control.Context{Problem: i, Round: k, MDP: p.MDP, Pi: l.policies[i][k+1], Q: tables[k], Eta: l.Eta})
				want = append(want, tables[k+1])
			}
		}
		done := v.during(evaluating)
		got, err := control.Evaluate(loop.Critic, contexts)
		done()
		if err != nil {
			v.add(path, 0, "the critic in the stored contexts: %v", err)
			return nil, nil
		}
		v.compareTables(path, "critic", contexts, got, want, valueTolerance)
	}
	var contexts []control.Context
	var want []*mat.Dense
	for i, p := range l.problems {
		for k := range l.Rounds {
			contexts = append(contexts, control.Context{Problem: i, Round: k, MDP: p.MDP, Pi: l.policies[i][k], Q: trajectories[i].Q[k], Eta: l.Eta})
			want = append(want, l.policies[i][k+1])
		}
	}
	done := v.during(acting)
	got, err := control.Act(loop.Actor, contexts)
	done()
	if err != nil {
		v.add(path, 0, "the actor in the stored contexts: %v", err)
		return nil, nil
	}
	v.compareTables(path, "actor", contexts, got, want, s.replayTolerance(l.Cell))
	return trajectories, nil
}

// compared compares the stored policies with those of the loop run again, and puts
// them in their place.
func (l *storedLoop) compared(again []control.Trajectory, v *Verification) ([]control.Trajectory, error) {
	var contexts []control.Context
	var got, want []*mat.Dense
	for i := range again {
		for j, k := range l.kept {
			contexts = append(contexts, control.Context{Problem: i, Round: k - 1})
			got, want = append(got, again[i].Policies[k]), append(want, l.policies[i][j])
			again[i].Policies[k] = l.policies[i][j]
		}
	}
	v.compareTables(l.path(policiesFile), "controller", contexts, got, want, l.repeatTolerance())
	if !l.learnsCritic() { // else its tables are the run's own
		for i := range again {
			again[i].Q = nil
		}
	}
	return again, l.followed(l.problems, again)
}
