package report

import (
	"fmt"
	"iter"
	"math"
	"slices"

	"icrl/policyattention/experiment"
	"icrl/policyattention/method"
	"icrl/policyattention/results"
	"icrl/policyattention/stats"
	"icrl/policyattention/tables"
)

// The measures that claims share. Each returns nil where an artifact is missing.

type measure = func(*source) (*measured, error)

// selection selects the runs of a block, method and size.
func selection(b experiment.Block, m method.Name, states int) results.Selection {
	return results.Selection{Block: b, Method: m, S: states}
}

// ofEstimate wraps an estimate, or nothing where it is missing.
func ofEstimate(e results.Estimate, err error) (*measured, error) {
	if err != nil || e.Runs == 0 {
		return nil, err
	}
	return &measured{Estimate: e}, nil
}

// two finds the runs of two selections.
func (s *source) two(x, y results.Selection) (a, b results.Runs, err error) {
	if a, err = s.Find(x); err == nil {
		b, err = s.Find(y)
	}
	return a, b, err
}

// besideOracle finds runs, and those of exact PMD on the same problems.
func (s *source) besideOracle(x results.Selection) (runs, oracle results.Runs, err error) {
	if runs, err = s.Find(x); err == nil {
		oracle, err = s.Oracle(x.S)
	}
	return runs, oracle, err
}

// loss measures the median loss.
func loss(x results.Selection, horizon int) measure {
	return func(s *source) (*measured, error) {
		runs, err := s.Find(x)
		if err != nil {
			return nil, err
		}
		return ofEstimate(runs.Median(horizon))
	}
}

// versus compares with other runs of the same identities.
func versus(f results.Estimator, x, y results.Selection, horizon int) measure {
	return func(s *source) (*measured, error) {
		a, b, err := s.two(x, y)
		if err != nil {
			return nil, err
		}
		return ofEstimate(a.Compare(f, b, horizon))
	}
}

// versusOracle compares with exact PMD on the same problems.
func versusOracle(f results.Estimator, x results.Selection, horizon int) measure {
	return func(s *source) (*measured, error) {
		runs, oracle, err := s.besideOracle(x)
		if err != nil {
			return nil, err
		}
		return ofEstimate(runs.Compare(f, oracle, horizon))
	}
}

// values measures the median over runs of a number of each evaluation, with the range
// over runs.
func values(x results.Selection, of func(*experiment.Evaluation) float64) measure {
	return func(s *source) (*measured, error) {
		runs, err := s.Find(x)
		if err != nil || len(runs.Found) == 0 {
			return nil, err
		}
		v := runs.Values(of)
		return &measured{
			value: stats.Median(v), lo: slices.Min(v), hi: slices.Max(v),
			runs: len(v), planned: runs.Planned, used: runs.Found,
		}, nil
	}
}

// every asks whether a predicate holds for all runs, and counts those for which it does.
func every(x results.Selection, of func(*experiment.Evaluation) bool) measure {
	return func(s *source) (*measured, error) {
		runs, err := s.Find(x)
		if err != nil || len(runs.Found) == 0 {
			return nil, err
		}
		n := 0
		for _, r := range runs.Found {
			if of(r) {
				n++
			}
		}
		return &measured{text: fmt.Sprintf("in %d of %d runs", n, len(runs.Found)), ok: n == len(runs.Found), runs: len(runs.Found), planned: runs.Planned, used: runs.Found}, nil
	}
}

// apart asks whether every run of x has a median above every run of y.
func apart(x, y results.Selection, horizon int) measure {
	return func(s *source) (*measured, error) {
		a, b, err := s.two(x, y)
		if err != nil || len(a.Found) == 0 || len(b.Found) == 0 {
			return nil, err
		}
		high, low := a.Medians(horizon), b.Medians(horizon)
		t, err := a.Tail(b, horizon)
		return &measured{
			tail: t,
			text: fmt.Sprintf("%s above %s", extent(high), extent(low)), ok: slices.Min(high) > slices.Max(low),
			runs: min(len(high), len(low)), planned: a.Planned, used: slices.Concat(a.Found, b.Found),
		}, err
	}
}

// tail says how far the worst problems of runs lie behind exact PMD.
func tail(x results.Selection, horizon int) measure {
	return func(s *source) (*measured, error) {
		runs, oracle, err := s.besideOracle(x)
		if err != nil {
			return nil, err
		}
		t, err := runs.Tail(oracle, horizon)
		if err != nil || t.Runs == 0 {
			return nil, err
		}
		return &measured{Estimate: t.RatioOfMeans, text: tailText(t)}, nil
	}
}

// tailText prints a tail in words.
func tailText(t results.Tail) string {
	return fmt.Sprintf("ratio of means %s; excess over exact PMD: mean %s, 99th percentile %s, worst %s; %s %% of problems more than %g behind",
		tables.Estimate(t.RatioOfMeans.Value, t.RatioOfMeans.Lo, t.RatioOfMeans.Hi), tables.Number(t.Mean), tables.Number(t.P99), tables.Number(t.Worst), tables.Number(100*t.Behind), results.BehindBy)
}

// blocks are the whole blocks of 64 of our MDPs.
func blocks(losses []float64) iter.Seq[[]float64] {
	const size = 64 // as many as the paper has
	return slices.Chunk(losses[:len(losses)/size*size], size)
}

// among measures exact PMD's median loss, and asks whether the paper's number lies where
// medians of 64 of our MDPs, taken in turn, lie.
func among(states, horizon int, n *results.Number) measure {
	return func(s *source) (*measured, error) {
		runs, err := s.Find(selection(experiment.Oracle, experiment.ExactPMD, states))
		if err != nil || len(runs.Found) == 0 {
			return nil, err
		}
		lo, hi := math.Inf(1), math.Inf(-1)
		for block := range blocks(runs.Found[0].Losses(horizon)) {
			lo, hi = min(lo, stats.Median(block)), max(hi, stats.Median(block))
		}
		m, err := ofEstimate(runs.Median(horizon))
		if m != nil {
			m.ok = lo <= n.Value && n.Value <= hi
		}
		return m, err
	}
}

// growth measures the ratio of median losses of two sizes, with the range over pairs of
// runs, and that of mean losses.
func growth(x, y results.Selection, horizon int) measure {
	return func(s *source) (*measured, error) {
		small, large, err := s.two(x, y)
		if err != nil || len(small.Found) == 0 || len(large.Found) == 0 {
			return nil, err
		}
		a, b := small.Medians(horizon), large.Medians(horizon)
		m := &measured{value: stats.Median(b) / stats.Median(a), runs: min(len(a), len(b)), planned: large.Planned, used: slices.Concat(small.Found, large.Found)}
		if len(a) > 1 {
			m.lo, m.hi = slices.Min(b)/slices.Max(a), slices.Max(b)/slices.Min(a)
		}
		means := func(r results.Runs) float64 {
			return stats.Median(r.Values(func(e *experiment.Evaluation) float64 { return stats.Mean(e.Losses(horizon)) }))
		}
		m.text = fmt.Sprintf("%s, of means %s", m, tables.Number(means(large)/means(small)))
		return m, nil
	}
}
