package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"icrl/policyattention/backend"
	"icrl/policyattention/capability"
	"icrl/policyattention/method/all"
)

// fieldCmd shows the systems that the paper is set beside. They know no presets and store nothing.
type fieldCmd struct {
	System    string `arg:"" optional:"" help:"Train and measure wang or xie; without it, print the paper's Table 1."`
	Variant   string `help:"Which of its forms; a wrong one prints what there is." placeholder:"NAME"`
	Seeds     int    `default:"1" help:"Seeds to train with."`
	Seed      uint64 `default:"1" help:"The first of them."`
	Processes int    `help:"Boyan chains to train on, not as many as in the paper." placeholder:"N"`
}

func (c fieldCmd) Run(ctx context.Context, g *globals) error {
	if c.System == "" {
		return g.tableOne()
	}
	var names []string
	for _, s := range all.Systems {
		if s.Train == nil {
			continue
		}
		names = append(names, s.Folder)
		if s.Folder != c.System {
			continue
		}
		if c.Variant == "" {
			c.Variant = s.Variants[0]
		}
		if !slices.Contains(s.Variants, c.Variant) {
			return fmt.Errorf("%w: %s has no variant %q, want one of %q", errUsage, c.System, c.Variant, s.Variants)
		}
		on, err := backend.New(g.Backend)
		if err != nil {
			return err
		}
		numbers, err := s.Train(ctx, on, capability.Training{
			Variant: c.Variant, Seed: c.Seed, Seeds: c.Seeds, Processes: c.Processes,
		})
		if err != nil {
			return err
		}
		return g.numbers(numbers)
	}
	return fmt.Errorf("%w: no system %q to train, want one of %q", errUsage, c.System, names)
}

// tableOne prints the paper's Table 1.
func (g *globals) tableOne() error {
	w := tabwriter.NewWriter(g.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "system\tsource\t%s\n", strings.Join(capability.Columns, "\t"))
	var rows [][]string
	for _, s := range all.Systems {
		row := []string{s.Name, s.Source}
		for _, mark := range s.Marks() {
			row = append(row, mark.String())
		}
		rows = append(rows, row)
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	if g.JSON {
		return g.print(rows)
	}
	return w.Flush()
}

// numbers prints what was measured.
func (g *globals) numbers(list []capability.Number) error {
	if g.JSON {
		return g.print(list)
	}
	w := tabwriter.NewWriter(g.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "quantity\there\tstandard error\tpublished\tread to ±")
	for _, x := range list {
		fmt.Fprintf(w, "%s\t%.4g", x.Quantity, x.Here)
		for _, y := range []float64{x.Error, x.Published, x.Read} {
			if y == 0 {
				fmt.Fprint(w, "\t–")
			} else {
				fmt.Fprintf(w, "\t%.2g", y)
			}
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}
