package paper

import (
	"fmt"
	"slices"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/anymdp"
	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/decoder"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
)

type (
	maker  = func(method.Case) (control.Controller, error)
	source = func(method.Case) (control.Actor, error)
)

// withModel are controllers of the study with equal information besides those of methods, where P and r can
// be read: PMD, PolicyAttention and the decoder, and references. Their first values are η and the start.
var withModel = map[string]maker{
	"exact-pmd":        loop(control.ExactPMD, exact),
	"policyattention":  loop(control.ExactPMD, trained("policyattention")),
	"pmd-target":       loop(control.ExactPMD, trained("pmd-target")),
	"any":              loop(control.ExactPMD, anyActor),
	"decoder":          byDecoder,
	"natural-gradient": loop(baseline.NaturalPolicyGradient, exact),
	"value-iteration":  func(method.Case) (control.Controller, error) { return baseline.ValueIteration(), nil },
	"policy-iteration": func(method.Case) (control.Controller, error) { return baseline.PolicyIteration(), nil },
	"greedy-step":      still(nil),
	"greedy-reward":    still(func(p mdp.Problem) (*mat.Dense, error) { return p.MDP.R, nil }),
}

// withSamples are those on transitions. The first values of an actor's are η and the start; an agent's last
// is how much it explores, which generative samples do for it.
var withSamples = map[string]maker{
	"pmd-mean":               on(mean, exact),
	"pmd-shrunk":             on(shrunk, exact),
	"pmd-td":                 on(temporal, exact),
	"pmd-all":                on(every, exact),
	"policyattention-shrunk": on(shrunk, trained("policyattention")),
	"policyattention-td":     on(temporal, trained("policyattention")),
	"policyattention-all":    on(every, trained("policyattention")),
	"any-td":                 on(temporal, anyActor),
	"any-all":                on(every, anyActor),
	"decoder":                byDecoder,

	"any-mean":              on(mean, anyActor),
	"value-iteration-mean":  on(mean, greedy), // a backup of the greedy policy is that of value iteration
	"value-iteration-all":   on(every, greedy),
	"policy-iteration-mean": on(repeated, greedy),
	"natural-gradient-mean": on(repeated, exact),

	"q-learning": by(func(t baseline.Told, v []float64) baseline.Agent { return baseline.QLearning(t, v[0], v[1]) }),
	"sarsa":      by(func(t baseline.Told, v []float64) baseline.Agent { return baseline.Sarsa(t, v[0], v[1]) }),
	"certainty-equivalence": by(func(t baseline.Told, v []float64) baseline.Agent {
		return baseline.CertaintyEquivalence(t, v[0])
	}),
	"posterior-sampling": by(func(t baseline.Told, _ []float64) baseline.Agent {
		return baseline.PosteriorSampling(t)
	}),
}

// maker returns what makes a run's controllers.
func (r equalRun) maker(methods method.Registry) (maker, error) {
	own := withSamples
	if r.Information == method.ByModel {
		own = withModel
	}
	if make, ok := own[r.Method]; ok {
		return make, nil
	}
	m, err := methods.Find(r.Method)
	if err == nil && m.Informed[r.Information] == nil {
		err = fmt.Errorf("paper: %s does not run with information %s", r.Method, r.Information)
	}
	return m.Informed[r.Information], err
}

// The estimates that an actor improves on.
func mean(t baseline.Told, _ []float64) baseline.Estimator     { return baseline.Mean(t, 1) }
func shrunk(t baseline.Told, v []float64) baseline.Estimator   { return baseline.Mean(t, v[0]) }
func every(t baseline.Told, _ []float64) baseline.Estimator    { return baseline.All(t) }
func temporal(t baseline.Told, v []float64) baseline.Estimator { return baseline.TD(t, v[0]) }

// repeated backs up so many times with the same transitions.
func repeated(t baseline.Told, v []float64) baseline.Estimator {
	backUp := baseline.Mean(t, 1)
	return func(pi, q *mat.Dense, window []baseline.Transition) *mat.Dense {
		for range int(v[0]) {
			q = backUp(pi, q, window)
		}
		return q
	}
}

// loop is a loop that reads the model, with an actor.
func loop(of func(eta float64) control.Loop, actor source) maker {
	return func(c method.Case) (_ control.Controller, err error) {
		l := of(c.Values[0])
		l.Actor, err = actor(c)
		return begun{l, method.StartOf(c.Values[1])}, err
	}
}

// on is an actor on estimated values.
func on(estimate func(told baseline.Told, own []float64) baseline.Estimator, actor source) maker {
	return func(c method.Case) (control.Controller, error) {
		a, err := actor(c)
		critic := baseline.Sampled(c.Source(), c.Root, func(t baseline.Told) baseline.Estimator {
			return estimate(t, c.Values[2:])
		})
		return begun{baseline.Improved(critic, a, c.Values[0]), method.StartOf(c.Values[1])}, err
	}
}

// by is an agent of package baseline, which does not explore where it is not told how much.
func by(make func(told baseline.Told, values []float64) baseline.Agent) maker {
	return func(c method.Case) (control.Controller, error) {
		return baseline.Agents{Source: c.Source(), Root: c.Root, New: func(t baseline.Told) (baseline.Agent, error) {
			return make(t, slices.Concat(c.Values, []float64{0})), nil
		}}, nil
	}
}

func exact(method.Case) (control.Actor, error)  { return control.RuleActor(pmd.PMD), nil }
func greedy(method.Case) (control.Actor, error) { return control.RuleActor(pmd.RewardOnly), nil }

// still returns in every round the greedy policy of some values, those of π₀ for nil.
func still(values func(mdp.Problem) (*mat.Dense, error)) maker {
	loop := control.Loop{Actor: control.RuleActor(pmd.RewardOnly), Critic: evaluation(0), Start: values}
	return func(method.Case) (control.Controller, error) { return loop, nil }
}

// trained is the actor of a method of the paper.
func trained(name method.Name) source {
	return func(c method.Case) (control.Actor, error) {
		d, err := c.Deploy(name, "plain")
		if err != nil {
			return nil, err
		}
		return d.(*Loop).Actor.Actor(c.Models)
	}
}

// anyActor is the actor for any MDP with the read-out of its network alone.
func anyActor(c method.Case) (control.Actor, error) {
	model, err := method.Network(c.Models, anymdp.Standard(anymdp.Identities[c.Run]))
	if err != nil {
		return nil, err
	}
	return anymdp.NewActor(model.Sequences, anymdp.Network)
}

// decoderMost is the largest step size that the decoder is made for.
const decoderMost = 100

// byDecoder is the fixed decoder. With the model its packets carry expectations; otherwise they are
// the condition's transitions, to which it draws the successors' actions.
func byDecoder(c method.Case) (control.Controller, error) {
	caps := decoder.Caps{
		States: c.States, Actions: mdp.Actions, Gamma: mdp.Discount, RMax: 1, EtaMin: 0, EtaMax: decoderMost,
		Rounds: equalRounds, Routing: 1e-6, Alpha: .05, Packets: max(1, c.N/(c.States*mdp.Actions)),
	}
	d, err := decoder.New(caps)
	if err != nil {
		return nil, err
	}
	eta, start := min(c.Values[0], decoderMost), method.StartOf(c.Values[1])
	if c.Information == method.ByModel {
		return begun{d.Controller(eta, decoder.Weighted()), start}, nil
	}
	generative := baseline.Generative(c.N, c.Root)
	drawn := func(env *mdp.MDP, pi *mat.Dense, _, problem, round int) (all []decoder.Packet) {
		rng := seed.New(c.Root, "packets", problem, round)
		for _, t := range generative(problem, env)(round, pi) {
			next := mdp.Sample(rng, pi.RawRowView(t.Next))
			all = append(all, decoder.Packet{State: t.State, Action: t.Action, Reward: t.Reward, NextState: t.Next,
				NextAction: next})
		}
		return all
	}
	return begun{baseline.Improved(d.Critic(decoder.PacketSource{Packets: drawn}), d.Actor(), eta), start}, nil
}
