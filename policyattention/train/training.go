package train

import (
	"fmt"
	"slices"
	"strings"
)

// What the experiments ask of a training run: see method.Training.

// Key is the member of a manifest that a Config is.
func (c Config) Key() string { return "training" }

// usual are the budgets of the presets smoke and paper, and of paper's critics of tables, which
// names leave out.
var usual = []int{10, 51_200, 6_400}

// Name returns objective-recipe-S8-18100, with S4+8 for several sizes, and with the
// steps before the sizes where they are not usual.
func (c Config) Name() string {
	parts := []string{string(c.Objective), c.Recipe.Name}
	if !slices.Contains(usual, c.Steps) {
		parts = append(parts, fmt.Sprint(c.Steps))
	}
	sizes := make([]string, len(c.Sizes))
	for i, s := range c.Sizes {
		sizes[i] = fmt.Sprint(s)
	}
	return strings.Join(append(parts, "S"+strings.Join(sizes, "+"), fmt.Sprint(c.Seed)), "-")
}

// Rates of one core of a current x86 server (AVX-512) under xla:cpu: a training step of
// a Transformer costs about so many seconds a token of its batch, and a little more the
// longer the context, for attention. Within a factor of two elsewhere.
const (
	SecondsPerToken   = 1.3e-5
	SecondsPerContext = 4e-8 // a token and token of context
)

// Seconds returns about how long the run takes on one core.
func (c Config) Seconds() float64 {
	tokens := c.ContextTokens(c.Sizes[len(c.Sizes)-1] * c.Actions)
	perExample := float64(tokens) * (SecondsPerToken + SecondsPerContext*float64(tokens))
	return float64(c.Steps) * float64(c.Batch*c.runs()) * perExample
}

// Kept are the steps before the last after which weights are kept.
func (c Config) Kept() []int { return c.Snapshots }

// Read returns the hash of the configuration that a file of weights is of, and the step.
func (c Config) Read(path string) (hash string, step int, err error) {
	stored, step, _, err := ReadWeights(path)
	return stored.Hash(), step, err
}
