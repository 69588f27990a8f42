package incontext

import (
	"testing"

	"icrl/policyattention/control"
)

// Medians and improvements by hand; a single round is none.
func TestQualify(t *testing.T) {
	q, err := Qualify([]control.Scored{{Loss: []float64{1, 0.9, 0.5}}, {Loss: []float64{1, 0.8, 0.8}}, {Loss: []float64{1, 0.6, 0.1}}})
	if err != nil {
		t.Fatal(err)
	}
	if want := (Qualification{First: 0.8, Last: 0.5, Improved: 2, Problems: 3}); q != want {
		t.Errorf("got %+v, want %+v", q, want)
	}
	if _, err := Qualify([]control.Scored{{Loss: []float64{1, 0.9}}}); err == nil {
		t.Error("a single round passed")
	}
}
