package baseline

import (
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/seed"
)

// Increment returns what to add to θ [S·A] and w [S] of the learner of problem
// i after a window that was drawn under pi = softmax(θ).
type Increment func(i int, l *ActorCritic, window []Transition, pi *mat.Dense) (dTheta, dW []float64, err error)

// Run is the closed loop of a learner with parameters (θ, w): each round draws
// Window on-policy transitions and adds the increment; the returned policy is
// softmax(θ). It starts as start says, with w = 0; increments are those of a
// tabular learner and are carried over to its features. Problem i walks on a
// stream of its own below root, and has features of its own. Problems run in
// parallel.
func Run(problems []mdp.Problem, rounds int, start Start, features Features, root uint64, increment Increment) ([]control.Trajectory, error) {
	if rounds < 1 {
		return nil, fmt.Errorf("baseline: %d rounds, want at least 1", rounds)
	}
	trajectories := make([]control.Trajectory, len(problems))
	group := errgroup.Group{}
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, problem := range problems {
		group.Go(func() error {
			learner, err := start.Learner(problem.Pi0)
			if err != nil {
				return fmt.Errorf("problem %d: %w", i, err)
			}
			kernel, err := features.kernel(problem.MDP.States(), problem.MDP.Actions(), seed.New(root, "baseline", "features", i))
			if err != nil {
				return err
			}
			chain := NewChain(problem.MDP, seed.New(root, "baseline", "chain", i))
			window := make([]Transition, Window)
			pi := learner.Policy()
			policies := []*mat.Dense{problem.Pi0}
			for round := range rounds {
				chain.Walk(pi, window)
				dTheta, dW, err := increment(i, learner, window, pi)
				if err == nil {
					kernel.carry(dTheta, dW)
					err = learner.Step(dTheta, dW)
				}
				if err != nil {
					return fmt.Errorf("problem %d, round %d: %w", i, round, err)
				}
				pi = learner.Policy()
				policies = append(policies, pi)
				problem.MDP.Meter().EndRound()
			}
			trajectories[i].Policies = policies
			return nil
		})
	}
	return trajectories, group.Wait()
}

// Teacher is the controller that runs actor–critic itself: the teacher of
// Liang–Lai and, tabular, the source of Algorithm Distillation.
type Teacher struct {
	Steps    StepSizes
	Start    Start
	Features Features
	Root     uint64 // of the transitions and the features
}

// Run implements control.Controller.
func (c Teacher) Run(problems []mdp.Problem, rounds int) ([]control.Trajectory, error) {
	return Run(problems, rounds, c.Start, c.Features, c.Root, func(i int, l *ActorCritic, window []Transition, pi *mat.Dense) (dTheta, dW []float64, err error) {
		dTheta, dW = l.Increment(window, pi, problems[i].MDP.Gamma, c.Steps)
		return dTheta, dW, nil
	})
}
