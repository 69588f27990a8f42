package tables

import (
	"math"
	"testing"

	"icrl/policyattention/stats"
)

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0.012346: "0.01235", 51200: "51200", 0: "0", -1.5: "-1.5"} {
		if got := Number(v); got != want {
			t.Errorf("Number(%v) = %s, want %s", v, got, want)
		}
	}
	if got := Number(math.NaN()); got != "–" {
		t.Errorf("Number(NaN) = %s, want a dash", got)
	}
}

// An entry is its parts one after the other, each number with the digits that are asked for.
func TestCell(t *testing.T) {
	short := func(v float64) string { return Number(math.Round(v)) }
	missing := Interval{math.NaN(), math.NaN()}
	for _, x := range []struct {
		cell       Cell
		four, none string
	}{
		{Cell{1.23456, " to ", 2.5}, "1.235 to 2.5", "1 to 3"},
		{Cell{Estimate(1.25, 1, 2.75)}, "1.25 [1, 2.75]", "1 [1, 3]"},
		{Cell{stats.Estimate{Value: 1.25, Lo: 1, Hi: 2.75}}, "1.25 [1, 2.75]", "1 [1, 3]"},
		{Cell{Range{0.5, 8}}, "[0.5, 8]", "[1, 8]"},
		{Cell{"a", missing}, "a", "a"},
		{CellOf(nil), "", ""},
		{CellOf(Cell{"b", 2.0}), "b2", "b2"},
	} {
		if got := x.cell.String(); got != x.four {
			t.Errorf("%v is %q, want %q", []any(x.cell), got, x.four)
		}
		if got := Texts([][]Cell{{x.cell}}, short)[0][0]; got != x.none {
			t.Errorf("%v without decimals is %q, want %q", []any(x.cell), got, x.none)
		}
	}
}
