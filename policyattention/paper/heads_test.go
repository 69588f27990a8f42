package paper

import (
	"math"
	"testing"

	"icrl/internal/testkit"
	"icrl/policyattention/train"
)

// An actor that has not been trained: attention is shared out whole, a head that writes nothing is not
// missed, and ηQ is linear in an embedded token where η is the same in all, log π is not.
func TestInspect(t *testing.T) {
	c := train.Standard(train.Proximal, train.Plain(), 3, 4)
	c.Recipe.EtaMax = c.Recipe.EtaMin
	params, network := testkit.Must(c.Job())(t).Model.Init(), c.Network()
	for _, x := range network.Layout() {
		if x.Name == "blocks.2.out.weight" { // of head 1, features 16 to 31
			clear(params[x.Offset+16*64:][:16*64])
		}
	}
	study := heads{probe{Root: 5}, 64}
	found := map[string][]float64{}
	for _, m := range testkit.Must(study.inspect(testkit.Must(train.NewModel(c, params))(t)))(t) {
		found[m.Quantity] = append(found[m.Quantity], m.Value)
	}
	whole := found["row_l1"][0]
	if len(found["own"]) != 16 || len(found["prior_r2"]) != 5 || !(whole > .1) {
		t.Fatalf("%d heads, %d layers, row-L1 %v", len(found["own"]), len(found["prior_r2"]), whole)
	}
	for i, without := range found["without"] {
		own, state, others := found["own"][i], found["state"][i], found["others"][i]
		if math.Abs(own+state+others-1) > 1e-5 || min(own, state, others) <= 0 {
			t.Errorf("head %d: attention %v, %v, %v", i, own, state, others)
		}
		if same := without == whole; same != (i == 9) {
			t.Errorf("head %d: row-L1 %v without it, %v with it", i, without, whole)
		}
	}
	if found["gain_r2"][0] < .999 || found["prior_r2"][0] > .9 {
		t.Errorf("embedded tokens: R² of ηQ %v, of log π %v", found["gain_r2"][0], found["prior_r2"][0])
	}
	c.Attention = train.None
	if _, err := study.inspect(testkit.Must(train.NewModel(c, params))(t)); err == nil {
		t.Error("an actor without attention has been inspected")
	}
}
