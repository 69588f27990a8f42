package transformer

import (
	"math"
	"testing"
)

var tiny = Config{Features: 5, Layers: 2, Heads: 2, Width: 6, Hidden: 7, Outputs: 1}

func TestSizes(t *testing.T) {
	// Counted by hand (weights and biases of one block: 33,472).
	c := Standard(14)
	if got, want := c.Size(), 4*33472+2*64+(14*64+64)+(64+1); got != want {
		t.Errorf("size is %d, want %d", got, want)
	}
	if got := c.Size() + Standard(22).Size(); got != 270_594 { // actor and critic at S = 8
		t.Errorf("actor and critic have %d parameters, want 270,594", got)
	}
	end := 0
	for _, p := range c.Layout() {
		if p.Offset != end {
			t.Errorf("%s starts at %d, want %d", p.Name, p.Offset, end)
		}
		end += p.Size()
	}
}

func TestValidate(t *testing.T) {
	if err := tiny.Validate(); err != nil {
		t.Error(err)
	}
	for _, bad := range []Config{
		{}, {5, 2, 4, 6, 7, 1, false, 0}, {5, -1, 2, 6, 7, 1, false, 0}, {5, 2, 2, 6, 7, 0, false, 0},
		{5, 2, 2, 6, 7, 1, false, -1},
	} {
		if bad.Validate() == nil {
			t.Errorf("%+v passed", bad)
		}
	}
}

// With Cosine the rate rises for a hundred steps and falls with the cosine to 0.
func TestCosine(t *testing.T) {
	o := StandardAdamW()
	o.Cosine = 400
	for step, share := range map[int]float64{
		1: .01, 50: .5 * (1 + math.Cos(math.Pi/8)) / 2, 200: .5, 300: (1 - math.Sqrt(.5)) / 2, 400: 0, 500: 0,
	} {
		// Step 1 of the schedule has fallen by 1.5e-5.
		if got := o.Rate(step) / o.LearningRate; math.Abs(got-share) > 2e-7 {
			t.Errorf("step %d is at %v of the learning rate, want %v", step, got, share)
		}
	}
}
