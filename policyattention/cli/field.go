package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"

	"icrl/policyattention/backend"
	"icrl/policyattention/field"
	"icrl/policyattention/paper"
)

// fieldCmd trains systems that the paper is set beside. They know no presets and store nothing.
type fieldCmd struct {
	System    string `arg:"" help:"The system to train and measure: wang or xie."`
	Variant   string `help:"Which of its forms; a wrong one prints what there is." placeholder:"NAME"`
	Seeds     int    `default:"1" help:"Seeds to train with."`
	Seed      uint64 `default:"1" help:"The first of them."`
	Processes int    `help:"Boyan chains to train on, not as many as in the paper." placeholder:"N"`
}

func (c fieldCmd) Run(ctx context.Context, g *globals) error {
	s, ok := paper.Systems[c.System]
	if !ok {
		names := slices.Sorted(maps.Keys(paper.Systems))
		return fmt.Errorf("%w: no system %q to train, want one of %q", errUsage, c.System, names)
	}
	if c.Variant == "" {
		c.Variant = s.Variants[0]
	}
	if !slices.Contains(s.Variants, c.Variant) {
		const format = "%w: %s has no variant %q, want one of %q"
		return fmt.Errorf(format, errUsage, c.System, c.Variant, s.Variants)
	}
	on, err := backend.New(g.Backend)
	if err != nil {
		return err
	}
	numbers, err := s.Train(ctx, on, field.Training{
		Variant: c.Variant, Seed: c.Seed, Seeds: c.Seeds, Processes: c.Processes,
	})
	if err != nil {
		return err
	}
	return g.numbers(numbers)
}

// numbers prints what was measured.
func (g *globals) numbers(list []field.Number) error {
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
