package report

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"icrl/policyattention/baseline"
	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/stats"

	"gonum.org/v1/plot/plotter"
)

// horizons are the tables' horizons T.
var horizons = baseline.Horizons

func oracleTable(s *source) (Table, error) {
	t := Table{
		Title:   "Exact PMD oracle: median normalized returned-policy loss",
		Columns: []string{"S", "T", "paper", "here", "95% interval", "MDPs"},
	}
	for _, states := range s.sizes(experiment.Oracle) {
		runs, err := s.runs(experiment.Oracle, experiment.ExactPMD, states)
		if err != nil {
			return t, err
		}
		for _, horizon := range horizons {
			row := []string{fmt.Sprint(states), fmt.Sprint(horizon), quoted(experiment.Oracle, "exact-pmd", states, horizon), NotRun, "", ""}
			if len(runs) > 0 {
				e, err := stats.Standard.Median(losses(runs, horizon))
				if err != nil {
					return t, err
				}
				row[3], row[4] = estimated(e)
				row[5] = fmt.Sprint(len(runs[0].Scored))
			}
			t.Rows = append(t.Rows, row)
		}
	}
	t.Notes = []string{"The paper's medians are over 64 MDPs. Interval: bootstrap over MDPs, 10,000 replicates."}
	return t, nil
}

// methods is the order of methods in tables and figures.
var methods = []experiment.Method{
	experiment.PolicyAttention, experiment.PMDTarget, experiment.RewardOnly,
	experiment.LearnedCritic, experiment.Mixture, experiment.ExactPMD,
}

func benchmarkTable(s *source) (Table, error) {
	t := Table{
		Title:   "Common harness: median normalized returned-policy loss",
		Columns: []string{"method", "S", "T", "paper", "here", "95% interval", "runs", "paper / oracle", "here / oracle", "95% interval of ratio"},
	}
	for _, states := range s.sizes(experiment.Benchmark) {
		oracle, err := s.runs(experiment.Benchmark, experiment.ExactPMD, states)
		if err != nil {
			return t, err
		}
		for _, x := range s.benchmarkSeries() {
			method := x.method
			runs, planned, err := s.find(x.cells(experiment.Benchmark, states))
			if err != nil {
				return t, err
			}
			if planned == 0 {
				continue
			}
			for _, horizon := range horizons {
				row := []string{
					x.String(), fmt.Sprint(states), fmt.Sprint(horizon),
					"–", NotRun, "", "", "", "", "",
				}
				if x.paper() {
					row[3], row[7] = quoted(experiment.Benchmark, string(method), states, horizon), paperRatio(method, states, horizon)
				}
				if len(runs) > 0 {
					e, err := stats.Standard.Median(losses(runs, horizon))
					if err != nil {
						return t, err
					}
					row[4], row[5] = estimated(e)
					row[6] = fmt.Sprintf("%d of %d", len(runs), planned)
				}
				if len(runs) > 0 && len(oracle) > 0 && method != experiment.ExactPMD {
					e, err := stats.Standard.Ratio(losses(runs, horizon), against(oracle, len(runs), horizon))
					if err != nil {
						return t, err
					}
					row[8], row[9] = estimated(e)
				}
				t.Rows = append(t.Rows, row)
			}
		}
	}
	t.Notes = []string{
		"Intervals: hierarchical bootstrap, runs first and shared MDPs second, 10,000 replicates. With one run they show the MDPs' share alone.",
		"Liang–Lai: step sizes as in the paper or tuned on calibration problems, started from π₀ (paper, paper-features, tuned-initial) or from the uniform policy (paper-uniform, tuned), tabular or, as paper-features, linear in random features. Algorithm Distillation: the paper's budget (full) or one for CPUs (cpu), with the paper's source rate or a tuned one; a CPU row is no substitute for the full budget, and the table qualification says which rows have not learned at theirs.",
		s.howTo(experiment.Benchmark),
	}
	return t, nil
}

// pair keeps the runs whose identity both lists have.
func pair(x, y []*experiment.Evaluation) (px, py []*experiment.Evaluation) {
	for _, a := range x {
		for _, b := range y {
			if a.Cell.Seed == b.Cell.Seed {
				px, py = append(px, a), append(py, b)
			}
		}
	}
	return px, py
}

func paperRatio(method experiment.Method, states, horizon int) string {
	loss, ok := paper[key{experiment.Benchmark, string(method), states, horizon}]
	oracle, known := paper[key{experiment.Benchmark, string(experiment.ExactPMD), states, horizon}]
	if !ok || !known || method == experiment.ExactPMD {
		return ""
	}
	return number(math.Round(100*loss.Value/oracle.Value) / 100)
}

func confirmationTable(s *source) (Table, error) {
	const horizon = 20
	t := Table{
		Title:   "Closed-loop reliability at S = 4, T = 20",
		Columns: []string{"quantity", "paper", "here", "95% interval", "runs"},
	}
	get := func(method experiment.Method) ([]*experiment.Evaluation, error) {
		return s.runs(experiment.Confirmation, method, 4)
	}
	oracle, err := get(experiment.ExactPMD)
	if err != nil {
		return t, err
	}
	found := map[experiment.Method][]*experiment.Evaluation{}
	for _, m := range methods {
		if found[m], err = get(m); err != nil {
			return t, err
		}
	}
	add := func(quantity, key string, e *stats.Estimate, runs int) {
		row := []string{quantity, quoted(experiment.Confirmation, key, 4, horizon), NotRun, "", ""}
		if e != nil {
			row[2], row[3] = estimated(*e)
			row[4] = fmt.Sprint(runs)
		}
		t.Rows = append(t.Rows, row)
	}
	type estimator = func(x, y [][]float64) (stats.Estimate, error)
	versus := func(quantity, key string, x, y []*experiment.Evaluation, f estimator) error {
		if len(x) == 0 || len(y) == 0 {
			add(quantity, key, nil, 0)
			return nil
		}
		reference := against(y, len(x), horizon)
		if y[0].Cell.Seed != 0 {
			if x, y = pair(x, y); len(x) == 0 {
				add(quantity, key, nil, 0)
				return nil
			}
			reference = losses(y, horizon)
		}
		e, err := f(losses(x, horizon), reference)
		if err != nil {
			return err
		}
		add(quantity, key, &e, len(x))
		return nil
	}
	actor := found[experiment.PolicyAttention]
	for j := range experiment.Protocol.Sizes[4].Runs {
		quantity := fmt.Sprintf("ratio of run %d", j)
		row := []string{fmt.Sprintf("ratio of run %d to exact PMD", j+1), quoted(experiment.Confirmation, quantity, 4, horizon), NotRun, "", ""}
		for _, e := range actor {
			if e.Cell.Seed == experiment.Protocol.Sizes[4].Runs[j].Model && len(oracle) > 0 {
				x, err := stats.Standard.Ratio([][]float64{e.Losses(horizon)}, [][]float64{oracle[0].Losses(horizon)})
				if err != nil {
					return t, err
				}
				row[2], row[3] = estimated(x)
				row[4] = "1"
			}
		}
		t.Rows = append(t.Rows, row)
	}
	ratio, difference, paired := stats.Standard.Ratio, stats.Standard.Difference, stats.Standard.PairedDifference
	for _, q := range []struct {
		quantity, key string
		x, y          []*experiment.Evaluation
		f             estimator
	}{
		{"median ratio to exact PMD", "median ratio", actor, oracle, ratio},
		{"actor minus exact PMD, of medians", "minus exact-pmd", actor, oracle, difference},
		{"actor minus exact PMD, paired", "minus exact-pmd", actor, oracle, paired},
		{"learned critic: ratio to exact PMD", "learned critic ratio", found[experiment.LearnedCritic], oracle, ratio},
		{"learned critic minus exact PMD", "learned critic minus exact-pmd", found[experiment.LearnedCritic], oracle, difference},
		{"reward-only minus actor", "reward-only minus actor", found[experiment.RewardOnly], actor, difference},
		{"reward-only minus learned critic", "reward-only minus full loop", found[experiment.RewardOnly], found[experiment.LearnedCritic], difference},
		{"mixture φ = .01 minus actor", "mixture minus actor", found[experiment.Mixture], actor, difference},
		{"PMD-target minus actor", "", found[experiment.PMDTarget], actor, difference},
	} {
		if err := versus(q.quantity, q.key, q.x, q.y, q.f); err != nil {
			return t, err
		}
	}
	if len(actor) > 0 && len(oracle) > 0 {
		met := meeting(runRatios(actor, oracle[0], horizon))
		t.Notes = append(t.Notes, fmt.Sprintf("Registered criterion, ratio at most %v: met by %d of %d runs here, by 5 of 5 in the paper.", experiment.Protocol.Margin, met, len(actor)))
	}
	t.Notes = append(t.Notes, "The paper does not say whether its differences are of medians or of paired losses; for the first both are given. The interval of a single run resamples problems alone.")
	return t, nil
}

func shiftTable(s *source) (Table, error) {
	t := Table{
		Title: "Shifts without retraining at S = 4, T = 20: median ratio to exact PMD",
		Columns: []string{
			"family", "paper", "here", "95% interval", "range over runs", "runs",
			"further identities", "95% interval", "range over runs", "runs",
		},
	}
	for _, family := range mdp.Shifts {
		row := []string{string(family), quoted(experiment.Shift, string(family), 4, 20)}
		for _, block := range []experiment.Block{experiment.Shift, experiment.ShiftReplication} {
			x, ratios, err := s.shift(block, family)
			if err != nil {
				return t, err
			}
			if x == nil {
				row = append(row, NotRun, "", "", "")
				continue
			}
			value, between := estimated(*x)
			row = append(row, value, between, extent(ratios), fmt.Sprint(len(ratios)))
		}
		t.Rows = append(t.Rows, row)
	}
	t.Notes = []string{"The laws of the four families are ours; the paper names them only. Its five identities and five further ones are kept apart."}
	return t, nil
}

// shift returns the median ratio to the oracle of a block's runs in a family and
// that of each run, or nil where a part is missing.
func (s *source) shift(block experiment.Block, family mdp.Family) (*stats.Estimate, []float64, error) {
	get := func(block experiment.Block, method experiment.Method) ([]*experiment.Evaluation, error) {
		found, _, err := s.find(func(c experiment.Cell) bool {
			return c.Block == block && c.Method == method && c.Family == family
		})
		return found, err
	}
	oracle, err := get(experiment.Shift, experiment.ExactPMD)
	if err != nil {
		return nil, nil, err
	}
	runs, err := get(block, experiment.PolicyAttention)
	if err != nil || len(runs) == 0 || len(oracle) == 0 {
		return nil, nil, err
	}
	e, err := stats.Standard.Ratio(losses(runs, 20), against(oracle, len(runs), 20))
	if err != nil {
		return nil, nil, err
	}
	return &e, runRatios(runs, oracle[0], 20), nil
}

func mechanismTable(s *source) (Table, error) {
	t := Table{
		Title:   "One-step inputs: mean row-L1 to each fixed rule, refitted step size",
		Columns: []string{"method", "S", "quantity", "paper", "here", "range over runs", "runs"},
	}
	for _, method := range methods {
		for _, states := range s.sizes(experiment.Mechanism) {
			runs, planned, err := s.find(func(c experiment.Cell) bool {
				return c.Block == experiment.Mechanism && c.Method == method && c.S == states
			})
			if err != nil {
				return t, err
			}
			if planned == 0 {
				continue
			}
			add := func(quantity, key string, f func(*experiment.OneStep) float64) {
				row := []string{string(method), fmt.Sprint(states), quantity, "–", NotRun, "", ""}
				if method == experiment.PolicyAttention {
					row[3] = quoted(experiment.Mechanism, key, 0, 0)
				}
				if len(runs) > 0 {
					var values []float64
					for _, r := range runs {
						values = append(values, f(r.OneStep))
					}
					row[4], row[5], row[6] = number(stats.Median(values)), extent(values), fmt.Sprint(len(runs))
				}
				t.Rows = append(t.Rows, row)
			}
			for _, rule := range pmd.Rules {
				add("row-L1 to "+string(rule), string(rule), func(o *experiment.OneStep) float64 { return o.MeanDistance(rule) })
			}
			add("row-L1 to the nearest alternative", "nearest alternative", nearestAlternative)
			add("mean fitted η", "mean fitted eta", (*experiment.OneStep).MeanFitted)
		}
	}
	for _, x := range []struct {
		block    experiment.Block
		method   experiment.Method
		quantity string
		paper    func(states int) string
		f        func(*experiment.Evaluation) float64
	}{
		{
			experiment.Calibration, experiment.PolicyAttention, "fitted η at 0.8, calibration problems",
			func(states int) string { return quoted(experiment.Calibration, "fitted eta", states, 0) },
			func(e *experiment.Evaluation) float64 { return e.OneStep.Fitted[0] },
		},
		{
			experiment.Backups, experiment.LearnedCritic, "critic: mean absolute error of a backup",
			func(int) string { return quoted(experiment.Backups, "mae", 0, 0) },
			func(e *experiment.Evaluation) float64 { return e.Backup.MAE() },
		},
	} {
		for _, states := range s.sizes(x.block) {
			runs, _, err := sample{x.block, x.method, states, ""}.find(s)
			if err != nil {
				return t, err
			}
			row := []string{string(x.method), fmt.Sprint(states), x.quantity, x.paper(states), NotRun, "", ""}
			if len(runs) > 0 {
				var values []float64
				for _, r := range runs {
					values = append(values, x.f(r))
				}
				row[4], row[5], row[6] = number(stats.Median(values)), extent(values), fmt.Sprint(len(runs))
			}
			t.Rows = append(t.Rows, row)
		}
	}
	t.Notes = []string{fmt.Sprintf("Inputs: rounds 0 to %d of exact PMD runs on held-out MDPs, η uniform on [0.4, 1.2]. The paper does not give its inputs' law, which decides how far apart the rules are.", experiment.Protocol.HeldOutRounds)}
	return t, nil
}

func nearestAlternative(o *experiment.OneStep) float64 {
	nearest := math.Inf(1)
	for _, rule := range pmd.Rules {
		if rule != pmd.PMD {
			nearest = min(nearest, o.MeanDistance(rule))
		}
	}
	return nearest
}

func frontierTable(s *source) (Table, error) {
	t := Table{
		Title:   "Along training: deviation from exact PMD and T = 20 loss",
		Columns: []string{"S", "method", "steps", "ζ (paper)", "ζ", "range over runs", "row-L1", "loss (paper)", "loss", "95% interval", "runs", "non-dominated"},
	}
	for _, states := range s.sizes(experiment.Frontier) {
		points, err := s.frontier(states)
		if err != nil {
			return t, err
		}
		for _, p := range points {
			row := []string{
				fmt.Sprint(states), string(p.method), fmt.Sprint(p.step), "–", NotRun, "", "", "–", "", "", "", "",
			}
			if p.method == experiment.PolicyAttention {
				row[3] = quoted(experiment.Frontier, fmt.Sprintf("ζ at %d", p.step), states, 20)
				row[7] = quoted(experiment.Frontier, fmt.Sprintf("loss at %d", p.step), states, 20)
			}
			if len(p.used) > 0 {
				e, err := stats.Standard.Median(losses(p.used, 20))
				if err != nil {
					return t, err
				}
				row[4], row[5], row[6] = number(stats.Median(p.residuals)), extent(p.residuals), number(stats.Median(runDeviations(p.used)))
				row[8], row[9] = estimated(e)
				row[10] = fmt.Sprint(len(p.used))
				if p.envelope {
					row[11] = "yes"
				}
			}
			t.Rows = append(t.Rows, row)
		}
	}
	t.Notes = []string{"ζ is the largest row-L1 to exact PMD over states, as Section 3 defines it, row-L1 their mean: medians over runs and MDPs of the mean over rounds 0–19, in the contexts of the closed loop itself. The paper does not say how it averages over rounds and MDPs."}
	return t, nil
}

// point is one budget of one objective.
type point struct {
	method        experiment.Method
	step, planned int
	used          []*experiment.Evaluation
	residuals     []float64 // of each run, ζ
	loss          float64
	envelope      bool // no other point is as low in both coordinates
}

func (p point) at() plotter.XY { return plotter.XY{X: stats.Median(p.residuals), Y: p.loss} }

func (s *source) frontier(states int) ([]point, error) {
	var points []point
	for _, method := range methods {
		for _, step := range append(slices.Clone(s.store.Preset.Snapshots), s.store.Preset.Steps) {
			runs, planned, err := s.find(func(c experiment.Cell) bool {
				return c.Block == experiment.Frontier && c.Method == method && c.S == states && c.Step == step
			})
			if err != nil {
				return nil, err
			}
			if planned == 0 {
				continue
			}
			p := point{method: method, step: step, planned: planned, used: runs}
			if len(runs) > 0 {
				p.loss = stats.Median(stats.RunMedians(losses(runs, 20)))
				p.residuals = runMeans(runs, (*experiment.Evaluation).Residuals)
			}
			points = append(points, p)
		}
	}
	for i := range points {
		points[i].envelope = len(points[i].used) > 0
		for _, other := range points {
			if len(other.used) > 0 && dominates(other.at(), points[i].at()) {
				points[i].envelope = false
			}
		}
	}
	return points, nil
}

// audit is the returned-policy inequality, recomputed from realized residuals.
type audit struct {
	rows, violations int
	exact            int       // rows of exact PMD
	slacks           []float64 // in units of Q
	used             []*experiment.Evaluation
	planned          int
	cells            map[experiment.Block]int // rows of each block
}

// measured is the claim that no row violates the inequality.
func (a audit) measured() *measured {
	return &measured{
		text: fmt.Sprintf("%d of %d rows", a.rows-a.violations, a.rows), ok: a.violations == 0,
		used: a.used, runs: len(a.used), planned: a.planned,
	}
}

// everywhere and confirmatory are scopes of an audit, the second the paper's.
func everywhere(experiment.Cell) bool { return true }

func confirmatory(c experiment.Cell) bool {
	return (c.Block == experiment.Confirmation || c.Block == experiment.Shift) && c.Method != experiment.ExactPMD
}

// audit checks every problem of every closed loop in a scope at the protocol's
// horizons. What stands in two blocks is one closed loop.
func (s *source) audit(scope func(experiment.Cell) bool) (a audit, err error) {
	a.cells = map[experiment.Block]int{}
	loops, planned, err := s.find(func(c experiment.Cell) bool {
		config, err := c.Config()
		return err == nil && config.Loop != nil && !s.store.Preset.Methods.Sampled(c.Method) && scope(c) // theirs is no critic
	})
	if err != nil {
		return a, err
	}
	a.planned = planned
	seen := map[string]bool{}
	for _, e := range loops {
		hash := e.Config.Hash()
		if seen[hash] || e.Scored[0].Defect == nil {
			a.planned-- // without critic tables there is nothing to audit
			continue
		}
		seen[hash] = true
		a.used = append(a.used, e)
		for i, scored := range e.Scored {
			for _, horizon := range experiment.Protocol.Horizons {
				_, slack, err := scored.Bound(horizon)
				if err != nil {
					return a, fmt.Errorf("%s, problem %d: %w", e.Cell.Name(), i, err)
				}
				a.rows++
				a.cells[e.Cell.Block]++
				if e.Cell.Method == experiment.ExactPMD {
					a.exact++
				}
				if !(slack >= 0) { // or NaN
					a.violations++
				}
				a.slacks = append(a.slacks, slack)
			}
		}
	}
	return a, nil
}

func auditTable(s *source) (Table, error) {
	t := Table{
		Title:   "Certificate audit: the returned-policy bound from realized residuals",
		Columns: []string{"quantity", "paper", "here"},
	}
	a, err := s.audit(everywhere)
	if err != nil {
		return t, err
	}
	papers, err := s.audit(confirmatory)
	if err != nil {
		return t, err
	}
	for _, x := range []struct {
		audit
		scope string
	}{{papers, "of confirmation, shifts and reward-only"}, {a, "of all closed loops"}} {
		for _, q := range []struct {
			name  string
			value float64
		}{{"rows", float64(x.rows)}, {"violations", float64(x.violations)}, {"median slack", stats.Median(x.slacks)}} {
			row := []string{q.name + " " + x.scope, quoted("audit", q.name, 0, 0), NotRun}
			if x.rows > 0 {
				row[2] = number(q.value)
			}
			t.Rows = append(t.Rows, row)
		}
	}
	for _, block := range experiment.Blocks {
		if n := a.cells[block]; n > 0 {
			t.Rows = append(t.Rows, []string{fmt.Sprintf("rows of block %s", block), "–", fmt.Sprint(n)})
		}
	}
	t.Notes = []string{fmt.Sprintf("All problems of %d of %d planned closed loops, at horizons %v; the slack is in units of Q. The paper's rows are those of the first scope, without exact PMD; how it comes to 69,120 it does not say. A closed loop that two blocks share is audited once.", len(a.used), a.planned, experiment.Protocol.Horizons)}
	return t, nil
}

// backendName names what a run was made on.
func backendName(run *experiment.Training) string {
	if d := run.Manifest.Produced.Backend; d != nil {
		return d.Name
	}
	return "Go, float64"
}

func costTable(s *source) (Table, error) {
	t := Table{
		Title:   "Training runs and their cost",
		Columns: []string{"run", "parameters", "steps", "steps/s", "wall min", "CPU min", "peak MB", "backend"},
	}
	configs, err := s.store.Preset.Trainings()
	if err != nil {
		return t, err
	}
	wall, cpu, done := 0.0, 0.0, 0
	for _, c := range configs {
		row := []string{experiment.TrainingName(c), fmt.Sprint(c.Parameters()), fmt.Sprint(c.Budget()), NotRun, "", "", "", ""}
		run, err := s.store.FindTraining(c)
		if err != nil && !errors.Is(err, experiment.ErrMissing) {
			return t, err
		}
		if err == nil {
			cost := run.Manifest.Cost
			row[3], row[4], row[5] = number(cost.StepsPerSecond), fmt.Sprintf("%.1f", cost.WallSeconds/60), fmt.Sprintf("%.1f", cost.CPUSeconds/60)
			row[6], row[7] = fmt.Sprint(cost.PeakMemory>>20), backendName(run)
			wall, cpu, done = wall+cost.WallSeconds, cpu+cost.CPUSeconds, done+1
		}
		t.Rows = append(t.Rows, row)
	}
	t.Notes = []string{
		fmt.Sprintf("In all %d of %d runs, %.2f hours of wall time summed over runs, %.2f CPU-hours.", done, len(configs), wall/3600, cpu/3600),
		fmt.Sprintf("The paper: %s parameters at S = 8 for actor and critic together, 0.19–0.24 GPU-hours a run (%s).", quoted("cost", "parameters", 8, 0), where("cost", "parameters", 8, 0)),
	}
	return t, nil
}
