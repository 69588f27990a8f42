package results

import (
	"fmt"
	"math"
	"sync"

	"golang.org/x/sync/errgroup"

	"icrl/policyattention/control"
	"icrl/policyattention/decoder"
	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
	"icrl/policyattention/stats"
)

// DecoderRoot is the root of the problems of the decoder's studies. The
// decoder's results are a matter of seconds and need no artifact.
const DecoderRoot = 44100

// DecoderCaps are the caps in the paper's harness.
func (s *Source) DecoderCaps(packets int, routing float64) decoder.Caps {
	return decoder.Caps{
		States: s.LectureSize(experiment.Benchmark), Actions: experiment.PaperProtocol.Actions, Gamma: mdp.Discount, RMax: 1,
		EtaMin: experiment.PaperProtocol.Eta, EtaMax: experiment.PaperProtocol.Eta, Rounds: experiment.PaperProtocol.Rounds,
		Routing: routing, Alpha: .05, Packets: packets,
	}
}

// remembered returns f with a memory: what several tables and figures show, and no
// artifact changes, is worked out once in a process.
func remembered[K comparable, V any](f func(K) (V, error)) func(K) (V, error) {
	var answers sync.Map // func() (V, error) by K
	return func(k K) (V, error) {
		answer, _ := answers.LoadOrStore(k, sync.OnceValues(func() (V, error) { return f(k) }))
		return answer.(func() (V, error))()
	}
}

// decoderRuns are the runs of the decoder for the caps on n problems.
type decoderRuns struct {
	caps decoder.Caps
	n    int
}

// RunDecoder runs the decoder for the caps on n problems in the sampled
// environment. Nobody may take a further step of the runs, which others see too.
func RunDecoder(caps decoder.Caps, n int) ([]*decoder.Runner, error) {
	return runDecoders(decoderRuns{caps, n})
}

var runDecoders = remembered(decoderRuns.run)

func (r decoderRuns) run() ([]*decoder.Runner, error) {
	caps, n := r.caps, r.n
	d, err := decoder.New(caps)
	if err != nil {
		return nil, err
	}
	problems, err := mdp.Random.Draw(DecoderRoot, caps.States, caps.Actions, n)
	if err != nil {
		return nil, err
	}
	runs := make([]*decoder.Runner, n)
	var group errgroup.Group
	for i, problem := range problems {
		group.Go(func() error {
			q0, err := problem.MDP.PolicyValue(problem.Pi0)
			if err != nil {
				return err
			}
			if runs[i], err = d.Start(problem, q0, caps.EtaMax, decoder.Sampled(seed.New(DecoderRoot, i).Uint64())); err != nil {
				return err
			}
			for range caps.Rounds {
				if _, err := runs[i].Step(); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return runs, group.Wait()
}

// AuditDecoder runs the decoder on the preset's number of problems and returns
// the audit rows of all of them.
func (s *Source) AuditDecoder(packets int) ([]*decoder.Runner, []decoder.AuditRow, error) {
	runs, err := RunDecoder(s.DecoderCaps(packets, 1e-6), s.Store.Preset.Problems)
	if err != nil {
		return nil, nil, err
	}
	var rows []decoder.AuditRow
	for _, run := range runs {
		audit, err := run.Audit(experiment.PaperProtocol.Horizons...)
		if err != nil {
			return nil, nil, err
		}
		rows = append(rows, audit...)
	}
	return runs, rows, nil
}

// DecoderLosses returns the median normalized loss of runs by round [T+1].
func DecoderLosses(runs []*decoder.Runner) []float64 {
	medians := []float64{1}
	for k := range runs[0].Rounds {
		var losses []float64
		for _, r := range runs {
			losses = append(losses, r.Rounds[k].Distance/r.Gap)
		}
		medians = append(medians, stats.Median(losses))
	}
	return medians
}

// ExactOn scores exact PMD on the problems of the runs.
func ExactOn(runs []*decoder.Runner) (*experiment.Evaluation, error) {
	var problems []mdp.Problem
	for _, r := range runs {
		problems = append(problems, r.Problem)
	}
	trajectories, err := control.ExactPMD(runs[0].Eta).Run(problems, len(runs[0].Rounds))
	if err != nil {
		return nil, err
	}
	scored, err := control.Score(problems, trajectories)
	return &experiment.Evaluation{Scored: scored}, err
}

// carrierScales are the scales H of the carrier figure.
var carrierScales = func() (scales []float64) {
	for e := 2.0; e <= 11; e += .5 {
		scales = append(scales, math.Pow(10, e))
	}
	return scales
}()

// SweepCarrier compares normalized decoders with the one they come from.
func (s *Source) SweepCarrier() ([]decoder.CarrierPoint, error) {
	caps := s.DecoderCaps(6, 1e-3)
	caps.Phi, caps.Floor = experiment.PaperProtocol.Mixture, experiment.PaperProtocol.Mixture/float64(caps.Actions)
	return sweepCaps(caps)
}

var sweepCaps = remembered(sweep)

func sweep(caps decoder.Caps) ([]decoder.CarrierPoint, error) {
	problems, err := mdp.Random.Draw(DecoderRoot, caps.States, caps.Actions, 4)
	if err != nil {
		return nil, err
	}
	var contexts []control.Context
	for i, problem := range problems {
		pi, err := pmd.Mix(problem.Pi0, caps.Phi)
		if err != nil {
			return nil, err
		}
		q, err := problem.MDP.PolicyValue(pi)
		if err != nil {
			return nil, err
		}
		contexts = append(contexts, control.Context{Problem: i, MDP: problem.MDP, Pi: pi, Q: q, Eta: caps.EtaMax})
	}
	return decoder.SweepCarrier(caps, contexts, decoder.Sampled(DecoderRoot), carrierScales)
}

// CarrierQuantities are the measured columns of a sweep with the formula or
// bound above each.
var CarrierQuantities = []struct {
	Name            string
	Measured, Above func(decoder.CarrierPoint) float64
}{
	{"1 − ρ", func(p decoder.CarrierPoint) float64 { return p.Defect }, func(p decoder.CarrierPoint) float64 { return p.Predicted }},
	{"actor", func(p decoder.CarrierPoint) float64 { return p.Actor }, func(p decoder.CarrierPoint) float64 { return p.ActorBound }},
	{"critic", func(p decoder.CarrierPoint) float64 { return p.Critic }, func(p decoder.CarrierPoint) float64 { return p.CriticBound }},
}

// CarrierSlope fits the power of H with which a measured error falls, over the
// scales at which the defect is small and its formula still tells it within 1%.
func CarrierSlope(sweep []decoder.CarrierPoint, measured func(decoder.CarrierPoint) float64) (slope float64, n int) {
	var h, e []float64
	for _, p := range sweep {
		if p.Predicted < 1e-2 && math.Abs(p.Defect/p.Predicted-1) < 1e-2 && measured(p) > 0 {
			h, e = append(h, p.H), append(e, measured(p))
		}
	}
	if len(h) < 2 {
		return math.NaN(), len(h)
	}
	return stats.LogSlope(h, e), len(h)
}

// DecoderRow is a quantity of the fixed decoder.
type DecoderRow struct {
	Quantity string
	Formula  string  // of the paper, where it prints no number
	Paper    *Number // its number, nil where it has none
	Bound    *float64
	Here     float64
}

// DecoderStudy is what the decoder does on the preset's number of problems.
type DecoderStudy struct {
	Caps decoder.Caps
	B    float64 // of the certificate: no |Q| exceeds it
	Rows []DecoderRow
}

// Decoder runs the fixed decoder with six packets, and sets what it does beside its bounds.
func (s *Source) Decoder() (d DecoderStudy, err error) {
	d.Caps = s.DecoderCaps(6, 1e-6)
	c, err := decoder.Certify(d.Caps)
	if err != nil {
		return d, err
	}
	d.B = c.B
	runs, audit, err := s.AuditDecoder(6)
	if err != nil {
		return d, err
	}
	largest := func(of func(decoder.Round) float64) float64 {
		top := 0.0
		for _, r := range runs {
			for _, k := range r.Rounds {
				top = max(top, of(k))
			}
		}
		return top
	}
	violations, none := 0, 0.0
	var slacks []float64
	for _, r := range audit {
		if !r.Satisfied() {
			violations++
		}
		slacks = append(slacks, r.Slack)
	}
	add := func(r DecoderRow) { d.Rows = append(d.Rows, r) }
	l := decoder.NewLayout(d.Caps.States, d.Caps.Actions)
	add(DecoderRow{Quantity: "width", Formula: "6S+6A+14", Here: float64(l.Width())})
	add(DecoderRow{Quantity: "head dimension", Formula: "S+A+3", Here: float64(l.HeadDim())})
	add(DecoderRow{Quantity: "largest actor residual ζ", Formula: "2R/(1+R)", Bound: &c.Zeta, Here: largest(func(k decoder.Round) float64 { return k.Zeta })})
	add(DecoderRow{Quantity: "largest routing residual", Formula: "2B(γλ₁+λ₂)", Bound: &c.DeltaRoute, Here: largest(func(k decoder.Round) float64 { return k.Route })})
	add(DecoderRow{Quantity: "largest sampling error, m = 6", Formula: "B√(2 log(2SAK/α)/m)", Bound: &c.DeltaStat, Here: largest(func(k decoder.Round) float64 { return k.Sampling })})
	add(DecoderRow{Quantity: "audited rows of Theorem 2", Paper: Paper(Key{Block: "audit", Quantity: "rows"}), Here: float64(len(audit))})
	add(DecoderRow{Quantity: "violations", Paper: Paper(Key{Block: "audit", Quantity: "violations"}), Bound: &none, Here: float64(violations)})
	add(DecoderRow{Quantity: "median slack", Paper: Paper(Key{Block: "audit", Quantity: "median slack"}), Here: stats.Median(slacks)})
	sweep, err := s.SweepCarrier()
	if err != nil {
		return d, err
	}
	for _, q := range CarrierQuantities {
		slope, n := CarrierSlope(sweep, q.Measured)
		add(DecoderRow{Quantity: fmt.Sprintf("power of H, %s (%d scales)", q.Name, n), Formula: "−2", Here: slope})
	}
	exact, err := ExactOn(runs)
	if err != nil {
		return d, err
	}
	losses := DecoderLosses(runs)
	for _, t := range Horizons {
		add(DecoderRow{Quantity: fmt.Sprintf("median loss at T = %d, exact PMD", t), Paper: Paper(Key{Block: experiment.Oracle, Quantity: "exact-pmd", S: d.Caps.States, T: t}), Here: exact.MedianLosses()[t]})
		add(DecoderRow{Quantity: fmt.Sprintf("median loss at T = %d, decoder with m = 6", t), Here: losses[t]})
	}
	return d, nil
}
