// Package nb shows tables, plots and sentences in GoNB notebooks. A cell is a program of its own: what goes wrong here
// is printed and ends it with status 1, as it would in its main function.
//
//	t := nb.NewTable("Two losses", "method", "loss at T = 20")
//	t.Add("exact PMD", 0.012345)
//	t.Show()
//	nb.NewPlot("Loss by round", "round", "loss").LogY().Line("exact PMD", nil, losses).Show()
//
// Stored results come from package results, and networks are trained by package training. This
// package depends on neither, since a cell is linked with everything that it depends on.
package nb

import (
	"errors"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
)

// Must returns the value of a call that went well. It takes the call's error as a list, so
// that a misspelt name within the call is all that the compiler reports.
func Must[T any](value T, errs ...error) T {
	for _, err := range errs {
		Try(err)
	}
	return value
}

// Try ends the cell if a call without a value did not go well.
func Try(err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, where(err))
		os.Exit(1)
	}
}

// inCell is a line of a stack trace that lies in a cell: GoNB writes the cell and its line beside it.
var inCell = regexp.MustCompile(`(?m)^\s*\S*/main\.go:\d+`)

// where returns the lines of cells that an error comes from: those of the error's own stack trace, as errors
// of GoMLX have one, or else of the calls that led here.
func where(err error) (lines string) {
	trace := fmt.Sprintf("%+v", err)
	if !inCell.MatchString(trace) {
		trace = string(debug.Stack())
	}
	for _, line := range inCell.FindAllString(trace, -1) {
		lines += "\t" + strings.TrimSpace(line) + "\n"
	}
	return lines
}

// Stored returns the folder of rows that the notebooks show: those of the preset in POLICYATTENTION_PRESET where
// there are any, as after make reproduce, and the paper's otherwise.
func Stored() string {
	if preset := os.Getenv("POLICYATTENTION_PRESET"); preset != "" {
		folder := filepath.Join("..", "artifacts", preset)
		if _, err := os.Stat(filepath.Join(folder, "rows")); err == nil {
			return folder
		}
	}
	return filepath.Join("..", "artifacts", "paper")
}

// lacks says, and reports true, if rows could not be shown because they are of a small preset, which lacks many runs.
func lacks(errs ...error) bool {
	err := errors.Join(errs...)
	if err == nil || filepath.Base(Stored()) == "paper" {
		return false
	}
	Say("These runs are not in %s: %v", Stored(), err)
	return true
}

// Check says whether an exercise is solved, and if not, what is missing: the error of a check of package exercise. An
// exercise that is not solved does not fail its cell, so that the cells below it run.
func Check(err error) {
	text, colour := "✓ solved", "#00684a"
	if err != nil {
		text, colour = fmt.Sprintf("✗ not yet: %v", err), "#a33c00"
	}
	HTML(fmt.Sprintf(`<p style="font-weight:bold;color:%s">%s</p>`, colour, html.EscapeString(text)), text)
}
