package results

import (
	"math"
	"reflect"
	"testing"

	"icrl/internal/testkit"
	"icrl/policyattention/experiment"
)

// The table's claims: no violated row, and the power −2 within 2%, for at the
// smallest scales the next order still counts.
func TestDecoderStudies(t *testing.T) {
	s := New(testkit.Must(experiment.Open(t.TempDir(), "smoke", "go"))(t))
	_, rows, err := s.AuditDecoder(6)
	if err != nil {
		t.Fatal(err)
	}
	if want := s.Store.Preset.Problems * len(experiment.PaperProtocol.Horizons); len(rows) != want {
		t.Errorf("%d audited rows, want %d", len(rows), want)
	}
	for _, r := range rows {
		if !r.Satisfied() {
			t.Errorf("horizon %d: loss %g above the bound %g", r.Horizon, r.Loss, r.Bound.Total())
		}
	}
	sweep := testkit.Must(s.SweepCarrier())(t)
	for _, q := range CarrierQuantities {
		if slope, n := CarrierSlope(sweep, q.Measured); n < 4 || math.Abs(slope+2) > .04 {
			t.Errorf("%s falls like H^%.3f over %d scales, want H^-2 over at least 4", q.Name, slope, n)
		}
	}
}

// What is remembered of the decoder is what it does when it runs again.
func TestRemembered(t *testing.T) {
	s := New(testkit.Must(experiment.Open(t.TempDir(), "smoke", "go"))(t))
	caps := s.DecoderCaps(6, 1e-3)
	for range 2 {
		runs := testkit.Must(RunDecoder(caps, 1))(t)
		again := testkit.Must(decoderRuns{caps, 1}.run())(t)
		if !reflect.DeepEqual(runs[0].Rounds, again[0].Rounds) {
			t.Error("the decoder's rounds differ when it runs again")
		}
	}
	caps.Phi, caps.Floor = .03, .01
	points := testkit.Must(sweepCaps(caps))(t)
	again := testkit.Must(sweep(caps))(t)
	if !reflect.DeepEqual(points, again) {
		t.Error("the sweep over H differs the second time")
	}
}
