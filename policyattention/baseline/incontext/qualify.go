package incontext

import (
	"fmt"

	"icrl/policyattention/control"
	"icrl/policyattention/method"
	"icrl/policyattention/stats"
)

// Qualification is the behaviour that defines learning in context:
// improvement within one life, without a change of weights.
type Qualification struct {
	First, Last float64 // median normalized loss after the first and the last round
	Improved    int     // problems whose loss fell between the two
	Problems    int
}

// Qualify summarizes the scored trajectories of a controller, all of at least
// two rounds and of the same number.
func Qualify(scored []control.Scored) (Qualification, error) {
	q := Qualification{Problems: len(scored)}
	if len(scored) == 0 {
		return q, fmt.Errorf("incontext: no trajectories to qualify by")
	}
	var first, last []float64
	for i, s := range scored {
		rounds := len(s.Loss) - 1
		if rounds < 2 || rounds != len(scored[0].Loss)-1 {
			return q, fmt.Errorf("incontext: trajectory %d has %d rounds, want at least 2 and as many as the first", i, rounds)
		}
		first, last = append(first, s.Loss[1]), append(last, s.Loss[rounds])
		if s.Loss[rounds] < s.Loss[1] {
			q.Improved++
		}
	}
	q.First, q.Last = stats.Median(first), stats.Median(last)
	return q, nil
}

// Measures are what the qualification of a method that learns in context is judged by.
var Measures = []method.Measure{
	qualified("loss after round 1", 1, func(q Qualification) float64 { return q.First }),
	qualified("loss after round 40", 40, func(q Qualification) float64 { return q.Last }),
	qualified("share of MDPs that improve", 0, func(q Qualification) float64 { return float64(q.Improved) / float64(q.Problems) }),
}

// qualified returns a measure of a qualification, the median loss after a round unless that
// is 0.
func qualified(name string, round int, of func(Qualification) float64) method.Measure {
	return method.Measure{Name: name, Round: round, Of: func(scored []control.Scored, _ map[string]map[string]float64) (float64, error) {
		q, err := Qualify(scored)
		return of(q), err
	}}
}
