package lockup

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/control"
	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
)

// TestDraw checks the one thing that a mass changes.
func TestDraw(t *testing.T) {
	s := &Study{Root: 1, States: 4, Actions: 3, Problems: 5, Rounds: 40, Eta: .8}
	plain, err := mdp.Random.Draw(s.Root, s.States, s.Actions, s.Problems)
	if err != nil {
		t.Fatal(err)
	}
	drawn, err := s.Draw(1e-3)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range drawn {
		if err := p.Check(); err != nil {
			t.Fatal(err)
		}
		optimum, err := p.MDP.Optimal()
		if err != nil {
			t.Fatal(err)
		}
		if mdp.MaxAbsDiff(p.MDP.R, plain[i].MDP.R) != 0 {
			t.Errorf("problem %d has other rewards", i)
		}
		for state := range s.States {
			q, row, before := optimum.Q.RawRowView(state), p.Pi0.RawRowView(state), plain[i].Pi0.RawRowView(state)
			best := slices.Index(q, slices.Max(q))
			if row[best] != 1e-3 {
				t.Errorf("problem %d, state %d: the best action has mass %v", i, state, row[best])
			}
			x, y := (best+1)%3, (best+2)%3
			if math.Abs(row[x]/row[y]-before[x]/before[y]) > 1e-12*row[x]/row[y] {
				t.Errorf("problem %d, state %d: the others share %v, were drawn as %v", i, state, row, before)
			}
		}
	}
	for _, bad := range []float64{0, 1, -1, math.NaN()} {
		if _, err := s.Draw(bad); err == nil {
			t.Errorf("the mass %v was not refused", bad)
		}
	}
}

// An actor that never moves keeps the whole loss; exact PMD loses less, and the less the
// more mass the best action begins with.
func TestMeasure(t *testing.T) {
	s := &Study{Root: 1, States: 4, Actions: 3, Problems: 3, Rounds: 5, Eta: .8, Masses: []float64{.1, 1e-6}}
	still, err := s.Curve(Named{Label: "never moves", Actor: control.RuleActor(pmd.Identity)})
	if err != nil {
		t.Fatal(err)
	}
	exact, err := s.Curve(Named{Label: "exact PMD", Actor: control.RuleActor(pmd.PMD)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Masses {
		for j, loss := range still.Loss[i] {
			if math.Abs(loss-1) > 1e-12 {
				t.Errorf("the actor that never moves has loss %v", loss)
			}
			if moved := exact.Loss[i][j]; !(moved < 1) {
				t.Errorf("exact PMD has loss %v", moved)
			}
		}
	}
	if m := exact.Medians(); !(m[0] < m[1]) {
		t.Errorf("exact PMD's losses are %v, want less from more mass", m)
	}
	fails := control.ActorFunc(func(control.Context) (*mat.Dense, error) { return nil, errors.New("no answer") })
	if _, err := s.Curve(Named{Label: "fails", Actor: fails}); err == nil || !strings.Contains(err.Error(), "no answer (fails, mass 0.1)") {
		t.Errorf("an actor that fails: %v", err)
	}
}

// TestStored measures some of the stored losses again: the bits depend on nothing but the
// weights. 1e-9 leaves room for another order of sums in linear solves.
func TestStored(t *testing.T) {
	stored, err := Read("../../artifacts/lockup/lockup.json")
	if err != nil {
		t.Fatal(err)
	}
	want := Paper()
	if stored.Root != want.Root || stored.Problems != want.Problems || !slices.Equal(stored.Masses, want.Masses) {
		t.Errorf("the file is of %+v, want %+v", stored, want)
	}
	store, err := experiment.Open("../../artifacts", "paper", "go")
	if err != nil {
		t.Fatal(err)
	}
	actors, err := Actors(store)
	if err != nil {
		t.Fatal(err)
	}
	guarded, err := Guarded(store)
	if err != nil {
		t.Fatal(err)
	}
	short := Short()
	if len(actors) != len(stored.Curves) || len(stored.Compared) != len(short)+len(guarded) {
		t.Fatalf("%d curves of %d actors, %d ways compared of %d", len(stored.Curves), len(actors), len(stored.Compared), len(short)+len(guarded))
	}
	for i, c := range short { // their weights are not in the repository
		if stored.Compared[i].Weights[c.Hash()] == "" {
			t.Errorf("%s is not of the run %s", stored.Compared[i].Actor, c.Name())
		}
	}
	curves := slices.Concat(stored.Curves, stored.Compared[len(short):])
	few := *want
	few.Problems = 1
	for i, a := range slices.Concat(actors, guarded) {
		c := curves[i]
		if c.Actor != a.Label {
			t.Errorf("curve %d is of %s, want %s", i, c.Actor, a.Label)
		}
		for name, digest := range a.Weights {
			if c.Weights[name] != digest {
				t.Errorf("%s was measured with other weights of %s", c.Actor, name)
			}
		}
		at := i % len(want.Masses)
		losses, err := few.Measure(a.Actor, want.Masses[at])
		if err != nil {
			t.Fatal(err)
		}
		if d := math.Abs(losses[0] - c.Loss[at][0]); d > 1e-9 {
			t.Errorf("%s at mass %g: loss %v, stored is %v", a.Label, want.Masses[at], losses[0], c.Loss[at][0])
		}
	}
}
