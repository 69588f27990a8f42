package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/gomlx/compute"
	"github.com/google/renameio/v2"

	"icrl/policyattention/anymdp"
	"icrl/policyattention/anymdp/recipe"
	"icrl/policyattention/anymdp/trial"
	"icrl/policyattention/backend"
	"icrl/policyattention/train"
)

type anyCmd struct {
	Train    anyTrainCmd    `cmd:"" help:"Train identities of the actor for any MDP; an interrupted run continues where it was."`
	Evaluate anyEvaluateCmd `cmd:"" help:"Train what is missing, and run it beside exact PMD on fresh problems."`
	Card     anyCardCmd     `cmd:"" help:"Print the model card of the released weights."`
	Table    anyTableCmd    `cmd:"" help:"Print how far it is behind exact PMD, by kind of problem."`
}

// anyIdentities returns the configurations that are asked for.
func anyIdentities(asked []uint64) (configs []recipe.Config, err error) {
	if len(asked) == 0 {
		asked = recipe.Identities
	}
	for _, identity := range asked {
		if !slices.Contains(recipe.Identities, identity) {
			return nil, fmt.Errorf("%w: no identity %d, want one of %d", errUsage, identity, recipe.Identities)
		}
		configs = append(configs, recipe.Standard(identity))
	}
	return configs, nil
}

func (g *globals) presetFolder() string { return filepath.Join(g.Artifacts, g.Preset) }

type anyTrainCmd struct {
	Identity []uint64 `arg:"" optional:"" help:"Seeds of the training runs; all five without any."`
}

func (c anyTrainCmd) Run(ctx context.Context, g *globals) error {
	configs, err := anyIdentities(c.Identity)
	if err != nil {
		return err
	}
	b, err := backend.New(g.Backend)
	if err != nil {
		return err
	}
	for _, config := range configs {
		if _, err := g.trainAny(ctx, b, config); err != nil {
			return err
		}
	}
	return nil
}

// trainAny trains a configuration in the preset's folder of work, copies the weights to
// the folder of results and returns what the run took, in seconds of processor time.
func (g *globals) trainAny(ctx context.Context, b compute.Backend, c recipe.Config) (seconds float64, err error) {
	job, err := c.Job()
	if err != nil {
		return 0, err
	}
	folder := trial.Folder(g.presetFolder(), c)
	work := filepath.Join(g.presetFolder(), ".work", filepath.Base(folder))
	begun := time.Now()
	result, err := job.Run(ctx, b, work, func(p train.Progress) {
		if time.Since(begun) > between || p.Step == p.Steps {
			begun = time.Now()
			fmt.Fprintf(g.errors, "%s: step %d of %d, loss %.3g, %.0f steps/s\n", filepath.Base(folder), p.Step, p.Steps, p.Loss, p.StepsPerSecond)
		}
	})
	if err != nil {
		return 0, err
	}
	weights, err := os.ReadFile(result.Weights)
	if err != nil {
		return 0, err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return 0, err
	}
	return result.CPUSeconds, renameio.WriteFile(filepath.Join(folder, trial.WeightsFile), weights, 0o644)
}

type anyEvaluateCmd struct {
	Identity    []uint64 `arg:"" optional:"" help:"Seeds of the training runs; all five without any."`
	Calibration int      `help:"Print the table for so many calibration problems a row and store nothing." placeholder:"N"`
}

func (c anyEvaluateCmd) Run(ctx context.Context, g *globals) error {
	configs, err := anyIdentities(c.Identity)
	if err != nil {
		return err
	}
	b, err := backend.New(g.Backend)
	if err != nil {
		return err
	}
	for _, config := range configs {
		folder := trial.Folder(g.presetFolder(), config)
		if _, _, err := trial.Read(folder, config); err == nil && c.Calibration == 0 {
			continue
		} else if c.Calibration == 0 && !errors.Is(err, trial.ErrMissing) {
			return err
		}
		trained, err := g.trainAny(ctx, b, config)
		if err != nil {
			return err
		}
		model, err := recipe.Load(b, filepath.Join(folder, trial.WeightsFile))
		if err != nil {
			return err
		}
		root := uint64(trial.Root)
		if c.Calibration > 0 {
			root = trial.CalibrationRoot
		}
		began, losses := processorSeconds(), map[string][]trial.Losses{}
		for _, row := range trial.Rows {
			if err := ctx.Err(); err != nil {
				return context.Cause(ctx)
			}
			if c.Calibration > 0 {
				row.Problems, row.Network = c.Calibration, c.Calibration
			}
			if losses[row.Name], err = row.Run(root, config.Seed, model.Forward); err != nil {
				return err
			}
			if c.Calibration > 0 {
				printSummaries(g, trial.Summarize(row.Name, losses[row.Name]))
			}
		}
		model.Close()
		if c.Calibration > 0 {
			continue
		}
		m := trial.Manifest{Config: config, TrainingSeconds: trained, Seconds: processorSeconds() - began, Backend: b.Name()}
		if err := trial.Write(folder, m, losses); err != nil {
			return err
		}
	}
	return nil
}

func processorSeconds() float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

type anyTableCmd struct{}

func (anyTableCmd) Run(g *globals) error {
	e, err := g.anyEvidence()
	if err != nil {
		return err
	}
	if g.JSON {
		return g.print(e)
	}
	for _, readout := range []anymdp.Readout{anymdp.Prior, anymdp.Network} {
		fmt.Fprintf(g.out, "Read-out %s, %d identities:\n\n", readout, len(e.Manifests))
		if err := e.Markdown(g.out, readout); err != nil {
			return err
		}
		fmt.Fprintln(g.out)
	}
	return nil
}

func (g *globals) anyEvidence() (*trial.Evidence, error) {
	configs, err := anyIdentities(nil)
	if err != nil {
		return nil, err
	}
	return trial.Load(g.presetFolder(), configs)
}

type anyCardCmd struct{}

func (anyCardCmd) Run(g *globals) error {
	e, err := g.anyEvidence()
	if err != nil {
		return err
	}
	return e.Card(g.out)
}

func printSummaries(g *globals, all []trial.Summary) {
	for _, s := range all {
		fmt.Fprintf(g.out, "| %s | %s | %d | %d | %.2g | %.2g | %.2g | %.2g | %.2g | %.3f | %d |\n", s.Row, s.Readout, s.Horizon, s.Problems, s.Exact, s.Actor, s.Median, s.P99, s.Worst, s.Ratio(), s.Locked)
	}
}
