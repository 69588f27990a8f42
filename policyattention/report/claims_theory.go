package report

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"icrl/policyattention/control"
	"icrl/policyattention/decoder"
	"icrl/policyattention/effective"
	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/results"
	"icrl/policyattention/seed"
)

// theory is a sentence of one check that is computed here, without artifacts.
func theory(section, says, printed, command string, m measure) sentence {
	return sentence{section: section, says: says, checks: []check{{printed: printed, command: command, measure: m, judge: stated}}}
}

// Sections 3 and 4, and Appendices A to C.
func theorySentences() []sentence {
	const control4, proofs = "4 Returned-policy control", "App. A Returned-policy proof"
	printed := sentence{section: proofs, says: "(20): max_a Q* − ⟨π, Q*⟩ ≤ ḡ_{T−1} + 2E_{T−1} at each next state", checks: []check{
		{at: "as printed", printed: "as stated", command: "table claims", judge: stated, measure: statements(loops, "(20)", true), why: "ḡ is a mean over next states, which the defect of a single state may exceed"},
		{at: "with g_{T−1}(s), or lifted, as the proof needs it", printed: "as stated", command: "table claims", judge: stated, measure: statements(loops, "(20)", false)},
	}, note: "the theorem is not affected"}
	return slices.Concat(proof(control4, loops,
		"(8)–(9): Theorem 2, the returned-policy bound without δ_{T−1}",
		"(10): under the mixture the returned policy obeys a geometric transient plus a residual neighbourhood",
		"(11): the critic's error obeys the unrolled sum",
		"(12): exact PMD's greedy defect is at most D/η",
	), proof(proofs, loops,
		"(15)–(16): the decomposition of Q* − Q_{k+1} and the bounds of its parts",
		"(17): E_{k+1} ≤ γE_k + δ_k + γḡ_k",
		"(19): the resolvent step: Q* − Q^π = (I − γP^π)⁻¹(FQ* − F^πQ*), with an inverse that is not negative and has row sums 1/(1−γ)",
		"(21): ‖Q* − Q^π‖ ≤ 2γE_{T−1}/(1−γ) + γḡ_{T−1}/(1−γ)",
		"(23): an implemented actor's greedy defect is at most D/η + Bζ",
	), proof("5 What the model learns", steps, "(13): the excess of the proximal loss over PMD's is KL(p‖PMD)"),
		proof("App. C Normalized compilation", steps, "(29): mixing with weight φ costs at most 2φ(A−1)/A in row-L1 and leaves at least φ/A everywhere"),
		proof("App. D Effective coordinates", coordinates,
			"(30): ∇R = E[ΦᵀH(q)Φ](ϑ−ϑ*)",
			"(31): (ϑ−ϑ*)ᵀ∇R ≥ p₀λ‖ϑ−ϑ*‖² on the ball",
			"Appendix D: gradient flow and small steps of gradient descent converge geometrically and stay in the ball",
		), proof("App. G Negative results", steps, "Appendix G: an actor that never moves can be ζ-accurate to PMD for any ζ and stay suboptimal at a fixed point; its proximal excess vanishes with ζ"),
		[]sentence{printed,
			theory("3 Causal softmax realization", "the circuit has two blocks of two heads, head dimension S+A+3, width 6S+6A+14, a causal mask, no positions, and a ReLU map", "as stated", "table decoder", builtAsStated),
			theory("3 Causal softmax realization", "(6), (7): the actor's residual stays under 2R/(1+R), the critic's under routing plus sampling; one decoder serves all problems", "0 violations", "table decoder", underBounds),
			theory("App. B Routing and sampling", "(27): m ≥ 2B²/ε² log(2SAK/α) packets keep the sampling error within ε", "δ_stat ≤ ε", "table decoder", packetsSuffice),
			theory("App. C Normalized compilation", "(28): the norm scales a payload by ρ = H/√(H²+‖x‖²), and 1−ρ falls as H⁻²", "the formula", "table decoder", normFactor),
			theory("App. C Normalized compilation", "normalization perturbs the construction by O(H⁻²)", "−2", "table decoder", carrierPower),
		})
}

// builtAsStated looks at the network that is built: it traces an actor call and a
// critic call, changes the last token, and exchanges the first two.
func builtAsStated(*source) (*measured, error) {
	m := &measured{ok: true}
	var texts []string
	for _, states := range []int{4, 8, 16} {
		actions := experiment.PaperProtocol.Actions
		caps := decoder.Caps{States: states, Actions: actions, Gamma: mdp.Discount, RMax: 1, EtaMin: experiment.PaperProtocol.Eta, EtaMax: experiment.PaperProtocol.Eta, Rounds: 1, Routing: 1e-3, Alpha: .05, Packets: 1}
		d, err := decoder.New(caps)
		if err != nil {
			return nil, err
		}
		problems, err := mdp.Random.Draw(results.DecoderRoot, states, actions, 1)
		if err != nil {
			return nil, err
		}
		env, pi := problems[0].MDP, problems[0].Pi0
		q, err := env.PolicyValue(pi)
		if err != nil {
			return nil, err
		}
		actor, err := d.TraceActor(pi, q, caps.EtaMax)
		if err != nil {
			return nil, err
		}
		critic, err := d.TraceCritic(pi, q, decoder.Sample(env, pi, d.Packets, seed.New(results.DecoderRoot, "packets")))
		if err != nil {
			return nil, err
		}
		for _, call := range []*decoder.Call{actor, critic} {
			ok, err := asStated(d, call, 6*states+6*actions+14, states+actions+3)
			if err != nil {
				return nil, err
			}
			m.ok = m.ok && ok
		}
		head := actor.Blocks[0].Heads[0]
		texts = append(texts, fmt.Sprintf("S = %d: %d blocks, %d heads, %d, %d", states, len(actor.Blocks), len(actor.Blocks[0].Heads), len(head.Query[0]), len(actor.Tokens[0])))
	}
	m.text = strings.Join(texts, "; ") + "; no earlier output depends on a later token, none on the order of memories"
	if !m.ok {
		m.text = "the network that is built is another"
	}
	return m, nil
}

// asStated checks one call of the network.
func asStated(d *decoder.Decoder, call *decoder.Call, width, headDim int) (bool, error) {
	ok := len(call.Blocks) == 2 && len(call.Tokens[0]) == width
	for _, b := range call.Blocks {
		ok = ok && len(b.Heads) == 2
		for _, h := range b.Heads {
			ok = ok && len(h.Query[0]) == headDim && len(h.Weights(2)) == 3
		}
		for i := range b.Pre {
			for j, v := range b.Pre[i] {
				ok = ok && b.Post[i][j] == max(v, 0)
			}
		}
	}
	n := len(call.Tokens)
	changed := slices.Clone(call.Tokens)
	changed[n-1] = slices.Clone(call.Tokens[0])
	later, err := d.Network.Trace(changed)
	if err != nil {
		return false, err
	}
	for i := range n - 1 {
		ok = ok && slices.Equal(later.Output[i], call.Output[i])
	}
	exchanged := slices.Clone(call.Tokens)
	exchanged[0], exchanged[1] = exchanged[1], exchanged[0]
	other, err := d.Network.Trace(exchanged)
	if err != nil {
		return false, err
	}
	for _, i := range call.Reads {
		for j, v := range call.Output[i] {
			ok = ok && math.Abs(other.Output[i][j]-v) < 1e-9 // another order of sums
		}
	}
	return ok, nil
}

// underBounds runs the decoder at the paper's six packets, whose sampling bound is
// nearly all that values within ±B allow, and at a thousand, whose says something.
func underBounds(s *source) (*measured, error) {
	m := &measured{ok: true}
	for i, packets := range []int{6, 1000} {
		runs, err := results.RunDecoder(s.DecoderCaps(packets, 1e-6), 2)
		if err != nil {
			return nil, err
		}
		rounds, violations, largest := 0, 0, 0.
		for _, r := range runs {
			for _, k := range r.Rounds {
				rounds++
				largest = math.Max(largest, k.Sampling)
				if k.Zeta > k.ZetaBound || k.Route > k.RouteBound || k.Sampling > r.Decoder.DeltaStat {
					violations++
				}
			}
		}
		if i > 0 {
			m.text += "; "
		}
		m.text += fmt.Sprintf("%d in %d rounds at m = %d (sampling ≤ %.2g, bound %.3g)", violations, rounds, packets, largest, runs[0].Decoder.DeltaStat)
		m.ok = m.ok && violations == 0
	}
	return m, nil
}

// proofRoot is the root of the cases at random that statements of proofs are held to,
// proofCases their number.
const (
	proofRoot  = 45100
	proofCases = 200
)

// evaluator evaluates statements once in a process; they depend on no artifact.
type evaluator func() ([]pmd.Check, error)

func once(checks func(root uint64, cases int) ([]pmd.Check, error)) evaluator {
	return sync.OnceValues(func() ([]pmd.Check, error) { return checks(proofRoot, proofCases) })
}

var steps, loops, coordinates = once(pmd.Checks), once(control.Checks), once(effective.Checks)

// proof returns the sentences of equations whose statements a function evaluates on
// cases at random, one an equation.
func proof(section string, evaluate evaluator, equations ...string) (list []sentence) {
	for _, x := range equations {
		equation, says, _ := strings.Cut(x, ": ")
		list = append(list, sentence{section: section, says: strings.TrimPrefix(strings.TrimPrefix(equation+": "+says, "Appendix D: "), "Appendix G: "), checks: []check{{printed: "as stated", command: "table claims", judge: stated, measure: statements(evaluate, equation, false)}}})
	}
	return list
}

// statements sums up what became of the statements of an equation, either of those that
// the proof needs or of those that it does not.
func statements(evaluate evaluator, equation string, aside bool) measure {
	return func(*source) (*measured, error) {
		all, err := evaluate()
		if err != nil {
			return nil, err
		}
		m := &measured{ok: true}
		n, cases, failed := 0, 0, 0
		for _, c := range all {
			if c.Equation != equation || c.Aside != aside {
				continue
			}
			n, cases = n+1, cases+c.Cases
			if !c.Holds() {
				failed++
			}
		}
		if n == 0 {
			return nil, fmt.Errorf("no statement of %s", equation)
		}
		m.ok = failed == 0
		m.text = fmt.Sprintf("%d of %d statements true in %d cases at random", n-failed, n, cases)
		return m, nil
	}
}

// packetsSuffice chooses m from ε and runs the decoder with it.
func packetsSuffice(*source) (*measured, error) {
	caps := decoder.Lecture.Caps
	caps.Packets, caps.Sampling, caps.Routing = 0, 1.5, 1e-6
	runs, err := results.RunDecoder(caps, 2)
	if err != nil {
		return nil, err
	}
	d := runs[0].Decoder
	b := 1 / (1 - caps.Gamma)
	want := math.Ceil(2 * b * b / (caps.Sampling * caps.Sampling) * math.Log(2*float64(caps.States*caps.Actions*caps.Rounds)/caps.Alpha))
	largest := 0.0
	for _, r := range runs {
		for _, k := range r.Rounds {
			largest = max(largest, k.Sampling)
		}
	}
	return &measured{
		text: fmt.Sprintf("ε = %g: m = %d, largest error in %d rounds %.2g", caps.Sampling, d.Packets, 2*caps.Rounds, largest),
		ok:   float64(d.Packets) == want && largest <= caps.Sampling,
	}, nil
}

func normFactor(s *source) (*measured, error) {
	sweep, err := s.SweepCarrier()
	if err != nil {
		return nil, err
	}
	worst := 0.0
	for _, p := range sweep {
		if p.H <= 1e4 { // above, rounding is no longer small beside 1−ρ
			worst = max(worst, math.Abs(p.Defect/p.Predicted-1))
		}
	}
	return &measured{text: fmt.Sprintf("largest relative deviation of 1−ρ from the formula, H from 10² to 10⁴: %.1g", worst), ok: worst < .01}, nil
}

func carrierPower(s *source) (*measured, error) {
	sweep, err := s.SweepCarrier()
	if err != nil {
		return nil, err
	}
	m := &measured{ok: true}
	var slopes []string
	for _, q := range results.CarrierQuantities {
		slope, _ := results.CarrierSlope(sweep, q.Measured)
		m.ok = m.ok && math.Abs(slope+2) < 0.01
		slopes = append(slopes, fmt.Sprintf("%s %.3f", q.Name, slope))
	}
	m.text = strings.Join(slopes, ", ")
	return m, nil
}

// tickSentences are the rows of Table 1.
func tickSentences() []sentence {
	const section = "2 Related work"
	actor := selection(experiment.Confirmation, experiment.PolicyAttention, 4)
	own := sentence{section: section, says: "Table 1, PolicyAttention: softmax, evaluation, control, learned, return error", checks: []check{
		{at: "softmax", printed: "✓", command: "table decoder", measure: builtAsStated, judge: stated},
		{at: "evaluation", printed: "✓", command: "table decoder", measure: underBounds, judge: stated},
		{at: "control", printed: "✓", command: "evaluate confirmation", measure: versusOracle(results.Ratio, actor, 20), judge: within},
		{at: "learned", printed: "✓", command: "evaluate mechanism", measure: every(selection(experiment.Mechanism, experiment.PolicyAttention, 4), pmdIsNearest), judge: stated},
		{at: "return error", printed: "✓", command: "evaluate", measure: audited(results.Confirmatory), judge: stated},
	}}
	own.checks[0].measure = brief(own.checks[0].measure, "two softmax heads a block, causal")
	own.checks[1].measure = brief(own.checks[1].measure, "δ under its bound")
	return append(append([]sentence{own}, baselineTicks(section)...), sentence{section: section, says: "Table 1, Wang et al. and Xie et al.: evaluation, no control", checks: []check{{
		printed: "✓, –", command: "–", judge: bars("about other works; nothing measured here bears on it"),
		measure: func(*source) (*measured, error) { return &measured{text: "–"}, nil },
	}}})
}

// brief replaces the text of a measure that another sentence spells out.
func brief(m measure, text string) measure {
	return func(s *source) (*measured, error) {
		x, err := m(s)
		if x != nil && text != "" && x.ok {
			x.text = text
		}
		return x, err
	}
}
