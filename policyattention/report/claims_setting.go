package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/baseline/distill"
	"icrl/policyattention/baseline/lianglai"
	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/results"
	"icrl/policyattention/stats"
	"icrl/policyattention/train"
)

// What the paper fixes before it measures: problems, budgets, interfaces.
func settingClaims() []claim {
	return []claim{
		{
			section: "Table 2", line: 4, says: "the three random families of the shifts have 64 MDPs each, the ring one with 64 initial policies", printed: "64, 64, 64, 1; 64", make: "table claims",
			measure: func(s *source) (*measured, error) {
				m := &measured{ok: true}
				for _, family := range mdp.Shifts {
					problems, err := family.Draw(experiment.Protocol.Sizes[4].Evaluation, 4, experiment.Protocol.Actions, s.Store.Preset.Problems)
					if err != nil {
						return nil, err
					}
					mdps, policies := map[string]bool{}, map[string]bool{}
					for _, p := range problems {
						mdps[fmt.Sprint(p.MDP.P.RawMatrix().Data, p.MDP.R.RawMatrix().Data)] = true
						policies[fmt.Sprint(p.Pi0.RawMatrix().Data)] = true
					}
					want := 64
					if family == mdp.Ring {
						want = 1
					}
					m.ok = m.ok && len(mdps) == want && len(policies) == 64
					if m.text != "" {
						m.text += ", "
					}
					m.text += fmt.Sprintf("%s %d with %d", family, len(mdps), len(policies))
				}
				return m, nil
			},
			judge: holds,
		},
		stated("Section 8.1", "a sampled method sees 20 transitions a round, 400 by T = 20", "20, 400", nil, func() string {
			return fmt.Sprintf("%d, %d", baseline.Window, 20*baseline.Window)
		}),
		stated("Table 4", "Liang–Lai trains on 10,000 MDPs and 10⁷ windows", "10000, 10000000", nil, func() string {
			ll := lianglai.Harness(1, 8)
			return fmt.Sprintf("%d, %d", ll.MDPs, ll.Batch*ll.Steps)
		}),
		stated("Table 4", "Algorithm Distillation learns from 2,000 histories of 1,000 steps and slides a context of 200", "2000, 1000, 200", &sample{experiment.Benchmark, experiment.Distillation, 8, "full"}, func() string {
			ad := distill.Paper(1, 8)
			return fmt.Sprintf("%d, %d, %d", ad.Histories, ad.Length, ad.Context)
		}),
		stated("Section 8.2", "the one repair of Algorithm Distillation: context 800 to 200, batch 32 to 128, 20,000 to 40,000 steps", "800 to 200, 32 to 128, 20000 to 40000", &sample{experiment.Qualification, experiment.Distillation, 8, "first"}, func() string {
			first, ad := distill.FirstAttempt(1, 8), distill.Paper(1, 8)
			return fmt.Sprintf("%d to %d, %d to %d, %d to %d", first.Context, ad.Context, first.Batch, ad.Batch, first.Steps, ad.Steps)
		}),
		{
			section: "App. H", says: "the roots of training, calibration and evaluation are disjoint", printed: "disjoint", make: "table claims",
			measure: func(*source) (*measured, error) {
				uses := map[uint64]int{}
				for _, size := range experiment.Protocol.Sizes {
					for _, run := range slices.Concat(size.Runs, size.More) {
						uses[run.Task]++
						uses[train.CalibrationRoot(run.Task)]++
					}
					for _, root := range []uint64{size.Evaluation, size.Oracle, size.HeldOut, size.Calibration, size.Qualification} {
						if root != 0 {
							uses[root]++
						}
					}
				}
				for _, run := range experiment.Protocol.ZeroShot.Runs {
					uses[run.Task]++
					uses[train.CalibrationRoot(run.Task)]++
				}
				m := &measured{ok: true, text: fmt.Sprintf("%d roots of one use each", len(uses))}
				for root, n := range uses {
					if n > 1 {
						m.ok, m.text = false, fmt.Sprintf("root %d has %d uses", root, n)
					}
				}
				return m, nil
			},
			judge: holds,
		},
	}
}

// Section 8.3: the step sizes of Liang–Lai that calibration chooses on the
// paper's range.
func chosenClaims() (list []claim) {
	for _, states := range []int{8, 16} {
		steps, err := lianglai.PaperSteps(states)
		if err != nil {
			panic(err) // of sizes that the paper has
		}
		list = append(list, claim{
			section: "Section 8.3", says: fmt.Sprintf("among actor steps up to 2, calibration problems choose (α, β) = (%g, %g) for Liang–Lai at S = %d", steps.Alpha, steps.Beta, states),
			printed: fmt.Sprintf("(%g, %g)", steps.Alpha, steps.Beta), make: "evaluate tuning",
			measure: func(s *source) (*measured, error) {
				grid, err := s.grid("", states)
				if err != nil || grid == nil {
					return nil, err
				}
				within := slices.DeleteFunc(slices.Clone(results.Scores(grid)), func(x baseline.Score) bool {
					return x.Alpha > steps.Alpha || x.Start != baseline.Initial
				})
				best, _, err := baseline.Best(within)
				if err != nil {
					return nil, err
				}
				m := &measured{used: []*experiment.Evaluation{grid}, ok: best.Steps == steps}
				m.text = fmt.Sprintf("(%g, %g): %s at T = 20", best.Alpha, best.Beta, number(best.Loss[0]))
				for _, x := range within {
					if x.Steps == steps && !m.ok {
						m.text += fmt.Sprintf(", against %s", number(x.Loss[0]))
					}
				}
				return m, nil
			},
			judge: holds, why: "with so small an actor step the loss hardly depends on β, and the paper gives neither its grid nor its problems",
		})
	}
	return list
}

// The five confirmatory runs one by one. Run j of the paper is not the j-th of
// ours: the identities are fresh.
func runClaims() (list []claim) {
	const states, horizon = 4, 20
	for j, run := range experiment.Protocol.Sizes[states].Runs {
		list = append(list, claim{
			section: "App. E.1", says: fmt.Sprintf("run %d of five at S = 4: ratio to exact PMD, within 1.5", j+1),
			number: key{experiment.Confirmation, fmt.Sprintf("ratio of run %d", j), states, horizon}, make: "evaluate confirmation",
			measure: func(s *source) (*measured, error) {
				runs, _, err := s.find(func(c experiment.Cell) bool {
					return c.Block == experiment.Confirmation && c.Method == experiment.PolicyAttention && c.S == states && c.Seed == run.Model
				})
				if err != nil {
					return nil, err
				}
				oracle, err := s.oracle(states)
				if err != nil || len(runs) == 0 || len(oracle) == 0 {
					return nil, err
				}
				return s.estimate(ratioOf, horizon, runs, oracle, 1)
			},
			judge: withinMargin,
		})
	}
	return list
}

// withoutRing asks whether the shifts meet the criterion if the ring is left
// out.
func withoutRing() claim {
	return claim{
		section: "App. E.1", says: "the shifts meet the criterion without the ring too: the largest ratio of the other three", printed: "1.0138", make: "evaluate shift",
		measure: func(s *source) (*measured, error) {
			m := &measured{value: stats.Estimate{Value: math.Inf(-1)}}
			for _, family := range mdp.Shifts {
				if family == mdp.Ring {
					continue
				}
				x, err := shifted(s, family)
				if err != nil || x == nil {
					return nil, err
				}
				if x.value.Value > m.value.Value {
					m.value, m.text = x.value, fmt.Sprintf("%s (%s)", number(x.value.Value), family)
				}
				m.runs, m.planned, m.used = x.runs, x.planned, append(m.used, x.used...)
			}
			return m, nil
		},
		judge: withinMargin,
	}
}

// shifted compares the actors with exact PMD on a family without retraining.
func shifted(s *source, family mdp.Family) (*measured, error) {
	in := func(method experiment.Method) ([]*experiment.Evaluation, int, error) {
		return s.find(func(c experiment.Cell) bool {
			return c.Block == experiment.Shift && c.Method == method && c.Family == family
		})
	}
	runs, planned, err := in(experiment.PolicyAttention)
	if err != nil {
		return nil, err
	}
	oracle, _, err := in(experiment.ExactPMD)
	if err != nil || len(runs) == 0 || len(oracle) == 0 {
		return nil, err
	}
	return s.estimate(ratioOf, 20, runs, oracle, planned)
}

// withinMargin judges a ratio by the criterion that the protocol fixes.
var withinMargin = &judge{name: fmt.Sprintf("within the margin %v", experiment.Protocol.Margin), ok: func(m *measured, _ Number) bool { return m.value.Value <= experiment.Protocol.Margin }}

// shrinks measures how the refitted step size follows the supplied one: the
// median over runs of the least-squares slope. Below 1 it shrinks toward the
// centre of the training range.
func (x sample) shrinks() func(*source) (*measured, error) {
	return func(s *source) (*measured, error) {
		m, err := x.values(func(e *experiment.Evaluation) float64 {
			_, slope := stat.LinearRegression(e.OneStep.Supplied, e.OneStep.Fitted, nil, false)
			return slope
		})(s)
		if m != nil {
			m.ok = m.value.Value < 1
		}
		return m, err
	}
}

// stated is a claim about the setting, which holds if ours reads as the paper's and
// the runs it is the setting of, if not nil, are there.
func stated(section, says, printed string, of *sample, ours func() string) claim {
	return claim{
		section: section, says: says, printed: printed, make: "table claims",
		measure: func(s *source) (*measured, error) {
			m := &measured{text: ours()}
			m.ok = m.text == printed
			if of != nil {
				var err error
				if m.used, m.planned, err = of.find(s); err != nil || len(m.used) == 0 {
					return nil, err
				}
				m.runs = len(m.used)
			}
			return m, nil
		},
		judge: holds,
	}
}

// lowerClaims hold every run of PolicyAttention against every run of the sampled
// methods (Section 10).
func lowerClaims() (list []claim) {
	for _, states := range []int{8, 16} {
		for _, x := range sampledMethods {
			other := sample{experiment.Benchmark, x.method, states, x.recipe}
			list = append(list, claim{
				section: "Section 10", says: fmt.Sprintf("every run of %s has a higher median loss at T = 20 than every run of PolicyAttention, S = %d", x.label, states), printed: "every", make: other.command(),
				measure: x.entitled(states, other.apart(sample{experiment.Benchmark, experiment.PolicyAttention, states, ""}, 20)), judge: x.judge(holds), why: x.closer, fitted: x.fitted,
			})
		}
	}
	return list
}

// trainingHours measures what trainings took, the least and the most.
func (x sample) trainingHours() func(*source) (*measured, error) {
	return func(s *source) (*measured, error) {
		runs, planned, err := x.find(s)
		if err != nil || len(runs) == 0 {
			return nil, err
		}
		var hours []float64
		unit := "CPU-h"
		for _, r := range runs {
			run, err := s.Store.FindTraining(r.Config.Trainings()[0])
			if err != nil {
				return nil, err
			}
			m := run.Manifest
			if m.Produced.Backend != nil && strings.HasPrefix(m.Produced.Backend.Name, "xla:cuda") {
				hours, unit = append(hours, m.Cost.WallSeconds/3600), "GPU-h"
			} else {
				hours = append(hours, m.Cost.CPUSeconds/3600)
			}
		}
		return &measured{text: fmt.Sprintf("%.2f–%.2f %s", slices.Min(hours), slices.Max(hours), unit), runs: len(runs), planned: planned, used: runs}, nil
	}
}
