package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/plot/plotter"

	"icrl/policyattention/plots"
	"icrl/policyattention/results"
	"icrl/policyattention/stats"
)

// reach writes steps, or at a rate of seconds a step core-seconds, to a bar, where furthest is
// the last step that was looked at.
func reach(steps, rate float64, furthest, budget int) any {
	switch {
	case !math.IsInf(steps, 1):
		return math.Round(steps * rate)
	case furthest < budget:
		return fmt.Sprintf("over %.0f", float64(furthest)*rate)
	}
	return "never"
}

// reachEstimate writes them with their interval.
func reachEstimate(r results.TimeToQuality, rate float64) Cell {
	to := func(steps float64) any { return reach(steps, rate, r.Furthest, r.Budget) }
	return Cell{to(r.Steps.Value), " [", to(r.Steps.Lo), ", ", to(r.Steps.Hi), "]"}
}

// counted says of how many identities something holds.
func counted(r results.TimeToQuality, of func(results.Reached) bool) string {
	n := 0
	for _, run := range r.ByRun {
		if of(run) {
			n++
		}
	}
	return fmt.Sprintf("%d of %d", n, len(r.ByRun))
}

func timeToQualityTable(s *source) (Table, error) {
	t := Table{Title: "Time to quality: training until the loss is within a bar"}
	rows, err := s.Times()
	type R = results.TimeToQuality
	fill(&t, rows, slices.Concat([]column[R]{
		{"recipe", func(r R) any { return r.Recipe }},
		{"S", func(r R) any { return r.S }},
		{"T", func(r R) any { return r.T }},
		{"bar", func(r R) any { return r.Bar.Name }},
		{"loss or ratio", func(r R) any { return r.Bar.Limit }},
		{"steps", func(r R) any { return reachEstimate(r, 1) }},
		{"core-seconds", func(r R) any { return reachEstimate(r, r.SecondsPerStep) }},
		{"reached", func(r R) any { return counted(r, results.Reached.There) }},
		{"slowest identity", func(r R) any {
			x := slices.MaxFunc(r.ByRun, func(x, y results.Reached) int { return cmp.Compare(x.Steps, y.Steps) })
			return Cell{fmt.Sprint(x.Seed), ": ", reach(float64(x.Steps), 1, x.Furthest, r.Budget)}
		}},
		{"above again later", func(r R) any { return counted(r, func(x results.Reached) bool { return x.Again }) }},
	}, tails(func(r R) results.Tail { return r.Tail }))...)
	if err != nil || len(rows) == 0 {
		return t, err
	}
	t.Notes = []string{
		"Steps: the first of those looked at after which an identity's loss, as a median over problems or as a mean, is within the bar; the median over identities, and an interval over identities and problems. \"Never\" stands for: after no step up to the preset's budget, \"over\" for: not up to the last step that was looked at. Both can be ends of intervals. The learning rate is constant and the released average depends on the steps so far alone, so the weights after n steps of a longer run are those of a run of n steps.",
		"Core-seconds: steps at the median rate of the identities' shortest training runs, in processor time with drawing contexts and compiling. Tails are of the identities that reach the bar, each after the step where it does. \"Above again later\" counts identities that are above the bar after a later step.",
	}
	looked, err := s.looked()
	t.Notes = append(t.Notes, "Looked at, recipe plain: "+looked+".")
	return t, err
}

// looked says after which steps the identities of the plain recipe were looked at.
func (s *source) looked() (string, error) {
	at := map[string][]string{}
	for _, states := range s.CourseSizes() {
		all, err := s.Along("plain", states)
		if err != nil {
			return "", err
		}
		for _, course := range all {
			steps := fmt.Sprint(slices.Sorted(maps.Keys(course.After)))
			at[steps] = append(at[steps], fmt.Sprint(course.Seed))
		}
	}
	var parts []string
	for _, steps := range slices.Sorted(maps.Keys(at)) {
		parts = append(parts, fmt.Sprintf("%s after %s", strings.Join(at[steps], ", "), strings.Trim(steps, "[]")))
	}
	return strings.Join(parts, "; "), nil
}

// qualityFigure has the ratio of mean losses to exact PMD's along training, an identity a line.
func qualityFigure(s *source) (panels []*plots.Panel, err error) {
	for _, horizon := range results.Horizons {
		for _, states := range s.CourseSizes() {
			p := plots.NewPanel(fmt.Sprintf("S = %d, T = %d", states, horizon), "training steps", "mean loss / exact PMD’s")
			panels = append(panels, p)
			if err := s.courses(p, states, horizon); err != nil {
				return nil, err
			}
		}
	}
	return panels, nil
}

// courses draws the identities of both recipes, and the bar near exact PMD.
func (s *source) courses(p *plots.Panel, states, horizon int) error {
	oracle, err := s.Oracle(states)
	if err != nil {
		return err
	}
	last := 0.
	for i, recipe := range results.BriefRecipes {
		all, err := s.Along(recipe, states)
		if err != nil {
			return err
		}
		for j, course := range all {
			if len(oracle.Found) == 0 {
				break
			}
			exact := stats.Mean(oracle.Found[0].Losses(horizon))
			var xy plotter.XYs
			for _, step := range slices.Sorted(maps.Keys(course.After)) {
				xy = append(xy, plotter.XY{X: float64(step), Y: stats.Mean(course.After[step].Losses(horizon)) / exact})
				last = max(last, float64(step))
			}
			line := p.Line(plots.Palette[3*i], false, xy)
			if j == 0 {
				p.Legend.Add(recipe, line)
			}
		}
	}
	if last == 0 {
		empty(p)
		return nil
	}
	p.Legend.Add(results.NearPMDName, p.Line(plots.Grey, true, plotter.XYs{{X: p.X.Min, Y: results.NearPMD}, {X: last, Y: results.NearPMD}}))
	plots.LogLog(p)
	return nil
}
