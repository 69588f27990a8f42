package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"text/tabwriter"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/floats/scalar"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/control"
	"icrl/policyattention/decoder"
	"icrl/policyattention/mdp"
	"icrl/policyattention/mdpfile"
	"icrl/policyattention/pmd"
)

// answer is what solve has found so far.
type answer struct {
	solveCmd
	*control.Solving
	certified *decoder.Certificate
	losses    []measured // on the way
	warnings  []string
	errors    io.Writer

	q         *mat.Dense // Q^π [S, A]; nil where there was no time to solve for it
	v         []float64  // V^π [S], as q
	distance  float64    // ‖Q* − Q^π‖∞, or what it is at most
	shortfall mdp.Shortfall
}

// measured is a loss on the way: what it is, or what it is at most.
type measured struct {
	Round int     `json:"round"`
	Loss  float64 `json:"loss"`
	Exact bool    `json:"exact"`
}

func (m measured) String() string {
	return fmt.Sprintf("loss after round %d: %s%.4g", m.Round, map[bool]string{false: "at most "}[m.Exact], m.Loss)
}

func (a *answer) warn(format string, values ...any) {
	a.warnings = append(a.warnings, fmt.Sprintf(format, values...))
	fmt.Fprintln(a.errors, "policyattention: warning:", a.warnings[len(a.warnings)-1])
}

// run takes rounds until the loss is proven to be small enough, or there are no more.
func (a *answer) run(ctx context.Context, g *globals) error {
	began, said := time.Now(), time.Now()
	m := a.Problem.MDP
	exact := m.States() <= smallStates || m.Gamma == 1
	unit := m.Shortfall(a.Optimum, a.Optimum.V).Unit
	for a.Round < a.Rounds {
		next, err := await(ctx, fmt.Sprint("after round ", a.Round), a.Step)
		if err != nil {
			return err
		}
		a.Solving = next
		loss, short := a.Proven()/a.Normalizer, a.ProvenInState()/unit
		if milestone(a.Round) {
			if exact {
				q, err := a.Values()
				if err != nil {
					return err
				}
				loss = mdp.MaxAbsDiff(a.Optimum.Q, q) / a.Normalizer
				short = m.Shortfall(a.Optimum, m.StateValues(a.Policy.Pi, q)).Relative()
			}
			a.losses = append(a.losses, measured{a.Round, loss, exact})
		}
		if a.Tol > 0 && loss <= a.Tol && short <= a.Tol {
			return nil
		}
		if time.Since(said) > g.interval() {
			said = time.Now()
			left := time.Since(began) / time.Duration(a.Round) * time.Duration(a.Rounds-a.Round)
			fmt.Fprintf(g.errors, "round %d of at most %d, %v left: loss at most %.3g\n", a.Round, a.Rounds,
				left.Round(time.Second), loss)
		}
	}
	return nil
}

// announce says beforehand what takes more than 2 GB: some 250 bytes a pair, 60 a transition, 250 a decoder's packet.
func (a *answer) announce(m *mdp.MDP) {
	pairs, entries := m.States()*m.Actions(), 0
	for pair := range pairs {
		states, _ := m.Successors(pair/m.Actions(), pair%m.Actions())
		entries += len(states)
	}
	bytes := 250*float64(pairs) + 60*float64(entries)
	if a.Actor == "decoder" {
		bytes += 250 * float64(entries) * float64(m.Actions())
	}
	if bytes > 2e9 {
		fmt.Fprintf(a.errors, "this takes about %.2g GB\n", bytes/1e9)
	}
}

// milestone says whether the loss after a round is told: 1, 2, 4, 10, 20, 40, 100, …
func milestone(round int) bool {
	for round%10 == 0 {
		round /= 10
	}
	return round == 1 || round == 2 || round == 4
}

// evaluate solves for the policy returned.
func (a *answer) evaluate(ctx context.Context) (err error) {
	if a.q, err = await(ctx, fmt.Sprint("after round ", a.Round), a.Values); err != nil {
		return err
	}
	m := a.Problem.MDP
	a.v, a.distance = m.StateValues(a.Policy.Pi, a.q), mdp.MaxAbsDiff(a.Optimum.Q, a.q)
	a.shortfall = m.Shortfall(a.Optimum, a.v)
	return nil
}

// advise warns of what keeps the loss from 0, and returns an error where the exact solution is not exact enough.
func (a *answer) advise() error {
	m := a.Problem.MDP
	lost, before := a.Lost()
	if before > 0 {
		a.warn("pi0 gives no mass to the best action in %d of %d states; policy mirror descent never finds "+
			"an action that begins without mass", before, m.States())
	}
	if lost > before {
		a.warn("in %d of %d states the probability of the best action underflowed to 0 in this actor, "+
			"and never comes back; a smaller --eta keeps it", lost-before, m.States())
	}
	loss, short := a.distance/a.Normalizer, a.shortfall.Relative()
	if max(loss, short) > a.Tol && a.Round == a.Rounds && before == 0 {
		help := "more --rounds"
		if auto := pmd.AutoStep(a.Optimum); auto > 2*a.Loop.Eta && a.Actor != "decoder" {
			help += fmt.Sprintf(", or a larger step: --eta auto is %.4g", auto)
		}
		// A round sees values of this size, and not by how much less one action is worth.
		if size := largest(a.Optimum.Q); (1-m.Gamma)*a.shortfall.Lost < rounding*size {
			help = fmt.Sprintf("actions differ by less than the rounding of values of %.2g, and only a smaller gamma, "+
				"or a constant subtracted from all rewards,", size)
		}
		a.warn("%d rounds leave a loss of %.3g, %.3g of the range of V* in a state; %s would make it smaller",
			a.Rounds, loss, short, help)
	}
	if state, worst := a.Optimum.Uncertain(); !(worst <= certain) {
		a.warn("V* of state %s is certain only to %.2g of its size; all that is measured by it is no better",
			stateName(m, state), worst)
		return fmt.Errorf("%w: V* of state %s by a share of %.2g", errUncertain, stateName(m, state), worst)
	}
	return nil
}

// proven returns what ‖Q* − Q^π‖∞ is at most where it is computed in float64: what is proven of it, and the
// rounding of the solve, whose condition is 1/(1−γ).
func (a *answer) proven() float64 {
	return a.Proven() + rounding*largest(a.Optimum.Q)/(1-a.Problem.MDP.Gamma)
}

func stateName(m *mdp.MDP, s int) string { return mdp.Label(m.StateNames, s) }

// worth returns a value as the problem has it: turned back where it is a cost.
func (a *answer) worth(v float64) float64 {
	if a.Problem.MDP.Minimize {
		return 0 - v // never −0
	}
	return v
}

// atStart returns V^π and V* under the start distribution.
func (a *answer) atStart() (value, best float64) {
	for s, p := range a.Problem.MDP.Start {
		if p > 0 {
			value, best = value+p*a.v[s], best+p*a.Optimum.V[s]
		}
	}
	return value, best
}

// write prints the answer, and writes it to the file that is asked for.
func (a *answer) write(g *globals) (err error) {
	if g.JSON {
		err = g.print(a.report())
	} else {
		err = a.show(g.out)
	}
	if err != nil || a.Out == "" {
		return err
	}
	values := cmp.Or(a.q, a.Q) // there may have been no time to solve for them
	return mdpfile.WriteSolution(a.Out, a.Problem.MDP, a.Policy.Pi, values)
}

// report is the JSON form. Tables are [S][A], null for actions that do not exist.
func (a *answer) report() map[string]any {
	m := a.Problem.MDP
	row := func(x []float64) []*float64 {
		out := make([]*float64, len(x))
		for i, v := range x {
			out[i] = finite(a.worth(v))
		}
		return out
	}
	table := func(x *mat.Dense) (rows [][]*float64) {
		if x == nil {
			return nil
		}
		for s := range m.States() {
			rows = append(rows, row(x.RawRowView(s)))
		}
		return rows
	}
	_, worst := a.Optimum.Uncertain()
	certificate := map[string]any{"proven": finite(a.proven()), "zeta": a.Zeta, "delta": a.Delta,
		"optimality_error": worst}
	if m.Gamma < 1 {
		certificate["bound"], certificate["terms"] = a.Theorem2.Total(), a.Theorem2
	}
	out := map[string]any{
		"policy": mdp.ToRows(a.Policy.Pi), "q": table(a.Q), "q_star": table(a.Optimum.Q), "q_pi": table(a.q),
		"v": row(a.v), "v_star": row(a.Optimum.V), "states": m.StateNames, "actions": m.ActionNames,
		"eta": a.Loop.Eta, "rounds": a.Round, "losses": a.losses, "loss": finite(a.distance / a.Normalizer),
		"exact": a.q != nil, "distance": finite(a.distance), "normalizer": a.Normalizer, "certificate": certificate,
		"tied_states": a.Optimum.Tied(), "optimal": a.optimal(), "warnings": a.warnings,
	}
	if a.q != nil {
		out["worst_state"] = map[string]any{"state": stateName(m, a.shortfall.State), "lost": a.shortfall.Lost,
			"relative": finite(a.shortfall.Relative()), "unit": a.shortfall.Unit, "over": a.shortfall.Over}
		if m.Start != nil {
			value, best := a.atStart()
			out["start"] = map[string]any{"value": a.worth(value), "optimal": a.worth(best), "loss": best - value}
		}
	}
	if a.certified != nil {
		out["decoder"] = a.certified
	}
	return out
}

func (a *answer) optimal() [][]int {
	list := make([][]int, a.Problem.MDP.States())
	for s := range list {
		for action := range a.Problem.MDP.Actions() {
			if a.Optimum.Optimal(s, action) {
				list[s] = append(list[s], action)
			}
		}
	}
	return list
}

// finite returns nil for what JSON has no number for.
func finite(x float64) *float64 {
	if math.IsInf(x, 0) || math.IsNaN(x) {
		return nil
	}
	return &x
}

// show prints the losses on the way, the guarantee, the decoder's residuals where it has a
// certificate, and the returned policy.
func (a *answer) show(out io.Writer) error {
	m := a.Problem.MDP
	fmt.Fprintf(out, "%s: S=%d, A=%d, γ=%v, η=%.4g\n", filepath.Base(a.MDP), m.States(), m.Actions(), m.Gamma,
		a.Loop.Eta)
	for _, l := range a.losses {
		if l.Round < a.Round {
			fmt.Fprintln(out, l)
		}
	}
	fmt.Fprintf(out, "%v (‖Q*−Q^π‖∞ = %.4g", measured{a.Round, a.distance / a.Normalizer, a.q != nil}, a.distance)
	if m.Gamma < 1 {
		fmt.Fprintf(out, ", proven ≤ %.4g, Theorem 2 guarantees %.4g", a.proven(), a.Theorem2.Total())
	}
	fmt.Fprintln(out, ")")
	if a.q != nil {
		if x := a.shortfall; x.Lost > 0 {
			fmt.Fprintf(out, "worst state: %s loses %.4g, %.4g of %s\n", stateName(m, x.State), x.Lost, x.Relative(),
				x.Over)
		}
		if m.Start != nil {
			value, best := a.atStart()
			fmt.Fprintf(out, "under the start distribution: %s %.6g, optimal %.6g\n", a.kind(), a.worth(value),
				a.worth(best))
		}
	}
	if tied := a.Optimum.Tied(); tied > 0 {
		fmt.Fprintf(out, "several actions are optimal in %d of %d states\n", tied, m.States())
	}
	if c := a.certified; c != nil {
		fmt.Fprintf(out, "largest residuals of the decoder: actor %.3g (certified ≤ %.3g), "+
			"critic %.3g (certified ≤ %.3g)\n", a.Zeta, c.Zeta, a.Delta, c.DeltaWeighted())
	}
	return a.table(out)
}

func (a *answer) kind() string {
	if a.Problem.MDP.Minimize {
		return "cost"
	}
	return "value"
}

// table prints what the policy does in the first states.
func (a *answer) table(out io.Writer) error {
	const shown = 40
	m := a.Problem.MDP
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "state\tlikeliest action\tprobability\t%s\toptimal\t\n", a.kind())
	for s := range min(shown, m.States()) {
		pi := a.Policy.Pi.RawRowView(s)
		action, value := floats.MaxIdx(pi), "?"
		if a.v != nil {
			value = fmt.Sprintf("%.4f", scalar.Round(a.worth(a.v[s]), 4)) // never −0
		}
		fmt.Fprintf(w, "%s\t%s\t%.4f\t%s\t%.4f\t\n", stateName(m, s), mdp.Label(m.ActionNames, action),
			pi[action], value, scalar.Round(a.worth(a.Optimum.V[s]), 4))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if n := m.States() - shown; n > 0 {
		fmt.Fprintf(out, "and %d states more; --out writes all, and every probability\n", n)
	}
	return nil
}
