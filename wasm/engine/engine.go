// Package engine is what the web page computes: controllers that run side by side on one problem, which may be edited
// on the way, and the matrices of the decoder's calls. All arithmetic is the library's, and so the page's numbers are.
package engine

import (
	"cmp"
	"fmt"

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

	Kappa, Tau1, Tau2 float64 // replace the certificate's margins where positive
}

// Alpha is the probability with which the sampling bound may fail in a run.
const Alpha = 0.05

// Edit is a change of the problem. One of kind "reward" sets r(s,a) = Value; "transition" sets P(t|s,a) = Value and
// rescales the row's other probabilities to the rest (equally, where they were all zero); "place" sets r(s,·) = Value,
// and "tile" makes place s of a map the one that Tile is. One of kind "start" sets π₀(a|s) = Value and rescales too,
// and begins the run anew: edits and rounds are dropped.
type Edit struct {
	Kind, Tile string
	S, A, T    int
	Value      float64
}

// Engine runs the controllers. Round k goes from (π̂_k, Q_k) to (π̂_{k+1}, Q_{k+1}), computed when asked for.
type Engine struct {
	Settings Settings
	Decoder  *decoder.Decoder
	Phases   []Phase // at least one

	normalized *decoder.Decoder            // nil until it is asked for
	network    *network.Network[float64]   // learned; nil until SetLearned
	actor      control.Actor               // of network
	rounds     map[string][]*decoder.Round // of each controller, as far as they were asked for
	call       *call
}

// Phase is a part of a run between two edits of the problem. The returned-policy theorem is accounted from its start.
type Phase struct {
	From           int   // its first round
	Grid           *Grid // nil for problems without a map
	*control.Scale       // of the problem and the decoder's policy π̂_k at the start
}

// New starts a run on the problem or, if it has no MDP, on the one that the settings name.
func New(s Settings, problem mdp.Problem) (_ *Engine, err error) {
	e := &Engine{Settings: s}
	switch {
	case s.Packets < 1 || s.Packets > MaxPackets:
		return nil, fmt.Errorf("m = %d packets, the page takes 1 to %d", s.Packets, MaxPackets)
	case s.Rounds < 1 || s.Rounds > MaxRounds:
		return nil, fmt.Errorf("horizon T = %d rounds, the page takes 1 to %d", s.Rounds, MaxRounds)
	}
	var grid *Grid
	if problem.MDP == nil {
		if problem, grid, err = s.problem(); err != nil {
			return nil, err
		}
	}
	states, actions := problem.MDP.R.Dims()
	if states > MaxStates || actions > MaxActions || actions < 2 {
		return nil, fmt.Errorf("a problem of %d states and %d actions, the page takes 1 to %d states and 2 to "+
			"%d actions", states, actions, MaxStates, MaxActions)
	}
	if err = e.begin(problem, grid); err != nil {
		return nil, err
	}
	if s.Eta == 0 {
		e.Settings.Eta = min(pmd.AutoStep(e.Phases[0].Optimum), decoder.MaxLogit/problem.MDP.Bound())
	}
	e.Decoder, err = decoder.New(e.caps())
	return e, err
}

// begin drops all rounds and edits and takes the problem.
func (e *Engine) begin(problem mdp.Problem, grid *Grid) error {
	scale, err := control.NewScale(problem)
	if err != nil {
		return err
	}
	e.Phases, e.rounds = []Phase{{Grid: grid, Scale: scale}}, map[string][]*decoder.Round{}
	e.normalized, e.call = nil, nil
	return nil
}

// caps declares what the decoders are made for: rewards go up to the declared cap, and η is the one step size.
func (e *Engine) caps() decoder.Caps {
	s, m := e.Settings, e.Phases[0].Problem.MDP
	top := max(1, s.RMax, m.RMax())
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
			own.Kappa, own.Tau1 = cmp.Or(max(s.Kappa, 0), own.Kappa), cmp.Or(max(s.Tau1, 0), own.Tau1)
			own.Tau2 = cmp.Or(max(s.Tau2, 0), own.Tau2)
			caps.Override = &own
		}
	}
	return caps
}

// context is what a controller goes on from behind its rounds so far, on the problem of the round to come.
func (e *Engine) context(rounds []*decoder.Round) control.Context {
	n, first := len(rounds), e.Phases[0]
	m := e.Phases[e.PhaseAt(n)].Problem.MDP
	if n > 0 {
		return rounds[n-1].After(m, e.Settings.Eta)
	}
	return control.Context{MDP: m, Pi: first.Problem.Pi0, Q: first.Start, Eta: e.Settings.Eta}
}

// next runs the round behind a controller's rounds so far.
func (e *Engine) next(name string, rounds []*decoder.Round) (*decoder.Round, error) {
	c, phase := e.context(rounds), e.Phases[e.PhaseAt(len(rounds))]
	var before *control.Round
	if len(rounds) > phase.From {
		before = &rounds[len(rounds)-1].Round
	}
	if name == Decoder || name == Normalized {
		source := decoder.Sampled(e.Settings.Seed)
		if e.Settings.Expected {
			source = decoder.Weighted()
		}
		d, err := e.decoderOf(name == Normalized)
		if err != nil {
			return nil, err
		}
		return d.Round(phase.Scale, before, c, source)
	}
	actor := map[string]control.Actor{
		Exact: control.RuleActor(pmd.PMD), Idle: control.RuleActor(pmd.Identity), Learned: e.actor,
	}[name]
	if actor == nil {
		return nil, fmt.Errorf("there is no controller %q here", name)
	}
	answers, err := control.Act(actor, []control.Context{c})
	if err != nil {
		return nil, fmt.Errorf("round %d: %w", c.Round, err)
	}
	k, err := phase.Measure(before, c, answers[0], c.MDP.EvaluationBackup(answers[0].Pi, c.Q))
	if err != nil {
		return nil, err
	}
	return &decoder.Round{Round: *k}, nil // with none of the bounds that are the decoder's
}

// decoderOf returns the run's decoder, as it is or compiled with LayerNorm for the same caps.
func (e *Engine) decoderOf(normalized bool) (d *decoder.Decoder, err error) {
	if !normalized {
		return e.Decoder, nil
	}
	if e.normalized != nil {
		return e.normalized, nil
	}
	caps := e.caps()
	// The least probability of a policy: without a mixture a number below every one that matters in float64.
	least := cmp.Or(caps.Phi/float64(caps.Actions), 1e-300)
	caps.Floor = min(least, mat.Min(e.Phases[0].Problem.Pi0))
	if d, err = decoder.NewNormalized(caps, e.Settings.Carrier); err == nil {
		e.normalized = d
	}
	return d, err
}

// Round returns round k of a controller.
func (e *Engine) Round(name string, k int) (*decoder.Round, error) {
	if k < 0 || k >= e.Settings.Rounds {
		return nil, fmt.Errorf("round %d of a run with %d", k, e.Settings.Rounds)
	}
	for len(e.rounds[name]) <= k {
		next, err := e.next(name, e.rounds[name])
		if err != nil {
			return nil, err
		}
		e.rounds[name] = append(e.rounds[name], next)
	}
	return e.rounds[name][k], nil
}

// PhaseAt returns the index of the phase of round k.
func (e *Engine) PhaseAt(k int) int {
	i := 0
	for i+1 < len(e.Phases) && e.Phases[i+1].From <= k {
		i++
	}
	return i
}

// Apply edits the problem before round k: edits and rounds from there on are dropped, and every controller goes on from
// its own context. It changes nothing if the edited problem is invalid or lies outside the decoder's caps.
func (e *Engine) Apply(k int, edit Edit) error {
	states, actions := e.Phases[0].Problem.Pi0.Dims()
	switch {
	case edit.Kind != "tile" && (edit.S < 0 || edit.S >= states || edit.A < 0 || edit.A >= actions || edit.T < 0 ||
		edit.T >= states):
		return fmt.Errorf("a change at state %d, action %d, successor %d, but the problem has %d states and %d actions",
			edit.S, edit.A, edit.T, states, actions)
	case edit.Kind == "start":
		return e.setStart(edit.S, edit.A, edit.Value)
	case k < 0 || k > e.Settings.Rounds:
		return fmt.Errorf("a change before round %d of a run of %d rounds", k, e.Settings.Rounds)
	}
	if k > 0 {
		if _, err := e.Round(Decoder, k-1); err != nil {
			return err
		}
	}
	kept := e.PhaseAt(k)
	grid, m, err := edit.apply(e.Phases[kept].Grid, e.Phases[kept].Problem.MDP)
	if err == nil {
		err = e.Decoder.CheckEnvironment(m)
	}
	if err != nil {
		return err
	}
	c := e.context(e.rounds[Decoder][:k])
	scale, err := control.NewScale(mdp.Problem{MDP: m, Pi0: c.Pi})
	if err != nil {
		return err
	}
	e.Phases = append(e.Phases[:kept+1], Phase{From: k, Grid: grid, Scale: scale})
	for name, rounds := range e.rounds {
		e.rounds[name] = rounds[:min(k, len(rounds))]
	}
	e.call = nil
	return nil
}

func (e *Engine) setStart(s, a int, value float64) error {
	if !(value > 0 && value < 1) {
		return fmt.Errorf("π₀(a=%d|s=%d) = %v, want a probability above 0 and below 1", a, s, value)
	}
	problem := e.Phases[0].Problem
	problem.Pi0 = mat.DenseCopyOf(problem.Pi0)
	pmd.SetShare(problem.Pi0.RawRowView(s), a, value)
	return e.begin(problem, e.Phases[0].Grid)
}

// apply returns the edited map, nil without a map, and the edited MDP.
func (d Edit) apply(g *Grid, m *mdp.MDP) (*Grid, *mdp.MDP, error) {
	if d.Kind == "tile" {
		return g.set(m, d.S, d.Tile)
	}
	states, actions := m.R.Dims()
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
		pmd.SetShare(p.RawRowView(d.S*actions+d.A), d.T, d.Value)
	default:
		return nil, nil, fmt.Errorf("an edit of kind %q", d.Kind)
	}
	env, err := mdp.New(m.Gamma, p, r)
	return g, env, err
}
