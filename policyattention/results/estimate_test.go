package results

import (
	"encoding/json"
	"math"
	"testing"

	"icrl/policyattention/stats"
)

// A ratio to a loss of 0 is infinite, and JSON has no such number. All others are written
// as encoding/json writes the type without its method.
func TestEstimateJSON(t *testing.T) {
	e := Estimate{
		Estimator: Ratio, X: Selection{S: 4}, Y: &Selection{S: 8}, T: 400, Runs: 2, Planned: 3,
		Estimate: stats.Estimate{Value: 1.5, Lo: 1e-8, Hi: 2}, ByRun: []float64{1, 2}, Paper: &Number{Value: 3},
	}
	type plain Estimate
	want, err := json.Marshal(plain(e))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := json.Marshal(e); err != nil || string(got) != string(want) {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	e.Hi, e.ByRun[1] = math.Inf(1), math.NaN()
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var read struct {
		Hi    *float64   `json:"hi"`
		ByRun []*float64 `json:"by_run"`
	}
	if err := json.Unmarshal(text, &read); err != nil || read.Hi != nil || read.ByRun[1] != nil || *read.ByRun[0] != 1 {
		t.Errorf("%s read as %+v, %v", text, read, err)
	}
}
