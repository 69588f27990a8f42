package baseline

import (
	"fmt"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/seed"
)

// None is the action before the first step of a life.
const None = -1

// Paced is a controller in rounds of N transitions, where it acts for [Window] of them at a
// time: the policy after a round is the one after the last of its own rounds that is complete.
type Paced struct {
	control.Controller
	N int
}

// Own implements method.Paced.
func (p Paced) Own(k int) int { return k * p.N / Window }

// History is what an agent has seen, a token for each step: the action and the reward before, and
// the state now.
type History struct {
	Previous []int32   // a_{t−1}, or None
	Reward   []float32 // r_{t−1}, or 0
	State    []int32   // s_t
}

// See appends the token of a state reached by t, or a first one when t is nil.
func (h *History) See(t *Transition, state int) {
	previous, reward := int32(None), float32(0)
	if t != nil {
		previous, reward = int32(t.Action), float32(t.Reward)
	}
	h.Previous, h.Reward, h.State = append(h.Previous, previous), append(h.Reward, reward), append(h.State,
		int32(state))
}

// At returns the token of step t.
func (h *History) At(t int) (previous int32, reward float32, state int32) {
	return h.Previous[t], h.Reward[t], h.State[t]
}

// Lives are agents that have lived equally long, each with a History. They have taken in the
// tokens of all steps but the pending one, whose state is known and whose action is not yet chosen.
type Lives interface {
	// Begin begins a round.
	Begin() error
	// Take takes in the next k tokens, of which the pending one is the first, and returns the distributions [k, A]
	// of the actions at them.
	Take(k int) ([]*mat.Dense, error)
	// Policies returns the distributions of the next action [S, A], were the pending token's
	// state each of the states. It changes nothing.
	Policies() ([]*mat.Dense, error)
}

// InContext deploys agents that learn in their context alone: networks whose weights stay, and
// which choose each action by all that they have seen in a life. It ignores π₀: an agent starts
// with an empty history, and each round acts for Window steps on its own samples. The policy
// returned after a round is the distribution of the next action, asked at every state after the
// same history.
type InContext struct {
	Name            string // of the method, in errors and in the names of random streams
	States, Actions int
	Root            uint64 // of the transitions, one stream for each problem's index
	// Lives returns an agent for each history. The histories grow as the agents live.
	Lives func(histories []*History) Lives
}

// Run implements control.Controller.
func (c InContext) Run(problems []mdp.Problem, rounds int) ([]control.Trajectory, error) {
	trajectories, _, err := c.Record(problems, rounds)
	return trajectories, err
}

// Record implements method.Recorder: the choices are the actions of each life, Window·rounds for
// each problem.
func (c InContext) Record(problems []mdp.Problem, rounds int) ([]control.Trajectory, [][]int32, error) {
	l, err := c.born(problems, rounds)
	if err != nil {
		return nil, nil, err
	}
	for round := range rounds {
		if err := l.round(); err != nil {
			return nil, nil, fmt.Errorf("%s: round %d: %w", c.Name, round, err)
		}
		for _, p := range problems {
			p.MDP.Meter().EndRound()
		}
	}
	actions := make([][]int32, len(problems))
	for i, h := range l.histories {
		actions[i] = h.Previous[1:]
	}
	return l.trajectories, actions, nil
}

// round acts for a window and returns the policies after it.
func (l *lives) round() error {
	if err := l.agents.Begin(); err != nil {
		return err
	}
	for range Window {
		rows, err := l.agents.Take(1)
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

// Replay implements method.Recorder: it repeats the lives in which the recorded actions were
// taken. It returns an error where the network and the stream of random numbers could not have
// given an action, with probabilities that differ by at most tolerance: networks on other backends
// round differently, and one other action would change all that follows.
//
// The actions and the random numbers alone fix the walk, so the network can be
// shown a whole round at once and need not be asked action by action.
func (c InContext) Replay(
	problems []mdp.Problem, rounds int, recorded [][]int32, tolerance float64,
) ([]control.Trajectory, error) {
	l, err := c.born(problems, rounds)
	if err != nil {
		return nil, err
	}
	if len(recorded) != len(problems) {
		return nil, fmt.Errorf("%s: choices on %d problems, want %d", c.Name, len(recorded), len(problems))
	}
	draws := make([][]float64, len(problems)) // of the actions
	for i, chain := range l.chains {
		if len(recorded[i]) != rounds*Window {
			return nil, fmt.Errorf("%s: problem %d has %d choices, want %d", c.Name, i, len(recorded[i]), rounds*Window)
		}
		for t, a := range recorded[i] {
			if a < 0 || int(a) >= c.Actions {
				const format = "%s: problem %d: action %d is %d, want 0 to %d"
				return nil, fmt.Errorf(format, c.Name, i, t+1, a, c.Actions-1)
			}
			draws[i] = append(draws[i], chain.Draw())
			step := chain.Step(int(a))
			l.histories[i].See(&step, step.Next)
		}
	}
	for round := range rounds {
		var rows []*mat.Dense
		if err = l.agents.Begin(); err == nil {
			rows, err = l.agents.Take(Window)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: round %d: %w", c.Name, round, err)
		}
		for i, distributions := range rows {
			for k := range Window {
				t := round*Window + k
				if !gives(distributions.RawRowView(k), draws[i][t], int(recorded[i][t]), tolerance) {
					const format = "%s: problem %d: action %d, %d, is not the one that was drawn"
					return nil, fmt.Errorf(format, c.Name, i, t+1, recorded[i][t])
				}
			}
		}
		if err := l.returned(); err != nil {
			return nil, fmt.Errorf("%s: round %d: %w", c.Name, round, err)
		}
	}
	return l.trajectories, nil
}

// gives reports whether the number u that a chain has drawn gives the action a
// with a policy that differs from p [A] by at most tolerance in each cumulative
// probability.
func gives(p []float64, u float64, a int, tolerance float64) bool {
	below := floats.Sum(p[:a])
	return u >= below-tolerance && u < below+p[a]+tolerance
}

// lives are agents on problems.
type lives struct {
	agents       Lives
	histories    []*History
	chains       []*Chain
	trajectories []control.Trajectory
}

// born returns an agent for each problem before its first action, with the chain that it walks and
// its trajectory up to π₀.
func (c InContext) born(problems []mdp.Problem, rounds int) (*lives, error) {
	if rounds < 1 || len(problems) == 0 {
		const format = "%s: %d rounds on %d problems, want at least one of each"
		return nil, fmt.Errorf(format, c.Name, rounds, len(problems))
	}
	l := &lives{}
	for i, p := range problems {
		if s, a := p.MDP.States(), p.MDP.Actions(); s != c.States || a != c.Actions {
			const format = "%s: problem %d has S=%d, A=%d, the network is for S=%d, A=%d"
			return nil, fmt.Errorf(format, c.Name, i, s, a, c.States, c.Actions)
		}
		chain, history := NewChain(p.MDP, seed.New(c.Root, c.Name, "chain", p.Index(i))), &History{}
		history.See(nil, chain.State)
		l.chains, l.histories = append(l.chains, chain), append(l.histories, history)
		l.trajectories = append(l.trajectories, control.Trajectory{Policies: []*mat.Dense{p.Pi0}})
	}
	l.agents = c.Lives(l.histories)
	return l, nil
}
