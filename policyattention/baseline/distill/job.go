package distill

import "icrl/policyattention/train"

// Job returns the training run of c, for [train.RunTogether] and speed
// comparisons.
func (c Config) Job() (train.Job, error) {
	if err := c.Validate(); err != nil {
		return train.Job{}, err
	}
	return c.job(), nil
}
