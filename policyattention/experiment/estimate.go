package experiment

import "icrl/policyattention/train"

// Rates of one core of a current x86 server (AVX-512) under xla:cpu: a training
// step costs about so many seconds a token of its batch, and a little more the
// longer the context, for attention. Within a factor of two elsewhere.
const (
	secondsPerToken   = 1.5e-5
	secondsPerContext = 9e-8 // a token and token of context
)

// EstimateSeconds returns about how long a training run takes on one core.
func EstimateSeconds(c train.Config) float64 {
	tokens := c.Sizes[len(c.Sizes)-1] * c.Actions
	if c.Objective == train.Critic {
		tokens *= c.Samples + 1
	}
	perExample := float64(tokens) * (secondsPerToken + secondsPerContext*float64(tokens))
	return float64(c.Steps) * float64(c.Batch) * perExample
}
