package main

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime/debug"

	"github.com/google/renameio/v2"
	"golang.org/x/sync/errgroup"

	"icrl/policyattention/anymdp/trial"
	"icrl/policyattention/artifact"
	"icrl/policyattention/attest"
	"icrl/policyattention/equal"
	"icrl/policyattention/experiment"
	"icrl/policyattention/report"
)

type verifyCmd struct {
	Whole     bool   `help:"Run the loops of networks again for all problems, not for one in 8."`
	Statement string `help:"File to write an in-toto statement to: the result, with the digests of artifacts and code." placeholder:"FILE" type:"path"`
	Source    string `help:"Root of this module, whose code the statement names." default:"." type:"path"`
}

// attest writes the statement of a verification.
func (c verifyCmd) attest(store *experiment.Store, result *experiment.Verification) error {
	said := attest.Verification{Artifacts: store.Root(), Source: c.Source, Checks: "policyattention verify: " + result.String()}
	for _, d := range result.Discrepancies {
		said.Failed = append(said.Failed, d.String())
	}
	text, err := attest.Statement(said)
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(c.Statement, text, 0o644); err != nil {
		return fmt.Errorf("statement: %w", err)
	}
	return nil
}

// besideCheck checks what lies beside a preset's cells.
type besideCheck struct {
	folder string
	verify func() (wrong []string, again int, err error)
	says   string // of what was run again
	wrong  []string
	again  int
}

// besideChecks lists what is to be checked beside the cells of a store.
func (g *globals) besideChecks(store *experiment.Store) ([]besideCheck, error) {
	configs, err := anyIdentities(nil)
	if err != nil {
		return nil, err
	}
	list := []besideCheck{{folder: filepath.Join(store.Root(), "any"), verify: func() ([]string, int, error) { return trial.Verify(store.Root(), configs) },
		says: "The actor for any MDP: %d losses replayed from its weights.\n"}}
	if g.Preset == "paper" {
		list = append(list, besideCheck{folder: equal.Folder(g.Artifacts), verify: g.verifyEqual, says: "Equal information: %d losses run again.\n"})
	}
	return list, nil
}

func (c verifyCmd) Run(ctx context.Context, g *globals) error {
	debug.SetGCPercent(400) // little is kept of much: a tenth of the time went to collecting it
	store, err := g.open()
	if err != nil {
		return err
	}
	share := experiment.Share
	if c.Whole {
		share = 1
	}
	beside, err := g.besideChecks(store)
	if err != nil {
		return err
	}
	meter := artifact.StartMeter()
	var result *experiment.Verification
	var group errgroup.Group
	group.Go(func() (err error) {
		result, err = store.Verify(ctx, share, report.Check)
		return err
	})
	for i := range beside { // at the same time
		group.Go(func() (err error) {
			beside[i].wrong, beside[i].again, err = beside[i].verify()
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	cost := meter.Cost()
	result.WallSeconds, result.CPUSeconds = cost.WallSeconds, cost.CPUSeconds
	for _, b := range beside {
		for _, text := range b.wrong {
			result.Discrepancies = append(result.Discrepancies, experiment.Discrepancy{File: b.folder, What: text})
		}
	}
	if result.Trainings == 0 && result.Cells == 0 && len(result.Discrepancies) == 0 {
		return fmt.Errorf("nothing to verify: %s", nothing(store))
	}
	if c.Statement != "" {
		if err := c.attest(store, result); err != nil {
			return err
		}
	}
	if g.JSON {
		if err := g.print(result); err != nil {
			return err
		}
	} else {
		for _, d := range result.Discrepancies {
			fmt.Fprintln(g.out, d)
		}
		fmt.Fprintln(g.out, result)
		for _, b := range beside {
			if b.again > 0 {
				fmt.Fprintf(g.out, b.says, b.again)
			}
		}
		if result.Unchecked {
			fmt.Fprintln(g.out, "Claims and estimates made from these artifacts were not checked: first mend what is above.")
		}
		fmt.Fprintf(g.out, "%.1f s, %.1f s of processor time; the workers' time:\n", result.WallSeconds, result.CPUSeconds)
		for _, part := range result.Took() {
			fmt.Fprintf(g.out, "%8.1f s  %s\n", result.Phases[part], part)
		}
	}
	return result.Err()
}
