package experiment

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/artifact"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/train"
)

// What a network returned, in float32 on one backend, is compared with the same network in
// float64, which rounds nothing that counts. Two backends that both come as close as half a
// tolerance replay each other within it; pure Go is asked too. The actors of reward-only need
// their wider tolerance: their logits span far more, and float32 rounds them more.
func TestReplayTolerances(t *testing.T) {
	s := testkit.Must(Open("../../artifacts", "paper", "go"))(t)
	span, rounding := map[method.Name]float64{}, map[method.Name]float64{}
	for _, tc := range []struct {
		method method.Name
		runs   int
	}{{PolicyAttention, 1}, {RewardOnly, 5}} {
		m := testkit.Must(s.Preset.Methods.Find(tc.method))(t)
		for run, identity := range PaperProtocol.Sizes[4].Runs[:tc.runs] {
			cell := Cell{Preset: "paper", Block: Mechanism, Method: tc.method, Recipe: "plain", S: 4, Seed: identity.Model}
			e := testkit.Must(s.Find(cell))(t)
			f, study := e.Config.Fixtures, e.Config.OneStep
			contexts := testkit.Must(study.inputs(f, testkit.Must(f.Draw())(t)))(t)[:64]
			arrays := testkit.Must(artifact.ReadArrays(e.path(policiesFile)))(t)
			stored := testkit.Must(artifact.Unstack(arrays["next"], 1, f.Problems, 4, PaperProtocol.Actions))(t)[0]
			path := testkit.Must(s.models.Path(study.Actor.Weights()[0]))(t)
			exact, widest := inFloat64(t, path, contexts)
			span[tc.method] = max(span[tc.method], widest)
			d := furthest(exact, stored)
			rounding[tc.method] = max(rounding[tc.method], d)
			if d > m.ReplayTolerance()/2 {
				t.Errorf("%s: what is stored differs by %v from float64, want at most %v", cell.Name(), d, m.ReplayTolerance()/2)
			}
			if run > 1 {
				continue
			}
			actor := testkit.Must(study.Actor.Actor(s.models))(t)
			if d := furthest(testkit.Must(actor.Act(contexts))(t), stored); d > m.ReplayTolerance() {
				t.Errorf("%s: replayed in pure Go it differs by %v, want at most %v", cell.Name(), d, m.ReplayTolerance())
			}
		}
	}
	if span[RewardOnly] < 5*span[PolicyAttention] || rounding[RewardOnly] < 10*rounding[PolicyAttention] {
		t.Errorf("logits span up to %v nats and are rounded by up to %v", span, rounding)
	}
}

// inFloat64 takes contexts through an actor's network in float64, and returns its policies and
// the widest span of a row's logits.
func inFloat64(t *testing.T, weights string, contexts []control.Context) (policies []*mat.Dense, span float64) {
	actor := testkit.Must(testkit.Must(train.LoadExact(weights))(t).Actor())(t)
	policies = testkit.Must(actor.Act(contexts))(t)
	for _, p := range policies {
		for _, x := range p.RawMatrix().Data {
			span = max(span, -math.Log(x))
		}
	}
	return policies, span
}

// furthest returns the largest difference of entries, of the tables that both have.
func furthest(x, y []*mat.Dense) (d float64) {
	for i := range min(len(x), len(y)) {
		d = max(d, mdp.MaxAbsDiff(x[i], y[i]))
	}
	return d
}
