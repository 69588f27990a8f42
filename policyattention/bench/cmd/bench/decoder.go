package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"icrl/policyattention/decoder"
	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/seed"
)

// decoderCmd measures how a round of the fixed decoder grows with the packets M
// and with the states S, and writes decoder.csv and decoder.svg.
type decoderCmd struct {
	Out string `help:"Folder for the results." default:"artifacts/bench"`
}

// growth is one axis along which a round is measured.
type growth struct {
	axis   string
	label  string
	points plotter.XYs // x: M or S; y: milliseconds a round
}

func (c decoderCmd) Run() error {
	packets, states := growth{axis: "M", label: "packets M, at S = 8, A = 3"}, growth{axis: "S", label: "states S, at A = 3, m = 6"}
	for _, m := range []int{1, 2, 6, 16, 64, 256, 1024, 4167} { // the last is M = 100,008
		ms, err := roundTime(8, 3, m)
		if err != nil {
			return err
		}
		packets.points = append(packets.points, plotter.XY{X: float64(m * 8 * 3), Y: ms})
	}
	for _, s := range []int{2, 4, 8, 16, 32, 64} {
		ms, err := roundTime(s, 3, 6)
		if err != nil {
			return err
		}
		states.points = append(states.points, plotter.XY{X: float64(s), Y: ms})
	}
	if err := os.MkdirAll(c.Out, 0o755); err != nil {
		return err
	}
	var table strings.Builder
	table.WriteString("axis,value,ms a round\n")
	for _, g := range []growth{packets, states} {
		for _, p := range g.points {
			fmt.Fprintf(&table, "%s,%g,%.4g\n", g.axis, p.X, p.Y)
		}
		fmt.Printf("%s: grows like %s^%.2f at the upper end\n", g.label, g.axis, exponent(g.points))
	}
	fmt.Print(table.String())
	if err := renameio.WriteFile(filepath.Join(c.Out, "decoder.csv"), []byte(table.String()), 0o644); err != nil {
		return err
	}
	return drawGrowth(filepath.Join(c.Out, "decoder.svg"), packets, states)
}

// roundTime returns the least milliseconds of an actor call, the sampling of m
// packets a pair, and a critic call, over at least 20 rounds and half a second.
func roundTime(s, a, m int) (float64, error) {
	d, err := decoder.New(decoder.Caps{
		States: s, Actions: a, Gamma: mdp.Discount, RMax: 1, EtaMax: experiment.PaperProtocol.Eta, Rounds: experiment.PaperProtocol.Rounds, Routing: 1e-6, Alpha: .05, Packets: m,
	})
	if err != nil {
		return 0, err
	}
	problems, err := mdp.Random.Draw(1, s, a, 1)
	if err != nil {
		return 0, err
	}
	env, pi := problems[0].MDP, problems[0].Pi0
	q, err := env.PolicyValue(pi)
	if err != nil {
		return 0, err
	}
	rng, best, began := seed.New(1, "bench", "decoder"), math.Inf(1), time.Now()
	for round := 0; round < 20 || time.Since(began) < time.Second/2; round++ {
		start := time.Now()
		next, err := d.Improve(pi, q, .8)
		if err != nil {
			return 0, err
		}
		if _, err := d.Backup(next, q, decoder.Sample(env, next, m, rng)); err != nil {
			return 0, err
		}
		best = min(best, 1e3*time.Since(start).Seconds())
	}
	return best, nil
}

// exponent returns the slope between the last two points in logarithms.
func exponent(points plotter.XYs) float64 {
	p, q := points[len(points)-2], points[len(points)-1]
	return math.Log(q.Y/p.Y) / math.Log(q.X/p.X)
}

func drawGrowth(path string, panels ...growth) error {
	canvas := vgsvg.New(vg.Length(len(panels))*9*vg.Centimeter, 7*vg.Centimeter)
	tiles := draw.Tiles{Rows: 1, Cols: len(panels), PadX: vg.Centimeter / 2, PadRight: vg.Centimeter / 2}
	for i, g := range panels {
		p := plot.New()
		p.X.Label.Text, p.Y.Label.Text = g.label, "ms a round"
		p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
		p.X.Tick.Marker, p.Y.Tick.Marker = plot.LogTicks{Prec: -1}, plot.LogTicks{Prec: -1}
		if err := plotutil.AddLinePoints(p, g.points); err != nil {
			return err
		}
		p.Draw(tiles.At(draw.New(canvas), i, 0))
	}
	file, err := renameio.NewPendingFile(path)
	if err != nil {
		return err
	}
	defer file.Cleanup() //nolint:errcheck // nothing is left after the rename
	if _, err := canvas.WriteTo(file); err != nil {
		return err
	}
	return file.CloseAtomicallyReplace()
}
