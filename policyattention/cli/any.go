package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"icrl/policyattention/anymdp"

	"icrl/policyattention/backend"
	"icrl/policyattention/experiment"
	"icrl/policyattention/paper"
	"icrl/policyattention/train"
)

// anyCmd trains the actor for any MDP. Its evaluations are the block any of the preset paper, its
// tables 'table any' and 'table any-sets'.
type anyCmd struct {
	Train anyTrainCmd `cmd:"" help:"Train identities of the actor for any MDP; a run goes on where it was interrupted."`
	Table anyTableCmd `cmd:"" help:"Print how far it is behind exact PMD, by kind of problem."`
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
	for _, identity := range c.Identity {
		if !slices.Contains(anymdp.Identities, identity) {
			return fmt.Errorf("%w: no identity %d, want one of %d", errUsage, identity, anymdp.Identities)
		}
	}
	b, err := backend.New(g.Backend)
	if err != nil {
		return err
	}
	for _, identity := range c.Identity {
		config := anymdp.Standard(identity)
		folder := paper.AnyFolder(filepath.Join(g.Artifacts, p.Name), config)
		if _, err := os.Stat(filepath.Join(folder, paper.AnyWeights)); err == nil {
			continue // trained
		}
		job, err := config.Job()
		if err != nil {
			return err
		}
		begun := time.Now()
		work := filepath.Join(g.Artifacts, p.Name, experiment.WorkFolder, filepath.Base(folder))
		result, err := job.Run(ctx, b, work, func(p train.Progress) {
			if time.Since(begun) > between || p.Step == p.Steps {
				begun = time.Now()
				fmt.Fprintf(g.errors, "%s: step %d of %d, loss %.3g, %.0f steps/s\n", filepath.Base(folder), p.Step,
					p.Steps, p.Loss, p.StepsPerSecond)
			}
		})
		if err != nil {
			return err
		}
		weights, err := os.ReadFile(result.Weights)
		if err == nil {
			weights, err = anymdp.Settle(weights)
		}
		if err == nil {
			err = experiment.WriteFile(filepath.Join(folder, paper.AnyWeights), weights)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

type anyTableCmd struct{}

func (anyTableCmd) Run(g *globals) error {
	return tableCmd{Names: []string{"any", "any-sets"}, Format: "md"}.Run(g)
}
