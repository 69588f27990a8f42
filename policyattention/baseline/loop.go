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
// softmax(θ). It starts as start says, with w = 0. Problem i walks on a stream of
// its own below root. Problems run in parallel.
func Run(problems []mdp.Problem, rounds int, start Start, root uint64, increment Increment) ([]control.Trajectory, error) {
	if rounds < 1 {
		return nil, fmt.Errorf("baseline: %d rounds, want at least 1", rounds)
	}
	trajectories := make([]control.Trajectory, len(problems))
	group := errgroup.Group{}
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, problem := range problems {
		group.Go(func() error {
			learner, err := start.learner(problem)
			if err != nil {
				return fmt.Errorf("problem %d: %w", i, err)
			}
			chain := NewChain(problem.MDP, seed.New(root, "baseline", "chain", i))
			window := make([]Transition, Window)
			pi := learner.Policy()
			policies := []*mat.Dense{problem.Pi0}
			for round := range rounds {
				chain.Walk(pi, window)
				dTheta, dW, err := increment(i, learner, window, pi)
				if err == nil {
					err = learner.Step(dTheta, dW)
				}
				if err != nil {
					return fmt.Errorf("problem %d, round %d: %w", i, round, err)
				}
				pi = learner.Policy()
				policies = append(policies, pi)
			}
			trajectories[i].Policies = policies
			return nil
		})
	}
	return trajectories, group.Wait()
}

// Tabular is the controller that runs tabular actor–critic itself: the teacher
// of Liang–Lai and the source of Algorithm Distillation.
type Tabular struct {
	Steps Steps
	Start Start
	Root  uint64 // of the transitions
}

// Run implements control.Controller.
func (c Tabular) Run(problems []mdp.Problem, rounds int) ([]control.Trajectory, error) {
	return Run(problems, rounds, c.Start, c.Root, func(i int, l *ActorCritic, window []Transition, pi *mat.Dense) (dTheta, dW []float64, err error) {
		dTheta, dW = l.Increment(window, pi, problems[i].MDP.Gamma, c.Steps)
		return dTheta, dW, nil
	})
}
