package pmd

import "math"

// Check is what became of one statement of the paper on many cases.
type Check struct {
	Equation string // its number, or the place where it stands: "(13)", "Appendix G"
	Says     string
	Cases    int // on which it was checked
	// Slack is the least right side minus left side of an inequality, over the
	// cases, or minus the largest difference of the two sides of an identity.
	Slack float64
	// Excess is the largest amount by which a case fell short of what rounding is
	// allowed there; at most 0 where the statement holds.
	Excess float64
	// Aside says that no proof needs the statement, and that it may fail.
	Aside bool
}

// Holds says whether the statement held on every case, of which there must be one.
func (c Check) Holds() bool { return c.Cases > 0 && c.Excess <= 0 }

// Tally collects cases into checks, in the order of first appearance.
type Tally []Check

// Add enters one case of the statement c, which holds in it if c.Slack ≥ −allowed.
// A slack that is not a number counts as a violation.
func (t *Tally) Add(c Check, allowed float64) {
	c.Cases, c.Excess = 1, -c.Slack-allowed
	if math.IsNaN(c.Excess) {
		c.Excess = math.Inf(1)
	}
	for i := range *t {
		if known := &(*t)[i]; known.Equation == c.Equation && known.Says == c.Says {
			known.Cases++
			known.Slack, known.Excess = math.Min(known.Slack, c.Slack), math.Max(known.Excess, c.Excess)
			return
		}
	}
	*t = append(*t, c)
}
