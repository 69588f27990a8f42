package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"icrl/policyattention/artifact"
	"icrl/policyattention/experiment"
	"icrl/policyattention/results"
	"icrl/policyattention/stats"
	"icrl/policyattention/tables"
)

// horizons are the tables' horizons T.
var horizons = results.Horizons

const bootstrapNote = "Intervals: hierarchical bootstrap, runs first and shared MDPs second, 10,000 replicates. Of three runs they cover less than 95 % (in a simulation 80 to 89 %), of one run they show the MDPs' share alone."

func oracleTable(s *source) (Table, error) {
	t := Table{Title: "Exact PMD oracle: median normalized returned-policy loss"}
	var rows []results.Estimate
	for _, states := range s.Sizes(experiment.Oracle) {
		runs, err := s.Find(results.Selection{Block: experiment.Oracle, Method: experiment.ExactPMD, S: states})
		if err != nil {
			return t, err
		}
		for _, horizon := range horizons {
			e, err := runs.Median(horizon)
			if err != nil {
				return t, err
			}
			rows = append(rows, e.Beside(results.Key{Block: experiment.Oracle, Quantity: "exact-pmd", S: states, T: horizon}))
		}
	}
	fill(&t, rows, slices.Concat(
		[]column[results.Estimate]{
			{"S", func(e results.Estimate) any { return e.X.S }},
			{"T", func(e results.Estimate) any { return e.T }},
			{"paper", func(e results.Estimate) any { return quoted(e.Paper) }},
		},
		estimated("here", "95% interval", func(e results.Estimate) results.Estimate { return e }),
		[]column[results.Estimate]{{"MDPs", func(e results.Estimate) any {
			if e.Runs == 0 {
				return nil
			}
			return len(e.Used[0][0].Scored)
		}}},
	)...)
	t.Notes = []string{"The paper's medians are over 64 MDPs. Interval: bootstrap over MDPs, 10,000 replicates. The distribution of problems, γ, A, π₀ and Q₀ were chosen so that these four medians come out."}
	return t, nil
}

func benchmarkTable(s *source) (Table, error) {
	t := Table{Title: "Common harness: median normalized returned-policy loss"}
	rows, err := s.Benchmark()
	type R = results.BenchmarkRow
	fill(&t, rows, slices.Concat(
		[]column[R]{
			{"method", func(r R) any { return r.Series.String() }},
			{"S", func(r R) any { return r.S }},
			{"T", func(r R) any { return r.T }},
			{"paper", func(r R) any { return quoted(r.Loss.Paper) }},
		},
		estimated("here", "95% interval", func(r R) results.Estimate { return r.Loss }),
		[]column[R]{
			{"runs", func(r R) any { return ofRuns(r.Loss) }},
			{"paper / oracle", func(r R) any { return quoted(r.Ratio.Paper) }},
		},
		blank(estimated("here / oracle", "95% interval of ratio", func(r R) results.Estimate { return r.Ratio })),
		tails(func(r R) results.Tail { return r.Tail }),
	)...)
	t.Notes = []string{
		bootstrapNote, tailNote,
		strings.Join(s.notes("benchmark"), " "),
		s.howTo(experiment.Benchmark),
	}
	return t, err
}

// tenths rounds to one decimal.
func tenths(v float64) float64 { return math.Round(10*v) / 10 }

// blank leaves cells empty where an estimate is missing for another reason than that
// it has not been run.
func blank[R any](columns []column[R]) []column[R] {
	for i, c := range columns {
		columns[i].cell = func(r R) any {
			value := c.cell(r)
			return when(value != NotRun, value)
		}
	}
	return columns
}

// differencesTable says by how much PolicyAttention's losses lie below those of
// the other learned methods, and whether the order of methods is certain.
func differencesTable(s *source) (Table, error) {
	t := Table{Title: "Common harness: PolicyAttention's loss minus another method's, of medians and problem by problem"}
	rows, err := s.Differences()
	type R = results.DifferenceRow
	fill(&t, rows, slices.Concat(
		[]column[R]{
			{"minus", func(r R) any { return r.Series.String() }},
			{"S", func(r R) any { return r.S }},
			{"T", func(r R) any { return r.T }},
			{"paper", func(r R) any { return quoted(r.OfMedians.Paper) }},
		},
		estimated("of medians", "95% interval", func(r R) results.Estimate { return r.OfMedians }),
		blank(estimated("by problem", "95% interval of that", func(r R) results.Estimate { return r.ByProblem })),
		[]column[R]{
			{"runs", func(r R) any { return ofRuns(r.OfMedians) }},
			{"medians of PolicyAttention are", func(r R) any { return Order(r.OfMedians) }},
		},
		tails(func(r R) results.Tail { return r.Tail }),
	)...)
	t.Notes = []string{
		"Only runs of the same identity are compared. Of medians: the median over runs of the differences of the runs' median losses; by problem: the median over runs of the median over problems of the difference of two losses on one problem, which says less of the hard problems and resolves smaller differences. " + bootstrapNote + " Of differences to the sampled methods the paper gives intervals alone; the values are differences of its medians.",
		tailNote + " Here the other method is the one in the first column.",
		s.howTo(experiment.Benchmark),
	}
	return t, err
}

// Order says which way an interval of a difference of losses lies.
func Order(e results.Estimate) string {
	switch {
	case e.Runs == 0:
		return ""
	case e.Hi < 0:
		return "lower"
	case e.Lo > 0:
		return "higher"
	}
	return "not told apart"
}

// howTo says how a block's missing rows are filled in.
func (s *source) howTo(block experiment.Block) string {
	return fmt.Sprintf("What is not yet run is filled in by `policyattention --preset %s evaluate %s`, or cell by cell as `plan` names them.", s.Store.Preset.Name, block)
}

func confirmationTable(s *source) (Table, error) {
	t := Table{Title: "Closed-loop reliability at S = 4, T = 20"}
	rows, err := s.Confirmation()
	if err != nil {
		return t, err
	}
	type R = results.Comparison
	fill(&t, rows, slices.Concat(
		[]column[R]{
			{"quantity", func(r R) any { return r.Quantity }},
			{"paper", func(r R) any { return quoted(r.Estimate.Paper) }},
		},
		estimated("here", "95% interval", func(r R) results.Estimate { return r.Estimate }),
		[]column[R]{{"runs", func(r R) any { return when(r.Estimate.Runs > 0, r.Estimate.Runs) }}},
		tails(func(r R) results.Tail { return r.Tail }),
	)...)
	actor, err := s.Plain(4)
	if err != nil {
		return t, err
	}
	oracle, err := s.Oracle(4)
	if err != nil {
		return t, err
	}
	ratio, err := actor.Ratio(oracle, 20)
	if err != nil {
		return t, err
	}
	if ratio.Runs > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("Registered criterion, ratio at most %v: met by %d of %d runs here, by 5 of 5 in the paper. What it does not see, the table tails shows.", experiment.PaperProtocol.Margin, results.Meeting(ratio.ByRun), ratio.Runs))
	}
	t.Notes = append(t.Notes, "The paper does not say whether its differences are of medians or of paired losses; for the first both are given. The interval of a single run resamples problems alone. Tails are against what the row compares with.", tailNote)
	return t, nil
}

// tailsTable shows the tails of all learned actors in closed loop.
func tailsTable(s *source) (Table, error) {
	t := Table{Title: "Medians and tails against exact PMD"}
	rows, err := s.Tails()
	type R = results.Group
	fill(&t, rows, slices.Concat(
		[]column[R]{
			{"method", func(r R) any { return r.Name }},
			{"S", func(r R) any { return r.S }},
			{"T", func(r R) any { return r.T }},
			{"runs", func(r R) any { return ofRuns(r.Ratio) }},
		},
		estimated("ratio of medians", "95% interval", func(r R) results.Estimate { return r.Ratio }),
		tails(func(r R) results.Tail { return r.Tail }),
		[]column[R]{{"run with the worst tail", func(r R) any { return when(r.Tail.Runs > 0, r.Tail.WorstRun) }}},
	)...)
	t.Notes = []string{tailNote, bootstrapNote}
	return t, err
}

func shiftTable(s *source) (Table, error) {
	t := Table{Title: "Shifts without retraining at S = 4, T = 20: median ratio to exact PMD"}
	rows, err := s.Shifts()
	type R = results.ShiftRow
	fill(&t, rows, slices.Concat(
		[]column[R]{
			{"family", func(r R) any { return string(r.Family) }},
			{"identities", func(r R) any { return map[bool]string{false: "the paper's", true: "further"}[r.Further] }},
			{"paper", func(r R) any { return quoted(r.Ratio.Paper) }},
		},
		estimated("here", "95% interval", func(r R) results.Estimate { return r.Ratio }),
		[]column[R]{
			{"range over runs", func(r R) any { return extent(r.Ratio.ByRun) }},
			{"runs", func(r R) any { return ofRuns(r.Ratio) }},
		},
		tails(func(r R) results.Tail { return r.Tail }),
	)...)
	t.Notes = []string{"The distributions of the four families are ours; the paper names them only. Its five identities and five further ones are kept apart.", tailNote}
	return t, err
}

func mechanismTable(s *source) (Table, error) {
	t := Table{Title: "One-step inputs: mean row-L1 to each fixed rule, refitted step size"}
	rows, err := s.Mechanism()
	type R = results.Spread
	fill(&t, rows,
		column[R]{"method", func(r R) any { return r.Series.String() }},
		column[R]{"S", func(r R) any { return r.S }},
		column[R]{"quantity", func(r R) any { return r.Quantity }},
		column[R]{"paper", func(r R) any { return quoted(r.Paper) }},
		column[R]{"here", middle},
		column[R]{"range over runs", func(r R) any { return extent(r.ByRun) }},
		column[R]{"runs", func(r R) any { return len(r.ByRun) }},
	)
	t.Notes = []string{fmt.Sprintf("Inputs: rounds 0 to %d of exact PMD runs on held-out MDPs, η uniform on [0.4, 1.2]. The paper does not give its inputs' distribution, which decides how far apart the rules are.", experiment.PaperProtocol.HeldOutRounds)}
	return t, err
}

// middle is the median over runs, or says that there are none.
func middle(r results.Spread) any { return median(r.ByRun) }

// median is the median of numbers of runs, or says that there are none.
func median(byRun []float64) any {
	if len(byRun) == 0 {
		return NotRun
	}
	return stats.Median(byRun)
}

func frontierTable(s *source) (Table, error) {
	t := Table{Title: "Along training: deviation from exact PMD and T = 20 loss"}
	var rows []results.Budget
	for _, states := range s.Sizes(experiment.Frontier) {
		budgets, err := s.Frontier(states)
		if err != nil {
			return t, err
		}
		rows = append(rows, budgets...)
	}
	type R = results.Budget
	fill(&t, rows, slices.Concat(
		[]column[R]{
			{"S", func(r R) any { return r.S }},
			{"method", func(r R) any { return s.Series(r.Method, "").Label }},
			{"steps", func(r R) any { return r.Step }},
			{"ζ (paper)", func(r R) any { return quoted(r.Zeta.Paper) }},
			{"ζ", func(r R) any { return middle(r.Zeta) }},
			{"range over runs", func(r R) any { return extent(r.Zeta.ByRun) }},
			{"row-L1", func(r R) any { return r.RowL1.Value() }},
			{"loss (paper)", func(r R) any { return quoted(r.Loss.Paper) }},
		},
		estimated("loss", "95% interval", func(r R) results.Estimate { return r.Loss }),
		[]column[R]{
			{"runs", func(r R) any { return ofRuns(r.Loss) }},
			{"non-dominated", func(r R) any { return map[bool]string{true: "yes"}[r.Envelope] }},
		},
		tails(func(r R) results.Tail { return r.Tail }),
	)...)
	t.Notes = []string{"ζ is the largest row-L1 to exact PMD over states, as Section 3 defines it, row-L1 their mean: medians over runs and MDPs of the mean over rounds 0–19, in the contexts of the closed loop itself. The paper does not say how it averages over rounds and MDPs."}
	return t, nil
}

func auditTable(s *source) (Table, error) {
	t := Table{Title: "Certificate audit: the returned-policy bound from realized residuals"}
	all, err := s.Audit(results.Everywhere)
	if err != nil {
		return t, err
	}
	papers, err := s.Audit(results.Confirmatory)
	if err != nil {
		return t, err
	}
	type R struct {
		Quantity string
		Paper    *results.Number
		Here     *float64
	}
	var rows []R
	for _, x := range []struct {
		results.Audit
		scope string
	}{{papers, "of confirmation, shifts and reward-only"}, {all, "of all closed loops"}} {
		for _, q := range []struct {
			name  string
			value float64
		}{{"rows", float64(x.Rows)}, {"violations", float64(x.Violations)}, {"median slack", x.MedianSlack}} {
			row := R{Quantity: q.name + " " + x.scope, Paper: results.Paper(results.Key{Block: "audit", Quantity: q.name})}
			if x.Rows > 0 {
				row.Here = &q.value
			}
			rows = append(rows, row)
		}
	}
	for _, block := range experiment.Blocks {
		if n := all.ByBlock[block]; n > 0 {
			value := float64(n)
			rows = append(rows, R{fmt.Sprintf("rows of block %s", block), nil, &value})
		}
	}
	fill(&t, rows,
		column[R]{"quantity", func(r R) any { return r.Quantity }},
		column[R]{"paper", func(r R) any { return quoted(r.Paper) }},
		column[R]{"here", func(r R) any {
			if r.Here == nil {
				return NotRun
			}
			return *r.Here
		}},
	)
	t.Notes = []string{fmt.Sprintf("All problems of %d of %d planned closed loops, at horizons %v; the slack is in units of Q. The paper's rows are those of the first scope, without exact PMD; how it comes to 69,120 it does not say. A closed loop that two blocks share is audited once.", len(all.Used), all.Planned, experiment.PaperProtocol.Horizons)}
	return t, nil
}

func costTable(s *source) (Table, error) {
	t := Table{Title: "Training runs and their cost"}
	configs, err := s.Store.Preset.Trainings()
	if err != nil {
		return t, err
	}
	type R struct {
		Run        string
		Parameters int
		Steps      int
		Cost       *artifact.Cost
		Backend    string
	}
	var rows []R
	wall, cpu, done := 0.0, 0.0, 0
	for _, c := range configs {
		row := R{Run: c.Name(), Parameters: c.Parameters(), Steps: c.Budget()}
		run, err := s.Training(c)
		if err != nil {
			return t, err
		}
		if run != nil {
			row.Cost, row.Backend = &run.Manifest.Cost, results.BackendName(run)
			wall, cpu, done = wall+row.Cost.WallSeconds, cpu+row.Cost.CPUSeconds, done+1
		}
		rows = append(rows, row)
	}
	of := func(missing any, show func(artifact.Cost) any) func(R) any {
		return func(r R) any {
			if r.Cost == nil {
				return missing
			}
			return show(*r.Cost)
		}
	}
	fill(&t, rows,
		column[R]{"run", func(r R) any { return r.Run }},
		column[R]{"parameters", func(r R) any { return r.Parameters }},
		column[R]{"steps", func(r R) any { return r.Steps }},
		column[R]{"steps/s", of(NotRun, func(c artifact.Cost) any { return c.StepsPerSecond })},
		column[R]{"wall min", of(nil, func(c artifact.Cost) any { return tenths(c.WallSeconds / 60) })},
		column[R]{"CPU min", of(nil, func(c artifact.Cost) any { return tenths(c.CPUSeconds / 60) })},
		column[R]{"peak MB", of(nil, func(c artifact.Cost) any { return c.PeakMemory >> 20 })},
		column[R]{"backend", func(r R) any { return r.Backend }},
	)
	parameters := results.Paper(results.Key{Block: "cost", Quantity: "parameters", S: 8})
	t.Notes = []string{
		fmt.Sprintf("In all %d of %d runs, %.2f hours of wall time summed over runs, %.2f CPU-hours.", done, len(configs), wall/3600, cpu/3600),
		fmt.Sprintf("The paper: %s parameters at S = 8 for actor and critic together, 0.19–0.24 GPU-hours a run (%s).", quoted(parameters), parameters.Where),
	}
	return t, nil
}

// changes says in what each recipe differs from the plain one.
var changes = map[string]string{
	"plain": "", "prior": "log π added to the logits", "log-input": "π enters as log π",
	"random-contexts": "contexts: random policies", "early-rounds": "contexts: first rounds only", "uniform-rounds": "contexts: all rounds alike",
	"fixed-names": "states and actions keep their names", "last-weights": "last iterate, no average",
	"nominal-eta": "η = 0.8 in training", "wide-eta": "η from 0.1 to 1.5 in training",
}

func ablationTable(s *source) (Table, error) {
	t := Table{Title: "Training recipes at a small budget: one-step error and closed-loop loss"}
	type R struct{ At20, At40 results.Group }
	var rows []R
	for _, states := range s.Sizes(experiment.Ablation) {
		at20, err := s.Ablation(states, 20)
		if err != nil {
			return t, err
		}
		at40, err := s.Ablation(states, 40)
		if err != nil {
			return t, err
		}
		for i := range at20 {
			rows = append(rows, R{at20[i], at40[i]})
		}
		t.Notes = append(t.Notes, outcome(at40, states))
	}
	of := func(name string, values func(R) []float64) []column[R] {
		return []column[R]{
			{name, func(r R) any { return median(values(r)) }},
			{"range over runs", func(r R) any { return extent(values(r)) }},
		}
	}
	plain := estimated("T = 40 / plain", "95% interval", func(r R) results.Estimate {
		if r.At40.Name == "plain" {
			return results.Estimate{}
		}
		return r.At40.Plain
	})
	fill(&t, rows, slices.Concat(
		[]column[R]{
			{"recipe", func(r R) any { return r.At20.Name }},
			{"what differs from plain", func(r R) any { return changes[r.At20.Name] }},
			{"S", func(r R) any { return r.At20.S }},
			{"steps", func(R) any { return s.Store.Preset.Ablation }},
		},
		of("row-L1, static inputs", func(r R) []float64 { return r.At20.Static }),
		of("row-L1, in the loop", func(r R) []float64 { return r.At20.RowL1 }),
		estimated("T = 20 / oracle", "95% interval", func(r R) results.Estimate { return r.At20.Ratio }),
		estimated("T = 40 / oracle", "95% interval", func(r R) results.Estimate { return r.At40.Ratio }),
		blank(plain),
		tailed("T = 20: "+tailColumn, func(r R) results.Tail { return r.At20.Tail }),
		tails(func(r R) results.Tail { return r.At40.Tail }),
		[]column[R]{{"runs", func(r R) any { return ofRuns(r.At20.Loss) }}},
	)...)
	t.Notes = append([]string{
		"Every recipe is trained at the same identities and for the same steps, a tenth of the paper's at preset paper; \"plain\" stands for the paper.",
		"Of the optimizer the averaging of weights is varied (last-weights); its rates and decay are the paper's throughout.",
		"Static inputs: random policies with their own values, η = 0.8, which no algorithm has touched. In the loop: rounds 0–19 of each actor's own run.",
		"Ratios are of medians over the same MDPs; those to plain pair the identities as well. An interval that holds 1 is unresolved.",
		"The columns from \"excess: mean\" on are at T = 40, against exact PMD. " + tailNote,
	}, t.Notes...)
	return t, nil
}

// groups fills a table of groups of runs with loss, ratio, tail and distance.
func groups(t *Table, rows []results.Group) {
	type R = results.Group
	fill(t, rows, slices.Concat(
		[]column[R]{
			{"recipe", func(r R) any { return r.Name }},
			{"S", func(r R) any { return r.S }},
			{"T", func(r R) any { return r.T }},
		},
		estimated("here", "95% interval", func(r R) results.Estimate { return r.Loss }),
		blank(estimated("here / oracle", "95% interval of ratio", func(r R) results.Estimate { return r.Ratio })),
		tails(func(r R) results.Tail { return r.Tail }),
		[]column[R]{
			{"row-L1, in the loop", func(r R) any { return when(len(r.RowL1) > 0, stats.Median(r.RowL1)) }},
			{"runs", func(r R) any { return ofRuns(r.Loss) }},
		},
	)...)
}

// criticsTable sets the critics that see samples beside each other.
func criticsTable(s *source) (Table, error) {
	t := Table{Title: "Critics on the same samples: error of one backup, and the loop against exact PMD"}
	rows, err := s.Critics()
	type R = results.CriticRow
	fill(&t, rows, slices.Concat(
		[]column[R]{
			{"actor and critic", func(r R) any { return r.Label }},
			{"S", func(r R) any { return r.S }},
			{"error of a backup", func(r R) any { return when(r.Asked > 0, median(r.Error)) }},
			{"over runs", func(r R) any { return when(len(r.Error) > 1, extent(r.Error)) }},
			{"/ mean of samples", func(r R) any { return when(len(r.Error) > 0, r.OverMean) }},
			{"T", func(r R) any { return r.T }},
			{"runs", func(r R) any { return ofRuns(r.Ratio) }},
			{"paper's ratio", func(r R) any { return quoted(r.Ratio.Paper) }},
		},
		joined("ratio of medians", func(r R) results.Estimate { return r.Ratio }),
		joined("ratio of means", func(r R) results.Estimate { return r.Tail.RatioOfMeans }),
		tailed(tailColumn, func(r R) results.Tail { return r.Tail }),
		blank(joined("means / mean of samples", func(r R) results.Estimate { return r.RatioOfMeans })),
		blank(joined("paired: minus mean of samples", func(r R) results.Estimate { return r.Paired })),
	)...)
	t.Notes = []string{
		"All see six transitions of every pair a round, in the loop the same ones. Error: mean absolute error of one backup on held-out inputs, in units of Q, the median over runs; without earlier rounds to remember, and given once for each estimator. The shrunk mean draws the mean of samples towards r + γ times the mean value of all states, with the weight of least squares on calibration problems; the posterior mean does it with the weight m/(m+S), by which it is the mean of the exact backup given the samples where rows of P are drawn from Dirichlet(1), as they are here: no function of one round's samples has a smaller mean squared error.",
		"The last two columns compare a loop with that of the same actor whose critic is the mean of the same samples, on the same problems: the ratio of mean losses, and the median over problems of the difference of losses.",
		tailNote, bootstrapNote,
	}
	return t, err
}

func priorTable(s *source) (Table, error) {
	t := Table{Title: "The same network with log π added to its logits, beside plain, at the full budget"}
	rows, err := s.BesidePlain(experiment.Prior, "prior")
	groups(&t, rows)
	t.Notes = []string{"This read-out gives the network the logarithm and the sum for nothing; it is reported beside the plain recipe, never in its place.", tailNote}
	return t, err
}

func firstRoundsTable(s *source) (Table, error) {
	t := Table{Title: "Trained on first rounds only, beside plain and the paper's, at the full budget"}
	rows, err := s.BesidePlain(experiment.FirstRounds, "early-rounds")
	if err != nil {
		return t, err
	}
	groups(&t, rows)
	if len(rows) == 0 {
		return t, nil
	}
	for i, horizon := range horizons {
		own := make([]Cell, len(t.Columns))
		key := results.Key{Block: experiment.Benchmark, Quantity: "policyattention", S: 8, T: horizon}
		copy(own, tables.Cells("the paper's", 8, horizon, quoted(results.Paper(key))))
		key.Quantity += " / exact-pmd"
		own[slices.Index(t.Columns, "here / oracle")], own[len(own)-1] = quoted(results.Paper(key)), Cell{3}
		t.Rows = slices.Insert(t.Rows, i, own)
	}
	t.Notes = []string{"The paper does not say where the contexts of its training come from.", tailNote}
	return t, nil
}

func zeroShotTable(s *source) (Table, error) {
	z := experiment.PaperProtocol.ZeroShot
	t := Table{Title: fmt.Sprintf("One network trained on S = %v, run on other sizes without retraining", z.Train)}
	rows, err := s.ZeroShot()
	type R = results.ZeroShotRow
	own := estimated("retrained / oracle", "95% interval", func(r R) results.Estimate { return r.Retrained.Ratio })
	retrained := own[0].cell
	own[0].cell = func(r R) any {
		if r.Retrained.Ratio.Planned == 0 {
			return "–" // no network is trained on this size
		}
		return retrained(r)
	}
	fill(&t, rows, slices.Concat(
		[]column[R]{
			{"S", func(r R) any { return r.S }},
			{"seen in training", func(r R) any { return map[bool]string{true: "yes", false: "no"}[r.Seen] }},
			{"T", func(r R) any { return r.T }},
		},
		estimated("loss / oracle", "95% interval", func(r R) results.Estimate { return r.Ratio }),
		tails(func(r R) results.Tail { return r.Tail }),
		own,
		tailed("retrained, "+tailColumn, func(r R) results.Tail { return r.Retrained.Tail }),
		[]column[R]{{"runs", func(r R) any { return ofRuns(r.Loss) }}},
	)...)
	t.Notes = []string{fmt.Sprintf("States are named by %d slots, drawn at random in training, so that every slot has been seen. The paper retrains at every size and does not claim this.", z.Slots), tailNote}
	return t, err
}

func replicationTable(s *source) (Table, error) {
	t := Table{Title: "More identities than the paper has: run-level spread of the ratio to exact PMD"}
	rows, err := s.Replication()
	type R = results.ReplicationRow
	side := func(name string, of func(R) results.Group) []column[R] {
		return slices.Concat(estimated(name, "95% interval", func(r R) results.Estimate { return of(r).Ratio }),
			joined("ratio of means", func(r R) results.Estimate { return of(r).Tail.RatioOfMeans }),
			tailed(tailColumn, func(r R) results.Tail { return of(r).Tail }),
			[]column[R]{{"runs", func(r R) any { return ofRuns(of(r).Ratio) }}})
	}
	fill(&t, rows, slices.Concat(
		[]column[R]{
			{"S", func(r R) any { return r.S }},
			{"T", func(r R) any { return r.T }},
		},
		side("paper's identities", func(r R) results.Group { return r.First }),
		side("further identities", func(r R) results.Group { return r.More }),
		[]column[R]{
			{"range over all runs", func(r R) any { return extent(r.All) }},
			{fmt.Sprintf("at most %v", experiment.PaperProtocol.Margin), func(r R) any {
				return fmt.Sprintf("%d of %d", results.Meeting(r.All), len(r.All))
			}},
		},
	)...)
	t.Notes = []string{"The paper has five identities at S = 4 and three at S = 8 and 16; the two groups are kept apart and never pooled into its numbers.", tailNote, bootstrapNote}
	return t, err
}
