package bench

import (
	"fmt"

	"github.com/gomlx/compute"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/safetensors"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/seed"
	"icrl/policyattention/train"
	"icrl/policyattention/transformer"
)

// A Row is a piece of work that programs are timed at, step by step.
type Row interface {
	Name() string
	// FLOPs is the number of floating-point operations in the matrix products of
	// a step, with attention counted in full although the mask leaves half of it.
	FLOPs() float64
	// Parity is the number of steps whose numbers are compared first.
	Parity() int
	// Scan is how many steps JAX makes in one call, where it makes several: a
	// second's worth or so.
	Scan() int
	// Identities is how many runs JAX trains in one call, where it trains several;
	// 1 where there is nothing to train.
	Identities() int
	// Export writes what the other programs need to repeat the first steps.
	Export(path string, steps int) error
	// Start makes ready on a backend.
	Start(backend compute.Backend) (Session, error)
}

// Session is a row that is being worked at.
type Session interface {
	// Steps performs n steps and returns numbers that show what they computed.
	Steps(n int) ([]float64, error)
	Close()
}

// TrainingRows returns the rows of training: the actor at S = 4, 8 and 16 and the
// critic at S = 8.
func TrainingRows() []TrainingRow {
	var rows []TrainingRow
	for _, s := range []int{4, 8, 16} {
		rows = append(rows, TrainingRow{fmt.Sprintf("actor S=%d", s), train.Standard(train.Proximal, train.Plain(), 1, s)})
	}
	return append(rows, TrainingRow{"critic S=8", train.Standard(train.Critic, train.Plain(), 1, 8)})
}

// Rows returns the rows of the comparison: those of training, those of races, and then the closed loop at S = 4 and 8.
func Rows() []Row {
	var rows []Row
	for _, r := range TrainingRows() {
		rows = append(rows, r)
	}
	for _, r := range races {
		if row := r.row(); row != nil {
			rows = append(rows, row)
		}
	}
	for _, s := range []int{4, 8} {
		rows = append(rows, loopRow{train.Standard(train.Proximal, train.Plain(), 1, s)})
	}
	return rows
}

// TrainingRow is an optimizer step, whose number is its loss.
type TrainingRow struct {
	name string
	train.Config
}

func (r TrainingRow) Name() string { return r.name }

// tokens is the length of a context.
func (r TrainingRow) tokens() int { return r.ContextTokens(r.Sizes[0] * r.Actions) }

// FLOPs is the forward pass and twice as much for the backward pass.
func (r TrainingRow) FLOPs() float64 {
	linear, attention := perToken(r.Network(), r.tokens())
	return 3 * float64(r.Batch*r.tokens()) * (linear + attention)
}

// perToken is the operations of a forward pass for each token, in the linear
// layers and in attention.
func perToken(n transformer.Config, tokens int) (linear, attention float64) {
	d, f, layers := float64(n.Width), float64(n.Hidden), float64(n.Layers)
	return 2*float64(n.Features+n.Outputs)*d + layers*(8*d*d+4*d*f), layers * 4 * float64(tokens) * d
}

func (r TrainingRow) Parity() int { return ParitySteps }

func (r TrainingRow) Scan() int {
	if r.Objective == train.Critic {
		return 5
	}
	return 50
}

func (r TrainingRow) Identities() int { return 2 }

func (r TrainingRow) Start(backend compute.Backend) (Session, error) {
	s, err := r.NewSession(backend)
	return trainingSession{s}, err
}

type trainingSession struct{ *train.Session }

func (s trainingSession) Steps(n int) ([]float64, error) {
	losses, err := s.Session.Steps(n)
	if err != nil {
		return nil, err
	}
	numbers := make([]float64, n)
	for i, loss := range losses[0] {
		numbers[i] = float64(loss)
	}
	return numbers, nil
}

// The closed loop that is timed.
const (
	loopProblems = 64
	loopRounds   = 40
)

// loopRow is a closed loop of the actor, as it is before training, with the
// exact critic: 40 rounds on 64 problems at once. Its numbers are the means of
// ⟨π̂_{k+1}, Q_k⟩ over problems and states, by round.
type loopRow struct{ train.Config }

func (r loopRow) Name() string { return fmt.Sprintf("closed loop S=%d", r.Sizes[0]) }

func (r loopRow) FLOPs() float64 {
	tokens := r.Sizes[0] * r.Actions
	linear, attention := perToken(r.Network(), tokens)
	return loopRounds * loopProblems * float64(tokens) * (linear + attention)
}

func (r loopRow) Parity() int { return 1 }

// Scan says that rounds, not loops, are what JAX makes several of in a call.
func (r loopRow) Scan() int { return loopRounds }

func (r loopRow) Identities() int { return 1 }

func (r loopRow) problems() ([]mdp.Problem, error) {
	return mdp.Random.Draw(r.Seed, r.Sizes[0], r.Actions, loopProblems)
}

func (r loopRow) params() []float32 {
	return r.Network().Init(seed.New(r.Seed, "bench"))
}

// Export writes the weights by name and the problems: "transitions" [64, S, A, S],
// "rewards" [64, S, A], "policy" π_0 and "values" Q^{π_0} [64, S, A], "discount" and
// "eta" [1].
func (r loopRow) Export(path string, _ int) error {
	problems, err := r.problems()
	if err != nil {
		return err
	}
	var transitions, rewards, policy, values []float32
	put := func(into *[]float32, table *mat.Dense) {
		for _, v := range table.RawMatrix().Data {
			*into = append(*into, float32(v))
		}
	}
	for _, p := range problems {
		q, err := p.MDP.PolicyValue(p.Pi0)
		if err != nil {
			return fmt.Errorf("bench: %w", err)
		}
		put(&transitions, p.MDP.DenseP())
		put(&rewards, p.MDP.R)
		put(&policy, p.Pi0)
		put(&values, q)
	}
	f := &safetensors.File{}
	add := func(name string, data []float32, shape ...int) {
		f.Tensors = append(f.Tensors, safetensors.Tensor{Name: name, Shape: shape, Data: data})
	}
	params := r.params()
	for _, t := range r.Network().Layout() {
		add(t.Name, params[t.Offset:][:t.Size()], t.Shape...)
	}
	n, s, a := loopProblems, r.Sizes[0], r.Actions
	add("transitions", transitions, n, s, a, s)
	add("rewards", rewards, n, s, a)
	add("policy", policy, n, s, a)
	add("values", values, n, s, a)
	add("discount", []float32{float32(problems[0].MDP.Gamma)}, 1)
	add("eta", []float32{control.NominalStep}, 1)
	return safetensors.WriteFile(path, f)
}

func (r loopRow) Start(backend compute.Backend) (Session, error) {
	problems, err := r.problems()
	if err != nil {
		return nil, err
	}
	model, err := train.NewModel(r.Config, 0, r.params())
	if err != nil {
		return nil, err
	}
	actor, err := model.Actor()
	if err != nil {
		return nil, err
	}
	return loopSession{control.Loop{Actor: actor, Critic: control.ExactCritic{}, Eta: control.NominalStep}, problems}, nil
}

type loopSession struct {
	loop     control.Loop
	problems []mdp.Problem
}

func (s loopSession) Steps(n int) (numbers []float64, err error) {
	for range n {
		trajectories, err := s.loop.Run(s.problems, loopRounds)
		if err != nil {
			return nil, err
		}
		means := make([]float64, loopRounds)
		for _, t := range trajectories {
			for k, q := range t.Q {
				var product mat.Dense
				product.MulElem(t.Policies[k+1], q)
				means[k] += mat.Sum(&product) / float64(len(trajectories)*q.RawMatrix().Rows)
			}
		}
		numbers = append(numbers, means...)
	}
	return numbers, nil
}

func (loopSession) Close() {}
