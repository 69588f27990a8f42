package baseline

import (
	"fmt"

	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/seed"
	"icrl/policyattention/transformer"
)

// None is the action before the first step of a life.
const None = -1

// Paced is a controller in rounds of N transitions, where it acts for [Window] of them at a time: the policy after k
// rounds is the one after the last of its own rounds that is complete, k·N/Window.
type Paced struct {
	control.Controller
	N int
}

// Token is what an agent sees at a step: the state, the action and the reward before, and the state now. At the first
// step of a life they are the state now, None and 0.
type Token struct {
	Before, Previous int32
	Reward           float32
	State            int32
}

// First is the token of a life that begins in a state.
func First(state int) Token { return Token{int32(state), None, 0, int32(state)} }

// Token is what is seen after a transition.
func (t Transition) Token() Token {
	return Token{int32(t.State), int32(t.Action), float32(t.Reward), int32(t.Next)}
}

// Arrays are tokens by their numbers, row-major: states before, actions, rewards and states now, each of shape dims.
func Arrays(token func(i int) Token, dims ...int) []*tensors.Tensor {
	n := transformer.Tensor{Shape: dims}.Size()
	before, previous, reward, state := make([]int32, n), make([]int32, n), make([]float32, n), make([]int32, n)
	for i := range n {
		x := token(i)
		before[i], previous[i], reward[i], state[i] = x.Before, x.Previous, x.Reward, x.State
	}
	integers := func(x []int32) *tensors.Tensor { return tensors.FromFlatDataAndDimensions(x, dims...) }
	rewards := tensors.FromFlatDataAndDimensions(reward, dims...)
	return []*tensors.Tensor{integers(before), integers(previous), rewards, integers(state)}
}

// Lived are the [Arrays] of tokens, and behind them the action after each; life returns a token and what follows it.
func Lived(life func(i int) []Token, dims ...int) []*tensors.Tensor {
	all := Arrays(func(i int) Token { return life(i)[0] }, dims...)
	actions := make([]int32, all[0].Size())
	for i := range actions {
		actions[i] = life(i)[1].Previous
	}
	return append(all, tensors.FromFlatDataAndDimensions(actions, dims...))
}

// Reader is a network that reads the tokens of lives which have lasted equally long.
type Reader interface {
	// Begin begins a round. It returns how many of the last tokens are to be read again.
	Begin() (again int)
	// Read shows each life k tokens, j from 0, and returns the distributions [k, A] of the actions at them. They come
	// one after the other; as alternatives each by itself comes next, and none of them is remembered.
	Read(k int, alternatives bool, token func(life, j int) Token) ([]*mat.Dense, error)
}

// Lives are what a network has read. A token's action is not chosen before it is read.
type Lives struct {
	Reader    Reader
	Chains    []*Chain  // of the agents, if they act
	Histories [][]Token // they may go on after what has been read
	Pending   int       // the step of the token that is read next
}

// NewLives returns the lives of agents before their first action, one on each chain.
func NewLives(reader Reader, chains []*Chain) *Lives {
	l := &Lives{Reader: reader, Chains: chains}
	for _, chain := range chains {
		l.Histories = append(l.Histories, []Token{First(chain.State)})
	}
	return l
}

// Act takes the next n actions in each life, and tells of their probabilities if told is not nil.
func (l *Lives) Act(n int, told func(k, life int, p float64)) error {
	for k := range n {
		rows, err := l.Take(1)
		if err != nil {
			return err
		}
		for i, chain := range l.Chains {
			p := rows[i].RawRowView(0)
			t := chain.Step(mdp.Sample(chain.rng, p))
			if l.Histories[i] = append(l.Histories[i], t.Token()); told != nil {
				told(k, i, p[t.Action])
			}
		}
	}
	return nil
}

// Begin begins a round.
func (l *Lives) Begin() error {
	again := l.Reader.Begin()
	if l.Pending -= again; again == 0 {
		return nil
	}
	_, err := l.Take(again)
	return err
}

// Take reads the next k tokens, and returns the distributions [k, A] of the actions at them.
func (l *Lives) Take(k int) ([]*mat.Dense, error) {
	rows, err := l.Reader.Read(k, false, func(i, j int) Token { return l.Histories[i][l.Pending+j] })
	l.Pending += k
	return rows, err
}

// Policies returns the distributions of the next action [S, A], were the pending state each of the states.
func (l *Lives) Policies(states int) ([]*mat.Dense, error) {
	return l.Reader.Read(states, true, func(i, s int) Token {
		x := l.Histories[i][l.Pending]
		x.State = int32(s)
		return x
	})
}

// InContext deploys agents that learn in their context alone: networks whose weights stay, and which choose each action
// by all that they have seen in a life. It ignores π₀: an agent starts with an empty history. A round is Window
// steps, and the policy after it the distribution of the next action, asked at every state.
type InContext struct {
	Name            string // of the method, in errors and in the names of random streams
	States, Actions int
	Root            uint64 // of the transitions, one stream for each problem's index
	Reader          func(lives int) Reader
}

// Run implements control.Controller.
func (c InContext) Run(problems []mdp.Problem, rounds int) ([]control.Trajectory, error) {
	trajectories, _, err := c.Record(problems, rounds)
	return trajectories, err
}

// Record is Run that also returns the actions of each life, Window·rounds for each problem. They are stored, and
// verification repeats the run with them.
func (c InContext) Record(problems []mdp.Problem, rounds int) ([]control.Trajectory, [][]int32, error) {
	l, err := c.born(problems, rounds)
	if err != nil {
		return nil, nil, err
	}
	trajectories, err := c.run(l, problems, rounds, func(int) error { return l.Act(Window, nil) })
	actions := make([][]int32, len(problems))
	for i, life := range l.Histories {
		for _, x := range life[1:] {
			actions[i] = append(actions[i], x.Previous)
		}
	}
	return trajectories, actions, err
}

// run lives rounds, in each of which live takes the next tokens, and returns the policies after each.
func (c InContext) run(l *Lives, problems []mdp.Problem, rounds int, live func(round int) error) (
	[]control.Trajectory, error) {
	trajectories := make([]control.Trajectory, len(problems))
	for i, p := range problems {
		trajectories[i].Policies = []*mat.Dense{p.Pi0}
	}
	for round := range rounds {
		err := l.Begin()
		if err == nil {
			err = live(round)
		}
		var policies []*mat.Dense
		if err == nil {
			policies, err = l.Policies(c.States)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: round %d: %w", c.Name, round, err)
		}
		for i, pi := range policies {
			trajectories[i].Policies = append(trajectories[i].Policies, pi)
		}
	}
	return trajectories, nil
}

// Replay repeats the lives in which the recorded actions were taken. It returns an error where the network and the
// stream of random numbers could not have given an action, with probabilities that differ by at most tolerance:
// networks on other backends round differently, and one other action would change all that follows.
//
// The actions and the random numbers alone fix the walk, so that the network is shown a whole round at once.
func (c InContext) Replay(problems []mdp.Problem, rounds int, recorded [][]int32, tolerance float64) (
	[]control.Trajectory, error) {
	l, err := c.born(problems, rounds)
	if err != nil {
		return nil, err
	}
	if len(recorded) != len(problems) {
		return nil, fmt.Errorf("%s: choices on %d problems, want %d", c.Name, len(recorded), len(problems))
	}
	draws := make([][]float64, len(problems)) // of the actions
	for i, chain := range l.Chains {
		if len(recorded[i]) != rounds*Window {
			return nil, fmt.Errorf("%s: problem %d has %d choices, want %d", c.Name, i, len(recorded[i]), rounds*Window)
		}
		for t, a := range recorded[i] {
			if a < 0 || int(a) >= c.Actions {
				return nil, fmt.Errorf("%s: problem %d: action %d is %d, want 0 to %d", c.Name, i, t+1, a, c.Actions-1)
			}
			draws[i] = append(draws[i], chain.rng.Float64())
			l.Histories[i] = append(l.Histories[i], chain.Step(int(a)).Token())
		}
	}
	return c.run(l, problems, rounds, func(round int) error {
		rows, err := l.Take(Window)
		for i, distributions := range rows {
			for k := range Window {
				t, p := round*Window+k, distributions.RawRowView(k)
				a, u := recorded[i][t], draws[i][t]
				// u gives a with a policy that differs from p by at most tolerance in each cumulative probability.
				if below := floats.Sum(p[:a]); !(u >= below-tolerance && u < below+p[a]+tolerance) {
					return fmt.Errorf("problem %d: action %d, %d, is not the one that was drawn", i, t+1, a)
				}
			}
		}
		return err
	})
}

// born returns an agent for each problem before its first action.
func (c InContext) born(problems []mdp.Problem, rounds int) (*Lives, error) {
	if rounds < 1 || len(problems) == 0 {
		return nil, fmt.Errorf("%s: %d rounds on %d problems, want at least one of each", c.Name, rounds, len(problems))
	}
	chains := make([]*Chain, len(problems))
	for i, p := range problems {
		if s, a := p.MDP.States(), p.MDP.Actions(); s != c.States || a != c.Actions {
			const format = "%s: problem %d has S=%d, A=%d, the network is for S=%d, A=%d"
			return nil, fmt.Errorf(format, c.Name, i, s, a, c.States, c.Actions)
		}
		chains[i] = NewChain(p.MDP, seed.New(c.Root, c.Name, "chain", p.Index(i)))
	}
	return NewLives(c.Reader(len(problems)), chains), nil
}
