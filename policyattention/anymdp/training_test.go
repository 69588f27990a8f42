package anymdp

import (
	"math"
	"os"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"

	"icrl/internal/testkit"
	"icrl/policyattention/seed"
	"icrl/policyattention/train"
)

func small(identity uint64) Config {
	c := Standard(identity)
	c.Actions, c.Examples, c.Batch, c.Steps, c.Optimizer.Cosine = 4, 8, 4, 3, 3
	return c
}

func TestContextsAreStates(t *testing.T) {
	c := Standard(5)
	c.Examples = 500
	few, deep, tied, cliffs := 0, 0, 0, 0
	for i := range c.Examples {
		x := c.Context(i)
		if len(x.Update) != c.Actions || len(x.Prior) != c.Actions {
			t.Fatalf("context %d has %d updates and %d priors", i, len(x.Update), len(x.Prior))
		}
		if slices.Max(x.Update) != 0 || slices.Max(x.Prior) != 0 || slices.Min(x.Update) < -c.Deepest-1 {
			t.Errorf("context %d is not relative to its largest: %v, %v", i, x.Update, x.Prior)
		}
		sorted := slices.Compact(slices.Sorted(slices.Values(x.Update)))
		if len(sorted) == 2 {
			few++
		}
		if len(sorted) < c.Actions {
			tied++
		}
		if slices.Min(x.Prior) < -100 {
			deep++
		}
		if sorted[0] < -1e6 {
			cliffs++
		}
	}
	if few < 20 || tied < 200 || deep < 50 || deep > 450 || cliffs < 50 || cliffs > 200 {
		t.Errorf("of 500 states %d have two actions, %d have copies, %d an action 100 units down, %d a cliff of 1e6",
			few, tied, deep, cliffs)
	}
}

// The first loss of a run is that of its weights, which its steps hardly move, by the forward pass in plain Go
// and sums written out.
func TestFirstLoss(t *testing.T) {
	c := small(7)
	c.Optimizer.LearningRate = 1e-12
	job := testkit.Must(c.Job())(t)
	result := testkit.Must(job.Run(t.Context(), testkit.Backend(t), t.TempDir(), nil))(t)
	forward := testkit.Must(Plain(Shape(), testkit.Must(os.ReadFile(result.Weights))(t)))(t)
	first := seed.New(c.Seed, "any", "batch", 0).IntN(c.Examples)
	want := 0.0
	for i := range c.Batch {
		want += excess(t, forward, c.Context((first+i)%c.Examples)) / float64(c.Batch)
	}
	if got := float64(result.Losses[0]); math.Abs(got-want) > 1e-4*want { // float32 sums
		t.Errorf("the first loss is %v, want %v", got, want)
	}
}

// excess is the loss of one context.
func excess(t *testing.T, forward Forward, x Context) (sum float64) {
	row := Encode(x.Update, x.Prior)
	outputs := testkit.Must(forward([][][]float64{row.Tokens}))(t)
	n := len(x.Update)
	for k, readout := range []Readout{Prior, Network} {
		logits := row.Logits(readout, outputs[0])
		floats.Sub(logits, x.Prior)
		for i := range n {
			for j := range n {
				gap := math.Abs(x.Update[i] - x.Update[j])
				at := 2 / (gap + .2*max(row.Unit[i], row.Unit[j]))
				if k == 1 {
					at = 2 / (gap + .5*max(row.Scale[i], row.Scale[j]))
				}
				f, g := at*(logits[i]-logits[j]), at*(x.Update[i]-x.Update[j])
				// KL(p‖q) of the pair's rows p ∝ (eᶠ, 1) and q ∝ (eᵍ, 1).
				p := 1 / (1 + math.Exp(-f))
				sum += (p*(f-g) + math.Log1p(math.Exp(g)) - math.Log1p(math.Exp(f))) / float64(n*n)
			}
		}
	}
	return sum
}

func TestValidate(t *testing.T) {
	if err := Standard(1).Validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Config){
		"recipe":  func(c *Config) { c.Recipe = "plain" },
		"actions": func(c *Config) { c.Actions = 1 },
		"batch":   func(c *Config) { c.Batch = c.Examples + 1 },
		"steps":   func(c *Config) { c.Steps = 0 },
		"sight":   func(c *Config) { c.Attention = train.WithinState },
		"rate":    func(c *Config) { c.Optimizer.LearningRate = math.NaN() },
	} {
		c := Standard(1)
		change(&c)
		if c.Validate() == nil {
			t.Errorf("%s: %+v passed", name, c)
		}
	}
}
