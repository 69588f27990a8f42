// Package capability has the types of the paper's Table 1: what each system can do, with the test that
// shows it. Each system has its row in its own folder; package all lists them.
package capability

import (
	"context"

	"github.com/gomlx/compute"
)

// System is a row of the table.
type System struct {
	Name, Source string
	Softmax      Mark // standard softmax attention in the construction or the model
	Evaluation   Mark // evaluates policies in context
	Control      Mark // improves policies in context
	Learned      Mark // by training, not by construction alone
	ReturnError  Mark // residuals of the returned policies bound their loss

	// Folder is the last part of its package's path. Train, where it is not nil, trains one of Variants, of which
	// the first is the paper's, and measures the weights; nothing is stored.
	Folder   string
	Variants []string
	Train    func(context.Context, compute.Backend, Training) ([]Number, error)
}

// Training is what a System's Train is told.
type Training struct {
	Variant   string
	Seed      uint64 // the first of Seeds
	Seeds     int
	Processes int // that are trained on, one after the other; 0 for as many as in the paper
}

// Number is a measured number, and where there is one, the paper's or what the algorithm has.
type Number struct {
	Quantity  string  `json:"quantity"`
	Here      float64 `json:"here"`
	Error     float64 `json:"standard_error,omitempty"` // of Here, over seeds; 0 for one seed
	Published float64 `json:"published,omitempty"`
	Read      float64 `json:"read,omitempty"` // Published was read off a figure to ± this
}

// Columns are the names of the marks in the table's order.
var Columns = []string{"softmax", "evaluation", "control", "learned", "return-error"}

// Marks are the row's cells in the order of Columns.
func (s System) Marks() []Mark {
	return []Mark{s.Softmax, s.Evaluation, s.Control, s.Learned, s.ReturnError}
}

// Mark is a cell of the table. The zero Mark says no.
type Mark struct {
	As string // as the paper prints it: "yes", or a word
	// Test names the test that shows it, by its package below policyattention, as in
	// "field/wang.TestEachLayerIsAStep".
	Test string
}

// Yes is the cell of what a system can do.
func Yes(test string) Mark { return Mark{"yes", test} }

// String is the mark as the table prints it.
func (m Mark) String() string {
	switch m.As {
	case "":
		return "–"
	case "yes":
		return "✓"
	}
	return m.As
}
