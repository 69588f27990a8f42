package results

import (
	"fmt"

	"icrl/policyattention/experiment"
	"icrl/policyattention/method"
)

// StageRow is where a run that is made in parts stands after one of them, or at its end.
type StageRow struct {
	BenchmarkRow
	Steps        int     `json:"steps"`         // of the optimizer, so far
	Of           int     `json:"of"`            // in all
	TrainingLoss float64 `json:"training_loss"` // mean over the last hundredth of the steps
	SourceLoss   float64 `json:"source_loss"`   // see [method.Imitating], 0 without it
	Hours        float64 `json:"hours"`         // of processor time, so far
	// Source is the loss of the algorithm that it learns to imitate, and Above by how much
	// its own lies above that, see [method.Method].Imitates.
	Source Estimate `json:"source"`
	Above  Estimate `json:"above"`
}

// Stages returns the losses along the training of runs that are made in parts (see
// [method.Method].StageOf), after each part that has been evaluated and at the end: by method,
// size, steps and horizon. Training losses and hours are of the first run.
func (s *Source) Stages() (rows []StageRow, err error) {
	for _, m := range s.Store.Preset.Methods {
		if m.StageOf == nil {
			continue
		}
		recipes := s.Store.Preset.SampledRecipes(experiment.Benchmark, m.Name)
		parted := map[string]bool{} // the recipes that have parts
		for _, r := range recipes {
			if whole := m.Whole(r); whole != r {
				parted[whole] = true
			}
		}
		for _, states := range s.Sizes(experiment.Benchmark) {
			oracle, err := s.Find(Selection{Block: experiment.Benchmark, Method: experiment.ExactPMD, S: states})
			if err != nil {
				return nil, err
			}
			for _, r := range recipes {
				if !parted[m.Whole(r)] {
					continue
				}
				x := s.Series(m.Name, r)
				runs, err := s.Find(x.In(experiment.Benchmark, states))
				if err != nil {
					return nil, err
				}
				if len(runs.Found) == 0 {
					continue
				}
				row := StageRow{BenchmarkRow: BenchmarkRow{Series: x, S: states}}
				if err := s.trained(&row, runs.Found[0], m.Whole(r)); err != nil {
					return nil, err
				}
				source, err := s.imitated(m, r, states)
				if err != nil {
					return nil, err
				}
				for _, horizon := range Horizons {
					row.T = horizon
					if row.Source, err = source.Median(horizon); err != nil {
						return nil, err
					}
					if row.Above, err = runs.Compare(PairedDifference, source, horizon); err != nil {
						return nil, err
					}
					if row.Loss, row.Ratio, row.Tail, err = beside(runs, oracle, horizon); err != nil {
						return nil, err
					}
					row.Loss = row.Loss.Beside(Key{experiment.Benchmark, string(m.Name), states, horizon})
					rows = append(rows, row)
				}
			}
		}
	}
	return rows, nil
}

// imitated finds the runs of the algorithm that a recipe learns to imitate, none where there
// is no such algorithm.
func (s *Source) imitated(m method.Method, recipe string, states int) (Runs, error) {
	if m.Imitates == nil {
		return Runs{}, nil
	}
	name, of := m.Imitates(recipe)
	if name == "" {
		return Runs{}, nil
	}
	return s.Find(s.Series(name, of).In(experiment.Benchmark, states))
}

// sourceLoss returns the one of a training run that is the whole or a part of a cell's, see
// [method.Imitating]: 0 where it imitates nothing. Parts have the data of the whole, which it takes
// a run of every source to make.
func (s *Source) sourceLoss(whole experiment.Cell, training method.Training) (loss float64, err error) {
	imitating, ok := training.(method.Imitating)
	if !ok {
		return 0, nil
	}
	if loss, ok := s.sourceLosses[whole]; ok {
		return loss, nil
	}
	if loss, err = imitating.SourceLoss(); err == nil {
		s.sourceLosses[whole] = loss
	}
	return loss, err
}

// trained fills in what a row says of the training that an evaluation's network had.
func (s *Source) trained(row *StageRow, e *experiment.Evaluation, whole string) error {
	training := e.Config.Trainings()[0]
	row.Steps = training.Budget()
	end := e.Cell
	end.Recipe = whole
	config, err := s.Store.Preset.Config(end)
	if err != nil {
		return err
	}
	row.Of = config.Trainings()[0].Budget()
	run, err := s.Training(training)
	if err != nil || run == nil {
		return err
	}
	if row.SourceLoss, err = s.sourceLoss(end, training); err != nil {
		return err
	}
	row.Hours = run.Manifest.Cost.CPUSeconds / 3600
	losses, err := run.Losses()
	if err != nil {
		return fmt.Errorf("results: %s: %w", training.Name(), err)
	}
	last := losses[len(losses)-max(1, len(losses)/100):]
	for _, l := range last {
		row.TrainingLoss += l.Mean / float64(len(last))
	}
	return nil
}
