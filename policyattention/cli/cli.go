// Package cli is the command policyattention as a library: a program of one's own, with its own
// presets and methods, calls Main and has all of it.
//
//	func main() { cli.Main(preset.With(&experiment.PaperProtocol, append(paper.Methods, own))) }
package cli

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"

	"icrl/policyattention/backend"
	"icrl/policyattention/experiment"
	"icrl/policyattention/paper"
	"icrl/policyattention/pmd"
	"icrl/policyattention/results"
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

type globals struct {
	Artifacts string `help:"Folder of the artifacts." default:"artifacts" type:"path"`
	Preset    string `help:"${preset}" placeholder:"NAME|FILE"`
	Backend   string `help:"${backend}" placeholder:"NAME"`
	JSON      bool   `help:"Print JSON for machines."`

	out, errors io.Writer
	own         []experiment.Preset
}

type commands struct {
	globals
	Plan      planCmd      `cmd:"" help:"${plan}"`
	Train     trainCmd     `cmd:"" help:"Train what is missing; an interrupted run continues where it was."`
	Evaluate  evaluateCmd  `cmd:"" help:"Evaluate, training what it needs."`
	Try       tryCmd       `cmd:"" help:"Train a variation and print it beside the plain recipe and exact PMD."`
	Grid      gridCmd      `cmd:"" help:"Do the work of the preset by number, as the processes of a cluster do."`
	Reproduce reproduceCmd `cmd:"" help:"Train and evaluate everything of the preset, then print the tables."`
	Table     tableCmd     `cmd:"" help:"Print tables, the paper's by number."`
	Figure    figureCmd    `cmd:"" help:"Write figures as SVG and PNG, the paper's by number."`
	Verify    verifyCmd    `cmd:"" help:"Compute rows again from weights and seeds, and compare."`
	Solve     solveCmd     `cmd:"" help:"Run a controller on an MDP of your own."`
	Field     fieldCmd     `cmd:"" help:"${field}"`
	Version   versionCmd   `cmd:"" help:"Print versions of the program and of what computes."`

	Completion kongcompletion.Completion `cmd:"" help:"Print what makes a shell complete this command."`
}

// Main is the command with presets besides the built-in ones. It does not return.
func Main(own ...experiment.Preset) { os.Exit(Run(os.Args[1:], os.Stdout, os.Stderr, own...)) }

// Run executes one command line and returns its exit code.
func Run(args []string, stdout, stderr io.Writer, own ...experiment.Preset) (code int) {
	var c commands
	c.out, c.errors, c.own = stdout, stderr, own
	exited, texts := false, help(own)
	parser := kong.Must(&c, kong.Name("policyattention"), kong.Description(texts["description"]), texts,
		kong.Writers(stdout, stderr), kong.Exit(func(n int) { exited, code = true, n }), kong.Bind(&c.globals),
		kong.BindToProvider(func() (*experiment.Store, error) { return c.open("quick") }))
	kongcompletion.Register(parser)
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
	switch {
	case errors.Is(err, errUsage):
		return exitUsage
	case errors.Is(err, experiment.ErrDiscrepancies):
		return exitDiscrepancies
	case experiment.Passing(err), errors.Is(err, errTasksLeft):
		return exitInterrupted
	case errors.Is(err, backend.ErrNoPlugin):
		return exitNoBackend
	case errors.Is(err, errUncertain):
		return exitUncertain
	}
	return exitFailure
}

var errUsage = errors.New("wrong usage")

// preset returns the preset that is asked for: one of the caller's own, a built-in one, or a file.
func (g *globals) preset(unsaid string) (experiment.Preset, error) {
	name, all := cmp.Or(g.Preset, unsaid), slices.Clone(paper.Presets)
	for _, p := range g.own {
		if p.Name == name {
			return p, nil
		}
		all = append(all, p.Name)
	}
	if !strings.HasSuffix(name, ".json") {
		if err := known("preset", all, name); err != nil {
			return experiment.Preset{}, err
		}
		return paper.FindPreset(name)
	}
	base, err := paper.FindPreset("quick")
	if err != nil {
		return base, err
	}
	base.Limits, base.Snapshots = nil, nil
	if len(g.own) > 0 {
		base.Methods = g.own[0].Methods
	}
	return experiment.ReadPreset(name, base)
}

// reading is the preset of commands that are told none and make nothing.
const reading = "paper"

// open returns the store of the preset that is asked for.
func (g *globals) open(unsaid string) (*experiment.Store, error) {
	p, err := g.preset(unsaid)
	if err != nil {
		return nil, err
	}
	return p.Open(g.Artifacts, g.Backend)
}

// print writes a value as JSON.
func (g *globals) print(v any) error { return json.NewEncoder(g.out).Encode(v) }

type versionCmd struct{}

// Run prints the version of the program, and those of the modules and tools that results depend on.
func (versionCmd) Run(g *globals) error {
	m := experiment.Machine(nil)
	version := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = cmp.Or(info.Main.Version, version)
	}
	if g.JSON {
		return g.print(struct {
			Version string `json:"version"`
			experiment.Produced
		}{version, m})
	}
	_, err := fmt.Fprintf(g.out, "policyattention %s, %s %s, %s\n%s\n", version, m.Go, m.Platform, m.CPU, m.Modules)
	return err
}

//go:embed help.json
var helpJSON []byte

// help returns texts that do not fit where they belong: those of help.json, and lists of what there is.
func help(own []experiment.Preset) kong.Vars {
	texts := experiment.Embedded[kong.Vars](helpJSON)
	names := paper.Presets
	for _, p := range own {
		names = append(names[:len(names):len(names)], p.Name)
	}
	list := func(names []string) string { return strings.Join(names, ", ") }
	texts["tables"], texts["figures"] = list(results.TableNames()), list(results.FigureNames())
	texts["preset"] = "Scale: " + list(names) + ", or a JSON file of one's own. Without it paper to read, quick to run."
	texts["set"] = "What changes of the recipe, as in width=32,layers=2,lr=1e-3: " + list(paper.Settings()) + "."
	texts["eta"] = fmt.Sprintf(`Step size, or "auto": %v/(the least gap between an optimal action and the next), `+
		"which grows tenfold a round for exact PMD.", pmd.SuggestedSpan)
	return texts
}
