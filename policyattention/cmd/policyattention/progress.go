package main

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"icrl/policyattention/experiment"
)

// progress shows the training of the given runs: as lines of JSON on standard
// output where the caller is a machine, as a bar with the time left on a
// terminal, and not at all elsewhere. The function that it returns ends it.
func (g *globals) progress(store *experiment.Store, runs []experiment.TrainingConfig) (done func()) {
	if g.JSON {
		encoder := json.NewEncoder(g.out)
		store.Progress = func(p experiment.Progress) {
			encoder.Encode(p) //nolint:errcheck // nobody may be reading
		}
		return func() {}
	}
	terminal, ok := g.errors.(*os.File)
	if !ok || !term.IsTerminal(int(terminal.Fd())) {
		return func() {}
	}
	total := 0
	for _, c := range runs {
		total += c.Budget()
	}
	bar := progressbar.NewOptions(total,
		progressbar.OptionSetWriter(terminal), progressbar.OptionSetDescription("training"),
		progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("step"),
		progressbar.OptionSetPredictTime(true), progressbar.OptionThrottle(200e6), progressbar.OptionClearOnFinish())
	var mutex sync.Mutex
	steps := map[string]int{}
	store.Progress = func(p experiment.Progress) {
		mutex.Lock()
		defer mutex.Unlock()
		if p.Waiting {
			fmt.Fprintf(terminal, "\nanother process is at %s, waiting\n", p.Name)
			return
		}
		steps[p.Name] = p.Step
		sum := 0
		for _, n := range steps {
			sum += n
		}
		bar.Set(sum) //nolint:errcheck // only the display is lost
	}
	return func() { bar.Finish() } //nolint:errcheck // only the display is lost
}
