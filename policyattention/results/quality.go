package results

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"icrl/policyattention/experiment"
	"icrl/policyattention/stats"
)

// Bar is what the loss of an actor is held to: a loss, or a multiple of exact PMD's on the same
// problems.
type Bar struct {
	Name  string  `json:"name"`
	Limit float64 `json:"limit"`
	Ratio bool    `json:"ratio,omitempty"` // Limit is a multiple of exact PMD's loss
	Means bool    `json:"means,omitempty"` // over problems, in place of medians
	Paper *Number `json:"paper,omitempty"` // of which the bar is made
}

// NearPMD is the multiple of exact PMD's loss that counts as having reached it.
const NearPMD = 1.05

// NearPMDName is what that bar is called.
var NearPMDName = fmt.Sprintf("%v × exact PMD", NearPMD)

// Bars returns what a loss at size S and horizon T is held to. The bars were written down before
// any run of block quality was looked at.
func Bars(states, horizon int) (bars []Bar) {
	actor := string(experiment.PolicyAttention)
	if n := Paper(Key{experiment.Benchmark, actor, states, horizon}); n != nil {
		bars = append(bars, Bar{Name: "the paper's loss", Limit: n.Value, Paper: n})
	}
	ratio := Paper(Key{experiment.Benchmark, actor + " / " + string(experiment.ExactPMD), states, horizon})
	if ratio == nil {
		ratio = Paper(Key{experiment.Confirmation, "median ratio", states, horizon})
	}
	if ratio != nil {
		bars = append(bars, Bar{Name: "the paper's ratio", Limit: ratio.Value, Ratio: true, Paper: ratio})
	}
	return append(bars,
		Bar{Name: NearPMDName, Limit: NearPMD, Ratio: true},
		Bar{Name: NearPMDName + ", means", Limit: NearPMD, Ratio: true, Means: true})
}

// clears reports whether summaries over problems of an actor's and exact PMD's losses are within
// the bar.
func (b Bar) clears(loss, exact float64) bool {
	if b.Ratio {
		return loss <= b.Limit*exact
	}
	return loss <= b.Limit
}

// Course is an identity along training, from block quality and from all others that look at
// its weights. The learning rate is constant and the released average depends on the steps so far
// alone, so that the weights after n steps of a longer run are those of a run of n steps.
type Course struct {
	Seed  uint64
	After map[int]*experiment.Evaluation // by step
	// SecondsPerStep is the processor time of a step, of its shortest training run with all
	// that the run did besides: drawing contexts and compiling.
	SecondsPerStep float64
}

// along are the blocks that look at an actor with the exact critic on the evaluation problems.
var along = []experiment.Block{
	experiment.Quality, experiment.Frontier, experiment.Ablation, experiment.Confirmation,
	experiment.Benchmark, experiment.Prior, experiment.Replication,
}

// Along returns the identities of a recipe and size that were looked at before the last step of
// the preset's budget.
func (s *Source) Along(recipe string, states int) ([]Course, error) {
	found, err := s.Where(func(c experiment.Cell) bool {
		return c.Method == experiment.PolicyAttention && c.Recipe == recipe && c.S == states && slices.Contains(along, c.Block)
	})
	if err != nil {
		return nil, err
	}
	bySeed, shortest := map[uint64]*Course{}, map[uint64]int{}
	for _, e := range found.Found {
		training, seed := e.Config.Trainings()[0], e.Cell.Seed
		run, err := s.Training(training)
		if err != nil {
			return nil, err
		}
		if run == nil { // without it nothing says what the steps took
			continue
		}
		p := bySeed[seed]
		if p == nil {
			p = &Course{Seed: seed, After: map[int]*experiment.Evaluation{}}
			bySeed[seed], shortest[seed] = p, math.MaxInt
		}
		if steps := training.Budget(); steps < shortest[seed] {
			shortest[seed], p.SecondsPerStep = steps, run.Manifest.Cost.CPUSeconds/float64(steps)
		}
		if e.Along == nil {
			p.After[e.Config.Step()] = e
		}
		for _, at := range e.Along {
			p.After[at.Cell.Step] = at
		}
	}
	var all []Course
	for _, seed := range slices.Sorted(maps.Keys(bySeed)) {
		p := bySeed[seed]
		if slices.Min(slices.Collect(maps.Keys(p.After))) < s.Store.Preset.Steps {
			all = append(all, *p)
		}
	}
	return all, nil
}

// Reached is the first step, of those looked at, after which an identity's loss is within a bar;
// +Inf where it is after none.
type Reached struct {
	Seed        uint64 `json:"seed"`
	Steps       finite `json:"steps"`
	CoreSeconds finite `json:"core_seconds"`
	Again       bool   `json:"again,omitempty"` // the loss is above the bar after a later step
	Furthest    int    `json:"furthest"`        // step that was looked at
	at          *experiment.Evaluation
}

// There reports whether the bar is reached.
func (r Reached) There() bool { return r.at != nil }

// TimeToQuality says after how many steps of training a recipe's losses are within a bar.
type TimeToQuality struct {
	Recipe string    `json:"recipe"`
	S      int       `json:"s"`
	T      int       `json:"t"`
	Bar    Bar       `json:"bar"`
	ByRun  []Reached `json:"by_run"`
	// Steps are a median over runs with an interval over runs and problems, in which +Inf
	// stands for what is not reached; SecondsPerStep is the runs' median.
	Steps          Estimate `json:"steps"`
	SecondsPerStep float64  `json:"seconds_per_step"` // of processor time
	// Furthest is the last step that all identities short of the bar were looked at after, or all
	// identities where none is short of it; Budget is the preset's.
	Furthest int `json:"furthest"`
	Budget   int `json:"budget"`
	// Tail is of the runs that reach the bar, after the step where they do, against exact PMD.
	Tail Tail `json:"tail"`
}

// BriefRecipes are the recipes that Times compares.
var BriefRecipes = []string{"plain", "prior"}

// CourseSizes lists the sizes at which the plan looks at actors along training, ascending.
func (s *Source) CourseSizes() []int {
	sizes := slices.Concat(s.Sizes(experiment.Quality), s.Sizes(experiment.Frontier))
	slices.Sort(sizes)
	return slices.Compact(sizes)
}

// Times returns the steps to each bar by recipe, size and horizon.
func (s *Source) Times() (rows []TimeToQuality, err error) {
	for _, recipe := range BriefRecipes {
		for _, states := range s.CourseSizes() {
			all, err := s.Along(recipe, states)
			if err != nil {
				return nil, err
			}
			oracle, err := s.Oracle(states)
			if err != nil {
				return nil, err
			}
			if len(all) == 0 || len(oracle.Found) == 0 {
				continue
			}
			for _, horizon := range Horizons {
				for _, bar := range Bars(states, horizon) {
					row := TimeToQuality{Recipe: recipe, S: states, T: horizon, Bar: bar, Budget: s.Store.Preset.Steps}
					if err := row.measure(all, oracle); err != nil {
						return nil, err
					}
					rows = append(rows, row)
				}
			}
		}
	}
	return rows, nil
}

// measure fills in what the bar makes of the identities.
func (r *TimeToQuality) measure(all []Course, oracle Runs) error {
	exact := oracle.Found[0].Losses(r.T)
	summary := stats.Median
	if r.Bar.Means {
		summary = stats.Mean
	}
	target := summary(exact)
	x := Selection{Method: experiment.PolicyAttention, Recipe: r.Recipe, S: r.S}
	reached := Runs{Selection: x, Planned: len(all)}
	var rates []float64
	for _, p := range all {
		run := Reached{Seed: p.Seed, Steps: finite(math.Inf(1))}
		for _, step := range slices.Sorted(maps.Keys(p.After)) {
			clears := r.Bar.clears(summary(p.After[step].Losses(r.T)), target)
			if clears && run.at == nil {
				run.Steps, run.at = finite(step), p.After[step]
			}
			run.Again = run.Again || run.at != nil && !clears
			run.Furthest = step
		}
		run.CoreSeconds = run.Steps * finite(p.SecondsPerStep)
		if run.at != nil {
			reached.Found = append(reached.Found, run.at)
		}
		r.ByRun, rates = append(r.ByRun, run), append(rates, p.SecondsPerStep)
	}
	short := slices.DeleteFunc(slices.Clone(r.ByRun), Reached.There)
	if len(short) == 0 {
		short = r.ByRun
	}
	r.Furthest = slices.MinFunc(short, func(x, y Reached) int { return cmp.Compare(x.Furthest, y.Furthest) }).Furthest
	r.Steps = Estimate{Estimator: FirstStep, X: x, T: r.T, Runs: len(all), Planned: len(all)}
	steps, samples := curves(all, len(exact), r.T)
	var err error
	if r.Steps.Estimate, err = stats.Standard.First(steps, r.Bar.Means, r.Bar.clears, slices.Repeat([][]float64{exact}, len(all)), samples...); err != nil {
		return err
	}
	r.SecondsPerStep = stats.Median(rates)
	r.Tail, err = reached.Tail(oracle, r.T)
	return err
}

// curves returns the steps that any identity was looked at after, ascending, and the losses of
// all identities after each [runs][problems], +Inf where one was not looked at.
func curves(all []Course, problems, horizon int) (steps []float64, samples [][][]float64) {
	looked := map[int]bool{}
	for _, p := range all {
		for step := range p.After {
			looked[step] = true
		}
	}
	for _, step := range slices.Sorted(maps.Keys(looked)) {
		sample := make([][]float64, len(all))
		for j, p := range all {
			if e := p.After[step]; e != nil {
				sample[j] = e.Losses(horizon)
			} else {
				sample[j] = slices.Repeat([]float64{math.Inf(1)}, problems)
			}
		}
		steps, samples = append(steps, float64(step)), append(samples, sample)
	}
	return steps, samples
}
