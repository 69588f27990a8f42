package engine

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
)

// TestMaps edits places of a map and compares the tables with those of a map
// drawn that way, and other edits with what they were before.
func TestMaps(t *testing.T) {
	for _, preset := range []string{Maze, FrozenLake, FrozenLakeWide} {
		s := settings()
		s.Preset = preset
		e := start(t, s)
		first := e.Phases[0].Grid
		if n := len(first.Tiles); n != first.Width*first.Height || n != e.Decoder.States {
			t.Fatalf("%s: %d tiles of a map of %d by %d", preset, n, first.Width, first.Height)
		}
		testkit.Check(t, e.Apply(2, Edit{Kind: "reward", S: 1, A: 2, Value: 0.25}))
		for _, tile := range []byte{Wall, Ice, Goal, Hole, Floor} {
			if err := e.Apply(3, Edit{Kind: "tile", S: 6, Tile: string(tile)}); err != nil {
				t.Fatal(preset, string(tile), err)
			}
			last := e.Phases[len(e.Phases)-1]
			p, r := last.Grid.tables()
			r.Set(1, 2, 0.25)
			if last.Grid.Tiles[6] != tile || !mat.Equal(last.Problem.MDP.DenseP(), p) {
				t.Errorf("%s: place 6 as %q has other transitions than a map drawn that way", preset, tile)
			}
			for i := range e.Decoder.States * Moves {
				if tile == Wall && i/Moves != 6 && p.At(i, 6) != 0 {
					t.Errorf("%s: row %d enters the wall with probability %v", preset, i, p.At(i, 6))
				}
			}
			// Entering pays in r(1,2) when its row changed, and the edit then gives way.
			if !first.Entering && !mat.Equal(last.Problem.MDP.R, r) {
				t.Errorf("%s: place 6 as %q has other rewards", preset, tile)
			}
			if x, err := e.Round(Decoder, 5); err != nil || x.Bound.Total() < 0 {
				t.Errorf("%s: place 6 as %q: %v", preset, tile, err)
			}
		}
		if got := e.Phases[0].Grid.Tiles; got != first.Tiles || e.Phases[0].Grid != first {
			t.Errorf("%s: the map of the past is %s", preset, got)
		}
		for _, bad := range []Edit{
			{S: -1, Tile: "#"}, {S: 99, Tile: "#"}, {S: 1, Tile: "x"}, {S: 1}, {S: 1, Tile: "##"},
		} {
			bad.Kind = "tile"
			if err := e.Apply(3, bad); err == nil {
				t.Errorf("%s: edit %+v was applied", preset, bad)
			}
		}
	}
	e := start(t, settings())
	if err := e.Apply(0, Edit{Kind: "tile", S: 1, Tile: "#"}); err == nil {
		t.Error("a random problem has a wall")
	}
}

// TestSetStart edits π₀ and compares with a problem that had it from the start.
func TestSetStart(t *testing.T) {
	e := start(t, settings())
	testkit.Must(e.Round(Exact, 7))(t)
	problem := e.Phases[0].Problem
	pi := mat.DenseCopyOf(problem.Pi0)
	testkit.Check(t, e.Apply(0, Edit{Kind: "start", S: 3, A: 1, Value: 0.5}))
	rest := pi.At(3, 0) + pi.At(3, 2)
	pi.SetRow(3, []float64{pi.At(3, 0) * (0.5 / rest), 0.5, pi.At(3, 2) * (0.5 / rest)})
	problem.Pi0 = pi
	other := testkit.Must(New(settings(), problem))(t)
	for _, name := range []string{Decoder, Exact} {
		x := testkit.Must(e.Round(name, 7))(t)
		y := testkit.Must(other.Round(name, 7))(t)
		if !mat.Equal(x.NextPi, y.NextPi) || x.Bound != y.Bound {
			t.Errorf("%s: an edited π₀ gives another run than the same π₀ from the start", name)
		}
	}
	for _, bad := range []float64{0, 1, -1, math.NaN(), math.Inf(1)} {
		if err := e.Apply(0, Edit{Kind: "start", S: 0, A: 0, Value: bad}); err == nil {
			t.Errorf("π₀ = %v was taken", bad)
		}
	}
	if err := e.Apply(0, Edit{Kind: "start", S: 8, A: 0, Value: 0.5}); err == nil {
		t.Error("π₀ of state 8 of 8 was taken")
	}
}

// TestCarrier takes all digits from the normalized decoder: that is an error
// which says so, and the others go on.
func TestCarrier(t *testing.T) {
	s := settings()
	s.Carrier = 1e15
	e := start(t, s)
	failed := false
	for k := range s.Rounds {
		if _, err := e.Round(Normalized, k); err != nil {
			failed = strings.Contains(err.Error(), "carrier")
			break
		}
	}
	if !failed {
		t.Error("a carrier of 1e15 left policies valid, or the error does not name it")
	}
	if _, err := e.Round(Decoder, 39); err != nil {
		t.Error(err)
	}
}

// TestDeclaredCap declares more than the problem needs, and then edits up to it.
func TestDeclaredCap(t *testing.T) {
	s := settings()
	s.RMax = 3
	e := start(t, s)
	if e.Decoder.RMax != 3 {
		t.Fatalf("cap %v, want 3", e.Decoder.RMax)
	}
	if err := e.Apply(1, Edit{Kind: "place", S: 1, Value: 3}); err != nil {
		t.Error(err)
	}
	for a := range 3 {
		if got := e.Phases[1].Problem.MDP.R.At(1, a); got != 3 {
			t.Errorf("r(1,%d) = %v after an edit of the place", a, got)
		}
	}
	if err := e.Apply(1, Edit{Kind: "place", S: 1, Value: 3.5}); err == nil {
		t.Error("a reward beyond the cap was taken")
	}
}
