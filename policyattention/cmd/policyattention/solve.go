package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"text/tabwriter"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/floats/scalar"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/anymdp"
	"icrl/policyattention/anymdp/critic"
	"icrl/policyattention/backend"
	"icrl/policyattention/control"
	"icrl/policyattention/decoder"
	"icrl/policyattention/mdp"
	"icrl/policyattention/mdpfile"
	"icrl/policyattention/pmd"
	"icrl/policyattention/train"
)

type solveCmd struct {
	MDP     string `help:"MDP file, .json {gamma, P [S][A][S], r [S][A], pi0 [S][A] or none} or .npz." required:"" type:"existingfile" placeholder:"FILE"`
	Actor   string `help:"\"exact\" (PMD); \"decoder\", the fixed decoder, which is the critic too; \"any\", the trained actor for any MDP; or a file of the weights of an actor of fixed shape." default:"exact" placeholder:"exact|decoder|any|CHECKPOINT"`
	Critic  string `help:"\"exact\", the one-step backup; or from sampled transitions of the problem: \"mean\", of each round's own, or \"memory\", the trained critic that remembers those of all rounds." enum:"exact,mean,memory" default:"exact"`
	Samples int    `help:"Transitions of every state and action that a critic samples a round." default:"6"`
	Seed    uint64 `help:"Seed of these samples." default:"1"`
	Rounds  int    `help:"Rounds." default:"40"`
	Eta     string `help:"Step size, or \"auto\": ${span}/(max Q* − min Q*)." default:"0.8" placeholder:"NUMBER|auto"`
}

// unfamiliar says in what a problem and a step size lie outside of what an actor of
// fixed shape was trained on. It answers there too, but what it answers may be anything.
func unfamiliar(c train.Config, p mdp.Problem, eta float64) (warnings []string, err error) {
	m := p.MDP
	warn := func(format string, args ...any) { warnings = append(warnings, fmt.Sprintf(format, args...)) }
	if lo, hi := c.Recipe.EtaMin, c.Recipe.EtaMax; eta < lo || eta > hi {
		warn("the actor was trained on step sizes in [%v, %v]; η = %.4g may give any policy (see --eta)", lo, hi, eta)
	}
	if m.Gamma != mdp.Discount {
		warn("the actor was trained on problems with γ = %v; γ = %v may give any policy", mdp.Discount, m.Gamma)
	}
	// The rewards of the training distribution lie in [−1, 1].
	if m.RMax() > 1 {
		warn("the actor was trained on rewards of at most 1 in size; %.4g may give any policy", m.RMax())
	}
	// Uniform rewards on [−1, 1] have one sign in one of 2,048 problems with twelve pairs.
	if lo, hi := mat.Min(m.R), mat.Max(m.R); lo >= 0 && hi > 0 || hi <= 0 && lo < 0 {
		warn("the actor was trained on rewards of both signs; rewards from %.4g to %.4g may give any policy", lo, hi)
	}
	if least := mat.Min(p.Pi0); c.Recipe.Readout == train.NetworkReadout && least < leastMass {
		warn("the actor was trained on policies that begin with more than %v on most actions; from %.2g the best action may never be found", leastMass, least)
	}
	q, err := m.PolicyValue(p.Pi0)
	if err != nil {
		return nil, err
	}
	optimum, err := m.Optimal()
	if err != nil {
		return nil, err
	}
	least, most := min(mat.Min(q), mat.Min(optimum.Q)), max(mat.Max(q), mat.Max(optimum.Q))
	if lo, hi := valueRange[0], valueRange[1]; least < lo || most > hi {
		warn("the actor was trained on values between about %v and %v; from %.3g to %.3g it may give any policy", lo, hi, least, most)
	}
	return warnings, nil
}

// dropped returns in how many states π₀ gives no mass to any action that is best under Q*, up to
// rounding. No update of the form π·exp(ηQ) gives an action mass that has none.
func dropped(pi0 *mat.Dense, qStar [][]float64) (states int) {
	for s, q := range qStar {
		best, mass := floats.Max(q), 0.0
		for a, pi := range pi0.RawRowView(s) {
			if q[a] >= best-1e-9*(1+math.Abs(best)) {
				mass += pi
			}
		}
		if mass == 0 {
			states++
		}
	}
	return states
}

// leastMass is the mass that 99 of 100 actions exceed in the first rounds that the actors
// of fixed shape were trained on: π₀ is drawn from Dirichlet(1, 1, 1), where P(π(a) < x)
// is about 2x.
const leastMass = .005

// valueRange holds all values of the 6,144 contexts that the first identities of S = 4, 8
// and 16 were trained on: −7.58 to 8.93.
var valueRange = [2]float64{-7.6, 9}

func (s solveCmd) Run(g *globals) error {
	problem, err := mdpfile.Read(s.MDP, mdpfile.Options{})
	if err != nil {
		return err
	}
	if s.Rounds < 1 {
		return fmt.Errorf("%w: --rounds=%d, want at least 1", errUsage, s.Rounds)
	}
	eta, err := s.step(problem.MDP)
	if err != nil {
		return err
	}
	loop := control.ExactPMD(eta)
	if loop.Critic, err = s.critic(); err != nil {
		return err
	}
	var warnings []string
	warn := func(w string) {
		warnings = append(warnings, w)
		fmt.Fprintln(g.errors, "policyattention: warning:", w)
	}
	var certified *decoder.Certificate
	switch s.Actor {
	case "exact":
	case "decoder":
		d, err := fixed(problem.MDP, eta, s.Rounds)
		if err != nil {
			return err
		}
		certified = d.Certificate
		loop = d.Controller(eta, decoder.Weighted())
	case "any":
		forward, err := anymdp.Released()
		if err != nil {
			return err
		}
		if loop.Actor, err = anymdp.NewActor(forward, anymdp.Prior); err != nil {
			return err
		}
	default:
		model, err := s.model(g)
		if err != nil {
			return err
		}
		defer model.Close()
		if loop.Actor, err = model.Actor(); err != nil {
			return err
		}
		outside, err := unfamiliar(model.Config, problem, eta)
		if err != nil {
			return err
		}
		for _, w := range outside {
			warn(w)
		}
	}
	solution, err := loop.Solve(problem, s.Rounds)
	if err != nil {
		return err
	}
	if states := dropped(problem.Pi0, solution.QStar); states > 0 {
		warn(fmt.Sprintf("pi0 gives no mass to the best action in %d of %d states; policy mirror descent never finds an action that begins without mass", states, problem.MDP.States()))
	}
	if g.JSON {
		return g.print(struct {
			*control.Solution
			Decoder  *decoder.Certificate `json:"decoder,omitempty"`
			Warnings []string             `json:"warnings,omitempty"`
		}{solution, certified, warnings})
	}
	return s.show(g.out, problem.MDP, loop.Eta, solution, certified)
}

// show prints the losses on the way, the guarantee, the decoder's residuals where it has a
// certificate, and the returned policy.
func (s solveCmd) show(out io.Writer, m *mdp.MDP, eta float64, solution *control.Solution, certified *decoder.Certificate) error {
	c := solution.Certificate
	fmt.Fprintf(out, "%s: S=%d, A=%d, γ=%v, η=%.4g\n", filepath.Base(s.MDP), m.States(), m.Actions(), m.Gamma, eta)
	for _, k := range []int{1, 2, 5, 10, 20, 40, 100, 200} {
		if k < s.Rounds {
			fmt.Fprintf(out, "loss after round %d: %.4g\n", k, solution.Loss[k])
		}
	}
	fmt.Fprintf(out, "loss after round %d: %.4g (‖Q*−Q^π‖∞ = %.4g, Theorem 2 guarantees %.4g)\n", s.Rounds, solution.Loss[s.Rounds], c.Distance, c.Bound)
	if certified != nil {
		fmt.Fprintf(out, "largest residuals of the decoder: actor %.3g (certified ≤ %.3g), critic %.3g (certified ≤ %.3g)\n",
			c.Zeta, certified.Zeta, c.Delta, certified.DeltaWeighted())
	}
	const shown = 40
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "state\tlikeliest action\tprobability\tvalue\t")
	for state, pi := range solution.Policy[:min(shown, len(solution.Policy))] {
		action, value := floats.MaxIdx(pi), scalar.Round(floats.Dot(pi, solution.QPi[state]), 4) // never −0
		fmt.Fprintf(w, "%d\t%d\t%.4f\t%.4f\t\n", state, action, pi[action], value)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if n := len(solution.Policy) - shown; n > 0 {
		fmt.Fprintf(out, "and %d states more; --json prints all, and every probability\n", n)
	}
	return nil
}

// step returns the step size that is asked for.
func (s solveCmd) step(m *mdp.MDP) (float64, error) {
	if s.Eta != "auto" {
		eta, err := strconv.ParseFloat(s.Eta, 64)
		if err != nil || pmd.CheckStep(eta) != nil {
			return 0, fmt.Errorf("%w: --eta %q, want a number ≥ 0 or \"auto\"", errUsage, s.Eta)
		}
		return eta, nil
	}
	optimum, err := m.Optimal()
	if err != nil {
		return 0, err
	}
	return pmd.SuggestStep(optimum.Q, pmd.SuggestedSpan), nil
}

// fixed returns the decoder for runs on m.
func fixed(m *mdp.MDP, eta float64, rounds int) (*decoder.Decoder, error) {
	bound := m.RMax()
	if bound == 0 {
		bound = 1 // there are no rewards, and a cap must be above 0
	}
	return decoder.New(decoder.Caps{
		States: m.States(), Actions: m.Actions(), Gamma: m.Gamma, RMax: bound,
		EtaMin: eta, EtaMax: eta, Rounds: rounds,
		Routing: 1e-6, Alpha: .05, Packets: 1, // nothing is sampled
	})
}

// critic returns the critic that is asked for.
func (s solveCmd) critic() (control.Critic, error) {
	switch {
	case s.Critic == "exact":
		return control.ExactCritic{}, nil
	case s.Actor == "decoder":
		return nil, fmt.Errorf("%w: --critic=%s, but the decoder is the critic too", errUsage, s.Critic)
	case s.Samples < 1:
		return nil, fmt.Errorf("%w: --samples=%d, want at least 1", errUsage, s.Samples)
	case s.Critic == "mean":
		return train.SampleMean{Samples: s.Samples, Weight: 1, Root: s.Seed}, nil
	}
	estimate, err := critic.Released()
	if err != nil {
		return nil, err
	}
	return &critic.Critic{Estimate: estimate, Samples: s.Samples, Root: s.Seed, Corrected: true, Anchored: true}, nil
}

// model returns the trained actor that is asked for.
func (s solveCmd) model(g *globals) (*train.Model, error) {
	if _, err := os.Stat(s.Actor); err != nil {
		return nil, fmt.Errorf("%w: --actor %q, want \"exact\", \"decoder\", \"any\" or a file of weights: %w", errUsage, s.Actor, err)
	}
	b, err := backend.New(g.Backend)
	if err != nil {
		return nil, err
	}
	return train.Load(b, s.Actor)
}
