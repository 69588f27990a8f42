package results

import (
	"fmt"
	"math"
	"slices"

	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
)

// Series is a method, with its recipe where it has several.
type Series struct {
	Method  method.Name `json:"method"`
	Recipe  string      `json:"recipe,omitempty"`
	Label   string      `json:"label"`          // of the method
	Stage   string      `json:"part,omitempty"` // of another recipe that this one is, see [method.Method]
	Sampled bool        `json:"-"`              // sees sampled transitions only
	Quoted  bool        `json:"-"`              // the paper has numbers for it, or for its recipe at another budget
	Tuned   bool        `json:"-"`              // has step sizes that calibration problems chose
}

func (x Series) String() string {
	if x.Recipe == "" {
		return x.Label
	}
	if x.Stage != "" {
		return fmt.Sprintf("%s (%s)", x.Label, x.Stage)
	}
	return fmt.Sprintf("%s (%s)", x.Label, x.Recipe)
}

// Series returns a method of the preset with a recipe, or with none.
func (s *Source) Series(name method.Name, recipe string) Series {
	x := Series{Method: name, Recipe: recipe, Label: string(name)}
	if m, err := s.Store.Preset.Methods.Find(name); err == nil {
		x.Label, x.Sampled, x.Quoted, x.Tuned = m.Label, m.Sampled, m.HasPrinted(recipe), slices.Contains(m.Tuned, recipe)
		if m.StageOf != nil {
			_, x.Stage = m.StageOf(recipe)
		}
	}
	return x
}

// In selects the series' cells of a block and size.
func (x Series) In(block experiment.Block, states int) Selection {
	return Selection{Block: block, Method: x.Method, Recipe: x.Recipe, S: states}
}

// SampledSeries lists the sampled methods of a block, recipe by recipe.
func (s *Source) SampledSeries(block experiment.Block) (list []Series) {
	for _, m := range s.Store.Preset.Methods {
		if m.Sampled {
			list = append(list, s.seriesIn(block, m)...)
		}
	}
	return list
}

// seriesIn lists a method of a block, recipe by recipe where it sees samples. Of the
// parts of a recipe there is the furthest that has been run at each size, as long as
// the whole has not.
func (s *Source) seriesIn(block experiment.Block, m method.Method) (list []Series) {
	if !m.Sampled {
		return []Series{s.Series(m.Name, "")}
	}
	recipes := s.Store.Preset.SampledRecipes(block, m.Name)
	if m.StageOf != nil {
		shown := map[string]bool{}
		for _, states := range s.Sizes(block) {
			furthest := map[string]string{} // by the whole; the plan goes from short to long
			for _, recipe := range recipes {
				if s.isRun(s.Series(m.Name, recipe).In(block, states)) {
					furthest[m.Whole(recipe)] = recipe
				}
			}
			for _, recipe := range furthest {
				shown[recipe] = true
			}
		}
		recipes = slices.DeleteFunc(recipes, func(r string) bool { return m.Whole(r) != r && !shown[r] })
	}
	for _, recipe := range recipes {
		list = append(list, s.Series(m.Name, recipe))
	}
	return list
}

// isRun reports whether any run of a selection has been evaluated. What cannot be read
// counts, so that whoever needs it says why.
func (s *Source) isRun(x Selection) bool {
	runs, err := s.Find(x)
	return err != nil || len(runs.Found) > 0
}

// BenchmarkSeries lists the benchmark's methods in the order of tables.
func (s *Source) BenchmarkSeries() (list []Series) {
	for _, m := range s.Store.Preset.Methods {
		list = append(list, s.seriesIn(experiment.Benchmark, m)...)
	}
	return list
}

// BenchmarkRow is a method's place in the common harness at a size and horizon.
type BenchmarkRow struct {
	Series
	S     int      `json:"s"`
	T     int      `json:"t"`
	Loss  Estimate `json:"loss"`
	Ratio Estimate `json:"ratio"` // to exact PMD; of exact PMD itself missing
	Tail  Tail     `json:"tail"`  // against exact PMD
}

// Benchmark returns the rows of the common harness, by size, method and horizon.
func (s *Source) Benchmark() (rows []BenchmarkRow, err error) {
	for _, states := range s.Sizes(experiment.Benchmark) {
		oracle, err := s.Find(Selection{Block: experiment.Benchmark, Method: experiment.ExactPMD, S: states})
		if err != nil {
			return nil, err
		}
		for _, x := range s.BenchmarkSeries() {
			runs, err := s.Find(x.In(experiment.Benchmark, states))
			if err != nil {
				return nil, err
			}
			if runs.Planned == 0 {
				continue
			}
			against := oracle
			if x.Method == experiment.ExactPMD {
				against = Runs{}
			}
			for _, horizon := range Horizons {
				row := BenchmarkRow{Series: x, S: states, T: horizon}
				if row.Loss, row.Ratio, row.Tail, err = beside(runs, against, horizon); err != nil {
					return nil, err
				}
				if x.Quoted {
					row.Loss = row.Loss.Beside(Key{experiment.Benchmark, string(x.Method), states, horizon})
					row.Ratio.Paper = PaperRatio(x.Method, states, horizon)
				}
				rows = append(rows, row)
			}
		}
	}
	return rows, nil
}

// beside estimates the loss of runs and compares it with a reference.
func beside(runs, reference Runs, horizon int) (loss, ratio Estimate, tail Tail, err error) {
	if loss, err = runs.Median(horizon); err != nil {
		return
	}
	if ratio, err = runs.Ratio(reference, horizon); err != nil {
		return
	}
	tail, err = runs.Tail(reference, horizon)
	return
}

// InBenchmark is the paper's number for a quantity of its benchmark, a method's median loss by
// the method's name. It is nil where the paper has none.
func InBenchmark(quantity string, states, horizon int) *Number {
	return Paper(Key{experiment.Benchmark, quantity, states, horizon})
}

// PaperRatio is a method's median loss in the paper's benchmark over exact PMD's: as the paper
// prints it, else the quotient of its medians to two places. It is nil where one is missing.
func PaperRatio(method method.Name, states, horizon int) *Number {
	if printed := InBenchmark(fmt.Sprintf("%s / %s", method, experiment.ExactPMD), states, horizon); printed != nil {
		return printed
	}
	loss, oracle := InBenchmark(string(method), states, horizon), InBenchmark(string(experiment.ExactPMD), states, horizon)
	if loss == nil || oracle == nil || method == experiment.ExactPMD {
		return nil
	}
	return &Number{Value: math.Round(100*loss.Value/oracle.Value) / 100, Where: loss.Where}
}

// DifferenceRow says by how much PolicyAttention's loss lies above another method's.
type DifferenceRow struct {
	Series
	S         int      `json:"s"`
	T         int      `json:"t"`
	OfMedians Estimate `json:"of_medians"`
	ByProblem Estimate `json:"by_problem"`
	Tail      Tail     `json:"tail"` // against the other method
}

// Differences returns PolicyAttention's loss minus another method's in the common
// harness, between runs of the same identity.
func (s *Source) Differences() (rows []DifferenceRow, err error) {
	for _, states := range s.Sizes(experiment.Benchmark) {
		actor, err := s.Find(Selection{Block: experiment.Benchmark, Method: experiment.PolicyAttention, S: states})
		if err != nil {
			return nil, err
		}
		for _, x := range s.BenchmarkSeries() {
			other, err := s.Find(x.In(experiment.Benchmark, states))
			if err != nil {
				return nil, err
			}
			if other.Planned == 0 || x.Method == experiment.PolicyAttention {
				continue
			}
			for _, horizon := range Horizons {
				row := DifferenceRow{Series: x, S: states, T: horizon}
				if row.OfMedians, err = actor.Compare(Difference, other, horizon); err != nil {
					return nil, err
				}
				if row.ByProblem, err = actor.Compare(PairedDifference, other, horizon); err != nil {
					return nil, err
				}
				if row.Tail, err = actor.Tail(other, horizon); err != nil {
					return nil, err
				}
				if x.Quoted {
					row.OfMedians = row.OfMedians.Beside(Key{experiment.Benchmark, "policyattention minus " + string(x.Method), states, horizon})
				}
				rows = append(rows, row)
			}
		}
	}
	return rows, nil
}

// Advantage is a sampled method's loss over PolicyAttention's, at the paper's
// settings and at tuned ones.
type Advantage struct {
	Paper, Tuned Series
	S, T         int
	AtPaper      Estimate
	AtTuned      Estimate
}

// Advantages returns what remains of PolicyAttention's advantage over the sampled
// methods when their step sizes are tuned.
func (s *Source) Advantages() (rows []Advantage, err error) {
	var pairs []Advantage
	for _, m := range s.Store.Preset.Methods {
		for _, r := range m.Retuned {
			pairs = append(pairs, Advantage{Paper: s.Series(m.Name, r[0]), Tuned: s.Series(m.Name, r[1])})
		}
	}
	for _, x := range pairs {
		for _, states := range s.Sizes(experiment.Benchmark) {
			actor, err := s.Find(Selection{Block: experiment.Benchmark, Method: experiment.PolicyAttention, S: states})
			if err != nil {
				return nil, err
			}
			for _, horizon := range Horizons {
				row := x
				row.S, row.T = states, horizon
				for series, to := range map[Series]*Estimate{x.Paper: &row.AtPaper, x.Tuned: &row.AtTuned} {
					other, err := s.Find(series.In(experiment.Benchmark, states))
					if err != nil {
						return nil, err
					}
					if *to, err = other.Ratio(actor, horizon); err != nil {
						return nil, err
					}
				}
				rows = append(rows, row)
			}
		}
	}
	return rows, nil
}

// Comparison is a named estimate of medians, with the tail that they hide.
type Comparison struct {
	Quantity Quantity `json:"quantity"`
	Run      int      `json:"run,omitempty"` // from 1; 0: of all runs
	Estimate Estimate `json:"estimate"`
	Tail     Tail     `json:"tail"` // against the same
}

// Confirmation returns the closed-loop comparisons at S = 4, T = 20, the runs one by
// one first.
func (s *Source) Confirmation() (rows []Comparison, err error) {
	const horizon = 20
	found := map[method.Name]Runs{}
	for _, m := range s.Store.Preset.Methods.Names() {
		if found[m], err = s.Find(Selection{Block: experiment.Confirmation, Method: m, S: 4}); err != nil {
			return nil, err
		}
	}
	actor, oracle := found[experiment.PolicyAttention], found[experiment.ExactPMD]
	for j, run := range experiment.PaperProtocol.Sizes[4].Runs {
		one := Runs{Selection: actor.Selection, Planned: 1}
		one.Seed = run.Model
		one.Found = slices.DeleteFunc(slices.Clone(actor.Found), func(e *experiment.Evaluation) bool { return e.Cell.Seed != run.Model })
		row, err := compared(Quantity(fmt.Sprintf("ratio of run %d to exact PMD", j+1)), Ratio, one, oracle, Key{experiment.Confirmation, fmt.Sprintf("ratio of run %d", j), 4, horizon})
		if err != nil {
			return nil, err
		}
		row.Run = j + 1
		rows = append(rows, row)
	}
	full, reward := found[experiment.LearnedCritic], found[experiment.RewardOnly]
	for _, q := range []struct {
		quantity Quantity
		key      string
		x, y     Runs
		f        Estimator
	}{
		{MedianRatio, "median ratio", actor, oracle, Ratio},
		{"actor minus exact PMD, of medians", "minus exact-pmd", actor, oracle, Difference},
		{"actor minus exact PMD, paired", "minus exact-pmd", actor, oracle, PairedDifference},
		{LearnedCriticRatio, "learned critic ratio", full, oracle, Ratio},
		{"learned critic minus exact PMD", "learned critic minus exact-pmd", full, oracle, Difference},
		{RewardOnlyMinus, "reward-only minus actor", reward, actor, Difference},
		{"reward-only minus learned critic", "reward-only minus full loop", reward, full, Difference},
		{"mixture φ = .01 minus actor", "mixture minus actor", found[experiment.Mixture], actor, Difference},
		{"PMD-target minus actor", "", found[experiment.PMDTarget], actor, Difference},
	} {
		row, err := compared(q.quantity, q.f, q.x, q.y, Key{experiment.Confirmation, q.key, 4, horizon})
		if err != nil {
			return nil, err
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// compared compares runs by an estimator, beside the paper's number of a key, whose
// horizon it takes.
func compared(quantity Quantity, f Estimator, x, y Runs, k Key) (row Comparison, err error) {
	row.Quantity = quantity
	if row.Estimate, err = x.Compare(f, y, k.T); err != nil {
		return row, err
	}
	row.Estimate = row.Estimate.Beside(k)
	row.Tail, err = x.Tail(y, k.T)
	return row, err
}

// ShiftRow compares actors with exact PMD on a family that they were not trained on.
type ShiftRow struct {
	Family  mdp.Family `json:"family"`
	Further bool       `json:"further,omitempty"` // five further identities, not the paper's five
	Ratio   Estimate   `json:"ratio"`
	Tail    Tail       `json:"tail"`
}

// Shifted compares a block's runs with exact PMD on a family, at T = 20.
func (s *Source) Shifted(block experiment.Block, family mdp.Family) (Estimate, Tail, error) {
	oracle, err := s.Find(Selection{Block: experiment.Shift, Method: experiment.ExactPMD, Family: family})
	if err != nil {
		return Estimate{}, Tail{}, err
	}
	runs, err := s.Find(Selection{Block: block, Method: experiment.PolicyAttention, Family: family})
	if err != nil {
		return Estimate{}, Tail{}, err
	}
	ratio, err := runs.Ratio(oracle, 20)
	if err != nil {
		return Estimate{}, Tail{}, err
	}
	tail, err := runs.Tail(oracle, 20)
	return ratio.Beside(Key{experiment.Shift, string(family), 4, 20}), tail, err
}

// Shifts returns the shifts without retraining, the paper's identities and then further
// ones of each family.
func (s *Source) Shifts() (rows []ShiftRow, err error) {
	for _, family := range mdp.Shifts {
		for _, block := range []experiment.Block{experiment.Shift, experiment.ShiftReplication} {
			row := ShiftRow{Family: family, Further: block == experiment.ShiftReplication}
			if row.Ratio, row.Tail, err = s.Shifted(block, family); err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}
