package pmd

import (
	"math"
	"testing"

	"icrl/internal/testkit"
)

// TestChecks expects every statement on many contexts, and the sharp ones to come
// close to equality.
func TestChecks(t *testing.T) {
	checks := testkit.Must(Checks(40, 2000))(t)
	if len(checks) != 8 {
		t.Errorf("%d checks, want 8", len(checks))
	}
	for _, c := range checks {
		if !c.Holds() || c.Cases < 2000 || c.Aside {
			t.Errorf("%+v", c)
		}
		if c.Slack > .1 {
			t.Errorf("%+v: the least slack is far from 0, so a wrong right side would pass", c)
		}
	}
}

// TestTally feeds what a check must notice.
func TestTally(t *testing.T) {
	var tally Tally
	tally.Add(Check{Equation: "(1)", Says: "x ≤ y", Slack: 2}, 0)
	tally.Add(Check{Equation: "(1)", Says: "x ≤ y", Slack: -1e-13}, 1e-12)
	tally.Add(Check{Equation: "(2)", Says: "x ≤ y", Slack: -2e-12}, 1e-12)
	tally.Add(Check{Equation: "(3)", Says: "x ≤ y", Slack: math.NaN()}, 1)
	if len(tally) != 3 || tally[0].Cases != 2 || tally[0].Slack != -1e-13 || !tally[0].Holds() || tally[1].Holds() ||
		tally[2].Holds() || (Check{}).Holds() {
		t.Errorf("%+v", tally)
	}
}
