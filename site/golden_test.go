package main

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/anymdp"
	"icrl/policyattention/control"
	"icrl/policyattention/decoder"
	"icrl/policyattention/mdp"
	"icrl/policyattention/mdpfile"
)

// TestGolden runs the library here and the page in the browser from the same
// seeds and compares bits.
//
// The decoder, policy mirror descent and the backups use plain loops and the
// project's own exponential, so their bits agree on every platform. Q^π and Q*
// come from gonum's LU solves, which use assembly on amd64 and plain Go in the
// browser and add in another order: losses and bounds then differ in the last
// digits, and so may Q_0 = Q^{π₀}, from which all else follows. Built with
// gonum's tag noasm (make test does), the solves are plain Go here too and every
// number has the same bits; without the tag the test starts the library from
// the page's Q_0 and compares losses to 1e-12.
func TestGolden(t *testing.T) {
	for _, c := range []golden{
		{"default", mdp.Random, 8, 3, 6, 1, 0.9, 0.8, 0, 0.001},
		{"large", mdp.SparseTransitions, 16, 5, 12, 77, 0.95, 0.4, 0, 0.001},
		{"leaky", mdp.Ring, 5, 4, 3, 9007199254740991, 0.8, 1.1, 0.05, 0.5},
	} {
		b := newTab(t)
		b.open(fmt.Sprintf("%s/#preset=%s&S=%d&A=%d&m=%d&seed=%d&gamma=%v&eta=%v&phi=%v&tol=%v",
			server.URL, c.family, c.states, c.actions, c.m, c.seed, c.gamma, c.eta, c.phi, c.route))
		b.toEnd()
		got := b.trajectory()

		if len(got.Controllers["decoder"]) != 40 || len(got.Controllers["exact"]) != 40 {
			t.Fatalf("%s: the page exported %d and %d rounds",
				c.name, len(got.Controllers["decoder"]), len(got.Controllers["exact"]))
		}
		problem, q0 := c.start(t, got)
		d, err := decoder.New(decoder.Caps{
			States: c.states, Actions: c.actions, Gamma: c.gamma, RMax: 1, EtaMin: c.eta, EtaMax: c.eta,
			Rounds: 40, Routing: c.route, Alpha: 0.05, Packets: c.m, Phi: c.phi,
		})
		if err != nil {
			t.Fatal(err)
		}
		run, err := d.Start(problem, q0, c.eta, decoder.Sampled(c.seed))
		if err != nil {
			t.Fatal(err)
		}
		compared := 0
		for k, page := range got.Controllers["decoder"] {
			want, err := run.Step()
			if err != nil {
				t.Fatal(err)
			}
			compared += sameRound(t, fmt.Sprintf("%s: round %d", c.name, k), page, want)
		}
		t.Logf("%s: %d numbers compared, solves too: %v", c.name, compared, sameSolves)
	}
}

// golden is what is set in the page.
type golden struct {
	name                   string
	family                 mdp.Family
	states, actions, m     int
	seed                   uint64
	gamma, eta, phi, route float64
}

// start returns the library's problem, which the page's must be, and the page's Q_0.
func (c golden) start(t *testing.T, got exported) (mdp.Problem, *mat.Dense) {
	t.Helper()
	drawn, err := c.family.Draw(c.seed, c.states, c.actions, 1)
	if err != nil {
		t.Fatal(err)
	}
	problem, err := mdp.NewProblem(c.gamma, drawn[0].MDP.DenseP(), drawn[0].MDP.R, drawn[0].Pi0)
	if err != nil {
		t.Fatal(err)
	}
	exported, err := mdpfile.Decode("problem.json", got.Problem, mdpfile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !mat.Equal(exported.MDP.DenseP(), problem.MDP.DenseP()) || !mat.Equal(exported.MDP.R, problem.MDP.R) ||
		!mat.Equal(exported.Pi0, problem.Pi0) || exported.MDP.Gamma != c.gamma {
		t.Fatalf("%s: the page drew another problem", c.name)
	}
	q0, err := problem.MDP.PolicyValue(problem.Pi0)
	if err != nil {
		t.Fatal(err)
	}
	first := got.Controllers["decoder"][0].Q
	for s := range c.states {
		for a := range c.actions {
			if d := math.Abs(q0.At(s, a) - first[s][a]); d > 1e-12 || sameSolves && d != 0 {
				t.Fatalf("%s: Q_0(%d,%d) is %v here and %v in the page", c.name, s, a, q0.At(s, a), first[s][a])
			}
			q0.Set(s, a, first[s][a])
		}
	}
	return problem, q0
}

// sameRound holds a round of the page, called name, against the library's, and counts the
// numbers compared.
func sameRound(t *testing.T, name string, page exportedRound, want *decoder.Round) (compared int) {
	t.Helper()
	for _, table := range []struct {
		name string
		page [][]float64
		here *mat.Dense
	}{{"π̂", page.NextPi, want.NextPi}, {"Q", page.NextQ, want.NextQ}} {
		for s, row := range table.page {
			for a, v := range row {
				compared++
				if math.Float64bits(v) != math.Float64bits(table.here.At(s, a)) {
					t.Fatalf("%s: %s(%d,%d) is %v in the page and %v here",
						name, table.name, s, a, v, table.here.At(s, a))
				}
			}
		}
	}
	for _, x := range []struct {
		name       string
		page, here float64
		solved     bool // depends on an LU solve
	}{
		{"ζ", page.Zeta, want.Zeta, false}, {"δ", page.Delta, want.Delta, false}, {"ḡ",
			page.Defect, want.Defect, false},
		{"routing", page.Route, want.Route, false}, {"sampling", page.Sampling, want.Sampling, false},
		{"loss", page.Loss, want.Distance, true}, {"bound", page.Bound, want.Bound.Total(), true},
	} {
		compared++
		if x.page != x.here && (!x.solved || sameSolves || math.Abs(x.page-x.here) > 1e-12*(1+math.Abs(x.here))) {
			t.Errorf("%s: %s is %v in the page and %v here", name, x.name, x.page, x.here)
		}
	}
	return compared
}

// TestLearnedActor loads weights on demand over http and from a file, and holds
// the page's trained actor against the library's, bit by bit.
func TestLearnedActor(t *testing.T) {
	forward, err := anymdp.Released()
	if err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{"http", "file"} {
		b := newTab(t)
		url := server.URL + "/"
		if place == "file" {
			url = fileURL(t)
		}
		b.open(url + "#T=12&A=5")
		if b.bytes > firstView && place == "http" {
			t.Errorf("%v bytes before the actor was asked for", b.bytes)
		}
		b.click("#show-learned")
		b.wait(`shown.has("learned") && run.rounds.learned?.length`)
		b.toEnd()
		got := b.trajectory().Controllers["learned"]
		if len(got) != 12 {
			t.Fatalf("%s: %d rounds of the trained actor", place, len(got))
		}
		actor, err := anymdp.NewActor(forward, anymdp.Prior)
		if err != nil {
			t.Fatal(err)
		}
		for k, r := range got {
			want, err := actor.Act([]control.Context{{Round: k, Pi: dense(r.Pi), Q: dense(r.Q), Eta: 0.8}})
			if err != nil {
				t.Fatal(err)
			}
			if !mat.Equal(want[0], dense(r.NextPi)) {
				t.Errorf("%s: round %d of the trained actor differs by %v",
					place, k, mdp.MaxAbsDiff(want[0], dense(r.NextPi)))
			}
		}
		b.set("#set-S", "5") // the same network takes it
		b.wait(`run.settings.S === 5 && run.rounds.learned?.length && shown.has("learned")`)
		data := b.download("#save", ".json")
		if _, err := mdpfile.Decode("problem.json", data, mdpfile.Options{}); err != nil {
			t.Error(err)
		}
	}
}

// TestForeignWeights serves weights other than those the page was built with,
// and none at all: the page says so and goes on without them.
func TestForeignWeights(t *testing.T) {
	for name, c := range map[string]struct{ script, want string }{
		"other": {`self.policyAttentionWeights("AAAA");`, "does not hold the weights that this page was built with"},
		"broken": {`self.policyAttentionWeights("no base64");`,
			"does not hold the weights that this page was built with"},
		"silent": {`"use strict";`, "could not be loaded"},
	} {
		host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/learned.js" {
				w.Header().Set("Content-Type", "text/javascript")
				fmt.Fprint(w, c.script)
				return
			}
			server.Config.Handler.ServeHTTP(w, r)
		}))
		defer host.Close()
		b := newTab(t)
		b.open(host.URL + "/#preset=random")
		b.click("#show-learned")
		b.said(c.want)
		b.wait(`!shown.has("learned") && !$("show-learned").checked`)
		b.toEnd()
		if got := b.trajectory(); len(got.Controllers["learned"]) != 0 {
			t.Errorf("%s: the learned actor ran", name)
		}
	}
}

func dense(rows [][]float64) *mat.Dense {
	m := mat.NewDense(len(rows), len(rows[0]), nil)
	for i, r := range rows {
		m.SetRow(i, r)
	}
	return m
}
