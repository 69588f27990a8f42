package experiment

import (
	"fmt"

	"icrl/policyattention/baseline/distill"
	"icrl/policyattention/baseline/lianglai"
	"icrl/policyattention/train"
)

// Rates of one core of a current x86 server (AVX-512) under xla:cpu: a training
// step costs about so many seconds a token of its batch, and a little more the
// longer the context, for attention. Within a factor of two elsewhere.
const (
	secondsPerToken   = 1.3e-5
	secondsPerContext = 4e-8 // a token and token of context
	// Of Algorithm Distillation, a token and parameter; of Liang–Lai, a window and
	// coordinate of a column.
	secondsPerParameter = 1.2e-10
	secondsPerWindow    = 1.3e-7
)

// EstimateSeconds returns about how long a training run takes on one core.
func EstimateSeconds(c TrainingConfig) float64 {
	switch c := c.(type) {
	case train.Config:
		return actorSeconds(c)
	case lianglai.Training:
		return liangLaiSeconds(c)
	case distill.Config:
		return distillSeconds(c)
	}
	panic(fmt.Sprintf("experiment: no training is configured by a %T", c))
}

func actorSeconds(c train.Config) float64 {
	tokens := c.ContextTokens(c.Sizes[len(c.Sizes)-1] * c.Actions)
	perExample := float64(tokens) * (secondsPerToken + secondsPerContext*float64(tokens))
	return float64(c.Steps) * float64(c.Batch) * perExample
}
