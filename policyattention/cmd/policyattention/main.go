// Command policyattention runs the experiments of the paper PolicyAttention and
// solves problems of one's own.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"

	"icrl/policyattention/artifact"
	"icrl/policyattention/backend"
	_ "icrl/policyattention/backend/xla"
	"icrl/policyattention/equal"
	"icrl/policyattention/experiment"
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
	exitUncertain     = 6
)

const description = `Experiments of the paper PolicyAttention.

Exit codes: 0 done, 1 failure, 2 wrong usage, 3 verify found discrepancies, 4 interrupted or short of disk, memory or the like (call again: what was being trained is saved and continues), 5 the backend asked for is not there, 6 solve's exact solution is uncertain by more than 1e-9.`

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
	Field     fieldCmd     `cmd:"" help:"The systems that the paper is set beside: what they can do; train those of policy evaluation."`
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
			"model": strings.Join(equal.Names(equal.Model), ", "), "generative": strings.Join(equal.Names(equal.Generative), ", "), "window": strings.Join(equal.Names(equal.Window), ", "),
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
	if err := backend.Check(c.Backend); err != nil {
		fmt.Fprintln(stderr, "policyattention: --backend:", err)
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
	case errors.Is(err, errUncertain):
		return exitUncertain
	case errors.As(err, &worker) && slices.Contains([]int{exitInterrupted, exitNoBackend}, worker.ExitCode()):
		return worker.ExitCode() // workers are this command
	}
	return exitFailure
}

var errUsage = errors.New("wrong usage")

func (g *globals) open() (*experiment.Store, error) {
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
	return fmt.Sprintf("%s holds no result of the preset %s; %s", store.Root(), store.Preset.Name, stored)
}

const stored = "the results that come with the repository are of --preset paper, below its folder artifacts"

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
