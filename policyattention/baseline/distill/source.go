package distill

import (
	"fmt"

	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/method"
)

// Source is the source algorithm by itself, tabular actor–critic, among the methods. What
// Algorithm Distillation can be asked for is to learn as fast as the histories that it
// imitates. Its recipes are
//
//	source        with the paper's rate
//	source-tuned  with the tuned one
var Source = method.Method{
	Name: sourceName, Label: "Actor–critic", Untrained: true,
	Deploy: func(s method.Setting) (method.Deployment, error) {
		d := &SourceDeployment{}
		switch s.Recipe {
		case sourcePapers:
			d.ActorCritic.Steps = Paper(0, s.States).Source
		case sourceTuned:
			d.ActorCritic.Steps = s.Tuned["source"]
		default:
			return nil, fmt.Errorf("no recipe %q of actor–critic", s.Recipe)
		}
		d.ActorCritic.Start = baseline.Uniform
		return d, nil
	},
}

const (
	sourceName   = "actor-critic"
	sourcePapers = "source"
	sourceTuned  = "source-tuned"
)

// SourceDeployment deploys the source algorithm.
type SourceDeployment struct {
	ActorCritic struct {
		Steps baseline.StepSizes `json:"steps"`
		Start baseline.Start     `json:"start"`
	} `json:"actor_critic"`
}

var _ method.Learner = (*SourceDeployment)(nil)

// Weights implements method.Deployment: there are none.
func (d *SourceDeployment) Weights() []method.Weights { return nil }

// StepSizes implements method.Learner.
func (d *SourceDeployment) StepSizes() baseline.StepSizes { return d.ActorCritic.Steps }

// Controller implements method.Deployment. Its transitions come from streams below root.
func (d *SourceDeployment) Controller(_ *method.Models, _ float64, root uint64) (control.Controller, error) {
	return baseline.Teacher{Steps: d.ActorCritic.Steps, Start: d.ActorCritic.Start, Root: root}, nil
}
