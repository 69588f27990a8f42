// Command policyattention runs the experiments of the paper PolicyAttention and
// solves problems of one's own.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/alecthomas/kong"
	"github.com/google/renameio/v2"
	"golang.org/x/sync/errgroup"

	"icrl/policyattention/anymdp/trial"
	"icrl/policyattention/artifact"
	"icrl/policyattention/attest"
	"icrl/policyattention/backend"
	"icrl/policyattention/equal"
	"icrl/policyattention/experiment"
	"icrl/policyattention/field"
	"icrl/policyattention/method"
	"icrl/policyattention/pmd"
	"icrl/policyattention/report"
	"icrl/policyattention/train"
)

// Exit codes.
const (
	exitFailure       = 1
	exitUsage         = 2
	exitDiscrepancies = 3
	exitInterrupted   = 4 // retryable, the only one that is
	exitNoBackend     = 5
)

const description = `Experiments of the paper PolicyAttention.

Exit codes: 0 done, 1 failure, 2 wrong usage, 3 verify found discrepancies, 4 interrupted or short of disk, memory or the like (call again: what was being trained is saved and continues), 5 the backend asked for is not there.`

type globals struct {
	Artifacts string `help:"Folder of the artifacts." default:"artifacts" type:"path"`
	Preset    string `help:"Scale: ${enum}." default:"quick" enum:"smoke,quick,paper"`
	Backend   string `help:"xla:cpu, xla:cuda or go; without it GOMLX_BACKEND, then the best there is: for presets smoke and quick go where it has vector kernels, else xla:cpu if it is installed." placeholder:"NAME"`
	JSON      bool   `help:"Print JSON for machines."`

	// How training is carried out; results agree to rounding.
	StepsPerCall int `help:"Optimizer steps that a call of the device makes; many are for GPUs." default:"1" placeholder:"N"`
	Together     int `help:"Training runs of one shape to make at once in one process, for GPUs." default:"1" placeholder:"N"`
	Devices      int `help:"Devices to share the examples of a batch out to." default:"1" placeholder:"N"`

	out, errors io.Writer
}

type cli struct {
	globals
	Plan      planCmd      `cmd:"" help:"List the cells and training runs of the preset, what is done, and estimated costs."`
	Train     trainCmd     `cmd:"" help:"Train what is missing; an interrupted run continues where it was."`
	Evaluate  evaluateCmd  `cmd:"" help:"Evaluate cells, training what they need."`
	Grid      gridCmd      `cmd:"" help:"Do the work of the preset by number, as the processes of a cluster do."`
	Reproduce reproduceCmd `cmd:"" help:"Train and evaluate everything of the preset, then write tables and figures."`
	Table     tableCmd     `cmd:"" help:"Print tables with the paper's numbers beside ours."`
	Figure    figureCmd    `cmd:"" help:"Write figures as SVG and PNG."`
	Document  documentCmd  `cmd:"" help:"Write the tables between the markers of documents again."`
	Growth    growthCmd    `cmd:"" help:"Print how costs grow with sizes, as measured by 'go run ./policyattention/bench/cmd/bench growth'."`
	Lockup    lockupCmd    `cmd:"" help:"Measure actors on problems whose best actions begin with little mass."`
	Speed     speedCmd     `cmd:"" help:"Print the speed of training steps beside JAX and PyTorch, as measured by 'make bench'."`
	Field     fieldCmd     `cmd:"" help:"The systems of policy evaluation that the paper is set beside: what they can do, constructed and trained."`
	Verify    verifyCmd    `cmd:"" help:"Check every artifact of the preset from nothing but itself."`
	Solve     solveCmd     `cmd:"" help:"Run a controller on an MDP of your own."`
	Equal     equalCmd     `cmd:"" help:"Every method with the same information: the model, samples or a walk."`
	Any       anyCmd       `cmd:"" help:"The actor for any MDP: train, evaluate and show it."`
}

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

// run executes one command line and returns its exit code.
func run(args []string, stdout, stderr io.Writer) (code int) {
	var c cli
	c.out, c.errors = stdout, stderr
	exited := false
	parser, err := kong.New(&c, kong.Name("policyattention"), kong.Description(description),
		kong.Writers(stdout, stderr), kong.Bind(&c.globals), kong.Vars{
			"span": fmt.Sprint(pmd.SuggestedSpan), "tables": strings.Join(report.TableNames(), ", "), "figures": strings.Join(report.FigureNames(), ", "),
		},
		kong.Exit(func(n int) { exited, code = true, n }))
	if err != nil {
		fmt.Fprintln(stderr, "policyattention:", err)
		return exitFailure
	}
	command, err := parser.Parse(args)
	if exited {
		return code // --help
	}
	if err != nil {
		fmt.Fprintf(stderr, "policyattention: %v (policyattention --help lists what there is)\n", err)
		return exitUsage
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	command.BindTo(ctx, (*context.Context)(nil))
	if err := command.Run(); err != nil {
		fmt.Fprintln(stderr, "policyattention:", err)
		return exitCode(err)
	}
	return 0
}

func exitCode(err error) int {
	var worker *exec.ExitError
	switch {
	case errors.Is(err, errUsage):
		return exitUsage
	case errors.Is(err, experiment.ErrDiscrepancies):
		return exitDiscrepancies
	case artifact.Passing(err), errors.Is(err, errTasksLeft):
		return exitInterrupted
	case errors.Is(err, backend.ErrNoPlugin):
		return exitNoBackend
	case errors.As(err, &worker) && slices.Contains([]int{exitInterrupted, exitNoBackend}, worker.ExitCode()):
		return worker.ExitCode() // workers are this command
	}
	return exitFailure
}

var errUsage = errors.New("wrong usage")

func (g *globals) open() (*experiment.Store, error) {
	if g.Preset != "paper" { // whose stored evidence is XLA's
		g.Backend = cmp.Or(g.Backend, backend.Uncompiled())
	}
	store, err := experiment.Open(g.Artifacts, g.Preset, g.Backend)
	if err != nil {
		return nil, err
	}
	if g.StepsPerCall < 1 || g.Together < 1 || g.Devices < 1 {
		return nil, fmt.Errorf("%w: --steps-per-call %d, --together %d, --devices %d: want each ≥ 1", errUsage, g.StepsPerCall, g.Together, g.Devices)
	}
	store.Execution = train.Execution{StepsPerCall: g.StepsPerCall, Devices: g.Devices}
	return store, nil
}

// hint says where results are when the store has none.
func (g *globals) hint(store *experiment.Store) {
	if store.Empty() {
		fmt.Fprintln(g.errors, "policyattention:", nothing(store))
	}
}

// nothing says that the store is empty, and where results are.
func nothing(store *experiment.Store) string {
	return fmt.Sprintf("%s holds no result of the preset %s; the results that come with the repository are of --preset paper, below its folder artifacts", store.Root(), store.Preset.Name)
}

// tables prints tables as Markdown, a blank line after each.
func (g *globals) tables(tables ...report.Table) error {
	for _, table := range tables {
		if err := table.Markdown(g.out); err != nil {
			return err
		}
		if _, err := fmt.Fprintln(g.out); err != nil {
			return err
		}
	}
	return nil
}

// print writes a value as JSON.
func (g *globals) print(v any) error {
	e := json.NewEncoder(g.out)
	return e.Encode(v)
}

// cells returns the cells called names, or all of the preset. A name is a cell's, the
// beginning of several cells' up to a hyphen, or a block's.
func cells(store *experiment.Store, names []string) ([]experiment.Cell, error) {
	plan := store.Preset.Plan()
	if len(names) == 0 {
		return plan, nil
	}
	var out []experiment.Cell
	for _, name := range names {
		found := false
		for _, cell := range plan {
			if cell.Name() == name || string(cell.Block) == name || strings.Contains(name, "/") && strings.HasPrefix(cell.Name(), name+"-") {
				out, found = append(out, cell), true
			}
		}
		if !found {
			return nil, fmt.Errorf("%w: preset %s has no cell or block %q; see 'policyattention plan', and 'policyattention --preset paper plan' for all", errUsage, store.Preset.Name, name)
		}
	}
	return out, nil
}

type planCmd struct{}

// planned is a line of the plan.
type planned struct {
	Index   int     `json:"index"` // for grid run
	Kind    string  `json:"kind"`  // "train" or "evaluate"
	Name    string  `json:"name"`
	Done    bool    `json:"done"`
	Minutes float64 `json:"estimated_core_minutes"`
}

func (planCmd) Run(g *globals) error {
	store, err := g.open()
	if err != nil {
		return err
	}
	tasks, err := store.Preset.Tasks()
	if err != nil {
		return err
	}
	var lines []planned
	missing := 0.0
	for i, t := range tasks {
		state, _, err := store.State(t)
		if err != nil {
			return err
		}
		p := planned{Index: i, Kind: t.Kind(), Name: t.Name(), Done: state == experiment.Done}
		if t.Training != nil {
			p.Minutes = t.Training.Seconds() / 60
		}
		if !p.Done {
			missing += p.Minutes
		}
		lines = append(lines, p)
	}
	if g.JSON {
		return g.print(lines)
	}
	w := tabwriter.NewWriter(g.out, 0, 0, 2, ' ', 0)
	for _, p := range lines {
		state, cost := "to do", "seconds"
		if p.Done {
			state = "done"
		}
		if p.Minutes > 0 {
			cost = fmt.Sprintf("%.1f core-min", p.Minutes)
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", p.Index, p.Kind, p.Name, state, cost)
	}
	fmt.Fprintf(w, "\nabout %.0f core-minutes of training to do, on xla:cpu\n", missing)
	return w.Flush()
}

type trainCmd struct {
	Run_    []string `arg:"" optional:"" name:"run" help:"Names of training runs, from 'plan'; all without any. One run is trained in this process."`
	Workers int      `help:"Processes at a time; by default one a core, or one on a GPU." placeholder:"N"`
}

func (t trainCmd) Run(ctx context.Context, g *globals) error {
	store, err := g.open()
	if err != nil {
		return err
	}
	configs, err := store.Preset.Trainings()
	if err != nil {
		return err
	}
	if len(t.Run_) > 0 {
		byName := map[string]method.Training{}
		for _, c := range configs {
			byName[c.Name()] = c
		}
		configs = configs[:0]
		for _, name := range t.Run_ {
			c, ok := byName[name]
			if !ok {
				return fmt.Errorf("%w: preset %s has no training run %q; see 'policyattention plan'", errUsage, g.Preset, name)
			}
			configs = append(configs, c)
		}
	}
	if t.Workers < 0 {
		return fmt.Errorf("%w: --workers=%d, want at least 1, or 0 for one a core", errUsage, t.Workers)
	}
	return g.train(ctx, store, configs, t.Workers)
}

// train trains what is missing: one run, or several together, in this process,
// others in workers.
func (g *globals) train(ctx context.Context, store *experiment.Store, configs []method.Training, workers int) error {
	missing, err := store.Missing(configs)
	if err != nil || len(missing) == 0 {
		return err
	}
	done := g.progress(store, missing)
	defer done()
	if len(missing) == 1 {
		_, err := store.Train(ctx, missing[0])
		return err
	}
	if g.Together > 1 {
		var failures []error
		for _, runs := range experiment.Alike(missing, g.Together) {
			if err := store.TrainTogether(ctx, runs); ctx.Err() != nil || errors.Is(err, backend.ErrNoPlugin) {
				return err
			} else if err != nil {
				failures = append(failures, err)
			}
		}
		return errors.Join(failures...)
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if workers == 0 {
		workers = runtime.NumCPU()
		if name := g.Backend + os.Getenv("GOMLX_BACKEND"); strings.HasPrefix(name, "xla:cuda") {
			workers = 1
		}
	}
	return store.TrainAll(ctx, missing, workers, func(ctx context.Context, name string) *exec.Cmd {
		return exec.CommandContext(ctx, self, "--artifacts", g.Artifacts, "--preset", g.Preset, "--backend", g.Backend, "--json",
			"--steps-per-call", fmt.Sprint(g.StepsPerCall), "--devices", fmt.Sprint(g.Devices), "train", name)
	})
}

type evaluateCmd struct {
	Cell    []string `arg:"" optional:"" help:"Names of cells from 'plan', or how several begin (benchmark/policyattention-S8); or blocks, all without any, but for cells whose training takes a core more than a day."`
	Trained bool     `help:"Only cells whose training runs are there: train nothing."`
}

func (e evaluateCmd) Run(ctx context.Context, g *globals) error {
	store, err := g.open()
	if err != nil {
		return err
	}
	list, err := cells(store, e.Cell)
	if err != nil {
		return err
	}
	if e.Trained {
		if list, err = trained(store, list); err != nil {
			return err
		}
	}
	if list, err = g.leaveLong(store, list, e.Cell); err != nil {
		return err
	}
	return g.evaluate(ctx, store, list)
}

// leaveLong leaves out the cells whose missing training would take a core more than a
// day, unless they are named themselves, and says so.
func (g *globals) leaveLong(store *experiment.Store, list []experiment.Cell, names []string) ([]experiment.Cell, error) {
	var kept []experiment.Cell
	var left []string
	for _, cell := range list {
		named := slices.ContainsFunc(names, func(name string) bool {
			return strings.Contains(name, "/") && strings.HasPrefix(cell.Name(), name)
		})
		long, err := store.Long(cell)
		if err != nil {
			return nil, err
		}
		if named || !long {
			kept = append(kept, cell)
		} else {
			left = append(left, cell.Name())
		}
	}
	if len(left) > 0 {
		fmt.Fprintf(g.errors, "policyattention: left out, since their training would take a core more than a day; name them to have them: %s\n", strings.Join(left, " "))
	}
	return kept, nil
}

// trained returns the cells whose training runs are all there.
func trained(store *experiment.Store, list []experiment.Cell) ([]experiment.Cell, error) {
	var out []experiment.Cell
	for _, cell := range list {
		needed, err := store.Preset.Trainings(cell)
		if err != nil {
			return nil, err
		}
		missing, err := store.Missing(needed)
		if err != nil {
			return nil, err
		}
		if len(missing) == 0 {
			out = append(out, cell)
		}
	}
	return out, nil
}

// evaluate evaluates cells one after the other and prints their summaries.
func (g *globals) evaluate(ctx context.Context, store *experiment.Store, list []experiment.Cell) error {
	var configs []method.Training
	for _, cell := range list {
		needed, err := store.Preset.Trainings(cell)
		if err != nil {
			return err
		}
		configs = append(configs, needed...)
	}
	if err := g.train(ctx, store, configs, 0); err != nil {
		return err
	}
	for _, cell := range list {
		e, err := store.Evaluate(ctx, cell)
		if err != nil {
			return err
		}
		if g.JSON {
			err = g.print(e.Manifest)
		} else {
			_, err = fmt.Fprintf(g.out, "%s\t%s\n", cell.Name(), summary(e.Manifest))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// summary prints a manifest's numbers, which have one name or two, in the order of
// their names.
func summary(m *artifact.Manifest) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(m.Summary)) {
		part := name + ":"
		for _, quantity := range slices.Sorted(maps.Keys(m.Summary[name])) {
			part += fmt.Sprintf(" %s %.4g", quantity, m.Summary[name][quantity])
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

type reproduceCmd struct{}

func (reproduceCmd) Run(ctx context.Context, g *globals) error {
	store, err := g.open()
	if err != nil {
		return err
	}
	if err := g.evaluate(ctx, store, store.Preset.Plan()); err != nil {
		return err
	}
	folder, err := report.Write(store)
	if err != nil {
		return err
	}
	fmt.Fprintln(g.errors, "tables and figures are in", folder)
	tables, err := os.ReadFile(filepath.Join(folder, "tables.md"))
	if err != nil {
		return err
	}
	if _, err = g.out.Write(tables); err != nil {
		return err
	}
	// What the repository says of the paper's budget, where it is there.
	whole := filepath.Join(g.Artifacts, "paper", experiment.ClaimsFile)
	if _, err := os.Stat(whole); err != nil || g.Preset == "paper" {
		return nil
	}
	beside, err := report.VerdictsBeside(store, whole)
	if err != nil {
		return err
	}
	return g.tables(beside)
}

type tableCmd struct {
	Table  []string `arg:"" optional:"" help:"Tables: ${tables}; all without any."`
	Format string   `help:"${enum}." enum:"md,html,csv" default:"md"`
}

func (t tableCmd) Run(g *globals) error {
	store, err := g.open()
	if err != nil {
		return err
	}
	names, err := choose("table", t.Table, report.TableNames())
	if err != nil {
		return err
	}
	g.hint(store)
	for _, name := range names {
		table, err := report.BuildTable(store, name)
		if err != nil {
			return err
		}
		switch {
		case g.JSON:
			err = g.print(table)
		case t.Format == "html":
			err = table.HTML(g.out)
		case t.Format == "csv":
			err = table.CSV(g.out)
		default:
			err = g.tables(table)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// choose returns the names that were asked for, all known ones without any.
func choose(what string, names, known []string) ([]string, error) {
	if len(names) == 0 {
		return known, nil
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("%w: no %s %q, want one of %s", errUsage, what, name, strings.Join(known, ", "))
		}
	}
	return names, nil
}

type figureCmd struct {
	Figure []string `arg:"" optional:"" help:"Figures: ${figures}; all without any."`
	Out    string   `help:"Folder to write to." default:"figures" type:"path"`
}

func (f figureCmd) Run(g *globals) error {
	store, err := g.open()
	if err != nil {
		return err
	}
	names, err := choose("figure", f.Figure, report.FigureNames())
	if err != nil {
		return err
	}
	g.hint(store)
	for _, name := range names {
		figure, err := report.BuildFigure(store, name)
		if err != nil {
			return err
		}
		paths, err := figure.Save(f.Out)
		if err != nil {
			return err
		}
		fmt.Fprintln(g.out, strings.Join(paths, "\n"))
	}
	return nil
}

// documentCmd writes the tables of documents again.
type documentCmd struct {
	File []string `arg:"" help:"Markdown files with tables between markers." type:"existingfile"`
}

func (d documentCmd) Run(g *globals) error {
	store, err := g.open()
	if err != nil {
		return err
	}
	for _, name := range d.File {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		filled, err := report.Fill(store, string(text))
		if err != nil {
			return err
		}
		if err := renameio.WriteFile(name, []byte(filled), 0o644); err != nil {
			return err
		}
	}
	return nil
}

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
		list = append(list,
			besideCheck{folder: equal.Folder(g.Artifacts), verify: g.verifyEqual, says: "Equal information: %d losses run again.\n"},
			besideCheck{folder: field.Folder(g.Artifacts, ""), verify: g.verifyField})
	}
	return list, nil
}

func (c verifyCmd) Run(ctx context.Context, g *globals) error {
	g.Backend = cmp.Or(g.Backend, backend.Uncompiled())
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
