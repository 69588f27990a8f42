package decoder

import (
	"fmt"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/numeric"
	"icrl/policyattention/mdp"
)

// Packet is one transition shown to the critic.
type Packet struct {
	State      int     `json:"s"`
	Action     int     `json:"a"`
	Reward     float64 `json:"r"`
	NextState  int     `json:"s2"`
	NextAction int     `json:"a2"`
	// LogWeight is the logarithm of how many samples the packet stands for: 0
	// for a sampled packet.
	LogWeight float64 `json:"log_weight"`
}

// Sample draws m fresh packets from every state and action of the environment:
// s' from P(·|s,a) and a' from the returned policy pi [S, A] at s'. It panics
// if m < 0 or pi is not a policy of env.
func Sample(env *mdp.MDP, pi *mat.Dense, m int, rng *rand.Rand) []Packet {
	mustBePackets(env, pi, m)
	packets := make([]Packet, 0, m*env.States()*env.Actions())
	for s := range env.States() {
		for a := range env.Actions() {
			if !env.Exists(s, a) {
				continue
			}
			for range m {
				r, t := env.Transition(rng, s, a)
				packets = append(packets,
					Packet{State: s, Action: a, Reward: r, NextState: t, NextAction: mdp.Sample(rng, pi.RawRowView(t))})
			}
		}
	}
	return packets
}

// Expectation returns, for every (s,a), one packet for each successor (s',a')
// of positive probability, with weight m·P(s'|s,a)·π(a'|s'). Averages over them
// are exact expectations, so a critic call has no sampling error. It panics if
// m < 0 or pi is not a policy of env.
func Expectation(env *mdp.MDP, pi *mat.Dense, m int) []Packet {
	mustBePackets(env, pi, m)
	var packets []Packet
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
}

func mustBePackets(env *mdp.MDP, pi *mat.Dense, m int) {
	if m < 0 {
		panic(fmt.Sprintf("decoder: %d packets of each pair", m))
	}
	if err := env.CheckPolicy(pi); err != nil {
		panic(err)
	}
}
