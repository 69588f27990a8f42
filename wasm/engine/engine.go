// Package engine is what the web page computes: controllers that run side by
// side on one problem, which may be edited on the way, and the matrices of the
// decoder's calls. It holds no arithmetic of its own. Everything comes from the
// library's packages, so the page's numbers are the library's.
package engine

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/control"
	"icrl/policyattention/decoder"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	network "icrl/policyattention/transformer/engine"
)

// Limits of what the page takes.
const (
	MaxStates  = 64
	MaxActions = 16
	MaxPackets = 64   // m
	MaxRounds  = 1000 // T
	MaxTokens  = 2600 // of a call whose matrices are asked for
)

// The controllers of the page.
const (
	Decoder    = "decoder"    // the constructed decoder
	Exact      = "exact"      // exact PMD with the exact one-step backup
	Normalized = "normalized" // the decoder compiled to pre-LN form
	Learned    = "learned"    // the trained actor for any MDP with the exact one-step backup
	Idle       = "idle"       // an actor that never moves
)

// Settings are a run's choices.
type Settings struct {
	Preset          string  // a family of package mdp, a map or LockUp
	States, Actions int     // S, A of a family's problem
	Seed            uint64  // of the problem and of the packets
	Gamma, Eta      float64 // γ, and the constant step η, which is also its cap; η = 0 takes AutoStep's
	Packets         int     // m
	Expected        bool    // packets carry exact expectations instead of samples
	Phi             float64 // mixture φ of both decoders' readouts
	Routing         float64 // ε_r
	Carrier         float64 // H of the normalized decoder
	Rounds          int     // horizon T
	RMax            float64 // declared reward cap; where it is smaller, max(1, max|r|) of the problem is
	// Kappa, Tau1 and Tau2 replace the certificate's margins where positive.
	Kappa, Tau1, Tau2 float64
}

// Alpha is the probability with which the sampling bound may fail in a run.
const Alpha = 0.05

// Edit is a change of the problem. One of kind "reward" sets r(s,a) = Value; "transition"
// sets P(t|s,a) = Value and rescales the row's other probabilities to the
// rest (equally, where they were all zero); "place" sets r(s,·) = Value, and
// "tile" makes place s of a map the one that Tile is.
type Edit struct {
	Kind, Tile string
	S, A, T    int
	Value      float64
}

// Engine runs the controllers. Round k of a controller is its step from
// (π̂_k, Q_k) to (π̂_{k+1}, Q_{k+1}); rounds are computed when they are asked for.
type Engine struct {
	Settings Settings
	Decoder  *decoder.Decoder
	Phases   []Phase // at least one

	normalized *decoder.Decoder          // nil until it is asked for
	network    *network.Network[float64] // learned; nil until SetLearned
	actor      control.Actor             // of network
	tracks     map[string]*track
	call       *call
	look       *look
}

// Phase is a part of a run between two edits of the problem. The returned-policy
// theorem is accounted from its start.
type Phase struct {
	Start   int         // its first round
	Problem mdp.Problem // π₀ is that of the run
	Grid    *Grid       // nil for problems without a map
	Optimum *mdp.Optimum
	E0, Gap float64 // ‖Q* − Q_k‖∞ and ‖Q* − Q^{π̂_k}‖∞ of the decoder's context at the start
}

// track is the history of one controller.
type track struct {
	rounds []decoder.Round
	pi, q  *mat.Dense // the context of the round to come
	phase  int        // of step
	step   func() (*decoder.Round, error)
	err    error // why there is no further round
}

// New starts a run on the problem that the settings name or, if problem is
// given, on that one.
func New(s Settings, problem *mdp.Problem) (*Engine, error) {
	e := &Engine{Settings: s}
	switch {
	case s.Packets < 1 || s.Packets > MaxPackets:
		return nil, fmt.Errorf("m = %d packets, the page takes 1 to %d", s.Packets, MaxPackets)
	case s.Rounds < 1 || s.Rounds > MaxRounds:
		return nil, fmt.Errorf("horizon T = %d rounds, the page takes 1 to %d", s.Rounds, MaxRounds)
	}
	var grid *Grid
	if problem == nil {
		p, err := s.Problem()
		if err != nil {
			return nil, err
		}
		problem, grid = &p, s.Grid()
	}
	states, actions := problem.MDP.R.Dims()
	if states > MaxStates || actions > MaxActions || actions < 2 {
		return nil, fmt.Errorf("a problem of %d states and %d actions, the page takes 1 to %d states and 2 to "+
			"%d actions", states, actions, MaxStates, MaxActions)
	}
	e.Phases = []Phase{{Problem: *problem}}
	if s.Eta == 0 {
		o, err := problem.MDP.Optimal()
		if err != nil {
			return nil, err
		}
		e.Settings.Eta = min(pmd.AutoStep(o), decoder.MaxLogit/problem.MDP.Bound())
	}
	var err error
	if e.Decoder, err = decoder.New(e.caps()); err != nil {
		return nil, err
	}
	e.tracks = map[string]*track{}
	e.Phases[0], err = e.phase(0, *problem, grid)
	return e, err
}

// phase solves the problem and measures the decoder's context at round k, up to
// which it must have run.
func (e *Engine) phase(k int, problem mdp.Problem, grid *Grid) (Phase, error) {
	if err := e.Decoder.CheckEnvironment(problem.MDP); err != nil {
		return Phase{}, err
	}
	t, err := e.track(Decoder)
	if err != nil {
		return Phase{}, err
	}
	pi, q := t.pi, t.q
	if k < len(t.rounds) {
		pi, q = t.rounds[k].Pi, t.rounds[k].Q
	}
	scale, err := control.NewScale(mdp.Problem{MDP: problem.MDP, Pi0: pi})
	if err != nil {
		return Phase{}, err
	}
	return Phase{Start: k, Problem: problem, Grid: grid, Optimum: scale.Optimum,
		E0: mdp.MaxAbsDiff(scale.Optimum.Q, q), Gap: scale.Gap}, nil
}

// caps declares what the decoders are made for: the problem's shape and
// discount, rewards up to the declared cap, the one step size, the horizon.
func (e *Engine) caps() decoder.Caps {
	s, m := e.Settings, e.Phases[0].Problem.MDP
	top := math.Max(s.RMax, Declared(m))
	if s.RMax < m.RMax() && s.Eta*top/(1-m.Gamma) > decoder.MaxLogit && m.RMax() > 0 {
		top = m.RMax() // rewards are small, and steps so large that they need the cap itself
	}
	caps := decoder.Caps{
		States: m.States(), Actions: m.Actions(), Gamma: m.Gamma, RMax: top,
		EtaMin: s.Eta, EtaMax: s.Eta, Rounds: s.Rounds,
		Routing: s.Routing, Alpha: Alpha, Packets: s.Packets, Phi: s.Phi,
	}
	if s.Kappa > 0 || s.Tau1 > 0 || s.Tau2 > 0 {
		if c, err := decoder.Certify(caps); err == nil {
			own := c.Margins
			for to, value := range map[*float64]float64{&own.Kappa: s.Kappa, &own.Tau1: s.Tau1, &own.Tau2: s.Tau2} {
				if value > 0 {
					*to = value
				}
			}
			caps.Override = &own
		}
	}
	return caps
}

// bind gives the track a step function on the phase of its next round.
func (e *Engine) bind(name string, t *track, phase int) error {
	ph := e.Phases[phase]
	here := mdp.Problem{MDP: ph.Problem.MDP, Pi0: t.pi}
	d := e.Decoder
	switch name {
	case Normalized:
		var err error
		if d, err = e.normalizedDecoder(); err != nil {
			return err
		}
		fallthrough
	case Decoder:
		run, err := d.Start(here, t.q, e.Settings.Eta, e.source(ph.Start))
		if err != nil {
			return err
		}
		t.step = run.Step
	default:
		actor := map[string]control.Actor{
			Exact: control.RuleActor(pmd.PMD), Idle: control.RuleActor(pmd.Identity), Learned: e.actor,
		}[name]
		if actor == nil {
			return fmt.Errorf("there is no controller %q here", name)
		}
		turn := func(c control.Context) (next pmd.Policy, q *mat.Dense, err error) {
			answers, err := control.Act(actor, []control.Context{c})
			if err != nil {
				return next, nil, err
			}
			return answers[0], c.MDP.EvaluationBackup(answers[0].Pi, c.Q), nil
		}
		runner, err := control.NewRunner(here, t.q, e.Settings.Eta, turn)
		if err != nil {
			return err
		}
		t.step = func() (*decoder.Round, error) { // with none of the bounds that are the decoder's
			k, err := runner.Step()
			if err != nil {
				return nil, err
			}
			return &decoder.Round{Round: *k}, nil
		}
	}
	t.phase = phase
	return nil
}

// normalizedDecoder returns the decoder compiled with LayerNorm for the run's caps.
func (e *Engine) normalizedDecoder() (*decoder.Decoder, error) {
	if e.normalized == nil {
		caps := e.caps()
		// The least probability of a policy: without a mixture a number below every one that matters in float64.
		least := 1e-300
		if caps.Phi > 0 {
			least = caps.Phi / float64(caps.Actions)
		}
		caps.Floor = min(least, mat.Min(e.Phases[0].Problem.Pi0))
		d, err := decoder.NewNormalized(caps, e.Settings.Carrier)
		if err != nil {
			return nil, err
		}
		e.normalized = d
	}
	return e.normalized, nil
}

// source is the environment of rounds counted from start.
func (e *Engine) source(start int) decoder.PacketSource {
	whole := decoder.Sampled(e.Settings.Seed)
	if e.Settings.Expected {
		whole = decoder.Weighted()
	}
	later := whole
	later.Packets = func(env *mdp.MDP, pi *mat.Dense, m, problem, round int) []decoder.Packet {
		return whole.Packets(env, pi, m, problem, start+round)
	}
	return later
}

// track returns the named controller's track, a new one if need be.
func (e *Engine) track(name string) (*track, error) {
	if t := e.tracks[name]; t != nil {
		return t, nil
	}
	start := e.Phases[0].Problem
	q, err := start.MDP.PolicyValue(start.Pi0)
	if err != nil {
		return nil, err
	}
	e.tracks[name] = &track{pi: start.Pi0, q: q, phase: -1}
	return e.tracks[name], nil
}

// Round returns round k of a controller.
func (e *Engine) Round(name string, k int) (*decoder.Round, error) {
	if k < 0 || k >= e.Settings.Rounds {
		return nil, fmt.Errorf("round %d of a run with %d", k, e.Settings.Rounds)
	}
	t, err := e.track(name)
	if err != nil {
		return nil, err
	}
	for n := len(t.rounds); n <= k; n++ {
		if t.err != nil {
			return nil, t.err
		}
		if phase := e.PhaseAt(n); phase != t.phase {
			if t.err = e.bind(name, t, phase); t.err != nil {
				return nil, t.err
			}
		}
		next, err := t.step()
		if err != nil {
			t.err = err
			return nil, err
		}
		next.Index = n
		t.rounds = append(t.rounds, *next)
		t.pi, t.q = next.NextPi, next.NextQ
	}
	return &t.rounds[k], nil
}

// PhaseAt returns the index of the phase of round k.
func (e *Engine) PhaseAt(k int) int {
	i := 0
	for i+1 < len(e.Phases) && e.Phases[i+1].Start <= k {
		i++
	}
	return i
}

// Apply edits the problem before round k: edits and rounds from there on are
// dropped, and every controller goes on from its own context. It changes nothing
// if the edited problem is invalid or lies outside the decoder's caps.
func (e *Engine) Apply(k int, edit Edit) error {
	if k < 0 || k > e.Settings.Rounds {
		return fmt.Errorf("a change before round %d of a run of %d rounds", k, e.Settings.Rounds)
	}
	if k > 0 {
		if _, err := e.Round(Decoder, k-1); err != nil {
			return err
		}
	}
	kept := e.PhaseAt(k)
	problem := e.Phases[kept].Problem
	grid, m, err := edit.apply(e.Phases[kept].Grid, problem.MDP)
	if err != nil {
		return err
	}
	problem.MDP = m
	next, err := e.phase(k, problem, grid)
	if err != nil {
		return err
	}
	e.Phases = append(e.Phases[:kept+1], next)
	for _, t := range e.tracks {
		if k < len(t.rounds) {
			t.pi, t.q = t.rounds[k].Pi, t.rounds[k].Q
			t.rounds = t.rounds[:k:k]
		}
		if len(t.rounds) == k {
			t.phase = -1
		}
		t.err = nil
	}
	e.call, e.look = nil, nil
	return nil
}

// apply returns the edited map, nil without a map, and the edited MDP.
func (d Edit) apply(g *Grid, m *mdp.MDP) (*Grid, *mdp.MDP, error) {
	if d.Kind == "tile" {
		return g.set(m, d.S, d.Tile)
	}
	states, actions := m.R.Dims()
	if d.S < 0 || d.S >= states || d.A < 0 || d.A >= actions || d.T < 0 || d.T >= states {
		return nil, nil, fmt.Errorf("a change at state %d, action %d, successor %d, but the problem has %d states and "+
			"%d actions", d.S, d.A, d.T, states, actions)
	}
	p, r := m.DenseP(), mat.DenseCopyOf(m.R)
	switch d.Kind {
	case "place":
		for a := range actions {
			r.Set(d.S, a, d.Value)
		}
	case "reward":
		r.Set(d.S, d.A, d.Value)
	case "transition":
		if !(d.Value >= 0 && d.Value <= 1) || states == 1 && d.Value != 1 {
			const format = "P(s'=%d|s=%d,a=%d) = %v, want a probability, and 1 in a problem of one state"
			return nil, nil, fmt.Errorf(format, d.T, d.S, d.A, d.Value)
		}
		rescale(p.RawRowView(d.S*actions+d.A), d.T, d.Value)
	default:
		return nil, nil, fmt.Errorf("an edit of kind %q", d.Kind)
	}
	env, err := mdp.New(m.Gamma, p, r)
	return g, env, err
}
