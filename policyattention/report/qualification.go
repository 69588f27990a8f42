package report

import (
	"fmt"
	"math"
	"strings"

	"icrl/policyattention/experiment"
	"icrl/policyattention/method"
	"icrl/policyattention/results"
)

// Tables on whether the sampled methods do what their sources say, with which step
// sizes, and at what cost.

func qualificationTable(s *source) (Table, error) {
	t := Table{Title: "Qualification of the sampled methods"}
	rows, err := s.Qualification()
	if err != nil {
		return t, err
	}
	type R = results.QualificationRow
	fill(&t, rows,
		column[R]{"method", func(r R) string { return r.Series.String() }},
		column[R]{"S", func(r R) string { return fmt.Sprint(r.S) }},
		column[R]{"quantity", func(r R) string { return r.Quantity }},
		column[R]{"paper", func(r R) string { return quoted(r.Paper) }},
		column[R]{"here", func(r R) string {
			switch {
			case r.Gap != nil && r.Gap.Runs > 0:
				return number(r.Gap.Value) + " " + interval(r.Gap.Lo, r.Gap.Hi)
			case len(r.ByRun) == 0 && r.Expected > 0:
				return NotRun + ", about " + number(math.Round(r.Expected))
			case r.Expected > 0 || r.Quantity == "CPU min of training":
				return number(math.Round(10*r.Value()) / 10)
			}
			return middle(r.Spread)
		}},
		column[R]{"runs", func(r R) string { return fmt.Sprintf("%d of %d", len(r.ByRun), r.Planned) }},
	)
	t.Notes = []string{
		"Liang–Lai: the native shape has A = 4 and γ = .5, the harness A = 3 and γ = .9; the update error is the median of ‖Δ − teacher's‖/‖teacher's‖ over held-out windows, the improvement and the gap of the learning curves are relative to the teacher's gain. With several runs: their median. Its optimizer is ours; the paper does not give its own, so a smaller training loss than the paper's is no better fit of the same thing.",
		"Algorithm Distillation: median normalized loss of the policies returned on problems that nothing else uses; \"short\" has a context of one round, so that nothing is remembered between rounds.",
		"Costs are the processor time of a training run, or, where it has not been made, the estimate for one core with XLA's CPU backend.",
		s.howTo(experiment.Qualification),
	}
	verdicts, err := s.qualified()
	if len(verdicts) > 0 {
		t.Notes = append(t.Notes, "A recipe qualifies if its loss falls by a tenth or more from round 1 to round 40 and then lies below that of its own control of a short context, with an interval below zero. "+strings.Join(verdicts, "; ")+".")
	}
	return t, err
}

// qualified says of each recipe of Algorithm Distillation whether it qualifies.
func (s *source) qualified() (verdicts []string, err error) {
	for _, x := range s.SampledSeries(experiment.Qualification) {
		if x.Method != experiment.Distillation || strings.HasSuffix(x.Recipe, "-short") {
			continue
		}
		for _, states := range s.Sizes(experiment.Benchmark) {
			q, err := s.Qualify(experiment.Qualification, x.Recipe, states)
			if err != nil {
				return nil, err
			}
			if q.Runs > 0 {
				verdicts = append(verdicts, fmt.Sprintf("%s at S = %d %s", x, states, verdictOf(q)))
			}
		}
	}
	return verdicts, nil
}

// verdictOf says whether a recipe qualifies, and if not, why.
func verdictOf(q results.Qualified) string {
	fall := fmt.Sprintf("%.3f to %.3f", q.First, q.Last)
	switch {
	case q.OK():
		return fmt.Sprintf("qualifies (%s, %s %s below its control)", fall, number(-q.Gap.Value), interval(-q.Gap.Hi, -q.Gap.Lo))
	case q.Last > results.Hardly*q.First:
		return fmt.Sprintf("does not qualify (%s)", fall)
	case !q.HasControl:
		return fmt.Sprintf("is undecided (%s; it has no control of its own)", fall)
	case q.Gap.Runs == 0:
		return fmt.Sprintf("is undecided (%s; its control has not been run)", fall)
	}
	return fmt.Sprintf("does not qualify (%s, its control %.3f to %.3f)", fall, q.FirstOfShort, q.LastOfShort)
}

// tuningTable shows what the grids found on calibration problems.
func tuningTable(s *source) (Table, error) {
	t := Table{Title: "Step sizes of the sampled methods, on calibration problems"}
	rows, err := s.Tuning()
	type R = results.TuningRow
	of := func(missing string, f func(R) float64) func(R) string {
		return func(r R) string {
			if r.Score == nil {
				return missing
			}
			return number(f(r))
		}
	}
	fill(&t, rows,
		column[R]{"method", func(r R) string { return s.Series(r.Method, "").Label }},
		column[R]{"S", func(r R) string { return fmt.Sprint(r.S) }},
		column[R]{"setting", func(r R) string { return r.Setting }},
		column[R]{"α", of("", func(r R) float64 { return r.Score.Alpha })},
		column[R]{"β", of("", func(r R) float64 { return r.Score.Beta })},
		column[R]{"T = 20", of(NotRun, func(r R) float64 { return r.Score.Loss[0] })},
		column[R]{"T = 40", of("", func(r R) float64 { return r.Score.Loss[1] })},
		column[R]{"inside the grid", func(r R) string { return r.Inside }},
	)
	t.Notes = []string{
		"Liang–Lai's teacher makes the same updates as the trained block, so its scores stand for it; from the uniform policy it is Algorithm Distillation's source. Algorithm Distillation itself is trained at the CPU budget for each source rate. The paper's grids end at its choices: α = 2, and source rate 4.",
		"The paper says neither from which policy Liang–Lai starts nor in which features it is linear. Its losses are .4535 and .2812 at S = 8, .4817 and .3307 at S = 16. No start gives both with one-hot features, whose step for a state falls as 1/S. Features of S·A numbers a pair and S a state, uniform on [0, 1), do, from π₀ and at the paper's step sizes; a feature's length grows with S and makes up for the rarer visits. One-hot features from π₀ are what the benchmark calls the paper's choice, the others stand beside it; tuned, one-hot features are the better ones.",
		"The source rates of Algorithm Distillation above 4 were added after its losses at the paper's rate had been seen; the choice among them is on calibration problems.",
		s.howTo(experiment.Tuning),
	}
	return t, err
}

// trainingData says what a method is trained on.
func trainingData(c experiment.Config) string {
	if runs := c.Trainings(); len(runs) > 0 {
		return runs[0].Data() // a critic's is the actor's
	}
	return "none"
}

// resourcesTable says what each method of the benchmark is given and costs.
func resourcesTable(s *source) (Table, error) {
	const states = 8
	t := Table{Title: fmt.Sprintf("Interfaces and resources at S = %d", states)}
	rows, err := s.Resources(states)
	type R = results.Resource
	spent := func(of func(R) *float64) func(R) string {
		return func(r R) string {
			switch v := of(r); {
			case v == nil:
				return NotRun
			case *v == 0:
				return "0"
			default:
				return fmt.Sprintf("%.1f", *v)
			}
		}
	}
	in := func(r R) method.Method {
		m, _ := s.Store.Preset.Methods.Find(r.Method) // whose rows these are
		return m
	}
	fill(&t, rows,
		column[R]{"method", func(r R) string { return r.Series.String() }},
		column[R]{"training signal", func(r R) string { return in(r).Signal }},
		column[R]{"online access a round", func(r R) string { return in(r).Access }},
		column[R]{"parameters", func(r R) string { return fmt.Sprint(r.Parameters) }},
		column[R]{"training data", func(r R) string { return trainingData(r.Config) }},
		column[R]{"cost in the paper", func(r R) string { return in(r).Cost }},
		column[R]{"training CPU min", spent(func(r R) *float64 { return r.Minutes })},
		column[R]{"evaluation CPU s", spent(func(r R) *float64 { return r.Seconds })},
		column[R]{"made on", func(r R) string { return r.Backend }},
	)
	t.Notes = []string{
		"The first identity of each method. Information is not matched: PolicyAttention and PMD-target get an exact model-based backup a round, the sampled methods 20 transitions. Evaluation: 40 rounds on all problems, with scoring.",
		s.howTo(experiment.Benchmark),
	}
	return t, err
}
