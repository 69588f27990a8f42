package report

import (
	"cmp"
	"errors"
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg/draw"

	"icrl/policyattention/experiment"
	"icrl/policyattention/stats"
)

// Tables and figures of the benchmark, above all of its methods that see sampled
// transitions.

// series is a method of the benchmark, with its recipe where it has several.
type series struct {
	method experiment.Method
	recipe string
}

func (x series) String() string {
	if x.recipe == "" {
		return string(x.method)
	}
	return fmt.Sprintf("%s (%s)", x.method, x.recipe)
}

// paper reports whether the paper has numbers for the series: its own choices,
// or the same at the CPU budget.
func (x series) paper() bool {
	switch x.recipe {
	case "", "paper", "paper-uniform", "paper-features", "full", "cpu":
		return true
	}
	return false
}

// cells selects the series' cells of a block and size.
func (x series) cells(block experiment.Block, states int) func(experiment.Cell) bool {
	return func(c experiment.Cell) bool {
		return c.Block == block && c.Method == x.method && c.S == states && (x.recipe == "" || c.Recipe == x.recipe)
	}
}

// sampledSeries lists the sampled methods of a block, recipe by recipe.
func (s *source) sampledSeries(block experiment.Block) (list []series) {
	for _, method := range []experiment.Method{experiment.LiangLai, experiment.Distillation} {
		for _, recipe := range s.store.Preset.SampledRecipes(block, method) {
			list = append(list, series{method, recipe})
		}
	}
	return list
}

// benchmarkSeries lists the benchmark's methods in the order of its table.
func (s *source) benchmarkSeries() (list []series) {
	for _, m := range methods {
		if m == experiment.ExactPMD {
			list = append(list, s.sampledSeries(experiment.Benchmark)...)
		}
		list = append(list, series{method: m})
	}
	return list
}

// differencesTable says by how much PolicyAttention's losses lie below those of
// the other learned methods, and whether the order of methods is certain.
func differencesTable(s *source) (Table, error) {
	t := Table{
		Title:   "Common harness: PolicyAttention's loss minus another method's, of medians and problem by problem",
		Columns: []string{"minus", "S", "T", "paper", "of medians", "95% interval", "by problem", "95% interval of that", "runs", "medians of PolicyAttention are"},
	}
	for _, states := range s.sizes(experiment.Benchmark) {
		actor, err := s.runs(experiment.Benchmark, experiment.PolicyAttention, states)
		if err != nil {
			return t, err
		}
		for _, x := range s.benchmarkSeries() {
			if x.method == experiment.PolicyAttention {
				continue
			}
			other, planned, err := s.find(x.cells(experiment.Benchmark, states))
			if err != nil {
				return t, err
			}
			if planned == 0 {
				continue
			}
			pa := actor
			if x.method == experiment.ExactPMD { // one run for all
				other, planned = slices.Repeat(other, len(actor)), len(actor)
			} else {
				pa, other = pair(actor, other)
			}
			for _, horizon := range horizons {
				row := []string{x.String(), fmt.Sprint(states), fmt.Sprint(horizon), "–", NotRun, "", "", "", "", ""}
				if x.paper() {
					row[3] = quoted(experiment.Benchmark, "policyattention minus "+string(x.method), states, horizon)
				}
				if len(pa) > 0 && len(other) > 0 {
					e, err := stats.Standard.Difference(losses(pa, horizon), losses(other, horizon))
					if err != nil {
						return t, err
					}
					paired, err := stats.Standard.PairedDifference(losses(pa, horizon), losses(other, horizon))
					if err != nil {
						return t, err
					}
					row[4], row[5] = estimated(e)
					row[6], row[7] = estimated(paired)
					row[8], row[9] = fmt.Sprintf("%d of %d", len(pa), planned), order(e)
				}
				t.Rows = append(t.Rows, row)
			}
		}
	}
	t.Notes = []string{
		"Only runs of the same identity are compared. Of medians: the median over runs of the differences of the runs' median losses; by problem: the median over runs of the median over problems of the difference of two losses on one problem, which says less of the hard problems and resolves smaller differences. Intervals: hierarchical bootstrap, runs first and shared MDPs second, 10,000 replicates. Of differences to the sampled methods the paper gives intervals alone; the values are differences of its medians.",
		s.howTo(experiment.Benchmark),
	}
	return t, nil
}

// order says which way an interval of a difference of losses lies.
func order(e stats.Estimate) string {
	switch {
	case e.Hi < 0:
		return "lower"
	case e.Lo > 0:
		return "higher"
	}
	return "not told apart"
}

// howTo says how a block's missing rows are filled in.
func (s *source) howTo(block experiment.Block) string {
	return fmt.Sprintf("What is not yet run is filled in by `policyattention --preset %s evaluate %s`, or cell by cell as `plan` names them.", s.store.Preset.Name, block)
}

// resourcesTable says what each method of the benchmark is given and costs.
func resourcesTable(s *source) (Table, error) {
	const states = 8
	t := Table{
		Title:   fmt.Sprintf("Interfaces and resources at S = %d", states),
		Columns: []string{"method", "training signal", "online access a round", "parameters", "training data", "cost in the paper", "training CPU min", "evaluation CPU s", "made on"},
	}
	for _, x := range s.benchmarkSeries() {
		var cell *experiment.Cell
		for _, c := range s.store.Preset.Plan() {
			if x.cells(experiment.Benchmark, states)(c) {
				cell = &c
				break
			}
		}
		if cell == nil {
			continue
		}
		config, err := cell.Config()
		if err != nil {
			return t, err
		}
		face := interfaces[x.method]
		row := []string{x.String(), face.signal, face.access, "0", "none", face.cost, "0", NotRun, ""}
		if config.Loop.LiangLai != nil {
			c := config.Loop.LiangLai.Training
			row[4] = fmt.Sprintf("%d MDPs, %g windows", c.MDPs, float64(c.Batch)*float64(c.Steps))
		}
		if config.Loop.Distill != nil {
			c := config.Loop.Distill.Training
			row[4] = fmt.Sprintf("%d histories of %d steps; context %d, batch %d, %d steps", c.Histories, c.Length, c.Context, c.Batch, c.Steps)
		}
		if w := config.Loop.Actor; w != nil {
			row[4] = fmt.Sprintf("%d MDPs, %d examples, %d steps", w.Training.MDPs, w.Training.Examples, w.Training.Steps)
		}
		trainings, err := cell.Trainings()
		if err != nil {
			return t, err
		}
		parameters, cpu := 0, 0.0
		for _, c := range trainings {
			parameters += c.Parameters()
			run, err := s.store.FindTraining(c)
			if errors.Is(err, experiment.ErrMissing) {
				cpu = math.NaN()
				continue
			}
			if err != nil {
				return t, err
			}
			cpu += run.Manifest.Cost.CPUSeconds / 60
			row[8] = backendName(run)
		}
		if len(trainings) > 0 {
			row[3], row[6] = fmt.Sprint(parameters), NotRun
			if !math.IsNaN(cpu) {
				row[6] = fmt.Sprintf("%.1f", cpu)
			}
		}
		e, err := s.evaluation(*cell)
		if err != nil {
			return t, err
		}
		if e != nil {
			row[7] = fmt.Sprintf("%.1f", e.Manifest.Cost.CPUSeconds)
		}
		t.Rows = append(t.Rows, row)
	}
	t.Notes = []string{
		"The first identity of each method. Information is not matched: PolicyAttention and PMD-target get an exact model-based backup a round, the sampled methods 20 transitions. Evaluation: 40 rounds on all problems, with scoring.",
		s.howTo(experiment.Benchmark),
	}
	return t, nil
}

// interfaces say what a method learns from and what it is given online; cost is
// what the paper records (Table 4).
var interfaces = map[experiment.Method]struct{ signal, access, cost string }{
	experiment.PolicyAttention: {"proximal loss", "exact one-step backup, no samples", ".19–.24 GPU-h"},
	experiment.PMDTarget:       {"labels of exact PMD", "exact one-step backup, no samples", ".19–.24 GPU-h"},
	experiment.LearnedCritic:   {"proximal loss; backups from samples", "144 generative transitions", "–"},
	experiment.LiangLai:        {"increments of its teacher", "20 on-policy transitions", "17 CPU-min"},
	experiment.Distillation:    {"actions of a source's histories", "20 on-policy transitions", ".63–.75 GPU-h"},
	experiment.ExactPMD:        {"none", "exact one-step backup, no samples", "–"},
}

// methodsFigure shows the benchmark's losses at T = 20, a panel a size and a line
// a method.
func methodsFigure(s *source) ([]*plot.Plot, error) {
	const horizon = 20
	var panels []*plot.Plot
	for _, states := range []int{8, 16} {
		p := Panel(fmt.Sprintf("S = %d, T = %d", states, horizon), "median normalized loss", "")
		var names []string
		quoted, drawn := false, false
		list := s.benchmarkSeries()
		slices.Reverse(list) // the first at the top
		for _, x := range list {
			runs, planned, err := s.find(x.cells(experiment.Benchmark, states))
			if err != nil {
				return nil, err
			}
			if planned == 0 {
				continue
			}
			y := float64(len(names))
			names = append(names, x.String())
			if n, ok := paper[key{experiment.Benchmark, string(x.method), states, horizon}]; ok && x.paper() {
				p.Add(mark(grey, draw.CircleGlyph{}, plotter.XY{X: n.Value, Y: y}))
				quoted = true
			}
			if len(runs) == 0 {
				continue
			}
			medians := stats.RunMedians(losses(runs, horizon))
			for _, m := range medians {
				p.Add(mark(colours[x.method], draw.RingGlyph{}, plotter.XY{X: m, Y: y}))
			}
			p.Add(mark(colours[x.method], draw.CircleGlyph{}, plotter.XY{X: stats.Median(medians), Y: y}))
			drawn = true
		}
		if !drawn {
			empty(p)
		} else {
			p.Legend.Add("median of runs", mark(color.Black, draw.CircleGlyph{}))
			p.Legend.Add("single runs", mark(color.Black, draw.RingGlyph{}))
			if quoted {
				p.Legend.Add("paper", mark(grey, draw.CircleGlyph{}))
			}
			LogScale(&p.X)
			p.NominalY(names...)
			p.Y.Min, p.Y.Max = -.5, float64(len(names))-.5
			headroom(p, 3)
		}
		panels = append(panels, p)
	}
	return panels, nil
}

// mark returns dots of any shape, or without any a sample of one for a legend.
func mark(c color.Color, shape draw.GlyphDrawer, at ...plotter.XY) *plotter.Scatter {
	return &plotter.Scatter{XYs: at, GlyphStyle: draw.GlyphStyle{Color: c, Radius: 3, Shape: shape}}
}

// endpointsPanel places every method of the benchmark on the plane of deviation
// from exact PMD and loss, with the non-dominated envelope of the sampled ones at
// each size.
func endpointsPanel(s *source) (*plot.Plot, error) {
	const horizon = 20
	p := Panel("every method", "mean row-L1 to exact PMD, rounds 0–19", "median loss at T = 20")
	// By size, and whether step sizes were tuned.
	type kind struct {
		states int
		tuned  bool
	}
	shapes := map[kind]draw.GlyphDrawer{
		{8, false}: draw.CircleGlyph{}, {16, false}: draw.RingGlyph{}, {8, true}: draw.PyramidGlyph{}, {16, true}: draw.TriangleGlyph{},
	}
	named := map[experiment.Method]bool{}
	var front *plotter.Line
	for _, states := range []int{8, 16} {
		var sampled plotter.XYs
		for _, x := range s.benchmarkSeries() {
			if x.method == experiment.ExactPMD {
				continue // at deviation zero
			}
			runs, _, err := s.find(x.cells(experiment.Benchmark, states))
			if err != nil {
				return nil, err
			}
			if len(runs) == 0 {
				continue
			}
			at := plotter.XY{X: stats.Median(runDeviations(runs)), Y: stats.Median(stats.RunMedians(losses(runs, horizon)))}
			p.Add(mark(colours[x.method], shapes[kind{states, !x.paper()}], at))
			if s.store.Preset.Methods.Sampled(x.method) {
				sampled = append(sampled, at)
			}
			if !named[x.method] {
				named[x.method] = true
				p.Legend.Add(string(x.method), mark(colours[x.method], draw.BoxGlyph{}))
			}
		}
		if envelope := nonDominated(sampled); len(envelope) > 1 {
			var err error
			if front, err = line(p, grey, true, envelope); err != nil {
				return nil, err
			}
		}
	}
	if len(named) == 0 {
		empty(p)
		return p, nil
	}
	for _, x := range []struct {
		label string
		kind
	}{{"S = 8", kind{8, false}}, {"S = 8, tuned", kind{8, true}}, {"S = 16", kind{16, false}}, {"S = 16, tuned", kind{16, true}}} {
		p.Legend.Add(x.label, mark(grey, shapes[x.kind]))
	}
	if front != nil {
		p.Legend.Add("best sampled", front)
	}
	LogScale(&p.X)
	LogScale(&p.Y)
	p.Y.Max *= 1.2
	p.Legend.Left = true
	return p, nil
}

// dominates reports whether x is as low as y in both coordinates, and lower in one.
func dominates(x, y plotter.XY) bool { return x != y && x.X <= y.X && x.Y <= y.Y }

// nonDominated returns the points that no other is as low as in both
// coordinates, from left to right.
func nonDominated(all plotter.XYs) plotter.XYs {
	var best plotter.XYs
	for i, x := range all {
		dominated := false
		for j, y := range all {
			if dominates(y, x) || y == x && j < i {
				dominated = true
			}
		}
		if !dominated {
			best = append(best, x)
		}
	}
	slices.SortFunc(best, func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) })
	return best
}
