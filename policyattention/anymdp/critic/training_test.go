package critic

import (
	"math"
	"testing"

	"icrl/internal/testkit"
	"icrl/policyattention/method"
	"icrl/policyattention/transformer/engine"
)

func small() Config {
	c := Standard(7)
	c.Problems, c.Batch, c.Steps, c.Optimizer.Cosine = 6, 8, 3, 3
	return c
}

func TestExamples(t *testing.T) {
	c := Standard(5)
	c.Problems = 200
	sizes, sure := map[int]int{}, 0
	for i, x := range c.Examples() {
		sizes[x.States]++
		sum, target := 0.0, 0.0
		for s := range Slots {
			sum, target = sum+x.Counts[s], target+x.Target[s]
			if s >= x.States && (x.Counts[s] != 0 || x.Target[s] != 0 || x.Tokens[s][Features-1] != 0) {
				t.Fatalf("example %d has no state %d, and says something of it", i, s)
			}
			if x.Target[s] == 1 {
				sure++
			}
		}
		if len(x.Tokens) != Slots || sum != float64(x.Total) || x.Total < 1 || x.Total > 1000 ||
			math.Abs(target-1) > 1e-12 {
			t.Errorf("example %d: %v counts for N = %d, targets of sum %v", i, sum, x.Total, target)
		}
	}
	if len(sizes) != Slots-1 || sure < 40 || sure > 500 {
		t.Errorf("sizes %v; %d of 800 pairs have one successor", sizes, sure)
	}
}

// The first loss of a run is that of its initial weights by the forward pass in plain Go and
// the estimator that is deployed.
func TestFirstLoss(t *testing.T) {
	c := small()
	job := testkit.Must(c.Job())(t)
	result := testkit.Must(job.Run(t.Context(), testkit.Backend(t), t.TempDir(), nil))(t)
	plain := testkit.Must(engine.New[float64](Shape(), job.Model.Init()))(t)
	forward, examples := plain.Sequences, c.Examples()
	want := 0.0
	for _, i := range c.batch(0) {
		x := examples[i]
		// The estimator, told one pair of the problem, asks for other tokens than the example's.
		e := Learned(func([][][]float64) ([][]float64, error) { return forward([][][]float64{x.Tokens}) })
		rows := testkit.Must(e(&Counts{States: x.States, Total: x.Total, Next: [][]float64{x.Counts[:x.States]}}))(t)
		for s, p := range rows[0] {
			want += float64(x.Total) * (p - x.Target[s]) * (p - x.Target[s]) / float64(c.Batch)
		}
	}
	if got := float64(result.Losses[0]); math.Abs(got-want) > 1e-4*want { // float32 sums
		t.Errorf("the first loss is %v, want %v", got, want)
	}
	testkit.Check(t, method.Last(c).Check(result.Weights))
}

func TestValidate(t *testing.T) {
	if err := Standard(1).Validate(); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*Config){
		"recipe":   func(c *Config) { c.Recipe = "any" },
		"problems": func(c *Config) { c.Problems = 0 },
		"batch":    func(c *Config) { c.Batch = 4*c.Problems + 1 },
		"steps":    func(c *Config) { c.Steps = 0 },
		"rate":     func(c *Config) { c.Optimizer.LearningRate = math.NaN() },
	} {
		c := Standard(1)
		change(&c)
		if c.Validate() == nil {
			t.Errorf("%s: %+v passed", name, c)
		}
	}
}
