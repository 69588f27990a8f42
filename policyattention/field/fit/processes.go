package fit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/gomlx/compute"
)

// Recipe is a training on one process after another, with several steps on each.
type Recipe interface {
	Validate() error
	Size() int                        // parameters
	Schedule() (processes, steps int) // processes, and steps on each
}

// Trained is a recipe carried out.
type Trained[R Recipe] struct {
	Recipe R
	After  []int       // numbers of processes, ascending
	Params [][]float64 // after each of them [len(After)][Size]
	Losses []float64   // means since the one before
}

// RunProcesses trains recipe in the file path, see [Job.Run]. It keeps the parameters
// after the numbers of processes in kept, which ascend, as far as there are so many, and
// after the last. It sets Config, Steps and Keep of j.
func RunProcesses[R Recipe](ctx context.Context, on compute.Backend, path string, recipe R, kept []int, j Job) (*Trained[R], error) {
	config, err := json.Marshal(recipe)
	if err != nil {
		return nil, err
	}
	processes, steps := recipe.Schedule()
	j.Config, j.Steps, j.Keep = config, processes*steps, nil
	for _, k := range kept {
		if k < processes {
			j.Keep = append(j.Keep, k*steps)
		}
	}
	j.Keep = append(j.Keep, j.Steps)
	f, err := j.Run(ctx, on, path)
	if err != nil {
		return nil, err
	}
	return trained[R](f)
}

// ReadProcesses reads what RunProcesses left in the file path. It returns an error if the
// training is not finished or the parameters are not those of its recipe.
func ReadProcesses[R Recipe](path string) (*Trained[R], error) {
	f, err := Read(path)
	if err != nil {
		return nil, err
	}
	t, err := trained[R](f)
	if err != nil {
		return nil, fmt.Errorf("%w (in %s)", err, path)
	}
	return t, nil
}

func trained[R Recipe](f *Fit) (*Trained[R], error) {
	t := &Trained[R]{Params: f.Params, Losses: f.Losses}
	if err := json.Unmarshal(f.Config, &t.Recipe); err != nil {
		return nil, fmt.Errorf("fit: no recipe: %w", err)
	}
	if err := t.Recipe.Validate(); err != nil {
		return nil, err
	}
	processes, steps := t.Recipe.Schedule()
	if f.Step != processes*steps || len(f.Params) == 0 {
		return nil, errors.New("fit: the training is not finished")
	}
	for i, step := range f.Kept {
		if len(f.Params[i]) != t.Recipe.Size() {
			return nil, fmt.Errorf("fit: %d parameters, want %d", len(f.Params[i]), t.Recipe.Size())
		}
		t.After = append(t.After, step/steps)
	}
	return t, nil
}
