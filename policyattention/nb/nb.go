// Package nb shows results in GoNB notebooks. A cell is a program of its own: what
// goes wrong here is printed and ends it with status 1, as it would in its main
// function.
//
//	var results = nb.Open("quick")
//	%%
//	results.Evaluate(experiment.Confirmation)
//	results.Figure("closed")
//	results.Table("confirmation")
package nb

import (
	"context"
	"errors"
	"fmt"
	"html"
	"os"
	"os/signal"
	"strings"

	"github.com/janpfeifer/gonb/gonbui"
	"github.com/janpfeifer/gonb/gonbui/protocol"

	"icrl/policyattention/artifact"
	"icrl/policyattention/experiment"
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

// preset returns the preset that the variable POLICYATTENTION_PRESET asks for, or
// nothing.
func preset() string { return os.Getenv("POLICYATTENTION_PRESET") }

// Open returns the results of a preset: smoke, quick or paper, or another that the
// variable POLICYATTENTION_PRESET names.
func Open(name string) *Results {
	if p := preset(); p != "" {
		name = p
	}
	return &Results{Store: Must(experiment.Open(artifacts, name, ""))}
}

// Evidence returns the results at the paper's budget: those that are "stored" in the
// repository, which are shown as they are, or the same made anew, "retrained", into
// a folder of their own. Where POLICYATTENTION_PRESET is smoke, the results are of
// that preset and what is missing is computed.
func Evidence(which string) *Results {
	name, folder := "paper", artifacts
	smoke := preset() == "smoke"
	if smoke {
		name = preset()
	}
	switch which {
	case "stored":
	case "retrained":
		folder += "/retrained"
	default:
		check(fmt.Errorf("nb: evidence %q, want \"stored\" or \"retrained\"", which))
	}
	return &Results{Store: Must(experiment.Open(folder, name, "")), stored: which == "stored" && !smoke}
}

// Evaluate computes the cells of blocks that have not been computed yet, training
// what they need, and shows how many of them are there. Of stored evidence it counts
// what is there. An interrupted training continues where it was. Cells that want a
// GPU, since one of their training runs would take a core more than a day, are left
// to the command.
func (r *Results) Evaluate(blocks ...experiment.Block) {
	id := gonbui.UniqueId()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r.Progress = func(p experiment.Progress) {
		status := fmt.Sprintf(`training %s <progress value="%d" max="%d"></progress> %.1f steps/s`, p.Name, p.Step, p.Steps, p.StepsPerSecond)
		if p.Waiting {
			status = "waiting for another program to make " + p.Name
		}
		gonbui.UpdateHTML(id, status)
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
				if Must(r.Long(cell)) {
					left++
					continue
				}
				gonbui.UpdateHTML(id, "evaluating "+cell.Name())
				_, err = r.Store.Evaluate(ctx, cell)
			}
			check(err)
			there++
		}
		line := fmt.Sprintf("Block %s, preset %s: %d of %d results available.", block, r.Preset.Name, there, planned)
		if left > 0 {
			line += fmt.Sprintf(" The other %d need a GPU; `policyattention --preset %s evaluate` computes them by name.", left, r.Preset.Name)
		}
		lines = append(lines, line)
	}
	text := strings.Join(lines, "\n")
	bundle{
		protocol.MIMETextHTML:  strings.ReplaceAll(code(html.EscapeString(text)), "\n", "<br>"),
		protocol.MIMETextPlain: text,
	}.show(id)
}

// Figure shows the figure of the report that has this name.
func (r *Results) Figure(name string) { Figure(Must(report.BuildFigure(r.Store, name))) }

// Table shows the table of the report that has this name.
func (r *Results) Table(name string) { Report(Must(report.BuildTable(r.Store, name))).Show() }

// Fold shows such a table closed, as a line to click on.
func (r *Results) Fold(name string) { Report(Must(report.BuildTable(r.Store, name))).Fold().Show() }

// Rows returns such a table with the rows whose values, as package results gives them, are
// to be kept.
func Rows[R any](r *Results, name string, keep func(R) bool) *Sheet {
	t := Must(report.BuildTable(r.Store, name))
	values, ok := t.Values.([]R)
	if !ok {
		check(fmt.Errorf("nb: the rows of table %s are %T, not %T", name, t.Values, values))
	}
	sheet := Report(t)
	sheet.laid = sheet.parts() // some rows have the columns of all
	all := sheet.rows
	sheet.rows = nil
	for i, v := range values {
		if keep(v) {
			sheet.rows = append(sheet.rows, all[i])
		}
	}
	return sheet
}

// Source returns the results for the functions of package results.
func (r *Results) Source() *results.Source { return results.New(r.Store) }

// Must returns the value of a call that went well. It takes the call's error as a list, so
// that a misspelt name within the call is all that the compiler reports.
func Must[T any](value T, errs ...error) T {
	for _, err := range errs {
		check(err)
	}
	return value
}

// Try ends the cell if a call without a value did not go well.
func Try(err error) { check(err) }

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
