// Package nb shows tables, plots and sentences in GoNB notebooks. A cell is a program of its
// own: what goes wrong here is printed and ends it with status 1, as it would in its main
// function.
//
//	t := nb.NewTable("Two losses", "method", "loss at T = 20")
//	t.Add("exact PMD", 0.012345)
//	t.Show()
//	nb.NewPlot("Loss by round", "round", "loss").Line("exact PMD", nil, losses).Show()
//
// Stored results come from package results, and networks are trained by package training. This
// package depends on neither, since a cell is linked with everything that it depends on.
package nb

import (
	"fmt"
	"os"
)

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
