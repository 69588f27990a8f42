package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"

	"gonum.org/v1/gonum/floats"

	"icrl/policyattention/experiment"
)

// answer is a line that a worker writes: first the numbers of the parity check, and then, for each
// number of steps that it is told on its standard input, the seconds that they took.
type answer struct {
	Losses []float64 `json:"losses,omitempty"`
	Steps  int       `json:"steps,omitempty"`
	Wall   float64   `json:"wall,omitempty"`
	CPU    float64   `json:"cpu,omitempty"`
}

// serve is this library's worker.
func serve(once step, parity int, in io.Reader, out io.Writer) error {
	encoder := json.NewEncoder(out)
	for n, first := parity, true; ; first = false {
		a, meter := answer{Steps: n}, experiment.StartMeter()
		for range n {
			numbers, err := once()
			if err != nil {
				return err
			}
			if first {
				a.Losses = append(a.Losses, numbers...)
			}
		}
		cost := meter.Cost()
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

// worker is a running program that answers as serve does.
type worker struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *json.Decoder
	losses  []float64
}

// begin starts a program and waits until it is ready.
func begin(environment string, command []string) (*worker, error) {
	w := &worker{command: exec.Command(command[0], command[1:]...)}
	w.command.Env = append(os.Environ(), environment)
	w.command.Stderr = os.Stderr
	in, noInput := w.command.StdinPipe()
	out, noOutput := w.command.StdoutPipe()
	if err := errors.Join(noInput, noOutput, w.command.Start()); err != nil {
		return nil, err
	}
	w.in, w.out = in, json.NewDecoder(out)
	var first answer
	if err := w.out.Decode(&first); err != nil {
		w.close()
		return nil, err
	}
	w.losses = first.Losses
	return w, nil
}

// time has the program make n steps and returns its steps a second, and a second of processor time.
func (w *worker) time(n int) (wall, cpu float64, err error) {
	var a answer
	if _, err = fmt.Fprintln(w.in, n); err == nil {
		err = w.out.Decode(&a)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("%v: %w", w.command.Args, err)
	}
	return float64(a.Steps) / a.Wall, float64(a.Steps) / a.CPU, nil
}

// close ends the program.
func (w *worker) close() {
	w.in.Close()
	w.command.Wait() //nolint:errcheck // its answers have been read
}

// paritySteps is how many losses of training are compared before anything is timed, and
// parityTolerance the difference that is allowed between float32 programs that sum in different
// orders, relative to the loss or, as an actor's loss passes through zero, to the root mean square
// of all of them where that is larger.
const (
	paritySteps     = 100
	parityTolerance = 1e-4
)

// compare returns the largest relative difference between two lists of losses. It returns an error
// when a difference exceeds parityTolerance, which is allowed to grow linearly to five times itself
// at step paritySteps: rounding errors of one step are inputs of the next, and on the same start and
// batches JAX and PyTorch come to differ from each other by 1.2e-4.
func compare(ours, theirs []float64) (worst float64, err error) {
	if len(ours) == 0 || len(theirs) < len(ours) {
		return 0, fmt.Errorf("%d losses to compare with %d of ours", len(theirs), len(ours))
	}
	typical := floats.Norm(ours, 2) / math.Sqrt(float64(len(ours)))
	for i, x := range ours {
		difference := math.Abs(x-theirs[i]) / max(math.Abs(x), typical)
		allowed := parityTolerance * (1 + 4*float64(i)/paritySteps)
		if !(difference <= allowed) {
			return difference, fmt.Errorf("losses %d are %v and %v, want within %.2g", i+1, x, theirs[i], allowed)
		}
		worst = max(worst, difference)
	}
	return worst, nil
}
