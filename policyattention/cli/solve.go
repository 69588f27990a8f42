package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/anymdp"
	"icrl/policyattention/anymdp/critic"
	"icrl/policyattention/control"
	"icrl/policyattention/decoder"
	"icrl/policyattention/mdp"
	"icrl/policyattention/mdpfile"
	"icrl/policyattention/pmd"
	"icrl/policyattention/train"
)

type solveCmd struct {
	MDP string `help:"${mdp}" required:"" type:"existingfile" placeholder:"FILE"`
	mdpfile.Options
	Actor   string  `help:"${actor}" default:"exact" placeholder:"exact|decoder|any|CHECKPOINT"`
	Critic  string  `help:"${critic}" enum:",exact,value,mean,memory" default:"" placeholder:"CRITIC"`
	Samples int     `help:"Transitions of every state and action that a critic samples a round." default:"6"`
	Seed    uint64  `help:"Seed of these samples." default:"1"`
	Rounds  int     `help:"Rounds at most." default:"1000"`
	Tol     float64 `help:"${tol}" default:"1e-6"`
	Out     string  `help:"${out}" placeholder:"FILE" type:"path"`
	Eta     string  `help:"${eta}" default:"0.8" placeholder:"NUMBER|auto"`
}

// errUncertain is returned where Q* is not exact enough to measure by.
var errUncertain = errors.New("the optimal values are uncertain")

const (
	certain     = 1e-9    // the share of a state's value, or of 1, that the error of V* may reach
	rounding    = 0x1p-52 // the share of a value below which a difference is lost to rounding
	smallStates = 300     // states up to which a policy is solved for in milliseconds
	deepest     = 1e12    // the cliff in a state up to which the actor for any MDP was tried
	// deepestPlain is the cliff over all states up to which actors of fixed shape were trained: in 10,000 problems of
	// mdp.Random it is 28 at most, 12 in all but 1 of 1,000 (S = 4; less at S = 8 and 16).
	deepestPlain = 30
	// leastMass is the mass that 99 of 100 actions exceed in the first rounds that the actors of fixed shape were
	// trained on: π₀ is drawn from Dirichlet(1, 1, 1), where P(π(a) < x) is about 2x.
	leastMass = .005
)

func (s solveCmd) Run(ctx context.Context, g *globals) error {
	switch {
	case s.Rounds < 1:
		return fmt.Errorf("%w: --rounds=%d, want at least 1", errUsage, s.Rounds)
	case !(s.Tol >= 0):
		return fmt.Errorf("%w: --tol=%v, want a number ≥ 0", errUsage, s.Tol)
	case s.Out != "" && !slices.Contains(strings.Fields(".csv .npz .json .svg"), strings.ToLower(filepath.Ext(s.Out))):
		return fmt.Errorf("%w: --out=%s, want a name that ends in .csv, .npz, .json or .svg", errUsage, s.Out)
	}
	problem, err := await(ctx, "while the problem was read", s.read)
	if err != nil {
		return err
	}
	a := &answer{solveCmd: s, errors: g.errors}
	for _, w := range problem.MDP.Warnings {
		a.warn("%s", w)
	}
	a.announce(problem.MDP)
	scale, err := await(ctx, "before Q* was found", func() (*control.Scale, error) { return control.NewScale(problem) })
	if err != nil {
		return err
	}
	loop, err := a.loop(scale)
	if err != nil {
		return err
	}
	if a.Solving, err = loop.Begin(scale); err != nil {
		return err
	}
	stopped := a.run(ctx, g)
	a.distance = a.proven()
	if stopped == nil {
		stopped = a.evaluate(ctx)
	}
	if stopped != nil && !errors.Is(stopped, context.Canceled) {
		return stopped
	}
	uncertain := a.advise()
	if err := a.write(g); err != nil {
		return err
	}
	return cmp.Or(stopped, uncertain)
}

func (s solveCmd) read() (mdp.Problem, error) {
	if s.MDP != "-" {
		return mdpfile.Read(s.MDP, s.Options)
	}
	data, err := io.ReadAll(io.LimitReader(os.Stdin, mdpfile.MaxBytes+1))
	if err != nil {
		return mdp.Problem{}, fmt.Errorf("standard input: %w", err)
	}
	if len(data) > mdpfile.MaxBytes {
		return mdp.Problem{}, fmt.Errorf("standard input holds more than %d bytes", mdpfile.MaxBytes)
	}
	return mdpfile.Decode("standard input", data, s.Options)
}

// await returns what f does, or an error at once when ctx is cancelled, which says when that was.
func await[T any](ctx context.Context, when string, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	ready := make(chan result, 1)
	go func() {
		value, err := f()
		ready <- result{value, err}
	}()
	select {
	case r := <-ready:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, fmt.Errorf("stopped %s: %w", when, ctx.Err())
	}
}

func (a *answer) loop(scale *control.Scale) (loop control.Loop, err error) {
	m := scale.Problem.MDP
	eta, err := a.step(scale.Optimum, m)
	if err != nil {
		return loop, err
	}
	loop = control.ExactPMD(eta)
	if loop.Critic, err = a.critic(); err != nil {
		return loop, err
	}
	if a.grows() { // exact PMD only improves, so values stay between those of π₀ and Q*
		loop.Schedule = pmd.Growing(eta, max(largest(scale.Start), largest(scale.Optimum.Q)))
	}
	switch a.Actor {
	case "exact":
	case "decoder":
		bound := cmp.Or(m.RMax(), 1) // where there are no rewards a cap must be above 0
		d, err := decoder.New(decoder.Caps{States: m.States(), Actions: m.Actions(), Gamma: m.Gamma, RMax: bound,
			EtaMin: eta, EtaMax: eta, Rounds: a.Rounds, Routing: 1e-6, Alpha: .05, Packets: 1}) // nothing is sampled
		if err != nil {
			return loop, err
		}
		a.certified, loop = d.Certificate, d.Controller(eta, decoder.Weighted())
	case "any":
		forward, err := anymdp.Released()
		if err != nil {
			return loop, err
		}
		if loop.Actor, err = anymdp.NewActor(forward, anymdp.Prior); err != nil {
			return loop, err
		}
		if m.Gamma > .99 || m.Actions() > 32 {
			a.warn("the actor was tried on γ up to .99 and up to 32 actions; γ = %v with %d actions may take "+
				"more rounds than there are (--critic value evaluates policies in full)", m.Gamma, m.Actions())
		}
		if ratio, _ := cliff(scale.Optimum); ratio > deepest {
			a.warn("in a state the worst action costs %.3g times what the next best does, and the actor was tried up "+
				"to %.3g: it may lock up", ratio, deepest)
		}
		if least := leastPositive(scale.Problem.Pi0); least < math.Exp(anymdp.LogFloor) {
			a.warn("the actor's network sees no share of mass below e^%d = %.0e; π₀ holds %.2g (its logarithm is "+
				"added, so no action is lost)", anymdp.LogFloor, math.Exp(anymdp.LogFloor), least)
		}
	default:
		if m.Masked() {
			return loop, fmt.Errorf("%w: some states lack some actions, and an actor of fixed shape knows of no "+
				"such thing; --actor exact, decoder and any do", errUsage)
		}
		if _, err := os.Stat(a.Actor); err != nil {
			return loop, fmt.Errorf("%w: --actor %q, want \"exact\", \"decoder\", \"any\" or a file of weights: %w",
				errUsage, a.Actor, err)
		}
		model, err := train.Load(a.Actor)
		if err != nil {
			return loop, err
		}
		if loop.Actor, err = model.Actor(); err != nil {
			return loop, err
		}
		a.unfamiliar(model.Config, scale, eta)
	}
	return loop, nil
}

// grows returns whether steps grow: where nothing is learned or sampled.
func (s solveCmd) grows() bool {
	return s.Eta == "auto" && s.Actor == "exact" && (s.Critic == "" || s.Critic == "exact" || s.Critic == "value")
}

// largest returns the size of the largest finite entry.
func largest(q *mat.Dense) float64 {
	top := 0.0
	for _, v := range q.RawMatrix().Data {
		if !math.IsInf(v, 0) {
			top = max(top, math.Abs(v))
		}
	}
	return top
}

func (s solveCmd) step(o *mdp.Optimum, m *mdp.MDP) (float64, error) {
	if s.Eta != "auto" {
		eta, err := strconv.ParseFloat(s.Eta, 64)
		if err != nil || pmd.CheckStep(eta) != nil {
			return 0, fmt.Errorf("%w: --eta %q, want a number ≥ 0 or \"auto\"", errUsage, s.Eta)
		}
		return eta, nil
	}
	eta := pmd.AutoStep(o)
	if s.Actor == "decoder" {
		eta = min(eta, decoder.MaxLogit/m.Bound())
	}
	return eta, nil
}

// unfamiliar warns of all in which a problem and a step size lie outside of what an actor of
// fixed shape was trained on. It answers there too, but what it answers may be anything.
func (a *answer) unfamiliar(c train.Config, scale *control.Scale, eta float64) {
	p, m := scale.Problem, scale.Problem.MDP
	if lo, hi := c.Recipe.EtaMin, c.Recipe.EtaMax; eta < lo || eta > hi {
		a.warn("the actor was trained on step sizes in [%v, %v]; η = %.4g may give any policy (see --eta)", lo,
			hi, eta)
	}
	if m.Gamma != mdp.Discount {
		a.warn("the actor was trained on problems with γ = %v; γ = %v may give any policy", mdp.Discount, m.Gamma)
	}
	// The rewards of the training distribution lie in [−1, 1].
	if m.RMax() > 1 {
		a.warn("the actor was trained on rewards of at most 1 in size; %.4g may give any policy", m.RMax())
	}
	// Uniform rewards on [−1, 1] have one sign in one of 2,048 problems with twelve pairs.
	if lo, hi := mat.Min(m.R), mat.Max(m.R); lo >= 0 && hi > 0 || hi <= 0 && lo < 0 {
		a.warn("the actor was trained on rewards of both signs; rewards from %.4g to %.4g may give any policy", lo, hi)
	}
	if least := mat.Min(p.Pi0); c.Recipe.Readout == train.NetworkReadout && least < leastMass {
		a.warn("the actor was trained on policies that begin with more than %v on most actions; from %.2g "+
			"the best action may never be found", leastMass, least)
	}
	if _, ratio := cliff(scale.Optimum); ratio > deepestPlain {
		a.warn("the worst action costs %.3g times what the next best does in any state, and the actor was trained "+
			"on up to %v: it may lock up", ratio, deepestPlain)
	}
	if least := leastPositive(p.Pi0); least < math.Exp(control.LogFloor) {
		a.warn("the actor sees no probability below e^%d = %.0e; π₀ holds %.2g", control.LogFloor,
			math.Exp(control.LogFloor), least)
	}
	q, optimum := scale.Start, scale.Optimum.Q
	least, most := min(mat.Min(q), mat.Min(optimum)), max(mat.Max(q), mat.Max(optimum))
	if lo, hi := valueRange[0], valueRange[1]; least < lo || most > hi {
		a.warn("the actor was trained on values between about %v and %v; from %.3g to %.3g it may give any policy",
			lo, hi, least, most)
	}
}

func leastPositive(pi *mat.Dense) float64 {
	least := 1.0
	for _, p := range pi.RawMatrix().Data {
		if p > 0 {
			least = min(least, p)
		}
	}
	return least
}

// valueRange holds all values of the 6,144 contexts that the first identities of S = 4, 8
// and 16 were trained on: −7.58 to 8.93.
var valueRange = [2]float64{-7.6, 9}

func (s solveCmd) critic() (control.Critic, error) {
	switch {
	case s.Critic == "value", s.Critic == "" && s.grows():
		return control.ValueCritic{}, nil
	case s.Critic == "exact", s.Critic == "":
		return control.ExactCritic{}, nil
	case s.Actor == "decoder":
		return nil, fmt.Errorf("%w: --critic=%s, but the decoder is the critic too", errUsage, s.Critic)
	case s.Samples < 1:
		return nil, fmt.Errorf("%w: --samples=%d, want at least 1", errUsage, s.Samples)
	case s.Critic == "mean":
		return train.SampleMean{Samples: s.Samples, Root: s.Seed}, nil
	}
	estimate, err := critic.Released()
	if err != nil {
		return nil, err
	}
	return &critic.Critic{Estimate: estimate, Samples: s.Samples, Root: s.Seed}, nil
}

// cliff returns how deep the worst action is, by Q*: what it costs against the best, over what the next best action
// costs. That is the deepest of a state, all that the actor for any MDP reads at once, and that of all states together,
// each cost the largest of any, as near ties in some states are common. Costs that may be rounding make no difference.
// A cliff that only the loop's early Q_k have is not seen: it holds up exact PMD too.
func cliff(o *mdp.Optimum) (state, all float64) {
	least := 64 * rounding * max(slices.Max(o.V), -slices.Min(o.V))
	worst, next := 0., 0.
	for s, v := range o.V {
		low, high := math.Inf(1), 0.
		for _, q := range o.Q.RawRowView(s) {
			if cost := v - q; cost > least && !math.IsInf(cost, 1) {
				low, high = min(low, cost), max(high, cost)
			}
		}
		if high > 0 {
			state, worst, next = max(state, high/low), max(worst, high), max(next, low)
			all = worst / next
		}
	}
	return state, all
}
