package main

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/anymdp"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/wasm/engine"
)

// sameAsLibrary computes here what the run on a page says that it is, of the problem if it has an MDP, and
// compares each round of the named controllers. read stores the value of an expression in the page.
//
// Both use plain loops and the project's own exponential, so their bits agree, also where gonum has assembly. (Go for
// arm64, or for GOAMD64=v3, may fuse a product and a sum in gonum's code.)
func sameAsLibrary(t testing.TB, read func(expression string, v any), problem mdp.Problem, names ...string) {
	t.Helper()
	var s engine.Settings
	read(`(s => ({ Preset: s.preset, States: s.S, Actions: s.A, Seed: s.seed, Gamma: s.gamma, Eta: s.eta, Packets: s.m,
		Expected: s.expected, Phi: s.phi, Routing: s.tol, Carrier: s.H, Rounds: s.T,
		RMax: s.rmax }))(run.settings)`, &s)
	e := testkit.Must(engine.New(s, problem))(t)
	compared := 0
	for _, name := range names {
		var rounds [][]float64
		read(fmt.Sprintf(`run.rounds[%q].map(r => [r.zeta, r.delta, r.defect, r.route, r.sampling, r.loss, r.bound,
			r.zetaBound, r.deltaBound, ...r.nextPi, ...r.nextQ].map(
				v => v === -Infinity ? -Number.MAX_VALUE : v))`, name),
			&rounds)
		if len(rounds) != s.Rounds {
			t.Fatalf("%s: %d rounds of %d", name, len(rounds), s.Rounds)
		}
		for k, got := range rounds {
			r := testkit.Must(e.Round(name, k))(t)
			want := append([]float64{r.Zeta, r.Delta, r.Defect, r.Route, r.Sampling, r.Distance, r.Bound.Total(),
				r.ZetaBound, r.DeltaBound}, r.NextPi.RawMatrix().Data...)
			want = append(want, r.NextQ.RawMatrix().Data...)
			for i, v := range got {
				if x := max(want[i], -math.MaxFloat64); v != x {
					t.Fatalf("%s, round %d: number %d is %v in the page, %v in the library", name, k, i, v, x)
				}
			}
			if name == engine.Decoder && (got[0] > got[7] || got[1] > got[8] || got[5] > got[6]) {
				t.Errorf("round %d lies outside its certificate: %v", k, got[:9])
			}
			compared += len(got)
		}
	}
	t.Logf("%d numbers compared", compared)
}

// TestGolden runs the library here and the page in the browser from the same seeds.
func TestGolden(t *testing.T) {
	for _, hash := range []string{
		"preset=random", "preset=sparse-transitions&S=16&A=5&m=12&seed=77&gamma=0.95&eta=0.4",
		"preset=ring&S=5&A=4&m=3&seed=9007199254740991&gamma=0.8&eta=1.1&phi=0.05&tol=0.5",
	} {
		b := newTab(t)
		b.open(server.URL + "/#" + hash)
		b.toEnd()
		sameAsLibrary(t, b.read, mdp.Problem{}, engine.Decoder, engine.Exact)
	}
}

// TestLearnedActor loads weights on demand over http and from a file, and holds
// the page's trained actor against the library's, bit by bit.
func TestLearnedActor(t *testing.T) {
	actor := testkit.Must(anymdp.NewActor(testkit.Must(anymdp.Released())(t), anymdp.Prior))(t)
	for _, place := range []string{server.URL + "/", fileURL(t)} {
		b := newTab(t)
		b.open(place + "#T=12&A=5")
		if b.bytes > firstView && strings.HasPrefix(place, "http") {
			t.Errorf("%v bytes before the actor was asked for", b.bytes)
		}
		b.click("#show-learned")
		b.wait(`shown.has("learned") && run.rounds.learned?.length`)
		b.toEnd()
		got := b.trajectory().Controllers["learned"]
		if len(got) != 12 {
			t.Fatalf("%d rounds of the trained actor", len(got))
		}
		for k, r := range got {
			c := control.Context{Round: k, Pi: dense(r.Pi), Q: dense(r.Q), Eta: 0.8}
			want := testkit.Must(actor.Act([]control.Context{c}))(t)[0].Pi
			if !mat.Equal(want, dense(r.NextPi)) {
				t.Errorf("round %d of the trained actor differs by %v", k, mdp.MaxAbsDiff(want, dense(r.NextPi)))
			}
		}
		b.set("#set-S", "5") // the same network takes it
		b.wait(`run.settings.S === 5 && run.rounds.learned?.length && shown.has("learned")`)
	}
}

// TestForeignWeights serves weights other than those the page was built with,
// and none at all: the page says so and goes on without them.
func TestForeignWeights(t *testing.T) {
	const other = "does not hold the weights that this page was built with"
	for script, want := range map[string]string{
		`self.policyAttentionWeights("AAAA");`: other, `self.policyAttentionWeights("no base64");`: other,
		`"use strict";`: "could not be loaded",
	} {
		host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/learned.js" {
				w.Header().Set("Content-Type", "text/javascript")
				fmt.Fprint(w, script)
				return
			}
			server.Config.Handler.ServeHTTP(w, r)
		}))
		defer host.Close()
		b := newTab(t)
		b.open(host.URL + "/#preset=random")
		b.click("#show-learned")
		b.said(want)
		b.wait(`!shown.has("learned") && !$("show-learned").checked`)
		b.toEnd()
		b.wait(`!run.rounds.learned?.length`)
	}
}

func dense(rows [][]float64) *mat.Dense {
	m := mat.NewDense(len(rows), len(rows[0]), nil)
	for i, r := range rows {
		m.SetRow(i, r)
	}
	return m
}
