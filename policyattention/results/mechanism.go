package results

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot/plotter"

	"icrl/policyattention/experiment"
	"icrl/policyattention/method"
	"icrl/policyattention/pmd"
	"icrl/policyattention/stats"
)

// Quantity is what a row measures, as tables call it.
type Quantity string

// Quantities of which code asks for the rows.
const (
	NearestL1          Quantity = "row-L1 to the nearest alternative"
	MeanFittedEta      Quantity = "mean fitted η"
	Parameters         Quantity = "parameters"
	TrainingMinutes    Quantity = "CPU min of training"
	MedianRatio        Quantity = "median ratio to exact PMD"
	LearnedCriticRatio Quantity = "learned critic: ratio to exact PMD"
	RewardOnlyMinus    Quantity = "reward-only minus actor"
)

// RowL1To is the mean row-L1 to a fixed rule.
func RowL1To(rule pmd.Rule) Quantity { return Quantity("row-L1 to " + rule) }

// Spread is a number of each of several runs.
type Spread struct {
	Series
	S        int       `json:"s"`
	Quantity Quantity  `json:"quantity"`
	ByRun    []float64 `json:"by_run"`
	Planned  int       `json:"planned"`
	Paper    *Number   `json:"paper,omitempty"`
}

// Value returns the median over runs, NaN where there are none.
func (x Spread) Value() float64 { return stats.Median(x.ByRun) }

// NearestAlternative returns the least mean row-L1 to a fixed rule other than PMD.
func NearestAlternative(o *experiment.OneStep) float64 {
	nearest := math.Inf(1)
	for _, rule := range pmd.Rules {
		if rule != pmd.PMD {
			nearest = min(nearest, o.MeanDistance(rule))
		}
	}
	return nearest
}

// Mechanism returns what one-step inputs say of learned actors, fitted step sizes and
// learned critics.
func (s *Source) Mechanism() (rows []Spread, err error) {
	add := func(x Selection, quantity Quantity, paper *Number, of func(*experiment.Evaluation) float64) error {
		runs, err := s.Find(x)
		if runs.Planned > 0 {
			rows = append(rows, Spread{s.Series(x.Method, ""), x.S, quantity, runs.Values(of), runs.Planned, paper})
		}
		return err
	}
	for _, method := range s.Store.Preset.Methods.Names() {
		quoted := func(quantity string) *Number {
			if method != experiment.PolicyAttention {
				return nil
			}
			return Paper(Key{experiment.Mechanism, quantity, 0, 0})
		}
		for _, states := range s.Sizes(experiment.Mechanism) {
			x := Selection{Block: experiment.Mechanism, Method: method, S: states}
			for _, rule := range pmd.Rules {
				if err := add(x, RowL1To(rule), quoted(string(rule)), func(e *experiment.Evaluation) float64 { return e.OneStep.MeanDistance(rule) }); err != nil {
					return nil, err
				}
			}
			if err := add(x, NearestL1, quoted("nearest alternative"), func(e *experiment.Evaluation) float64 { return NearestAlternative(e.OneStep) }); err != nil {
				return nil, err
			}
			if err := add(x, MeanFittedEta, quoted("mean fitted eta"), func(e *experiment.Evaluation) float64 { return e.OneStep.MeanFitted() }); err != nil {
				return nil, err
			}
		}
	}
	for _, states := range s.Sizes(experiment.Calibration) {
		x := Selection{Block: experiment.Calibration, Method: experiment.PolicyAttention, S: states}
		if err := add(x, "fitted η at 0.8, calibration problems", Paper(Key{experiment.Calibration, "fitted eta", states, 0}), FittedEta); err != nil {
			return nil, err
		}
	}
	for _, states := range s.Sizes(experiment.Backups) {
		x := Selection{Block: experiment.Backups, Method: experiment.LearnedCritic, S: states}
		if err := add(x, "critic: mean absolute error of a backup", Paper(Key{experiment.Backups, "mae", 0, 0}), func(e *experiment.Evaluation) float64 { return e.Backup.MAE() }); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// FittedEta returns the step size that was fitted to an actor at the protocol's η.
func FittedEta(e *experiment.Evaluation) float64 { return e.OneStep.Fitted[0] }

// Budget is a method after some steps of its training: a point of the frontier.
type Budget struct {
	Method   method.Name `json:"method"`
	S        int         `json:"s"`
	Step     int         `json:"step"`
	Loss     Estimate    `json:"loss"` // at T = 20
	Tail     Tail        `json:"tail"` // of that, against exact PMD
	Zeta     Spread      `json:"zeta"`
	RowL1    Spread      `json:"row_l1"`
	Envelope bool        `json:"envelope"` // no other point is as low in ζ and in loss
	OwnBest  bool        `json:"own_best"` // no other point of its method is
}

// At returns the point on the plane of ζ and loss.
func (b Budget) At() plotter.XY { return plotter.XY{X: b.Zeta.Value(), Y: b.Loss.Value} }

// Frontier returns the budgets of a size, by method and step.
func (s *Source) Frontier(states int) (rows []Budget, err error) {
	oracle, err := s.Oracle(states)
	if err != nil {
		return nil, err
	}
	for _, method := range s.Store.Preset.Methods.Names() {
		for _, step := range append(slices.Clone(s.Store.Preset.Snapshots), s.Store.Preset.Steps) {
			runs, err := s.Find(Selection{Block: experiment.Frontier, Method: method, S: states, Step: step})
			if err != nil {
				return nil, err
			}
			if runs.Planned == 0 {
				continue
			}
			loss, err := runs.Median(20)
			if err != nil {
				return nil, err
			}
			b := Budget{Method: method, S: states, Step: step, Loss: loss}
			if b.Tail, err = runs.Tail(oracle, 20); err != nil {
				return nil, err
			}
			b.Zeta = Spread{ByRun: runs.Zetas(), Planned: runs.Planned}
			b.RowL1 = Spread{ByRun: runs.RowL1(), Planned: runs.Planned}
			if method == experiment.PolicyAttention {
				b.Loss = b.Loss.Beside(Key{experiment.Frontier, fmt.Sprintf("loss at %d", step), states, 20})
				b.Zeta.Paper = Paper(Key{experiment.Frontier, fmt.Sprintf("ζ at %d", step), states, 20})
			}
			rows = append(rows, b)
		}
	}
	for i := range rows {
		there := rows[i].Loss.Runs > 0
		rows[i].Envelope, rows[i].OwnBest = there, there
		for _, other := range rows {
			if other.Loss.Runs > 0 && Dominates(other.At(), rows[i].At()) {
				rows[i].Envelope = false
				rows[i].OwnBest = rows[i].OwnBest && other.Method != rows[i].Method
			}
		}
	}
	return rows, nil
}

// Dominates reports whether x is as low as y in both coordinates, and lower in one.
func Dominates(x, y plotter.XY) bool { return x != y && x.X <= y.X && x.Y <= y.Y }

// NonDominated returns the points that no other is as low as in both coordinates,
// from left to right.
func NonDominated(all plotter.XYs) plotter.XYs {
	var best plotter.XYs
	for i, x := range all {
		if !slices.ContainsFunc(all, func(y plotter.XY) bool { return Dominates(y, x) }) && !slices.Contains(all[:i], x) {
			best = append(best, x)
		}
	}
	slices.SortFunc(best, func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) })
	return best
}

// Audit is the returned-policy inequality, recomputed from realized residuals.
type Audit struct {
	Rows, Violations int
	Exact            int                      // rows of exact PMD
	MedianSlack      float64                  // in units of Q
	ByBlock          map[experiment.Block]int // rows
	Planned          int                      // closed loops
	Used             []*experiment.Evaluation // each closed loop once
}

// Everywhere and Confirmatory are scopes of an audit, the second the paper's.
func Everywhere(experiment.Cell) bool { return true }

// Confirmatory selects confirmation, shifts and reward-only without exact PMD.
func Confirmatory(c experiment.Cell) bool {
	return (c.Block == experiment.Confirmation || c.Block == experiment.Shift) && c.Method != experiment.ExactPMD
}

// Audit checks every problem of every closed loop in a scope at the protocol's
// horizons. What stands in two blocks is one closed loop.
func (s *Source) Audit(scope func(experiment.Cell) bool) (a Audit, err error) {
	a.ByBlock = map[experiment.Block]int{}
	loops, err := s.Where(func(c experiment.Cell) bool {
		config, err := s.Store.Preset.Config(c)
		return err == nil && config.Loop != nil && !s.Store.Preset.Methods.Sampled(c.Method) && scope(c) // theirs is no critic
	})
	if err != nil {
		return a, err
	}
	a.Planned = loops.Planned
	seen := map[string]bool{}
	var slacks []float64
	for _, e := range loops.Found {
		hash := e.Config.Hash()
		if seen[hash] || e.Scored[0].Defect == nil {
			a.Planned-- // without critic tables there is nothing to audit
			continue
		}
		seen[hash] = true
		a.Used = append(a.Used, e)
		for i, scored := range e.Scored {
			for _, horizon := range experiment.PaperProtocol.Horizons {
				_, slack, err := scored.Bound(horizon)
				if err != nil {
					return a, fmt.Errorf("%s, problem %d: %w", e.Cell.Name(), i, err)
				}
				a.Rows++
				a.ByBlock[e.Cell.Block]++
				if e.Cell.Method == experiment.ExactPMD {
					a.Exact++
				}
				if !(slack >= 0) { // or NaN
					a.Violations++
				}
				slacks = append(slacks, slack)
			}
		}
	}
	a.MedianSlack = stats.Median(slacks)
	return a, nil
}
