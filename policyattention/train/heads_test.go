package train

import (
	"math"
	"testing"

	"icrl/internal/testkit"
)

// An actor that has not been trained: attention is shared out whole, a head that writes nothing is not
// missed, and ηQ is linear in an embedded token where η is the same in all, log π is not.
func TestInspect(t *testing.T) {
	c := Standard(Proximal, Plain(), 3, 4)
	c.Recipe.EtaMax = c.Recipe.EtaMin
	params, network := testkit.Must(c.Job())(t).Model.Init(), c.Network()
	for _, x := range network.Layout() {
		if x.Name == "blocks.2.out.weight" { // of head 1, features 16 to 31
			clear(params[x.Offset+16*64:][:16*64])
		}
	}
	in, err := testkit.Must(NewModel(c, 0, params))(t).Inspect(5, 64)
	if err != nil {
		t.Fatal(err)
	}
	if len(in.Heads) != 16 || len(in.PriorR2) != 5 || !(in.RowL1 > .1) {
		t.Fatalf("%d heads, %d layers, row-L1 %v", len(in.Heads), len(in.PriorR2), in.RowL1)
	}
	for i, h := range in.Heads {
		if h.Layer != i/4+1 || math.Abs(h.Own+h.State+h.Others-1) > 1e-5 || min(h.Own, h.State, h.Others) <= 0 {
			t.Errorf("head %d: %+v", i, h)
		}
		if same := h.Without == in.RowL1; same != (i == 9) {
			t.Errorf("head %d: row-L1 %v without it, %v with it", i, h.Without, in.RowL1)
		}
	}
	if in.GainR2[0] < .999 || in.PriorR2[0] > .9 {
		t.Errorf("embedded tokens: R² of ηQ %v, of log π %v", in.GainR2[0], in.PriorR2[0])
	}
	c.Attention = None
	if _, err := testkit.Must(NewModel(c, 0, params))(t).Inspect(5, 64); err == nil {
		t.Error("an actor without attention has been inspected")
	}
}
