package report

import (
	"fmt"
	"image/color"
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"icrl/policyattention/control"
	"icrl/policyattention/decoder"
	"icrl/policyattention/decoder/network"
	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/plots"
	"icrl/policyattention/pmd"
	"icrl/policyattention/results"
	"icrl/policyattention/seed"
)

// residualsFigure shows a run's residuals under their bounds.
func residualsFigure(s *source) ([]*plots.Panel, error) {
	a := plots.NewPanel("(a) actor ζ, bound dashed", "round", "row-L1")
	b := plots.NewPanel("(b) critic routing, bound dashed", "round", "units of Q")
	c := plots.NewPanel("(c) critic sampling, bound dashed", "round", "units of Q")
	add := func(p *plots.Panel, i int, name string, run *decoder.Runner, value, bound func(decoder.Round) float64) {
		var values, bounds []float64
		for _, k := range run.Rounds {
			values, bounds = append(values, value(k)), append(bounds, bound(k))
		}
		p.Name(name, p.Line(plots.Palette[i], false, positive(values)))
		dashed := p.Line(plots.Palette[i], true, positive(bounds))
		dashed.Width = 1.2
	}
	for i, routing := range []float64{1e-1, 1e-3, 1e-6} {
		runs, err := results.RunDecoder(s.DecoderCaps(6, routing), 1)
		if err != nil {
			return nil, err
		}
		name := fmt.Sprintf("ε_r = %g", routing)
		add(a, i, name, runs[0], func(k decoder.Round) float64 { return k.Zeta }, func(k decoder.Round) float64 { return k.ZetaBound })
		add(b, i, name, runs[0], func(k decoder.Round) float64 { return k.Route }, func(k decoder.Round) float64 { return k.RouteBound })
	}
	for i, m := range []int{6, 24, 96} {
		runs, err := results.RunDecoder(s.DecoderCaps(m, 1e-6), 1)
		if err != nil {
			return nil, err
		}
		add(c, i, fmt.Sprintf("m = %d", m), runs[0], func(k decoder.Round) float64 { return k.Sampling }, func(decoder.Round) float64 { return runs[0].Decoder.DeltaStat })
	}
	panels := []*plots.Panel{a, b, c}
	for _, p := range panels {
		plots.LogScale(&p.Y)
	}
	return panels, nil
}

// auditFigure shows Theorem 2 term by term, its slack, and what sampling costs.
func auditFigure(s *source) ([]*plots.Panel, error) {
	a := plots.NewPanel("(a) one run, terms of Theorem 2", "horizon T", "units of Q")
	b := plots.NewPanel("(b) all runs: loss under bound", "bound", "realized ‖Q* − Q^π‖∞")
	c := plots.NewPanel("(c) loss in the loop", "round", "median normalized loss")
	runs, rows, err := s.AuditDecoder(6)
	if err != nil {
		return nil, err
	}
	termsPanel(a, runs[0])
	var xy plotter.XYs
	lo, hi := math.Inf(1), 0.0
	for _, r := range rows {
		if r.Loss > 0 {
			xy = append(xy, plotter.XY{X: r.Bound.Total(), Y: r.Loss})
			lo, hi = min(lo, r.Bound.Total()), max(hi, r.Bound.Total())
		}
	}
	dots := b.Points(plots.Palette[0], false, xy)
	dots.Radius = 1.5
	b.Legend.Add("loss = bound", b.Line(plots.Grey, true, plotter.XYs{{X: lo, Y: lo}, {X: hi, Y: hi}}))
	b.Legend.Left = true
	plots.LogScale(&b.X)

	for i, m := range []int{6, 24} {
		if m != 6 {
			if runs, _, err = s.AuditDecoder(m); err != nil {
				return nil, err
			}
		}
		c.Name(fmt.Sprintf("decoder, m = %d", m), c.Line(plots.Palette[i], false, positive(results.DecoderLosses(runs))))
	}
	exact, err := results.ExactOn(runs)
	if err != nil {
		return nil, err
	}
	c.Name("exact PMD", c.Line(color.Black, true, positive(exact.MedianLosses())))
	panels := []*plots.Panel{a, b, c}
	for i, p := range panels {
		plots.LogScale(&p.Y)
		p.Headroom([]int{0, 1, 0}[i])
	}
	return panels, nil
}

// termsPanel draws the terms of Theorem 2 in one run.
func termsPanel(a *plots.Panel, run *decoder.Runner) {
	for i, q := range []struct {
		name  string
		value func(decoder.Round) float64
	}{
		{"initial error", func(k decoder.Round) float64 { return k.Bound.Initial }},
		{"critic residuals", func(k decoder.Round) float64 { return k.Bound.Critic }},
		{"greedy defects", func(k decoder.Round) float64 { return k.Bound.Greedy }},
		{"last defect", func(k decoder.Round) float64 { return k.Bound.Last }},
		{"realized", func(k decoder.Round) float64 { return k.Distance }},
		{"bound", func(k decoder.Round) float64 { return k.Bound.Total() }},
	} {
		var xy plotter.XYs
		for _, k := range run.Rounds {
			if v := q.value(k); v > 0 {
				xy = append(xy, plotter.XY{X: float64(k.Index + 1), Y: v})
			}
		}
		a.Name(q.name, a.Line(plots.Palette[i], false, xy))
	}
}

// attentionFigure shows the attention weights of one actor and one critic call
// of the [decoder.Lecture] decoder.
func attentionFigure(*source) ([]*plots.Panel, error) {
	caps := decoder.Lecture.Caps
	d, err := decoder.New(caps)
	if err != nil {
		return nil, err
	}
	problems, err := mdp.Random.Draw(decoder.Lecture.Root, caps.States, caps.Actions, 1)
	if err != nil {
		return nil, err
	}
	env, pi := problems[0].MDP, problems[0].Pi0
	q, err := env.PolicyValue(pi)
	if err != nil {
		return nil, err
	}
	actor, err := d.TraceActor(pi, q, caps.EtaMax)
	if err != nil {
		return nil, err
	}
	next, err := d.Improve(pi, q, caps.EtaMax)
	if err != nil {
		return nil, err
	}
	critic, err := d.TraceCritic(next, q, decoder.Sample(env, next, d.Packets, seed.New(decoder.Lecture.Root, "packets")))
	if err != nil {
		return nil, err
	}
	pairs := caps.States * caps.Actions
	memories := group{"memories", pairs}
	packets := []group{memories, {"packets", pairs * d.Packets}, {"queries", pairs}}
	return []*plots.Panel{
		attentionPanel("(a) actor head", &actor.Blocks[0].Heads[0], []group{memories, {"queries", caps.States}}),
		attentionPanel("(b) lookup head", &critic.Blocks[0].Heads[1], packets),
		attentionPanel("(c) predecessor head", &critic.Blocks[1].Heads[0], packets),
	}, nil
}

// group is a run of tokens of one role.
type group struct {
	name string
	size int
}

func attentionPanel(title string, head *network.HeadTrace, groups []group) *plots.Panel {
	p := plots.NewPanel(title, "attended token", "attending token")
	n := len(head.Query)
	weights := mat.NewDense(n, n, nil)
	for i := range n {
		for j, w := range head.Weights(i) {
			weights.Set(i, j, w)
		}
	}
	var ticks, down plot.ConstantTicks
	start := 0
	for _, g := range groups {
		middle := float64(start) + float64(g.size)/2
		ticks = append(ticks, plot.Tick{Value: middle, Label: g.name})
		down = append(down, plot.Tick{Value: float64(n) - middle, Label: g.name})
		start += g.size
	}
	p.X.Tick.Marker, p.Y.Tick.Marker = ticks, down
	p.Y.Tick.Label.Rotation, p.Y.Tick.Label.XAlign, p.Y.Tick.Label.YAlign = math.Pi/2, draw.XCenter, draw.YBottom
	p.X.Tick.Length, p.Y.Tick.Length = 0, 0
	p.Add(attention{weights, groups})
	return p
}

// attention draws weights [N, N] as a lower triangle, row 0 on top, dark for 1.
type attention struct {
	weights *mat.Dense
	groups  []group
}

// Plot implements plot.Plotter.
func (a attention) Plot(c draw.Canvas, p *plot.Plot) {
	n, _ := a.weights.Dims()
	x, y := p.Transforms(&c)
	cell := func(i, j int, shade color.Color) {
		top, left := float64(n-i), float64(j)
		c.FillPolygon(shade, []vg.Point{{X: x(left), Y: y(top)}, {X: x(left + 1), Y: y(top)}, {X: x(left + 1), Y: y(top - 1)}, {X: x(left), Y: y(top - 1)}})
	}
	for i := range n {
		for j := range i + 1 {
			w := a.weights.At(i, j)
			if w < 1e-2 {
				continue // paler than can be seen
			}
			cell(i, j, color.RGBA{uint8(255 - 255*w), uint8(255 - 141*w), uint8(255 - 77*w), 255})
		}
	}
	style := draw.LineStyle{Color: plots.Grey, Width: vg.Points(.5)}
	size := float64(n)
	stairs := []vg.Point{{X: x(0), Y: y(size)}} // no token attends beyond itself
	for i := 1.0; i <= size; i++ {
		stairs = append(stairs, vg.Point{X: x(i), Y: y(size - i + 1)}, vg.Point{X: x(i), Y: y(size - i)})
	}
	c.StrokeLines(style, stairs)
	at := 0
	for _, g := range a.groups {
		at += g.size
		c.StrokeLines(style, []vg.Point{{X: x(float64(at)), Y: y(0)}, {X: x(float64(at)), Y: y(size)}})
		c.StrokeLines(style, []vg.Point{{X: x(0), Y: y(size - float64(at))}, {X: x(size), Y: y(size - float64(at))}})
	}
}

// DataRange implements plot.DataRanger.
func (a attention) DataRange() (xmin, xmax, ymin, ymax float64) {
	n, _ := a.weights.Dims()
	return 0, float64(n), 0, float64(n)
}

func carrierFigure(s *source) ([]*plots.Panel, error) {
	sweep, err := s.SweepCarrier()
	if err != nil {
		return nil, err
	}
	var panels []*plots.Panel
	for i, q := range results.CarrierQuantities {
		p := plots.NewPanel("("+string(rune('a'+i))+") "+q.Name, "carrier scale H", []string{"largest over tokens", "row-L1", "distance, units of Q"}[i])
		var measured, above plotter.XYs
		for _, x := range sweep {
			if y := q.Measured(x); y > 0 {
				measured = append(measured, plotter.XY{X: x.H, Y: y})
			}
			above = append(above, plotter.XY{X: x.H, Y: q.Above(x)})
		}
		slope, _ := results.CarrierSlope(sweep, q.Measured)
		dots := p.Points(plots.Palette[i], true, measured)
		dots.Radius = 2
		p.Legend.Add(fmt.Sprintf("measured, slope %.3f", slope), dots)
		l := p.Line(plots.Palette[i], true, above)
		l.Width = 1.2
		name := "certificate"
		if i == 0 {
			name = "formula"
		}
		p.Legend.Add(name, l)
		plots.LogLog(p)
		panels = append(panels, p)
	}
	return panels, nil
}

// lockUpFigure shows the loop that is as close to PMD in one step as one likes
// and never moves.
func lockUpFigure(*source) ([]*plots.Panel, error) {
	a := plots.NewPanel("(a) the loop", "round", "normalized loss")
	b := plots.NewPanel("(b) one step", "declared ζ", "of the actor that never moves")
	eta, rounds := experiment.PaperProtocol.Eta, experiment.PaperProtocol.Rounds
	var zetas, excesses, diagonal plotter.XYs
	for i, zeta := range []float64{1e-1, 1e-3, 1e-5, 1e-7} {
		problem, err := pmd.LockUp(zeta, eta, mdp.Discount)
		if err != nil {
			return nil, err
		}
		problems := []mdp.Problem{problem}
		for _, rule := range []pmd.Rule{pmd.PMD, pmd.Identity} {
			loop := control.Loop{Actor: control.RuleActor(rule), Critic: control.ExactCritic{}, Eta: eta}
			trajectories, err := loop.Run(problems, rounds)
			if err != nil {
				return nil, err
			}
			scored, err := control.Score(problems, trajectories)
			if err != nil {
				return nil, err
			}
			stuck := rule == pmd.Identity
			if stuck && i > 0 {
				continue // the same line for every ζ
			}
			c, name := plots.Palette[i], fmt.Sprintf("exact PMD, ζ = %g", zeta)
			if stuck {
				c, name = color.Black, "never moves, every ζ"
			}
			a.Name(name, a.Line(c, stuck, positive(scored[0].Loss)))
		}
		q, err := problem.MDP.PolicyValue(problem.Pi0)
		if err != nil {
			return nil, err
		}
		measured, err := pmd.Zeta(problem.Pi0, problem.Pi0, q, eta)
		if err != nil {
			return nil, err
		}
		excess, err := pmd.ProximalExcess(problem.Pi0, problem.Pi0, q, eta)
		if err != nil {
			return nil, err
		}
		zetas, excesses = append(zetas, plotter.XY{X: zeta, Y: measured}), append(excesses, plotter.XY{X: zeta, Y: excess})
		diagonal = append(diagonal, plotter.XY{X: zeta, Y: zeta})
	}
	a.Y.Min, a.Y.Max = 0, 1.02
	for i, q := range []struct {
		name string
		xy   plotter.XYs
	}{{"actor residual ζ", zetas}, {"proximal excess", excesses}} {
		b.Legend.Add(q.name, b.Points(plots.Palette[i], true, q.xy))
	}
	b.Name("declared ζ", b.Line(plots.Grey, true, diagonal))
	b.Legend.Left = true
	plots.LogLog(b)
	b.Headroom(2)
	return []*plots.Panel{a, b}, nil
}

func decoderTable(s *source) (Table, error) {
	t := Table{Title: "The fixed decoder"}
	d, err := s.Decoder()
	type R = results.DecoderRow
	fill(&t, d.Rows,
		column[R]{"quantity", func(r R) any { return r.Quantity }},
		column[R]{"paper", func(r R) any {
			if r.Formula != "" {
				return r.Formula
			}
			return quoted(r.Paper)
		}},
		column[R]{"bound", func(r R) any {
			if r.Bound == nil {
				return nil
			}
			return *r.Bound
		}},
		column[R]{"here", func(r R) any { return r.Here }},
	)
	t.Notes = []string{fmt.Sprintf("S = %d, A = %d, %d problems, ε_r = 1e-6. The paper audits its learned controllers with an exact critic; the rows here are the decoder's with a sampled one, whose bound is vacuous at m = 6: no |Q| exceeds B = %.4g.", d.Caps.States, d.Caps.Actions, s.Store.Preset.Problems, d.B)}
	return t, err
}
