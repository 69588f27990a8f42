// Command bench races training steps and closed loops of this library against JAX and PyTorch
// programs of the same work, in the folder peers.
//
// All read the same exported weights and data. It starts one worker a program, checks that all
// compute the same numbers, and lets them take turns. What was measured is written to
// artifacts/bench/bench.json, and its table into docs/speed.md.
package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"icrl/policyattention/backend"
	_ "icrl/policyattention/backend/xla"
	"icrl/policyattention/experiment"
)

var cli struct {
	Race  raceCommand  `cmd:"" default:"withargs" help:"Run the race."`
	Serve serveCommand `cmd:"" hidden:"" help:"Be one worker."`
}

type raceCommand struct {
	Python   string  `help:"Python with the peers' packages; without it only our own programs run." placeholder:"FILE"`
	Out      string  `help:"Where to write what was measured." default:"artifacts/bench/bench.json"`
	Document string  `help:"Where its table stands." default:"docs/speed.md"`
	Turns    int     `help:"Turns of each worker." default:"5"`
	Seconds  float64 `help:"Length of a turn." default:"2"`
	Works    []int   `help:"What to race at (0 to 6)." default:"0,1,2,3,4,5,6"`
}

// Run writes what has been measured after every work, so that it stays if a later one fails.
func (c raceCommand) Run() error {
	b, err := backend.New("")
	if err != nil {
		return err
	}
	on := backend.Describe(b)
	b.Finalize()
	load, _ := os.ReadFile("/proc/loadavg")
	out := comparison{Machine: experiment.Machine(&on), Load: strings.Join(strings.Fields(string(load)), " ")}
	folder, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	all, err := works()
	if err != nil {
		return err
	}
	for at, w := range all {
		if !slices.Contains(c.Works, at) {
			continue
		}
		for i, steps := range []int{w.parity, min(w.parity, w.scan)} { // enough to see that two compute the same
			t := task{work: w, at: at, steps: steps, threads: 2 - i, python: c.Python}
			t.problem = filepath.Join(folder, "problem.safetensors")
			if err := w.export(t.problem, t.steps); err != nil {
				return err
			}
			results, err := race(t, programs, i+1, c.Turns, c.Seconds)
			if err != nil {
				return err
			}
			out.Results = append(out.Results, results...)
			if err := out.write(c.Out, c.Document); err != nil {
				return err
			}
		}
	}
	if i := slices.IndexFunc(out.Results, func(r result) bool { return r.Error != "" }); i >= 0 {
		return errors.New(out.Results[i].Error)
	}
	return nil
}

type serveCommand struct {
	Work    int    `arg:"" help:"Index of the work."`
	Steps   int    `arg:"" help:"Steps of the parity check."`
	Backend string `help:"GoMLX backend (default: as everywhere)."`
}

func (s serveCommand) Run() error {
	all, err := works()
	if err != nil {
		return err
	}
	b, err := backend.New(s.Backend)
	if err != nil {
		return err
	}
	defer b.Finalize()
	once, err := all[s.Work].start(b)
	if err != nil {
		return err
	}
	return serve(once, s.Steps, os.Stdin, os.Stdout)
}

func main() {
	ctx := kong.Parse(&cli)
	ctx.FatalIfErrorf(ctx.Run())
}
