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
	study := heads{probe{Root: 5}, 64, 32, 5, .8}
	found := map[string][]float64{}
	model := testkit.Must(train.NewModel(c, params))(t)
	for _, m := range testkit.Must(study.inspect(model))(t) {
		found[m.Quantity] = append(found[m.Quantity], m.Value)
	}
	whole := found["row_l1"][0]
	if len(found["own"]) != 16 || len(found["prior_r2"]) != 5 || !(whole > .1) {
		t.Fatalf("%d heads, %d layers, row-L1 %v", len(found["own"]), len(found["prior_r2"]), whole)
	}
	for i, without := range found["without"] {
		own, state, action, others := found["own"][i], found["state"][i], found["action"][i], found["others"][i]
		// Of two other actions and three other states, in the order of pairs, one in three is of the same action.
		if math.Abs(own+state+action+others-1) > 1e-5 || min(own, state, action) <= 0 || others < action {
			t.Errorf("head %d: attention %v, %v, %v, %v", i, own, state, action, others)
		}
		loop := found["loop_without"][i]
		if idle := i == 9; (without == whole) != idle || (loop == 1) != idle {
			t.Errorf("head %d: row-L1 %v without it, %v with it; its loop's loss is %v times that", i, without,
				whole, loop)
		}
	}
	if off := found["without_all"][0]; off == whole || found["loop"][0] == found["loop_without_all"][0] {
		t.Errorf("row-L1 %v without all heads, %v with them; loops %v, %v", off, whole, found["loop_without_all"],
			found["loop"])
	}
	if found["gain_r2"][0] < .999 || found["prior_r2"][0] > .9 {
		t.Errorf("embedded tokens: R² of ηQ %v, of log π %v", found["gain_r2"][0], found["prior_r2"][0])
	}
	c.Attention = train.None
	if _, err := study.inspect(testkit.Must(train.NewModel(c, params))(t)); err == nil {
		t.Error("an actor without attention has been inspected")
	}
}
