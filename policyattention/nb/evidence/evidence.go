// Package evidence shows stored results in GoNB notebooks.
//
//	var results = evidence.Open("stored")
//	%%
//	results.Evaluate(experiment.Confirmation)
//	results.Figure("closed")
//	results.Table("confirmation")
package evidence

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"

	"icrl/policyattention/artifact"
	"icrl/policyattention/experiment"
	"icrl/policyattention/nb"
	"icrl/policyattention/report"
	"icrl/policyattention/results"
)

// artifacts is where notebooks, which run in a folder beside it, find results.
const artifacts = "../artifacts"

// Results are the results of a preset.
type Results struct {
	*experiment.Store
	stored bool // nothing is computed
}

// Open returns the results at the paper's budget: those that are "stored" in the
// repository, which are shown as they are, or the same made anew, "retrained", into
// a folder of their own. Where POLICYATTENTION_PRESET is smoke, the results are of
// that preset and what is missing is computed.
func Open(which string) *Results {
	name, folder := "paper", artifacts
	smoke := os.Getenv("POLICYATTENTION_PRESET") == "smoke"
	if smoke {
		name = "smoke"
	}
	switch which {
	case "stored":
	case "retrained":
		folder += "/retrained"
	default:
		nb.Try(fmt.Errorf("evidence: %q, want \"stored\" or \"retrained\"", which))
	}
	return &Results{Store: nb.Must(experiment.Open(folder, name, "")), stored: which == "stored" && !smoke}
}

// Evaluate computes the cells of blocks that have not been computed yet, training
// what they need, and shows how many of them are there. Of stored evidence it counts
// what is there. An interrupted training continues where it was. Cells that want a
// GPU, since one of their training runs would take a core more than a day, are left
// to the command.
func (r *Results) Evaluate(blocks ...experiment.Block) {
	screen := nb.NewScreen()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r.Progress = func(p experiment.Progress) {
		status := fmt.Sprintf(`training %s <progress value="%d" max="%d"></progress> %.1f steps/s`, p.Name, p.Step, p.Steps, p.StepsPerSecond)
		if p.Waiting {
			status = "waiting for another program to make " + p.Name
		}
		screen.HTML(status, "")
	}
	var lines []string
	for _, block := range blocks {
		there, planned, left := 0, 0, 0
		for _, cell := range r.Preset.Plan() {
			if cell.Block != block {
				continue
			}
			planned++
			_, err := r.Find(cell)
			if errors.Is(err, artifact.ErrMissing) {
				if r.stored {
					continue
				}
				if nb.Must(r.Long(cell)) {
					left++
					continue
				}
				screen.HTML("evaluating "+cell.Name(), "")
				_, err = r.Store.Evaluate(ctx, cell)
			}
			nb.Try(err)
			there++
		}
		line := fmt.Sprintf("Block %s, preset %s: %d of %d results available.", block, r.Preset.Name, there, planned)
		if left > 0 {
			line += fmt.Sprintf(" The other %d need a GPU; `policyattention --preset %s evaluate` computes them by name.", left, r.Preset.Name)
		}
		lines = append(lines, line)
	}
	screen.Say("%s", strings.Join(lines, "\n"))
}

// Figure shows the figure of the report that has this name.
func (r *Results) Figure(name string) { nb.Figure(nb.Must(report.BuildFigure(r.Store, name))) }

// Table shows the table of the report that has this name.
func (r *Results) Table(name string) { Report(nb.Must(report.BuildTable(r.Store, name))).Show() }

// Fold shows such a table closed, as a line to click on.
func (r *Results) Fold(name string) { Report(nb.Must(report.BuildTable(r.Store, name))).Fold().Show() }

// Rows returns such a table with the rows whose values, as package results gives them, are
// to be kept.
func Rows[R any](r *Results, name string, keep func(R) bool) *nb.Sheet {
	t := nb.Must(report.BuildTable(r.Store, name))
	values, ok := t.Values.([]R)
	if !ok {
		nb.Try(fmt.Errorf("evidence: the rows of table %s are %T, not %T", name, t.Values, values))
	}
	return Report(t).Keep(func(row int) bool { return keep(values[row]) })
}

// Source returns the results for the functions of package results.
func (r *Results) Source() *results.Source { return results.New(r.Store) }

// Table shows a table of the report.
func Table(r report.Table) { Report(r).Show() }

// Report returns a table of the report as a sheet, with the preset in its title.
func Report(r report.Table) *nb.Sheet {
	title, notes := r.Title, r.Notes
	if r.Preset != "" {
		title += ", preset " + r.Preset
		notes = slices.DeleteFunc(slices.Clone(notes), func(note string) bool { return note == report.PresetNote(r.Preset) })
	}
	return nb.Compact(title, r.Columns, r.Rows, notes)
}
