package decoder

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/numeric"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
)

// Lecture is an example that is small enough to be drawn whole, with the paper's step size and number of rounds.
var Lecture = struct {
	Caps Caps
	Root uint64 // of the problem and its packets
}{Root: 4, Caps: Caps{States: 3, Actions: 2, Gamma: mdp.Discount, RMax: 1, EtaMin: control.NominalStep,
	EtaMax: control.NominalStep, Rounds: 40, Routing: 1e-3, Alpha: .05, Packets: 2}}

// Packet is one transition shown to the critic.
type Packet struct {
	State      int     `json:"s"`
	Action     int     `json:"a"`
	Reward     float64 `json:"r"`
	NextState  int     `json:"s2"`
	NextAction int     `json:"a2"`
	LogWeight  float64 `json:"log_weight"` // logarithm of how many samples it stands for: 0 for a sampled packet
}

// Sample draws m fresh packets from every state and action of the environment: s' from P(·|s,a) and a' from the
// returned policy pi [S, A] at s'. It panics if m < 0 or pi is not a policy of env.
func Sample(env *mdp.MDP, pi *mat.Dense, m int, rng *rand.Rand) []Packet {
	if err := env.CheckPolicy(pi); err != nil {
		panic(err)
	}
	packets := make([]Packet, 0, m*env.States()*env.Actions())
	for s := range env.States() {
		for a := range env.Actions() {
			for i := 0; i < m && env.Exists(s, a); i++ {
				r, t := env.Transition(rng, s, a)
				packets = append(packets, Packet{s, a, r, t, mdp.Sample(rng, pi.RawRowView(t)), 0})
			}
		}
	}
	return packets
}

// PacketSource is an environment as the critic sees it.
type PacketSource struct {
	// Packets supplies those of a critic call: m from every pair of env, with successor actions from the policy pi.
	Packets func(env *mdp.MDP, pi *mat.Dense, m, problem, round int) []Packet
	Exact   bool // packets carry exact expectations: there is no sampling error, and δ is bounded by DeltaWeighted
}

// Sampled is the environment that the paper assumes: fresh packets, from a stream for every problem and round.
func Sampled(root uint64) PacketSource {
	return PacketSource{Packets: func(env *mdp.MDP, pi *mat.Dense, m, problem, round int) []Packet {
		return Sample(env, pi, m, seed.New(root, "packets", problem, round))
	}}
}

// Weighted returns, for every (s,a), one packet for each successor (s',a') of positive probability, with weight
// m·P(s'|s,a)·π(a'|s'). Averages over them are exact expectations, so the critic's residual is its routing error
// alone. A normalized decoder takes them where every weight lies in [Floor, 1/Floor]. The policy is not checked.
func Weighted() PacketSource {
	return PacketSource{Exact: true, Packets: func(env *mdp.MDP, pi *mat.Dense, m, _, _ int) (packets []Packet) {
		for s := range env.States() {
			for a := range env.Actions() {
				r := env.Reward(s, a)
				for t, p := range env.Next(s, a) {
					for b, w := range pi.RawRowView(t) {
						if weight := float64(float64(m) * float64(p*w)); weight > 0 {
							packets = append(packets, Packet{s, a, r, t, b, numeric.Log(weight)})
						}
					}
				}
			}
		}
		return packets
	}}
}

// CheckEnvironment reports the cap that an MDP violates.
func (d *Decoder) CheckEnvironment(env *mdp.MDP) error {
	switch {
	case env == nil:
		return errors.New("decoder: the MDP is missing")
	case env.States() != d.States || env.Actions() != d.Actions:
		return fmt.Errorf("decoder: the MDP is [%d, %d], the caps states and actions say [%d, %d]", env.States(),
			env.Actions(), d.States, d.Actions)
	case env.Gamma != d.Gamma:
		return fmt.Errorf("decoder: the MDP has discount %v, the cap gamma is %v", env.Gamma, d.Gamma)
	case !(env.RMax() <= d.RMax*(1+slack)):
		return fmt.Errorf("decoder: the MDP has a reward of magnitude %v, beyond the cap r_max = %g", env.RMax(),
			d.RMax)
	}
	return nil
}

// Actor is the decoder's actor for the common harness.
func (d *Decoder) Actor() control.Actor {
	return control.ActorFunc(func(c control.Context) (*mat.Dense, error) { return d.Improve(c.Pi, c.Q, c.Eta) })
}

// Critic is the decoder's critic for the common harness.
func (d *Decoder) Critic(source PacketSource) control.Critic {
	return control.CriticFunc(func(c control.Context) (*mat.Dense, error) {
		q, _, err := d.evaluate(c, source)
		return q, err
	})
}

// evaluate asks the environment for packets and makes a critic call.
func (d *Decoder) evaluate(c control.Context, source PacketSource) (*mat.Dense, []Packet, error) {
	if source.Packets == nil {
		return nil, nil, errors.New("decoder: a source without packets; want Sampled, Weighted or one of your own")
	}
	if c.Round >= d.Rounds {
		return nil, nil, fmt.Errorf("decoder: critic call in round %d, beyond the cap rounds = %d", c.Round, d.Rounds)
	}
	if err := d.CheckEnvironment(c.MDP); err != nil {
		return nil, nil, err
	}
	// The normalized decoder's own policy may be none, where its carrier takes all digits.
	if err := c.MDP.CheckPolicy(c.Pi); err != nil {
		if d.Norm != nil {
			err = fmt.Errorf("%w; a smaller carrier H or a mixture φ above 0 keeps a policy's rounding smaller", err)
		}
		return nil, nil, fmt.Errorf("decoder: critic call in round %d: %w", c.Round, err)
	}
	packets := source.Packets(c.MDP, c.Pi, d.Packets, c.Problem, c.Round)
	q, err := d.Backup(c.Pi, c.Q, packets)
	return q, packets, err
}

// Controller returns the closed loop of the decoder's actor and critic.
func (d *Decoder) Controller(eta float64, source PacketSource) control.Loop {
	return control.Loop{Actor: d.Actor(), Critic: d.Critic(source), Eta: eta}
}

// Round is a measured round of the decoder's loop, with its bounds and the parts of the critic's residual.
type Round struct {
	control.Round
	Packets []Packet // drawn under NextPi

	ZetaBound         float64 // of Zeta
	DeltaBound        float64 // of Delta, with probability 1−α if sampled
	Route, RouteBound float64 // distance of NextQ from the mean target of the packets
	Sampling          float64 // distance of that mean from the exact backup
}

// Round runs a round from the context c, actor, environment and critic, and measures it on the scale of its
// problem: see control.Scale.Measure, also for the round before.
func (d *Decoder) Round(scale *control.Scale, before *control.Round, c control.Context,
	source PacketSource) (*Round, error) {
	var q *mat.Dense
	var packets []Packet
	next, err := d.Improve(c.Pi, c.Q, c.Eta)
	if err == nil {
		critic := c
		critic.Pi = next
		q, packets, err = d.evaluate(critic, source)
	}
	if err != nil {
		return nil, fmt.Errorf("round %d: %w", c.Round, err)
	}
	measured, err := scale.Measure(before, c, pmd.Policy{Pi: next}, q)
	if err != nil {
		return nil, err
	}
	mean := meanTarget(packets, c.Q, c.MDP.Gamma)
	k := &Round{Round: *measured, Packets: packets, ZetaBound: d.ZetaAt(c.Eta), DeltaBound: d.Delta(),
		Route: mdp.MaxAbsDiff(q, mean), RouteBound: d.DeltaRoute,
		Sampling: mdp.MaxAbsDiff(mean, c.MDP.EvaluationBackup(next, c.Q))}
	if source.Exact {
		k.DeltaBound = d.DeltaWeighted()
	}
	return k, nil
}

// meanTarget returns the weighted mean of r + γQ(s',a') over the packets from each pair [S, A].
func meanTarget(packets []Packet, q *mat.Dense, gamma float64) *mat.Dense {
	states, actions := q.Dims()
	mean, mass := mat.NewDense(states, actions, nil), mat.NewDense(states, actions, nil)
	for _, p := range packets {
		w := numeric.Exp(p.LogWeight)
		y := p.Reward + float64(gamma*q.At(p.NextState, p.NextAction))
		mass.Set(p.State, p.Action, mass.At(p.State, p.Action)+w)
		mean.Set(p.State, p.Action, mean.At(p.State, p.Action)+float64(w*y))
	}
	mean.Apply(func(s, a int, sum float64) float64 {
		if missing(q.At(s, a)) {
			return q.At(s, a)
		}
		return sum / mass.At(s, a)
	}, mean)
	return mean
}
