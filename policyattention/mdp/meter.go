package mdp

import (
	"math"
	"time"

	"gonum.org/v1/gonum/mat"
)

// Count is what a controller has used.
type Count struct {
	Transitions int     // drawn by Transition
	Entries     int     // of P and r that were read
	Operations  int     // in floating point: see Meter
	Seconds     float64 // of wall time since the meter was made
}

// Meter counts what is taken from a metered MDP. Transitions and entries are counted by
// the MDP itself, and so are the floating-point operations of its own backups and
// solves: an addition, multiplication, division, comparison, logarithm or exponential is
// one. Whoever computes with what it was given charges the rest by Charge. The methods
// of a nil Meter do nothing, so that nobody needs to know whether there is one.
type Meter struct {
	r      *mat.Dense // the rewards that the metered MDP hides
	now    Count
	rounds []Count
	// seconds since the meter was made. A time.Time here would keep all that formats times in
	// the page's program.
	seconds func() float64
}

// Metered returns the same MDP behind a meter. What it tells of itself but for sizes,
// discount and reward cap is counted, but for Successors; its field R holds NaN, so that
// nothing is read past the meter by mistake. A meter is not safe for concurrent use.
func (m *MDP) Metered() *MDP {
	hidden := *m
	began := time.Now()
	hidden.meter = &Meter{r: m.rewards(), seconds: func() float64 { return time.Since(began).Seconds() }}
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

// Charge counts floating-point operations.
func (t *Meter) Charge(operations int) {
	if t != nil {
		t.now.Operations += operations
	}
}

// EndRound notes what has been used by the time when a round's policy is returned.
func (t *Meter) EndRound() {
	if t != nil {
		t.now.Seconds = t.seconds()
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

// read counts entries of P and r, and operations on them.
func (t *Meter) read(entries, operations int) {
	if t != nil {
		t.now.Entries += entries
		t.now.Operations += operations
	}
}

// rewards returns r behind the meter.
func (m *MDP) rewards() *mat.Dense {
	if m.meter != nil {
		return m.meter.r
	}
	return m.R
}

// luOperations is what LU factors of [n, n] and a solve with them take. Column k is
// divided by its pivot and the rest updated: n(n−1)/2 divisions, and multiplications and
// subtractions of Σ(n−k)² = n(n−1)(2n−1)/6 each. Two triangular solves take n(n−1) of
// both, and n divisions.
func luOperations(n int) int {
	return n*(n-1)/2 + 2*(n*(n-1)*(2*n-1)/6) + 2*n*(n-1) + n
}
