package capability

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"

	"icrl/policyattention/baseline"
	"icrl/policyattention/mdp"
)

// Walk is the context in which systems are set side by side: a problem, and transitions that its
// policy π₀ made.
type Walk struct {
	Problem mdp.Problem
	Window  []baseline.Transition
	Last    int // the state after the window
}

// Step is one step of a system's construction in a context.
type Step struct {
	System string `json:"system"`
	// Algorithm is what the step is to be: Distance is the largest difference of a number of
	// the result from it, and Bound what is allowed.
	Algorithm string  `json:"algorithm"`
	Distance  float64 `json:"distance"`
	Bound     float64 `json:"bound"`
	// Attends says what the query of the last state scores by, Keys are what it can look
	// at, and Share [len(Keys)] how much of it goes to each: absolute scores or softmax
	// weights, which sum to 1.
	Attends string    `json:"attends"`
	Keys    []string  `json:"keys"`
	Share   []float64 `json:"share"`
}

// Keys name the transitions.
func (w Walk) Keys() (names []string) {
	for _, t := range w.Window {
		names = append(names, fmt.Sprintf("(s=%d, a=%d, r=%.2f, s′=%d)", t.State, t.Action, t.Reward, t.Next))
	}
	return names
}

// Shares returns absolute values over their sum, or zeros where all are 0.
func Shares(scores []float64) []float64 {
	out := make([]float64, len(scores))
	for i, x := range scores {
		out[i] = math.Abs(x)
	}
	if total := floats.Sum(out); total > 0 {
		floats.Scale(1/total, out)
	}
	return out
}
