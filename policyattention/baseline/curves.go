package baseline

import "math"

// Curves compare what was learned with its teacher over many updates.
type Curves struct {
	Updates []int     // numbers of updates at which the curves are taken
	Learned []float64 // mean over MDPs and states of V^π, exact
	Teacher []float64
}

// Improvement is the last point's gain over the start, relative to the
// teacher's.
func (c *Curves) Improvement() float64 {
	last := len(c.Teacher) - 1
	return (c.Learned[last] - c.Learned[0]) / (c.Teacher[last] - c.Teacher[0])
}

// Gap is the mean distance of the curves, relative to the teacher's gain.
func (c *Curves) Gap() float64 {
	sum := 0.0
	for k, v := range c.Learned {
		sum += math.Abs(v - c.Teacher[k])
	}
	last := len(c.Teacher) - 1
	return sum / float64(len(c.Learned)) / (c.Teacher[last] - c.Teacher[0])
}
