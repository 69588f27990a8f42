package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/gomlx/compute"

	"icrl/policyattention/anymdp"
	"icrl/policyattention/backend"
	"icrl/policyattention/baseline"
	"icrl/policyattention/experiment"
	"icrl/policyattention/paper"
	"icrl/policyattention/report"
	"icrl/policyattention/train"
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

// anyCmd trains the actor for any MDP. Its evaluations are the block any of the preset paper, its
// tables 'table any' and 'table any-sets'.
type anyCmd struct {
	Train anyTrainCmd `cmd:"" help:"Train identities of the actor for any MDP; a run goes on where it was interrupted."`
}

type anyTrainCmd struct {
	Identity []uint64 `arg:"" optional:"" help:"Seeds of the training runs; all five without any."`
}

func (c anyTrainCmd) Run(ctx context.Context, g *globals) error {
	p, err := g.preset(reading)
	if err != nil {
		return err
	}
	if len(c.Identity) == 0 {
		c.Identity = anymdp.Identities
	}
	b, err := backend.New(g.Backend)
	if err != nil {
		return err
	}
	for _, identity := range c.Identity {
		if !slices.Contains(anymdp.Identities, identity) {
			return fmt.Errorf("%w: no identity %d, want one of %d", errUsage, identity, anymdp.Identities)
		}
		if err := g.trainAny(ctx, anymdp.Standard(identity), b, filepath.Join(g.Artifacts, p.Name)); err != nil {
			return err
		}
	}
	return nil
}

func (g *globals) trainAny(ctx context.Context, c anymdp.Config, b compute.Backend, root string) error {
	path := paper.AnyWeights(root, c)
	if _, err := os.Stat(path); err == nil {
		return nil // trained
	}
	job, err := c.Job()
	if err != nil {
		return err
	}
	tell, name := g.progress(), filepath.Base(filepath.Dir(path))
	work := filepath.Join(root, experiment.WorkFolder, name)
	result, err := job.Run(ctx, b, work, func(p train.Progress) {
		tell(experiment.Progress{Name: name, Progress: p})
	})
	if err != nil {
		return err
	}
	weights, err := os.ReadFile(result.Weights)
	if err == nil {
		weights, err = anymdp.Settle(weights)
	}
	if err != nil {
		return err
	}
	return experiment.WriteFile(path, weights)
}
