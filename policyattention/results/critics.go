package results

import (
	"icrl/policyattention/experiment"
	"icrl/policyattention/method"
	"icrl/policyattention/stats"
)

// CriticRow is a critic that sees samples: its one-step error on held-out inputs, and the
// loop that it closes with its actor.
type CriticRow struct {
	Series
	// Error has each run's mean absolute error of a one-step backup, in units of Q, and
	// OverMean the median run's over that of the mean of samples. Asked is how many runs the
	// preset asks for backups.
	Error    []float64
	OverMean float64
	Asked    int
	Group         // beside exact PMD
	Learned  bool // whether the loop's actor is learned
	// Beside the loop of the same actor with the mean of the same samples, on the same
	// problems: missing for that loop itself.
	RatioOfMeans Estimate
	Paired       Estimate // median over problems of the difference
}

// Critics returns the critics that see samples, by size, method and horizon. All see the
// same number of transitions of every pair, and in the loop the same ones.
func (s *Source) Critics() (rows []CriticRow, err error) {
	for _, states := range s.Sizes(experiment.Critics) {
		oracle, err := s.Oracle(states)
		if err != nil {
			return nil, err
		}
		mean, err := s.errors(experiment.SampleMean, states)
		if err != nil {
			return nil, err
		}
		for _, m := range s.Store.Preset.Methods {
			backups, err := s.errors(m.Name, states)
			if err != nil {
				return nil, err
			}
			loops, err := s.Where(func(c experiment.Cell) bool {
				return c.Method == m.Name && c.S == states && c.Family == "" && c.Block != experiment.Backups
			})
			if err != nil {
				return nil, err
			}
			inLoop, err := s.Find(Selection{Block: experiment.Critics, Method: m.Name, S: states})
			if err != nil {
				return nil, err
			}
			if backups.Planned+inLoop.Planned == 0 {
				continue
			}
			loops.Selection = Selection{Method: m.Name, S: states}
			samples, learned, err := s.sampleMean(loops)
			if err != nil {
				return nil, err
			}
			for _, horizon := range Horizons {
				row := CriticRow{Series: s.Series(m.Name, ""), Learned: learned, Asked: backups.Planned, Error: backups.Values(backupError)}
				if len(row.Error) > 0 {
					row.OverMean = stats.Median(row.Error) / stats.Median(mean.Values(backupError))
				}
				if row.RatioOfMeans, err = loops.Compare(RatioOfMeans, samples, horizon); err != nil {
					return nil, err
				}
				if row.Paired, err = loops.Compare(PairedDifference, samples, horizon); err != nil {
					return nil, err
				}
				if row.Group, err = group(m.Label, loops, oracle, states, horizon); err != nil {
					return nil, err
				}
				if m.Name == experiment.LearnedCritic {
					row.Ratio.Paper = PaperRatio(m.Name, states, horizon)
					if row.Ratio.Paper == nil {
						row.Ratio = row.Ratio.Beside(Key{experiment.Confirmation, "learned critic ratio", states, horizon})
					}
				}
				rows = append(rows, row)
			}
		}
	}
	return rows, nil
}

// sampleMean finds the loops of the actor of some loops with the mean of samples as
// critic, none for such loops themselves, and says whether that actor is learned.
func (s *Source) sampleMean(loops Runs) (found Runs, learned bool, err error) {
	if len(loops.Found) == 0 {
		return found, false, nil
	}
	x := Selection{Block: experiment.Critics, Method: experiment.SampleMean, S: loops.S}
	if parts, ok := loops.Found[0].Config.Loop.Deployment.(method.Separable); ok {
		if actor, _ := parts.Parts(); actor != nil {
			x.Method, learned = experiment.ActorSampleMean, true
		}
	}
	if x.Method != loops.Method {
		found, err = s.Find(x)
	}
	return found, learned, err
}

// errors finds a method's one-step backups of a size.
func (s *Source) errors(name method.Name, states int) (Runs, error) {
	return s.Find(Selection{Block: experiment.Backups, Method: name, S: states})
}

func backupError(e *experiment.Evaluation) float64 { return e.Backup.MAE() }
