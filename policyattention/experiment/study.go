package experiment

import (
	"fmt"
	"path/filepath"

	"icrl/policyattention/artifact"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
)

// ownStudy is a study that a method brings.
type ownStudy struct{ method.Study }

func (o ownStudy) weights() []method.Weights { return o.Weights() }

func (o ownStudy) compute(s *Store, dir string, _ Cell, _ Fixtures, problems []mdp.Problem) (map[string]artifact.Values, error) {
	r, err := o.Compute(s.models, problems)
	if err != nil {
		return nil, err
	}
	for i, t := range o.Tables() {
		if err := artifact.WriteTable(filepath.Join(dir, t.File), t.Columns, r.Rows[i]); err != nil {
			return nil, err
		}
	}
	return r.Summary, nil
}

func (o ownStudy) read(e *Evaluation) error {
	stored := method.Result{Summary: e.Manifest.Summary}
	for _, t := range o.Tables() {
		rows, err := artifact.ReadTable(e.path(t.File), t.Columns)
		if err != nil {
			return err
		}
		stored.Rows = append(stored.Rows, rows)
	}
	var err error
	if e.Found, err = o.Read(stored); err != nil {
		err = fmt.Errorf("experiment: %s: %w", e.Folder, err)
	}
	return err
}

func (o ownStudy) verify(s *Store, v *Verification, e *Evaluation, problems []mdp.Problem) error {
	defer v.during(again(s.Preset.label(e.Cell.Method)))()
	r, err := o.Compute(s.models, problems)
	if err != nil {
		v.add(e.path(artifact.ManifestFile), 0, "computed again: %v", err)
		return nil
	}
	v.Rescored, v.Replayed = v.Rescored+r.Policies, v.Replayed+r.Updates
	for i, t := range o.Tables() {
		v.compareTable(e.path(t.File), t.Columns, r.Rows[i])
	}
	v.compareSummary(e, r.Summary, scoreTolerance)
	return nil
}
