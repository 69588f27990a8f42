package report

import (
	"fmt"
	"slices"

	"icrl/policyattention/bench"
)

// BenchTable tables the speed comparison: for each row and setting the fastest
// variant of each framework.
func BenchTable(c *bench.Comparison) Table {
	t := Table{
		Name: "bench", Title: fmt.Sprintf("Steps or loops per second (%s, %s)", c.Machine.CPU, c.Machine.Backend),
		Columns: []string{"work", "processes × threads"},
		Notes: []string{
			fmt.Sprintf("The best of several turns, summed over processes. In brackets the share of the machine's matmul peak, %.0f GFLOP/s, and which variant of the framework it was, where it has several.", c.PeakXLA),
		},
	}
	type place struct{ row, setting, family string }
	best := map[place]bench.Result{}
	var families []string
	var lines []place // without families
	for _, r := range c.Results {
		if r.Error != "" {
			continue
		}
		if !slices.Contains(families, r.Family()) {
			families = append(families, r.Family())
		}
		line := place{r.Row, r.Setting, ""}
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
		line.family = r.Family()
		if r.Best > best[line].Best {
			best[line] = r
		}
	}
	t.Columns = append(t.Columns, families...)
	for _, line := range lines {
		row := []string{line.row, line.setting}
		for _, family := range families {
			line.family = family
			r, ok := best[line]
			cell := NotRun
			if ok {
				cell = fmt.Sprintf("%s (%.0f %%", significant(r.Best), 100*r.Share)
				if r.Program != family {
					cell += "; " + r.Program
				}
				cell += ")"
			}
			row = append(row, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// ProfileTable tables where the time of a training step goes.
func ProfileTable(p *bench.Profile) Table {
	t := Table{
		Name: "profile", Title: fmt.Sprintf("Milliseconds of a training step on one core (%s, %s)", p.Machine.CPU, p.Machine.Backend),
		Columns: []string{"step of", "program", "linear layers", "attention", "LayerNorm", "AdamW", "rest", "whole step"},
		Notes: []string{
			fmt.Sprintf("Processor time, the least of several turns; the parts are measured by themselves, forward and backward. In brackets GFLOP/s and their share of the core's matmul peak, %.0f GFLOP/s.", p.Peak),
			"The rest is the whole step less the parts: gathering the batch, additions to the residual stream, the loss. It is negative where a program does together what the parts do apart.",
			"Operations are those of the whole network, in attention without regard to the mask. GoMLX's count LayerNorm's gains and biases to the linear layers, into whose weights they go, and leave out most of a critic's last block, of which only the queries' outputs are read.",
		},
	}
	for _, r := range p.Rows {
		for _, b := range r.Programs {
			row := []string{r.Row, b.Program}
			for _, part := range bench.Parts {
				cell := milliseconds(b.Milliseconds[part])
				if r.FLOPs[part] > 0 {
					rate := r.Rate(b, part)
					cell += fmt.Sprintf(" (%s, %.0f %%)", significant(rate), 100*rate/p.Peak)
				}
				if part == bench.Step {
					row = append(row, milliseconds(b.Rest()))
				}
				row = append(row, cell)
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t
}

// milliseconds writes a time, or a difference of times, to a hundredth.
func milliseconds(v float64) string { return fmt.Sprintf("%.2f", v) }
