package equal

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/safetensors"
	"icrl/policyattention/anymdp"
	"icrl/policyattention/anymdp/trial"
	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/decoder"
	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	learned "icrl/policyattention/method/policyattention"
	"icrl/policyattention/rows"
	"icrl/policyattention/seed"
)

// Networks gives the trained networks of a preset's store.
type Networks struct{ store *experiment.Store }

// Models implements method.Deployed.
func (n *Networks) Models() *method.Models { return n.store.Models() }

// Deployment implements method.Deployed by what a method of the paper's benchmark deploys.
func (n *Networks) Deployment(name method.Name, recipe string, states, j int) (method.Deployment, error) {
	if n == nil {
		return nil, errors.New("equal: a learned method without networks")
	}
	runs := n.store.Preset.Protocol.Sizes[states].Runs
	if j >= len(runs) {
		return nil, fmt.Errorf("equal: no identity %d of %s at S=%d", j, name, states)
	}
	u, err := n.store.Preset.Unit(experiment.Cell{Block: experiment.Benchmark, Key: rows.Key{
		Method: name, Recipe: recipe, S: int32(states), Seed: int64(runs[j].Model), Family: string(mdp.Random),
	}})
	if err != nil {
		return nil, err
	}
	return u.Config.(*experiment.Loop).Deployment, nil
}

// actorOf returns PolicyAttention's actor. It charges its network by its shapes, and a
// softmax.
func actorOf(c Case) (control.Actor, error) {
	d, err := c.Networks.Deployment("policyattention", "plain", c.States, c.Run)
	if err != nil {
		return nil, err
	}
	weights := d.(*learned.Loop).Actor.(*learned.Weights)
	actor, err := weights.Actor(c.Networks.Models())
	if err != nil {
		return nil, err
	}
	return baseline.Charged{Actor: actor, Operations: func(states, actions int) int {
		pairs := states * actions
		return weights.Training.Network().Operations(pairs, pairs) + 5*pairs
	}}, nil
}

// anyOf returns the actor for any MDP with the read-out of its network alone. It charges its
// network, of a token an action, for each state, and for each action 19 operations of the
// token and the logit (see anymdp.NewRow and Row.Logits) and 5 of the softmax.
func anyOf(c Case) (control.Actor, error) {
	n, ok := c.Networks.(*Networks)
	if !ok || n == nil {
		return nil, errors.New("equal: a learned method without networks")
	}
	config := anymdp.Standard(anymdp.Identities[c.Run])
	f, err := safetensors.ReadFile(filepath.Join(trial.Folder(n.store.Root(), config), trial.WeightsFile))
	if err != nil {
		return nil, fmt.Errorf("equal: %w", err)
	}
	forward, err := anymdp.Plain(f)
	if err != nil {
		return nil, err
	}
	actor, err := anymdp.NewActor(forward, anymdp.Network)
	if err != nil {
		return nil, err
	}
	return baseline.Charged{Actor: actor, Operations: func(states, actions int) int {
		return states * (config.Network().Operations(actions, actions) + (19+5)*actions)
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

// decoderMost is the largest step size that the decoder is made for.
const decoderMost = 100

// decoders are those that have been built, by their caps.
var decoders = struct {
	sync.Mutex
	built map[decoder.Caps]*decoder.Decoder
}{built: map[decoder.Caps]*decoder.Decoder{}}

// decoderWith returns the decoder with caps.
func decoderWith(caps decoder.Caps) (d *decoder.Decoder, err error) {
	decoders.Lock()
	defer decoders.Unlock()
	if d = decoders.built[caps]; d == nil {
		if d, err = decoder.New(caps); err == nil {
			decoders.built[caps] = d
		}
	}
	return d, err
}

// fixedDecoder returns the fixed decoder's actor and critic. With the model its packets carry
// expectations; otherwise they are the condition's transitions, to which it draws the
// successors' actions.
func fixedDecoder(c Case) (control.Actor, control.Critic, error) {
	pairs := c.States * Actions
	d, err := decoderWith(decoder.Caps{
		States: c.States, Actions: Actions, Gamma: mdp.Discount, RMax: 1, EtaMin: 0, EtaMax: decoderMost,
		Rounds: Rounds, Routing: 1e-6, Alpha: .05, Packets: max(1, c.N/pairs),
	})
	if err != nil {
		return nil, nil, err
	}
	source, packets := decoder.Weighted(), c.N
	if c.Information == Model {
		packets = pairs * pairs
	} else {
		generative := baseline.Generative{N: c.N, Root: c.Root}
		source = decoder.PacketSource{Packets: func(env *mdp.MDP, pi *mat.Dense, _, problem,
			round int) []decoder.Packet {
			rng := seed.New(c.Root, "packets", problem, round)
			var all []decoder.Packet
			for _, t := range generative.Open(problem, env)(round, pi) {
				all = append(all, decoder.Packet{State: t.State, Action: t.Action, Reward: t.Reward,
					NextState: t.Next, NextAction: mdp.Sample(rng, pi.RawRowView(t.Next))})
			}
			return all
		}}
	}
	actor := baseline.Charged{Actor: decoder.Actor{Decoder: d}, Operations: func(states, actions int) int {
		return d.Network.Operations(states*actions + states)
	}}
	critic := chargedCritic{decoder.Critic{Decoder: d, Source: source}, func(states, actions int) int {
		return d.Network.Operations(2*states*actions + packets)
	}}
	return actor, critic, nil
}
