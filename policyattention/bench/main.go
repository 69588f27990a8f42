// Command bench makes training steps and closed loops of this library for scripts/race.py, which times them beside
// JAX and PyTorch programs of the same work, in the folder peers. All read the same exported weights and data.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"

	"icrl/policyattention/backend"
	"icrl/policyattention/experiment"
)

var cli struct {
	Works  worksCommand  `cmd:"" help:"Describe the machine and the works, as JSON."`
	Export exportCommand `cmd:"" help:"Write what other programs need to repeat the first steps of a work."`
	Serve  serveCommand  `cmd:"" help:"Do a work: some steps, then as many as each line of the input says."`
}

type worksCommand struct{}

// Run prints the machine and the works.
func (worksCommand) Run(all []work) error {
	b, err := backend.New("go")
	if err != nil {
		return err
	}
	defer b.Finalize()
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"machine": experiment.Machine(b), "works": all})
}

type exportCommand struct {
	Work  int    `arg:"" help:"Index of the work."`
	Steps int    `arg:"" help:"Number of steps."`
	File  string `arg:"" help:"Where to write them, as safetensors."`
}

// Run writes the file.
func (e exportCommand) Run(all []work) error {
	return all[e.Work].export(e.File, e.Steps)
}

type serveCommand struct {
	Work  int `arg:"" help:"Index of the work."`
	Steps int `arg:"" help:"Steps whose numbers are written first."`
}

// Run serves on standard input and output.
func (s serveCommand) Run(all []work) error {
	b, err := backend.New("go")
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

// answer is a line that a program writes: first the numbers of the first steps, and then, for each number of
// steps that it is told on its standard input, the seconds that they took.
type answer struct {
	Losses []float64 `json:"losses,omitempty"`
	Steps  int       `json:"steps,omitempty"`
	Wall   float64   `json:"wall,omitempty"`
	CPU    float64   `json:"cpu,omitempty"`
}

// serve makes steps and answers.
func serve(once step, first int, in io.Reader, out io.Writer) error {
	encoder := json.NewEncoder(out)
	for n, losses := first, true; ; losses = false {
		a, meter := answer{Steps: n}, experiment.StartMeter()
		for range n {
			numbers, err := once()
			if err != nil {
				return err
			}
			if losses {
				a.Losses = append(a.Losses, numbers...)
			}
		}
		cost := meter()
		a.Wall, a.CPU = cost.WallSeconds, cost.CPUSeconds
		if err := encoder.Encode(a); err != nil {
			return err
		}
		if _, err := fmt.Fscanln(in, &n); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading a number of steps: %w", err)
		}
	}
}

func main() {
	ctx := kong.Parse(&cli, kong.BindToProvider(works))
	ctx.FatalIfErrorf(ctx.Run())
}
