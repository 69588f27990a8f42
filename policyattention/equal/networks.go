package equal

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/gomlx/compute"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/backend"
	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/decoder"
	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	learned "icrl/policyattention/method/policyattention"
	"icrl/policyattention/reference"
	"icrl/policyattention/seed"
)

// Networks gives the trained networks of the preset paper, and the fixed decoder.
type Networks struct {
	store  *experiment.Store
	models *method.Models

	mu       sync.Mutex
	decoders map[decoder.Caps]*decoder.Decoder
}

// Open returns the networks that are stored below the folder artifacts. The backend called
// backendName is made when it is first needed.
func Open(artifacts, backendName string) (*Networks, error) {
	store, err := experiment.Open(artifacts, "paper", backendName)
	if err != nil {
		return nil, err
	}
	return &Networks{store: store, decoders: map[decoder.Caps]*decoder.Decoder{}, models: &method.Models{
		Backend: sync.OnceValues(func() (compute.Backend, error) { return backend.New(backendName) }),
		Path: func(w method.Weights) (string, error) {
			t, err := store.FindTraining(w.Training)
			if err != nil {
				return "", err
			}
			return t.WeightsPath(w.Step), nil
		},
	}}, nil
}

// Folder is where the evidence lies below the folder artifacts.
func Folder(artifacts string) string {
	return filepath.Join(artifacts, "paper", experiment.EqualFolder)
}

// deployment returns what a method of the paper's benchmark deploys in run j.
func (n *Networks) deployment(name method.Name, recipe string, states, j int) (method.Deployment, error) {
	if n == nil {
		return nil, errors.New("equal: a learned method without networks")
	}
	runs := n.store.Preset.Protocol.Sizes[states].Runs
	if j >= len(runs) {
		return nil, fmt.Errorf("equal: no identity %d of %s at S=%d", j, name, states)
	}
	config, err := n.store.Preset.Config(experiment.Cell{
		Preset: n.store.Preset.Name, Block: experiment.Benchmark, Method: name, Recipe: recipe, S: states, Seed: runs[j].Model,
	})
	if err != nil {
		return nil, err
	}
	return config.Loop.Deployment, nil
}

// Actor returns PolicyAttention's actor. It charges its network by its shapes, and a
// softmax.
func (n *Networks) Actor(states, run int) (control.Actor, error) {
	d, err := n.deployment(experiment.PolicyAttention, "plain", states, run)
	if err != nil {
		return nil, err
	}
	weights := d.(*learned.Loop).Actor.(*learned.Weights)
	actor, err := weights.Actor(n.models)
	if err != nil {
		return nil, err
	}
	return reference.Charged{Actor: actor, Operations: func(states, actions int) int {
		pairs := states * actions
		return weights.Training.Network().Operations(pairs, pairs) + 5*pairs
	}}, nil
}

// Critic returns PolicyAttention's learned critic on samples below root.
func (n *Networks) Critic(states, run int, root uint64) (control.Critic, error) {
	d, err := n.deployment(experiment.LearnedCritic, "plain", states, run)
	if err != nil {
		return nil, err
	}
	weights := d.(*learned.Loop).Critic.(*learned.Weights)
	critic, err := weights.Critic(n.models, root)
	if err != nil {
		return nil, err
	}
	return chargedCritic{critic, func(states, actions int) int {
		pairs, t := states*actions, weights.Training
		// Beside the network the values of states, and the mean targets, which it is compared
		// with.
		return t.Network().Operations(t.ContextTokens(pairs), pairs) + 2*pairs + 3*t.Samples*pairs
	}}, nil
}

// chargedCritic is a critic that charges a number of operations for each of its contexts.
type chargedCritic struct {
	control.Critic
	operations func(states, actions int) int
}

// Evaluate implements control.Critic.
func (c chargedCritic) Evaluate(batch []control.Context) ([]*mat.Dense, error) {
	for _, x := range batch {
		x.MDP.Meter().Charge(c.operations(x.MDP.States(), x.MDP.Actions()))
	}
	return c.Critic.Evaluate(batch)
}

// Update returns Liang–Lai's trained block with step sizes.
func (n *Networks) Update(states, run int, steps baseline.StepSizes) (baseline.Update, error) {
	d, err := n.deployment(experiment.LiangLai, "tuned", states, run)
	if err != nil {
		return nil, err
	}
	updates, ok := d.(interface {
		Update(*method.Models, baseline.StepSizes) (baseline.Update, error)
	})
	if !ok {
		return nil, fmt.Errorf("equal: %T is no update of a learner", d)
	}
	return updates.Update(n.models, steps)
}

// Distillation returns Algorithm Distillation: with the tuned rate of its source, or with
// the paper's.
func (n *Networks) Distillation(c Case) (control.Controller, error) {
	recipe := "cpu-tuned"
	if c.Untuned {
		recipe = "cpu"
	}
	d, err := n.deployment(experiment.Distillation, recipe, c.States, c.Run)
	if err != nil {
		return nil, err
	}
	walks, ok := d.(interface {
		Below(uint64) method.Deployment
	})
	if !ok {
		return nil, fmt.Errorf("equal: %T walks below a root of its own", d)
	}
	controller, err := walks.Below(c.Root).Controller(n.models, 0, c.Root)
	return paced{controller, c.N}, err
}

// paced is Algorithm Distillation where a round has another number of transitions than
// the one it acts for at a time: the policy is the one after the last of its own rounds
// that is complete.
type paced struct {
	control.Controller
	n int
}

// own returns the number of its own rounds that are complete after k rounds.
func (p paced) own(k int) int { return k * p.n / baseline.Window }

// decoderMost is the largest step size that the decoder is made for.
const decoderMost = 100

// Decoder returns the fixed decoder's actor and critic. With the model its packets carry
// expectations; otherwise they are the condition's transitions, to which it draws the
// successors' actions.
func (n *Networks) Decoder(c Condition, states int, root uint64) (control.Actor, control.Critic, error) {
	if n == nil {
		return nil, nil, errors.New("equal: a decoder without networks")
	}
	pairs := states * Actions
	caps := decoder.Caps{
		States: states, Actions: Actions, Gamma: mdp.Discount, RMax: 1, EtaMin: 0, EtaMax: decoderMost,
		Rounds: Rounds, Routing: 1e-6, Alpha: .05, Packets: max(1, c.N/pairs),
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	d, err := n.decoders[caps], error(nil)
	if d == nil {
		if d, err = decoder.New(caps); err != nil {
			return nil, nil, err
		}
		n.decoders[caps] = d
	}
	source, packets := decoder.Weighted(), c.N
	if c.Information == Model {
		packets = pairs * pairs
	} else {
		generative := reference.Generative{N: c.N, Root: root}
		source = decoder.PacketSource{Packets: func(env *mdp.MDP, pi *mat.Dense, _, problem, round int) []decoder.Packet {
			rng := seed.New(root, "packets", problem, round)
			var all []decoder.Packet
			for _, t := range generative.Open(problem, env)(round, pi) {
				all = append(all, decoder.Packet{State: t.State, Action: t.Action, Reward: t.Reward, NextState: t.Next, NextAction: mdp.Sample(rng, pi.RawRowView(t.Next))})
			}
			return all
		}}
	}
	actor := reference.Charged{Actor: decoder.Actor{Decoder: d}, Operations: func(states, actions int) int {
		return d.Network.Operations(states*actions + states)
	}}
	critic := chargedCritic{decoder.Critic{Decoder: d, Source: source}, func(states, actions int) int {
		return d.Network.Operations(2*states*actions + packets)
	}}
	return actor, critic, nil
}
