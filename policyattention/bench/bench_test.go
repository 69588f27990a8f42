package bench

import (
	"math"
	"slices"
	"testing"
)

func TestCompare(t *testing.T) {
	ours := make([]float64, ParitySteps)
	for i := range ours {
		ours[i] = -2
	}
	ours[3] = 1e-9 // a loss on its way through zero
	for _, tc := range []struct {
		name   string
		at     int
		shift  float64
		passes bool
	}{
		{"equal", 0, 0, true},
		{"rounding", 5, 1e-4, true},
		{"rounding near zero", 3, 1e-4, true},
		{"another number", 5, 1e-3, false},
		{"not a number", 5, math.NaN(), false},
	} {
		theirs := slices.Clone(ours)
		theirs[tc.at] += tc.shift
		if _, err := Compare(ours, theirs); (err == nil) != tc.passes {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	if _, err := Compare(ours, ours[:5]); err == nil {
		t.Error("five losses passed")
	}
}

// The count by hand for the paper's sizes at S = 8: 24 tokens of 14 features.
func TestFLOPs(t *testing.T) {
	row := Rows()[1]
	block := 2 * (64*192 + 64*64 + 2*64*128 + 2*24*64)
	want := 3 * 64 * 24 * float64(2*14*64+4*block+2*64)
	if got := row.FLOPs(); got != want {
		t.Errorf("%v, want %v", got, want)
	}
}

// The same for Algorithm Distillation: 200 tokens of 3 + 1 + 8 + 200 features, 3 outputs.
func TestDistillFLOPs(t *testing.T) {
	row := Rows()[4]
	block := 2 * (160*480 + 160*160 + 2*160*536 + 2*200*160)
	want := 3 * 128 * 200 * float64(2*212*160+4*block+2*160*3)
	if got := row.FLOPs(); got != want || row.Name() != "Algorithm Distillation S=8" {
		t.Errorf("%s: %v, want %v", row.Name(), got, want)
	}
}
