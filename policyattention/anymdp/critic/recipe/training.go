package recipe

import (
	"fmt"

	"icrl/policyattention/train"
)

// What the experiments ask of a training run: see method.Training.

// Key implements method.Training.
func (c Config) Key() string { return "memory_critic" }

// Name implements method.Training.
func (c Config) Name() string { return fmt.Sprintf("%s-%d", name, c.Seed) }

// Budget implements method.Training.
func (c Config) Budget() int { return c.Steps }

// Seconds implements method.Training.
func (c Config) Seconds() float64 {
	const drawn, perToken = 1e-3, 4e-6
	return drawn*float64(c.Problems) + perToken*float64(c.Steps*c.Batch*16)
}

// Kept implements method.Training.
func (c Config) Kept() []int { return nil }

// Read implements method.Training.
func (c Config) Read(path string) (hash string, step int, err error) {
	stored, step, _, err := train.ReadNetwork[Config](path)
	return stored.Hash(), step, err
}

// In implements method.Shared.
func (c Config) In(dir string, progress func(train.Progress)) (train.Run, error) {
	if err := c.Validate(); err != nil {
		return train.Run{}, err
	}
	return train.Run{Job: c.job(), Dir: dir, Progress: progress}, nil
}
