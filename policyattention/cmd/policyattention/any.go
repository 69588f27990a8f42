package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gomlx/compute"
	"github.com/google/renameio/v2"

	"icrl/policyattention/anymdp/recipe"
	"icrl/policyattention/anymdp/trial"
	"icrl/policyattention/artifact"
	"icrl/policyattention/backend"
	"icrl/policyattention/mdpfile"
	"icrl/policyattention/report"
	"icrl/policyattention/train"
)

type anyCmd struct {
	Train    anyTrainCmd    `cmd:"" help:"Train identities of the actor for any MDP; an interrupted run continues where it was."`
	Evaluate anyEvaluateCmd `cmd:"" help:"Train what is missing, and run it beside exact PMD on fresh problems."`
	Card     anyCardCmd     `cmd:"" help:"Print the model card of the released weights."`
	Beside   anyBesideCmd   `cmd:"" help:"Print it beside the actors of fixed shape, on the problems that those are scored on."`
	Greedy   anyGreedyCmd   `cmd:"" help:"Compare its greedy policies with exact PMD's on MDP files."`
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

// trainAny trains a configuration in the preset's folder of work, copies the weights, settled, to
// the folder of results and returns what the run took, in seconds of processor time.
func (g *globals) trainAny(ctx context.Context, b compute.Backend, c recipe.Config) (seconds float64, err error) {
	job, err := c.Job()
	if err != nil {
		return 0, err
	}
	folder := trial.Folder(g.presetFolder(), c)
	begun := time.Now()
	result, err := job.Run(ctx, b, g.anyWork(c), func(p train.Progress) {
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
	if weights, err = recipe.Settle(weights); err != nil {
		return 0, err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return 0, err
	}
	return result.CPUSeconds, renameio.WriteFile(filepath.Join(folder, trial.WeightsFile), weights, 0o644)
}

type anyEvaluateCmd struct {
	Identity    []uint64 `arg:"" optional:"" help:"Seeds of the training runs; all five without any."`
	Row         []string `help:"Only these rows of the table; results are stored once all rows are known." sep:"none"`
	Calibration int      `help:"Print the table for so many calibration problems a row and store nothing." placeholder:"N"`
}

func (c anyEvaluateCmd) rows() (rows []trial.Row, err error) {
	if len(c.Row) == 0 {
		return trial.Rows, nil
	}
	for _, name := range c.Row {
		i := slices.IndexFunc(trial.Rows, func(r trial.Row) bool { return r.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("%w: no row is called %q", errUsage, name)
		}
		rows = append(rows, trial.Rows[i])
	}
	return rows, nil
}

func (c anyEvaluateCmd) Run(ctx context.Context, g *globals) error {
	configs, err := anyIdentities(c.Identity)
	if err != nil {
		return err
	}
	rows, err := c.rows()
	if err != nil {
		return err
	}
	b, err := backend.New(g.Backend)
	if err != nil {
		return err
	}
	trained, models := make([]float64, len(configs)), make([]*recipe.Model, len(configs))
	for i, config := range configs {
		m, losses, err := trial.Read(trial.Folder(g.presetFolder(), config), config)
		switch {
		case errors.Is(err, artifact.ErrMissing):
			if trained[i], err = g.trainAny(ctx, b, config); err != nil {
				return err
			}
		case err != nil:
			return err
		case c.Calibration == 0 && trial.Complete(losses):
			continue
		default:
			trained[i] = m.TrainingSeconds
		}
		if models[i], err = recipe.Load(filepath.Join(trial.Folder(g.presetFolder(), config), trial.WeightsFile)); err != nil {
			return err
		}
	}
	for _, row := range rows {
		for i, config := range configs {
			if models[i] == nil {
				continue
			}
			if c.Calibration > 0 {
				err = c.calibrate(g, row, config, models[i])
			} else {
				err = g.measureAny(ctx, row, config, models[i])
			}
			if err != nil {
				return err
			}
		}
	}
	for i, config := range configs {
		if models[i] != nil && c.Calibration == 0 {
			m := trial.Manifest{Config: config, TrainingSeconds: trained[i], Backend: b.Name()}
			if err := g.storeAny(m); err != nil {
				return err
			}
		}
	}
	return nil
}

// calibrate prints a row on calibration problems.
func (c anyEvaluateCmd) calibrate(g *globals, row trial.Row, config recipe.Config, model *recipe.Model) error {
	row.Problems, row.Network, row.Mixed = c.Calibration, c.Calibration, c.Calibration
	losses, err := row.Run(trial.CalibrationRoot, config.Seed, model.Forward, nil, nil)
	if err != nil {
		return err
	}
	printSummaries(g, trial.Summarize(row, losses))
	return nil
}

// anyWork is the folder in which an identity is trained, and its rows are kept until all are known.
func (g *globals) anyWork(c recipe.Config) string {
	return filepath.Join(g.presetFolder(), ".work", filepath.Base(trial.Folder(g.presetFolder(), c)))
}

// measureAny completes a row of an identity in its folder of work.
func (g *globals) measureAny(ctx context.Context, row trial.Row, config recipe.Config, model *recipe.Model) error {
	part, err := row.ReadPart(g.anyWork(config))
	if err != nil {
		return err
	}
	before, meter := part.Seconds, artifact.StartMeter()
	_, err = row.Run(trial.Root, config.Seed, model.Forward, part.Losses, func(losses []trial.Losses) error {
		if err := row.WritePart(g.anyWork(config), trial.Part{Losses: losses, Seconds: before + meter.Cost().CPUSeconds}); err != nil {
			return err
		}
		fmt.Fprintf(g.errors, "identity %d, %s: %d of %d problems\n", config.Seed, row.Name, len(losses), row.Problems)
		return context.Cause(ctx)
	})
	return err
}

// storeAny writes the results of an identity, if all rows are known.
func (g *globals) storeAny(m trial.Manifest) error {
	losses := map[string][]trial.Losses{}
	for _, row := range trial.Rows {
		part, err := row.ReadPart(g.anyWork(m.Config))
		if err != nil {
			return err
		}
		if len(part.Losses) < row.Problems {
			return nil
		}
		losses[row.Name] = part.Losses
		m.Seconds += part.Seconds
	}
	return trial.Write(trial.Folder(g.presetFolder(), m.Config), m, losses)
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
	for _, readout := range trial.Readouts {
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
	e, err := trial.Load(g.presetFolder(), configs)
	if errors.Is(err, artifact.ErrMissing) {
		err = fmt.Errorf("%w; %s", err, stored)
	}
	return e, err
}

type anyBesideCmd struct{}

func (anyBesideCmd) Run(g *globals) error {
	store, err := g.open()
	if err != nil {
		return err
	}
	g.hint(store)
	t, err := report.BesideTable(store)
	if err != nil {
		return err
	}
	if g.JSON {
		return g.print(t)
	}
	return t.Markdown(g.out)
}

type anyGreedyCmd struct {
	Files  []string `arg:"" help:"MDP files, as of 'solve --mdp'." type:"existingfile"`
	Rounds int      `help:"Rounds, at the suggested step size." default:"200"`
}

func (c anyGreedyCmd) Run(g *globals) error {
	if c.Rounds < 1 {
		return fmt.Errorf("%w: --rounds=%d, want at least 1", errUsage, c.Rounds)
	}
	configs, err := anyIdentities(nil)
	if err != nil {
		return err
	}
	fmt.Fprintf(g.out, "States whose likeliest action after %d rounds is another than exact PMD's, of those whose\ntwo best actions differ by more than %v:\n\n| problem | S | A | identity | read-out | states | other action |\n|---|---|---|---|---|---|---|\n", c.Rounds, trial.Tied)
	different := 0
	for _, config := range configs {
		model, err := recipe.Load(filepath.Join(trial.Folder(g.presetFolder(), config), trial.WeightsFile))
		if err != nil {
			return err
		}
		for _, file := range c.Files {
			problem, err := mdpfile.Read(file, mdpfile.Options{})
			if err != nil {
				return err
			}
			all, err := trial.Agreement(problem, model.Forward, c.Rounds)
			if err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			for _, x := range all {
				fmt.Fprintf(g.out, "| %s | %d | %d | %d | %s | %d | %d |\n", filepath.Base(file), problem.MDP.States(), problem.MDP.Actions(), config.Seed, x.Readout, x.Decided, len(x.Different))
				different += len(x.Different)
			}
		}
	}
	if different > 0 {
		return fmt.Errorf("%d states with another likeliest action than exact PMD's", different)
	}
	return nil
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
