// Package bench measures the speed of this library beside what a user would
// pick instead. The peers are programs of the same work in other frameworks; all
// read the same exported weights and data, and a comparison begins with a check
// that all compute the same numbers.
//
// The command that measures is below, in cmd/bench, and so are the peers. What was measured is in
// artifacts/bench and artifacts/growth; its tables are in package report with all others, since
// documents quote them.
package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/floats"

	"icrl/internal/usage"
	"icrl/policyattention/artifact"
)

// ParitySteps is how many losses of training are compared before anything is timed, and
// ParityTolerance the difference that is allowed between float32 programs that
// sum in different orders, relative to the loss or, as an actor's loss passes
// through zero, to the root mean square of all of them where that is larger.
const (
	ParitySteps     = 100
	ParityTolerance = 1e-4
)

// report is a line that a worker prints: first its losses, then timings.
type report struct {
	Losses []float64 `json:"losses,omitempty"`
	Ready  float64   `json:"ready_s,omitempty"` // start to the end of the parity steps, compilation included
	Steps  int       `json:"steps,omitempty"`
	Wall   float64   `json:"wall,omitempty"`
	CPU    float64   `json:"cpu,omitempty"`
	RSS    float64   `json:"rss_mb"` // peak so far
}

// Serve is our side of the protocol that the peers' data.py describes: it makes
// the steps of the parity check, then reads numbers of steps, performs them, and
// writes how long they took.
func Serve(start func() (Session, error), parity int, in io.Reader, out io.Writer) error {
	began := time.Now()
	session, err := start()
	if err != nil {
		return err
	}
	defer session.Close()
	first := report{}
	if first.Losses, err = session.Steps(parity); err != nil {
		return err
	}
	first.Ready = time.Since(began).Seconds()
	encoder := json.NewEncoder(out)
	first.RSS = peakMB()
	if err := encoder.Encode(first); err != nil {
		return err
	}
	for {
		var steps int
		if _, err := fmt.Fscanln(in, &steps); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("bench: reading a number of steps: %w", err)
		}
		meter := artifact.StartMeter()
		if _, err := session.Steps(steps); err != nil {
			return err
		}
		cost := meter.Cost()
		r := report{Steps: steps, Wall: cost.WallSeconds, CPU: cost.CPUSeconds, RSS: peakMB()}
		if err := encoder.Encode(r); err != nil {
			return err
		}
	}
}

// peakMB is the most memory that this process has held.
func peakMB() float64 { return float64(usage.Peak()) / (1 << 20) }

// Worker is a running program that answers as [Serve] does.
type Worker struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Scanner
	Losses []float64
	Ready  float64 // seconds until the parity steps were done
	RSS    float64 // peak memory, MB
}

// Start runs a command and waits until it is ready.
func Start(environment []string, command ...string) (*Worker, error) {
	w := &Worker{cmd: exec.Command(command[0], command[1:]...)}
	w.cmd.Env = append(os.Environ(), environment...)
	w.cmd.Stderr = os.Stderr
	var err error
	if w.in, err = w.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	if err := w.cmd.Start(); err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	w.out = bufio.NewScanner(out)
	w.out.Buffer(nil, 1<<20)
	r, err := w.read()
	if err != nil {
		w.Close()
		return nil, err
	}
	w.Losses, w.Ready = r.Losses, r.Ready
	return w, nil
}

func (w *Worker) read() (report, error) {
	var r report
	if !w.out.Scan() {
		return r, fmt.Errorf("bench: %v ended without an answer (%v)", w.cmd.Args, w.out.Err())
	}
	if err := json.Unmarshal(w.out.Bytes(), &r); err != nil {
		return r, fmt.Errorf("bench: answer of %v: %w", w.cmd.Args, err)
	}
	w.RSS = r.RSS
	return r, nil
}

// Speed is one timing of a worker.
type Speed struct {
	Wall float64 // steps per second
	CPU  float64 // steps per second of processor time
}

// Time has the worker perform steps.
func (w *Worker) Time(steps int) (Speed, error) {
	if _, err := fmt.Fprintln(w.in, steps); err != nil {
		return Speed{}, fmt.Errorf("bench: %w", err)
	}
	r, err := w.read()
	if err != nil {
		return Speed{}, err
	}
	return Speed{float64(r.Steps) / r.Wall, float64(r.Steps) / r.CPU}, nil
}

// Close ends the program.
func (w *Worker) Close() {
	w.in.Close()
	w.cmd.Wait() //nolint:errcheck // its answers have been read
}

// Compare returns the largest difference between two lists of losses, relative
// as ParityTolerance is. It returns an error when a difference exceeds ParityTolerance,
// which is allowed to grow linearly to five times itself at step ParitySteps:
// rounding errors of one step are inputs of the next, and on the same start and
// batches JAX and PyTorch come to differ from each other by 1.2e-4.
func Compare(ours, theirs []float64) (float64, error) {
	if len(ours) == 0 || len(theirs) < len(ours) {
		return 0, fmt.Errorf("bench: %d losses to compare with %d of ours", len(theirs), len(ours))
	}
	typical := floats.Norm(ours, 2) / math.Sqrt(float64(len(ours)))
	worst := 0.
	for i, x := range ours {
		difference := math.Abs(x-theirs[i]) / max(math.Abs(x), typical)
		if math.IsNaN(difference) {
			return difference, fmt.Errorf("bench: the losses of step %d are %v and %v", i+1, x, theirs[i])
		}
		if allowed := ParityTolerance * (1 + 4*float64(i)/ParitySteps); difference > allowed {
			return difference, fmt.Errorf("bench: the losses of step %d differ by %.2g, want at most %.2g", i+1, difference, allowed)
		}
		worst = max(worst, difference)
	}
	return worst, nil
}

// side of the square matrices with which the peak is measured.
const side = 2048

// ProductFLOPs is the number of operations in that product.
const ProductFLOPs = 2 * side * side * side

// Peak returns the best rate of a float32 matrix product of 2048² entries on a backend, in
// GFLOP/s.
func Peak(backend compute.Backend) (float64, error) {
	exec, err := graph.NewExec(backend, func(x *graph.Node) *graph.Node { return graph.DotProduct(x, x) })
	if err != nil {
		return 0, fmt.Errorf("bench: %w", err)
	}
	defer exec.Finalize()
	x := tensors.FromFlatDataAndDimensions(slices.Repeat([]float32{1. / side}, side*side), side, side)
	best := math.Inf(1)
	for range 10 {
		began := time.Now()
		y, err := exec.Call1(x)
		if err == nil {
			err = y.FinalizeAll()
		}
		if err != nil {
			return 0, fmt.Errorf("bench: %w", err)
		}
		best = min(best, time.Since(began).Seconds())
	}
	return ProductFLOPs / best / 1e9, nil
}
