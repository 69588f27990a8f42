package results

import (
	"fmt"

	"icrl/policyattention/method"
)

// Progress says how far the training run is that a recipe's first identity waits for.
type Progress struct {
	Steps int     // that are trained, by the manifest of the furthest of its parts
	Of    int     // optimizer steps in all
	Hours float64 // of processor time that the rest takes, at the speed of those steps or as planned
}

func (p Progress) String() string {
	done := "none"
	if p.Steps > 0 {
		done = fmt.Sprint(p.Steps)
	}
	return fmt.Sprintf("its first identity has %s of %d steps, the rest takes about %.0f processor-hours", done, p.Of, p.Hours)
}

// Progress returns how far the training of a selection is; ok is false where the preset does
// not plan it, or where it is finished.
func (s *Source) Progress(x Selection) (p Progress, ok bool, err error) {
	m, err := s.Store.Preset.Methods.Find(x.Method)
	if err != nil {
		return p, false, nil // not registered, so nothing of it is planned
	}
	first := map[string]method.Training{} // by recipe: its own, and what it continues
	for _, c := range s.Store.Preset.Plan() {
		if c.Method != x.Method || c.S != x.S || first[c.Recipe] != nil || m.Whole(c.Recipe) != x.Recipe {
			continue
		}
		config, err := s.Store.Preset.Config(c)
		if err != nil {
			return p, false, err
		}
		if trainings := config.Trainings(); len(trainings) > 0 {
			first[c.Recipe] = trainings[0]
		}
	}
	whole := first[x.Recipe]
	if whole == nil {
		return p, false, nil
	}
	p.Of, p.Hours = whole.Budget(), whole.Seconds()/3600
	for _, t := range first {
		run, err := s.Training(t)
		if err != nil {
			return p, false, err
		}
		if run == nil || t.Budget() <= p.Steps {
			continue
		}
		p.Steps = t.Budget()
		p.Hours = run.Manifest.Cost.CPUSeconds / 3600 / float64(p.Steps) * float64(p.Of-p.Steps)
	}
	return p, p.Steps < p.Of, nil
}
