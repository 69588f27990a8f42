package engine

import (
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
)

// What a place of a map can be.
const (
	Floor = '.' // moves go where they say with probability .8, and to either side with .1
	Start = 'S' // floor, or ice where goals pay for entering; drawn with a mark
	Ice   = '~' // moves go where they say, and to either side, with 1/3 each
	Wall  = '#' // cannot be entered
	Goal  = 'G' // absorbing
	Hole  = 'H' // absorbing
)

// Moves are the actions of a map, in Gymnasium's order: left, down, right, up.
const Moves = 4

// Grid is a problem drawn as a map: a state is a place, an action a move, which a wall or the edge stops.
type Grid struct {
	Width, Height int
	Tiles         string // [Width·Height], row-major
	// Entering says that only entering a goal pays 1, as in Gymnasium. Otherwise actions in it pay 1, in a hole −1.
	Entering bool
}

// The maps of the page.
var grids = map[string]Grid{
	Maze:       {5, 5, "S..##" + "..#H#" + "....." + "#...." + "H#..G", false},
	FrozenLake: {4, 4, "S~~~" + "~H~H" + "~~~H" + "H~~G", true},
	FrozenLakeWide: {8, 8, "S~~~~~~~" + "~~~~~~~~" + "~~~H~~~~" + "~~~~~H~~" +
		"~~~H~~~~" + "~HH~~~H~" + "~H~~H~H~" + "~~~H~~~G", true},
}

// tables returns transitions [S·Moves, S] and rewards [S, Moves].
func (g *Grid) tables() (p, r *mat.Dense) {
	n := len(g.Tiles)
	p, r = mat.NewDense(n*Moves, n, nil), mat.NewDense(n, Moves, nil)
	for s := range n {
		for a := range Moves {
			row := p.RawRowView(s*Moves + a)
			for b, share := range g.shares(s, a) {
				row[g.move(s, b)] += share
			}
			switch tile := g.Tiles[s]; {
			case tile == Goal && !g.Entering:
				r.Set(s, a, 1)
			case tile == Hole && !g.Entering:
				r.Set(s, a, -1)
			case tile != Goal && g.Entering:
				for t, share := range row {
					if g.Tiles[t] == Goal {
						r.Set(s, a, r.At(s, a)+share)
					}
				}
			}
		}
	}
	return p, r
}

// shares returns with which probability action a in place s moves in each direction.
func (g *Grid) shares(s, a int) (shares [Moves]float64) {
	side, ahead := 0.1, 0.8
	if tile := g.Tiles[s]; tile == Ice || tile == Start && g.Entering {
		side, ahead = 1./3, 1./3
	}
	shares[a], shares[(a+1)%Moves], shares[(a+3)%Moves] = ahead, side, side
	return shares
}

// move returns where direction b leads from place s.
func (g *Grid) move(s, b int) int {
	if tile := g.Tiles[s]; tile == Wall || tile == Goal || tile == Hole {
		return s
	}
	x, y := s%g.Width+[Moves]int{-1, 0, 1, 0}[b], s/g.Width+[Moves]int{0, 1, 0, -1}[b]
	if x < 0 || x >= g.Width || y < 0 || y >= g.Height || g.Tiles[y*g.Width+x] == Wall {
		return s
	}
	return y*g.Width + x
}

// set returns the map with another tile at place s and the MDP with it. Other rows keep what edits made of them.
func (g *Grid) set(m *mdp.MDP, s int, tile string) (*Grid, *mdp.MDP, error) {
	switch {
	case g == nil:
		return nil, nil, fmt.Errorf("a change of a map, but this problem has none")
	case len(tile) != 1 || !strings.Contains(string([]byte{Floor, Start, Ice, Wall, Goal, Hole}), tile):
		return nil, nil, fmt.Errorf("a change makes place %d of the map %q, want one of . S ~ # G H", s, tile)
	case s < 0 || s >= len(g.Tiles):
		return nil, nil, fmt.Errorf("a change at place %d, but the map has %d places", s, len(g.Tiles))
	}
	next := *g
	next.Tiles = g.Tiles[:s] + tile + g.Tiles[s+1:]
	oldP, oldR := g.tables()
	newP, newR := next.tables()
	p, r := m.DenseP(), mat.DenseCopyOf(m.R)
	for i, row := range mdp.ToRows(newP) {
		if !slices.Equal(oldP.RawRowView(i), row) {
			p.SetRow(i, row)
		}
	}
	r.Apply(func(i, a int, v float64) float64 {
		if drawn := newR.At(i, a); drawn != oldR.At(i, a) {
			return drawn
		}
		return v
	}, r)
	env, err := mdp.New(m.Gamma, p, r)
	return &next, env, err
}

// Presets other than the families of package mdp.
const (
	Maze           = "maze"            // a map of 25 places with two ways to the goal
	FrozenLake     = "frozen-lake"     // the 4×4 map of Gymnasium, slippery
	FrozenLakeWide = "frozen-lake-8x8" // the 8×8 map of Gymnasium, slippery
	LockUp         = "lock-up"         // the paper's witness that one-step fidelity is not enough
)

// problem returns the problem that the settings name, P, r and π₀, and its map, nil if it has none.
func (s Settings) problem() (problem mdp.Problem, grid *Grid, err error) {
	if g, ok := grids[s.Preset]; ok {
		p, r := g.tables()
		problem, err = mdp.NewProblem(s.Gamma, p, r, nil)
		return problem, &g, err
	}
	if s.Preset == LockUp {
		problem, err = pmd.LockUp(1e-4, s.Eta, s.Gamma) // no update of exact PMD moves by more
		return problem, nil, err
	}
	if s.States > MaxStates || s.Actions > MaxActions {
		return problem, nil, fmt.Errorf("a problem of %d states and %d actions, the page takes at most %d and %d",
			s.States, s.Actions, MaxStates, MaxActions)
	}
	drawn, err := mdp.Family(s.Preset).Draw(s.Seed, s.States, s.Actions, 1)
	if err == nil {
		problem, err = mdp.NewProblem(s.Gamma, drawn[0].MDP.DenseP(), drawn[0].MDP.R, drawn[0].Pi0)
	}
	return problem, nil, err
}
