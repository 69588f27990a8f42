package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"icrl/policyattention/experiment"
	"icrl/policyattention/method"
	"icrl/policyattention/results"
	"icrl/policyattention/tables"
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
	fill(&t, rows, slices.Concat(
		[]column[R]{
			{"method", func(r R) any { return r.Series.String() }},
			{"S", func(r R) any { return r.S }},
			{"quantity", func(r R) any { return r.Quantity }},
			{"paper", func(r R) any { return quoted(r.Paper) }},
			{"here", qualificationValue},
			{"runs", func(r R) any { return fmt.Sprintf("%d of %d", len(r.ByRun), r.Planned) }},
		},
		distribution(func(r R) results.Tail { return r.Tail }),
	)...)
	t.Notes = append(s.notes("qualification"),
		"Mean, quantiles and worst are over all problems of all runs: of the loss, above 1 the share of problems that end with more of it than the first policy has; or of the difference to the control, problem by problem, above 0.05.",
		"Costs are the processor time of a training run, or, where it has not been made, the estimate for one core with XLA's CPU backend.",
		s.howTo(experiment.Qualification),
	)
	verdicts, err := s.qualified()
	if len(verdicts) > 0 {
		t.Notes = append(t.Notes, "A recipe qualifies if its loss falls by a tenth or more from round 1 to round 40 and then lies below that of its own control of a short context, with an interval below zero. "+strings.Join(verdicts, "; ")+".")
	}
	return t, err
}

// qualificationValue prints a quantity, or what is known of it before it is measured.
func qualificationValue(r results.QualificationRow) any {
	switch {
	case r.Gap != nil && r.Gap.Runs > 0:
		return tables.Estimate(r.Gap.Value, r.Gap.Lo, r.Gap.Hi)
	case len(r.ByRun) == 0 && r.Expected > 0:
		return Cell{NotRun, ", about ", math.Round(r.Expected)}
	case r.Expected > 0 || r.Quantity == results.TrainingMinutes:
		return tenths(r.Value())
	}
	return middle(r.Spread)
}

// method returns the preset's method called name; the zero method if it is not registered.
func (s *source) method(name method.Name) method.Method {
	m, _ := s.Store.Preset.Methods.Find(name) // whose rows are asked for
	return m
}

// notes are what a table says of the preset's methods below.
func (s *source) notes(table string) (notes []string) {
	for _, m := range s.Store.Preset.Methods {
		notes = append(notes, m.Notes[table]...)
	}
	return notes
}

// qualified says of each recipe that has a control of its own whether it qualifies.
func (s *source) qualified() (verdicts []string, err error) {
	for _, x := range s.SampledSeries(experiment.Qualification) {
		if s.method(x.Method).Control.Of(x.Recipe) == "" {
			continue
		}
		for _, states := range s.Sizes(experiment.Benchmark) {
			q, err := s.Qualify(experiment.Qualification, x.Method, x.Recipe, states)
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
	fall := fallOf(q)
	switch {
	case q.OK():
		return fmt.Sprintf("qualifies (%s, %s below its control)", fall, tables.Estimate(-q.Gap.Value, -q.Gap.Hi, -q.Gap.Lo))
	case q.Last > results.Hardly*q.First:
		return fmt.Sprintf("does not qualify (%s)", fall)
	}
	if why := undecided(q, "control"); why != "" {
		return fmt.Sprintf("is undecided (%s; %s)", fall, why)
	}
	return fmt.Sprintf("does not qualify (%s, its control %.3f to %.3f)", fall, q.FirstControl, q.LastControl)
}

// undecided says why it is open whether a recipe that has learned beats its control, as text
// calls that; "" if it is not open.
func undecided(q results.Qualified, control string) string {
	switch {
	case q.Last > results.Hardly*q.First:
		return ""
	case !q.HasControl:
		return fmt.Sprintf("it has no %s of its own", control)
	case q.Gap.Runs == 0:
		return fmt.Sprintf("its %s has not been run", control)
	}
	return ""
}

// fallOf prints the median losses after rounds 1 and 40, and the worst problem's.
func fallOf(q results.Qualified) string {
	return fmt.Sprintf("%.3f to %.3f, worst problem %.2f", q.First, q.Last, q.End.Worst)
}

// tuningTable shows what the grids found on calibration problems.
func tuningTable(s *source) (Table, error) {
	t := Table{Title: "Step sizes of the sampled methods, on calibration problems"}
	rows, err := s.Tuning()
	type R = results.TuningRow
	of := func(missing any, f func(R) float64) func(R) any {
		return func(r R) any {
			if r.Score == nil {
				return missing
			}
			return f(r)
		}
	}
	pair := func(h int) func(R) any {
		return func(r R) any {
			if r.Score == nil {
				return nil
			}
			return fmt.Sprintf("%.2g, %.2g", r.Score.P99[h], r.Score.Worst[h])
		}
	}
	fill(&t, rows,
		column[R]{"method", func(r R) any { return s.Series(r.Method, "").Label }},
		column[R]{"S", func(r R) any { return r.S }},
		column[R]{"setting", func(r R) any { return r.Setting }},
		column[R]{"α", of(nil, func(r R) float64 { return r.Score.Alpha })},
		column[R]{"β", of(nil, func(r R) float64 { return r.Score.Beta })},
		column[R]{"T = 20", of(NotRun, func(r R) float64 { return r.Score.Loss[0] })},
		column[R]{"T = 20: mean", of(nil, func(r R) float64 { return r.Score.Mean[0] })},
		column[R]{"T = 20: 99 %, worst", pair(0)},
		column[R]{"T = 40", of(nil, func(r R) float64 { return r.Score.Loss[1] })},
		column[R]{"T = 40: mean", of(nil, func(r R) float64 { return r.Score.Mean[1] })},
		column[R]{"T = 40: 99 %, worst", pair(1)},
		column[R]{"inside the grid", func(r R) any { return r.Inside }},
	)
	t.Notes = append(s.notes("tuning"), s.howTo(experiment.Tuning))
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
	spent := func(of func(R) *float64) func(R) any {
		return func(r R) any {
			v := of(r)
			if v == nil {
				return NotRun
			}
			return tenths(*v)
		}
	}
	in := func(r R) method.Method { return s.method(r.Method) }
	fill(&t, rows,
		column[R]{"method", func(r R) any { return r.Series.String() }},
		column[R]{"training signal", func(r R) any { return in(r).Signal }},
		column[R]{"online access a round", func(r R) any { return in(r).Access }},
		column[R]{"parameters", func(r R) any { return r.Parameters }},
		column[R]{"training data", func(r R) any { return trainingData(r.Config) }},
		column[R]{"cost in the paper", func(r R) any { return in(r).Cost }},
		column[R]{"training CPU min", spent(func(r R) *float64 { return r.Minutes })},
		column[R]{"evaluation CPU s", spent(func(r R) *float64 { return r.Seconds })},
		column[R]{"made on", func(r R) any { return r.Backend }},
	)
	t.Notes = []string{
		"The first identity of each method. Information is not matched: PolicyAttention and PMD-target get an exact model-based backup a round, the sampled methods 20 transitions. Evaluation: 40 rounds on all problems, with scoring.",
		s.howTo(experiment.Benchmark),
	}
	return t, err
}
