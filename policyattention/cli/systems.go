package cli

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"icrl/policyattention/backend"
	"icrl/policyattention/baseline"
	"icrl/policyattention/paper"
	"icrl/policyattention/report"
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
	if err := known("system", slices.Sorted(maps.Keys(paper.Systems)), c.System); err != nil {
		return err
	}
	s := paper.Systems[c.System]
	c.Variant = cmp.Or(c.Variant, s.Variants[0])
	if err := known("variant", s.Variants, c.Variant); err != nil {
		return err
	}
	on, err := backend.New(g.Backend)
	if err != nil {
		return err
	}
	numbers, err := s.Train(ctx, on, baseline.Training{
		Variant: c.Variant, Seed: c.Seed, Seeds: c.Seeds, Processes: c.Processes,
	})
	if err != nil {
		return err
	}
	t := report.Table{Name: "field", Title: c.System + ", " + c.Variant}
	t.Columns = []string{"quantity", "here", "standard error", "published", "read to ±"}
	for _, x := range numbers {
		row := []any{x.Quantity, x.Here, nil, nil, nil}
		for i, y := range []float64{x.Error, x.Published, x.Read} {
			if y != 0 {
				row[2+i] = y
			}
		}
		t.Add(row...)
	}
	return g.show(t, "md")
}
