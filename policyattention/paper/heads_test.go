package paper

import (
	"math"
	"slices"
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
	places, found := inspected(t, c, params)
	if len(found["own"]) != 17 || len(found["prior_r2"]) != 5 || !(found["trained"][0] > .1) {
		t.Fatalf("%d heads, %d layers, row-L1 %v", len(found["own"]), len(found["prior_r2"]), found["trained"])
	}
	if places["own"][0] != 0 || places["own"][10] != 3.02 || places["without"][9] != 3.02 {
		t.Errorf("heads stand at %v and %v", places["own"], places["without"])
	}
	var equal float64 // the twelve pairs see themselves at equal weights
	for i := range 12 {
		equal += 1 / float64(12*(i+1))
	}
	if math.Abs(found["own"][0]-equal) > 1e-12 {
		t.Errorf("equal weights for all seen give a pair itself %v, want %v", found["own"][0], equal)
	}
	for i := range found["own"] {
		own, state, action, others := found["own"][i], found["state"][i], found["action"][i], found["others"][i]
		// Of two other actions and three other states, in the order of pairs, one in three is of the same action.
		if math.Abs(own+state+action+others-1) > 1e-5 || min(own, state, action) <= 0 || others < action {
			t.Errorf("head %d: attention %v, %v, %v, %v", i, own, state, action, others)
		}
	}
	for i, without := range found["without"] {
		loop := found["loop_without"][i]
		if idle := i == 9; (without == 1) != idle || (loop == 1) != idle {
			t.Errorf("head %d: without it %v times the row-L1, and %v times the loss of the loop", i, without, loop)
		}
	}
	for i, whole := range found["trained"] { // of one step, then of a loop
		if found["itself"][i] == whole || found["silent"][i] == whole || found["itself"][i] == found["silent"][i] {
			t.Errorf("%v with attention, %v to themselves alone, %v without", whole, found["itself"], found["silent"])
		}
	}
	if found["gain_r2"][0] < .999 || found["prior_r2"][0] > .9 {
		t.Errorf("embedded tokens: R² of ηQ %v, of log π %v", found["gain_r2"][0], found["prior_r2"][0])
	}
}

// In a token-wise network all attention is a pair's own, so that nothing changes where it sees itself alone. Where a
// pair sees its state, it has attention for nothing else.
func TestInspectWithin(t *testing.T) {
	c := train.Standard(train.Proximal, train.Plain(), 3, 4)
	params := testkit.Must(c.Job())(t).Model.Init()
	for attention, most := range map[train.Attention][]float64{train.None: {1 + 1e-9, 0}, train.WithinState: {.9, .7}} {
		c.Attention = attention
		_, found := inspected(t, c, params)
		for i, own := range found["own"] {
			if state := found["state"][i]; math.Abs(own+state-1) > 1e-5 || own > most[0] || state > most[1] {
				t.Errorf("%s: head %d has %v for a pair itself, %v for its state", attention, i, own, state)
			}
		}
		same := slices.Equal(found["itself"], found["trained"])
		if same != (attention == train.None) || slices.Equal(found["silent"], found["trained"]) {
			t.Errorf("%s: %v, to itself alone %v, without heads %v", attention, found["trained"], found["itself"],
				found["silent"])
		}
		if len(found["prior_r2"]) != 5 || found["prior_r2"][0] > .9 {
			t.Errorf("%s: R² of log π %v", attention, found["prior_r2"])
		}
	}
}

// inspected is the study on few contexts: values by quantity, and where they stand.
func inspected(t *testing.T, c train.Config, params []float32) (places, found map[string][]float64) {
	t.Helper()
	places, found = map[string][]float64{}, map[string][]float64{}
	study := heads{probe{Root: 5}, 64, 32, []int{3, 5}, .8}
	for _, m := range testkit.Must(study.inspect(testkit.Must(train.NewModel(c, params))(t)))(t) {
		places[m.Quantity], found[m.Quantity] = append(places[m.Quantity], m.X), append(found[m.Quantity], m.Value)
	}
	return places, found
}
