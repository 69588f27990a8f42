package mdp

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// Count is what a controller has used.
type Count struct {
	Transitions int // drawn by Transition
	Entries     int // of P and r that were read
}

// Meter counts what is taken from a metered MDP. The methods of a nil Meter do nothing, so that
// nobody needs to know whether there is one.
type Meter struct {
	r      *mat.Dense // the rewards that the metered MDP hides
	now    Count
	rounds []Count
}

// Metered returns the same MDP behind a meter. What it tells of itself but for sizes,
// discount and reward cap is counted, but for Successors; its field R holds NaN, so that
// nothing is read past the meter by mistake. A meter is not safe for concurrent use.
func (m *MDP) Metered() *MDP {
	hidden := *m
	hidden.meter = &Meter{r: m.rewards()}
	hidden.R = unknown(m.R)
	return &hidden
}

// unmetered returns the MDP without its meter.
func (m *MDP) unmetered() *MDP {
	plain := *m
	plain.R, plain.meter = m.rewards(), nil
	return &plain
}

// unknown returns a table of NaN of the shape of x.
func unknown(x *mat.Dense) *mat.Dense {
	rows, columns := x.Dims()
	y := mat.NewDense(rows, columns, nil)
	for i := range y.RawMatrix().Data {
		y.RawMatrix().Data[i] = math.NaN()
	}
	return y
}

// Meter returns the meter of the MDP, or nil where it has none.
func (m *MDP) Meter() *Meter { return m.meter }

// EndRound notes what has been used by the time when a round's policy is returned.
func (t *Meter) EndRound() {
	if t != nil {
		t.rounds = append(t.rounds, t.now)
	}
}

// Rounds returns what had been used by the end of each round, all rounds before it
// included. It must not be changed.
func (t *Meter) Rounds() []Count {
	if t == nil {
		return nil
	}
	return t.rounds
}

// read counts entries of P and r.
func (t *Meter) read(entries int) {
	if t != nil {
		t.now.Entries += entries
	}
}

// rewards returns r behind the meter.
func (m *MDP) rewards() *mat.Dense {
	if m.meter != nil {
		return m.meter.r
	}
	return m.R
}
