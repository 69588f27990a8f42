package method

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"icrl/internal/safetensors"
	"icrl/policyattention/control"
)

// Descent is the training of some numbers in float64, by steps that are functions of
// the numbers so far and of the step. It is saved on the way, so that at most a
// twentieth more than the time it takes is lost to saving, and goes on from there after
// a kill to the same bytes.
type Descent struct {
	Method Name   `json:"method"`
	Recipe string `json:"recipe,omitempty"`
	States int    `json:"states"`
	Seed   uint64 `json:"seed"`
	Steps  int    `json:"steps"`
	// Numbers are whatever else Start and Step depend on.
	Numbers map[string]float64 `json:"numbers,omitempty"`

	Trained int                                                   `json:"-"` // how many numbers are parameters, not an optimizer's
	On      string                                                `json:"-"` // what it trains on, for a table
	Start   func() []float64                                      `json:"-"` // the numbers before the first step
	Step    func(step int, x []float64) (loss float64, err error) `json:"-"` // makes a step, counted from 0, in place
}

// Key implements Training.
func (d Descent) Key() string { return "descent" }

// Name implements Training.
func (d Descent) Name() string {
	name := string(d.Method)
	if d.Recipe != "" {
		name += "-" + d.Recipe
	}
	return fmt.Sprintf("%s-S%d-%d", name, d.States, d.Seed)
}

// Hash implements Training.
func (d Descent) Hash() string {
	sum := sha256.Sum256(d.config())
	return hex.EncodeToString(sum[:])
}

func (d Descent) config() []byte {
	b, err := json.Marshal(d)
	if err != nil {
		panic(err) // Validate has refused the numbers that JSON cannot hold
	}
	return b
}

// Validate implements Training.
func (d Descent) Validate() error {
	switch {
	case d.Method == "" || d.States < 1 || d.Steps < 1:
		return fmt.Errorf("method: descent of %q at S=%d in %d steps, want a name and at least one of each", d.Method, d.States, d.Steps)
	case d.Start == nil || d.Step == nil:
		return fmt.Errorf("method: descent of %q has no start or no step", d.Method)
	}
	for name, x := range d.Numbers {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("method: descent of %q: %s is %v", d.Method, name, x)
		}
	}
	return nil
}

// Budget implements Training.
func (d Descent) Budget() int { return d.Steps }

// Parameters implements Training.
func (d Descent) Parameters() int { return d.Trained }

// Data implements Training.
func (d Descent) Data() string { return d.On }

// Seconds implements Training; so few numbers take little time.
func (d Descent) Seconds() float64 { return 1e-3 * float64(d.Steps) }

// Shape implements Training.
func (d Descent) Shape() string { return string(d.Method) }

// Kept implements Training.
func (d Descent) Kept() []int { return nil }

// TrainAt implements Alone.
func (d Descent) TrainAt(ctx context.Context, at Place) ([]float64, error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	path := filepath.Join(at.Work, "state.safetensors")
	x, losses, err := d.read(path)
	if errors.Is(err, fs.ErrNotExist) {
		x, losses, err = slices.Clone(d.Start()), nil, nil
	}
	if err != nil {
		return nil, err
	}
	var saved time.Time
	var took time.Duration // to save
	for step := len(losses); step < d.Steps; step++ {
		if ctx.Err() != nil {
			err := fmt.Errorf("method: training stopped before step %d, and will continue there: %w", step, context.Cause(ctx))
			if step > 0 {
				err = errors.Join(err, d.write(path, x, losses))
			}
			return nil, err
		}
		loss, err := d.Step(step, x)
		if err == nil && (math.IsNaN(loss) || math.IsInf(loss, 0)) {
			err = fmt.Errorf("the loss is %v", loss)
		}
		if err != nil {
			return nil, fmt.Errorf("method: %s: step %d: %w", d.Name(), step, err)
		}
		losses = append(losses, loss)
		at.Progress(step, loss)
		if time.Since(saved) > 20*took {
			began := time.Now()
			if err := d.write(path, x, losses); err != nil {
				return nil, err
			}
			saved = time.Now()
			took = saved.Sub(began)
		}
	}
	return losses, d.write(at.Weights, x, losses)
}

// write stores the numbers as "x" [n] and the losses so far as "loss" [steps].
func (d Descent) write(path string, x, losses []float64) error {
	return safetensors.WriteFile(path, &safetensors.File{
		Metadata: map[string]string{"config": string(d.config()), "step": strconv.Itoa(len(losses))},
		Tensors: []safetensors.Tensor{
			{Name: "x", Shape: []int{len(x)}, Data: x}, {Name: "loss", Shape: []int{len(losses)}, Data: losses},
		},
	})
}

// read reads what write stored of this run.
func (d Descent) read(path string) (x, losses []float64, err error) {
	f, err := safetensors.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("method: %w", err)
	}
	if config := f.Metadata["config"]; config != string(d.config()) {
		return nil, nil, fmt.Errorf("method: %s is of the run %q, want %s", path, config, d.config())
	}
	if x, _, err = safetensors.Get[float64](f, "x"); err == nil {
		losses, _, err = safetensors.Get[float64](f, "loss")
	}
	for _, v := range slices.Concat(x, losses) {
		if err == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
			err = fmt.Errorf("method: it holds %v", v)
		}
	}
	if err == nil && f.Metadata["step"] != strconv.Itoa(len(losses)) {
		err = fmt.Errorf("method: it is of step %q and has %d losses", f.Metadata["step"], len(losses))
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%w (in %s)", err, path)
	}
	return x, losses, nil
}

// Read implements Training.
func (d Descent) Read(path string) (hash string, step int, err error) {
	_, losses, err := d.read(path)
	return d.Hash(), len(losses), err
}

// Descended is the Deployment of what a Descent has trained.
type Descended struct {
	Descent Descent `json:"descent"`
	// Make returns the controller of the trained numbers: see Deployment.Controller.
	Make func(x []float64, eta float64, root uint64) (control.Controller, error) `json:"-"`
}

// Weights implements Deployment.
func (d Descended) Weights() []Weights { return []Weights{Last(d.Descent)} }

// Controller implements Deployment.
func (d Descended) Controller(m *Models, eta float64, root uint64) (control.Controller, error) {
	path, err := m.Path(Last(d.Descent))
	if err != nil {
		return nil, err
	}
	x, losses, err := d.Descent.read(path)
	if err == nil && len(losses) != d.Descent.Steps {
		err = fmt.Errorf("method: %s is of step %d, want %d", path, len(losses), d.Descent.Steps)
	}
	if err != nil {
		return nil, err
	}
	return d.Make(x, eta, root)
}
