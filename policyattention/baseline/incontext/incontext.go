// Package incontext runs agents that learn in their context alone: networks whose weights stay,
// and which choose each action by all that they have seen in a life.
package incontext

import (
	"fmt"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/seed"
)

// None is the action before the first step of a life.
const None = -1

// Paced is a controller in rounds of N transitions, where it acts for baseline.Window of them at a
// time: the policy after a round is the one after the last of its own rounds that is complete.
type Paced struct {
	control.Controller
	N int
}

// Own implements method.Paced.
func (p Paced) Own(k int) int { return k * p.N / baseline.Window }

// History is what an agent has seen, a token for each step: the action and the reward before, and
// the state now.
type History struct {
	Previous []int32   // a_{t−1}, or None
	Reward   []float32 // r_{t−1}, or 0
	State    []int32   // s_t
}

// See appends the token of a state reached by t, or a first one when t is nil.
func (h *History) See(t *baseline.Transition, state int) {
	previous, reward := int32(None), float32(0)
	if t != nil {
		previous, reward = int32(t.Action), float32(t.Reward)
	}
	h.Previous, h.Reward, h.State = append(h.Previous, previous), append(h.Reward, reward), append(h.State, int32(state))
}

// At returns the token of step t.
func (h *History) At(t int) (previous int32, reward float32, state int32) {
	return h.Previous[t], h.Reward[t], h.State[t]
}

// Agents are agents that have lived equally long, each with a History. They have taken in the
// tokens of all steps but the pending one, whose state is known and whose action is not yet chosen.
type Agents interface {
	// Begin begins a round.
	Begin() error
	// Act takes in the pending tokens and returns the distributions [1, A] of the actions at them.
	Act() ([]*mat.Dense, error)
	// Window begins a round of which the histories tell all, takes in its tokens, and returns the
	// distributions [baseline.Window, A] of the actions at them.
	Window() ([]*mat.Dense, error)
	// Policies returns the distributions of the next action [S, A], were the pending token's
	// state each of the states. It changes nothing.
	Policies() ([]*mat.Dense, error)
}

// Counted are agents that know the floating-point operations on each of them so far.
type Counted interface {
	Agents
	Operations() int
}

// Controller deploys agents. It ignores π₀: an agent starts with an empty history, and each round
// acts for baseline.Window steps on its own samples. The policy returned after a round is the
// distribution of the next action, asked at every state after the same history.
type Controller struct {
	Name            string // of the method, in errors and in the names of random streams
	States, Actions int
	Root            uint64 // of the transitions, one stream for each problem's index
	// Agents returns an agent for each history. The histories grow as the agents live.
	Agents func(histories []*History) Agents
}

// Run implements control.Controller.
func (c Controller) Run(problems []mdp.Problem, rounds int) ([]control.Trajectory, error) {
	trajectories, _, err := c.Live(problems, rounds)
	return trajectories, err
}

// Live is Run that also returns the actions taken, baseline.Window·rounds for each problem.
func (c Controller) Live(problems []mdp.Problem, rounds int) (trajectories []control.Trajectory, actions [][]int, err error) {
	l, err := c.born(problems, 0, rounds)
	if err != nil {
		return nil, nil, err
	}
	for round := range rounds {
		if err := l.round(); err != nil {
			return nil, nil, fmt.Errorf("%s: round %d: %w", c.Name, round, err)
		}
		l.charge(problems)
	}
	actions = make([][]int, len(problems))
	for i, h := range l.histories {
		for _, a := range h.Previous[1:] {
			actions[i] = append(actions[i], int(a))
		}
	}
	return l.trajectories, actions, nil
}

// charge charges the problems' meters with what a round has taken, and ends it.
func (l *lives) charge(problems []mdp.Problem) {
	before := l.operations
	if counted, ok := l.agents.(Counted); ok {
		l.operations = counted.Operations()
	}
	for _, p := range problems {
		p.MDP.Meter().Charge(l.operations - before)
		p.MDP.Meter().EndRound()
	}
}

// round acts for a window and returns the policies after it.
func (l *lives) round() error {
	if err := l.agents.Begin(); err != nil {
		return err
	}
	for range baseline.Window {
		rows, err := l.agents.Act()
		if err != nil {
			return err
		}
		for i, chain := range l.chains {
			t := chain.Step(chain.Choose(rows[i].RawRowView(0)))
			l.histories[i].See(&t, t.Next)
		}
	}
	return l.returned()
}

// returned adds the policies after a round to the trajectories.
func (l *lives) returned() error {
	policies, err := l.agents.Policies()
	for i, pi := range policies {
		l.trajectories[i].Policies = append(l.trajectories[i].Policies, pi)
	}
	return err
}

// Relive repeats the lives in which the given actions were taken. It returns an error where
// the network and the stream of random numbers could not have given an action,
// with probabilities that differ by at most tolerance: networks on other
// backends round differently, and one other action would change all that
// follows.
//
// The actions and the random numbers alone fix the walk, so the network can be
// shown a whole round at once and need not be asked action by action.
func (c Controller) Relive(problems []mdp.Problem, actions [][]int, tolerance float64) ([]control.Trajectory, error) {
	if len(actions) != len(problems) || len(problems) == 0 {
		return nil, fmt.Errorf("%s: actions of %d problems, want %d, at least one", c.Name, len(actions), len(problems))
	}
	for i, a := range actions {
		if len(a) == 0 || len(a)%baseline.Window != 0 || len(a) != len(actions[0]) {
			return nil, fmt.Errorf("%s: problem %d has %d actions, want a multiple of %d and as many as the first", c.Name, i, len(a), baseline.Window)
		}
	}
	var trajectories []control.Trajectory
	for start := 0; start < len(problems); start += together {
		end := min(start+together, len(problems))
		some, err := c.relive(problems[start:end], actions[start:end], start, tolerance)
		if err != nil {
			return nil, err
		}
		trajectories = append(trajectories, some...)
	}
	return trajectories, nil
}

// together is how many lives are repeated at a time: what a small network computes for so many
// stays in a processor's cache.
const together = 64

// relive is Relive for the problems from index first.
func (c Controller) relive(problems []mdp.Problem, actions [][]int, first int, tolerance float64) ([]control.Trajectory, error) {
	rounds := len(actions[0]) / baseline.Window
	l, err := c.born(problems, first, rounds)
	if err != nil {
		return nil, err
	}
	draws := make([][]float64, len(problems)) // of the actions
	for i, chain := range l.chains {
		for t, a := range actions[i] {
			if a < 0 || a >= c.Actions {
				return nil, fmt.Errorf("%s: problem %d: action %d is %d, want 0 to %d", c.Name, first+i, t+1, a, c.Actions-1)
			}
			draws[i] = append(draws[i], chain.Draw())
			step := chain.Step(a)
			l.histories[i].See(&step, step.Next)
		}
	}
	for round := range rounds {
		rows, err := l.agents.Window()
		if err != nil {
			return nil, fmt.Errorf("%s: round %d: %w", c.Name, round, err)
		}
		for i, distributions := range rows {
			for k := range baseline.Window {
				t := round*baseline.Window + k
				if !baseline.Gives(distributions.RawRowView(k), draws[i][t], actions[i][t], tolerance) {
					return nil, fmt.Errorf("%s: problem %d: action %d, %d, is not the one that was drawn", c.Name, first+i, t+1, actions[i][t])
				}
			}
		}
		if err := l.returned(); err != nil {
			return nil, fmt.Errorf("%s: round %d: %w", c.Name, round, err)
		}
	}
	return l.trajectories, nil
}

// lives are agents on problems.
type lives struct {
	agents       Agents
	histories    []*History
	chains       []*baseline.Chain
	trajectories []control.Trajectory
	operations   int // on each agent so far, where agents count them
}

// born returns an agent for each problem, of which the first has the index first, before its
// first action, with the chain that it walks and its trajectory up to π₀.
func (c Controller) born(problems []mdp.Problem, first, rounds int) (*lives, error) {
	if rounds < 1 || len(problems) == 0 {
		return nil, fmt.Errorf("%s: %d rounds on %d problems, want at least one of each", c.Name, rounds, len(problems))
	}
	l := &lives{}
	for i, p := range problems {
		if s, a := p.MDP.States(), p.MDP.Actions(); s != c.States || a != c.Actions {
			return nil, fmt.Errorf("%s: problem %d has S=%d, A=%d, the network is for S=%d, A=%d", c.Name, first+i, s, a, c.States, c.Actions)
		}
		chain, history := baseline.NewChain(p.MDP, seed.New(c.Root, c.Name, "chain", first+i)), &History{}
		history.See(nil, chain.State)
		l.chains, l.histories = append(l.chains, chain), append(l.histories, history)
		l.trajectories = append(l.trajectories, control.Trajectory{Policies: []*mat.Dense{p.Pi0}})
	}
	l.agents = c.Agents(l.histories)
	return l, nil
}

// Record implements method.Recorder: the choices are the actions of each life.
func (c Controller) Record(problems []mdp.Problem, rounds int) ([]control.Trajectory, [][]int32, error) {
	trajectories, actions, err := c.Live(problems, rounds)
	all := make([][]int32, len(actions))
	for i, row := range actions {
		for _, a := range row {
			all[i] = append(all[i], int32(a))
		}
	}
	return trajectories, all, err
}

// Replay implements method.Recorder.
func (c Controller) Replay(problems []mdp.Problem, rounds int, recorded [][]int32, tolerance float64) ([]control.Trajectory, error) {
	if len(recorded) != len(problems) {
		return nil, fmt.Errorf("%s: choices on %d problems, want %d", c.Name, len(recorded), len(problems))
	}
	actions := make([][]int, len(problems))
	for i, row := range recorded {
		if len(row) != rounds*baseline.Window {
			return nil, fmt.Errorf("%s: problem %d has %d choices, want %d", c.Name, i, len(row), rounds*baseline.Window)
		}
		for _, a := range row {
			actions[i] = append(actions[i], int(a))
		}
	}
	return c.Relive(problems, actions, tolerance)
}
