package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"

	"icrl/policyattention/experiment"
	"icrl/policyattention/method"
)

// between is the time from one line about a training run to the next.
const between = time.Minute

// progress shows the training of the given runs: as lines of JSON on standard
// output where the caller is a machine, as a bar with the time left on a
// terminal, and elsewhere as a line a minute and run. The function that it returns
// ends it.
func (g *globals) progress(store *experiment.Store, runs []method.Training) (done func()) {
	var mutex sync.Mutex
	if g.JSON {
		encoder := json.NewEncoder(g.out)
		store.Progress = func(p experiment.Progress) {
			mutex.Lock()
			defer mutex.Unlock()
			encoder.Encode(p) //nolint:errcheck // nobody may be reading
		}
		return func() {}
	}
	if !g.terminal() {
		last := map[string]time.Time{}
		store.Progress = func(p experiment.Progress) {
			mutex.Lock()
			defer mutex.Unlock()
			if now := time.Now(); p.Waiting || now.Sub(last[p.Name]) >= between || p.Step == p.Steps {
				if last[p.Name].IsZero() {
					p.StepsPerSecond = 0 // of the first steps, compilation and all
				}
				last[p.Name] = now
				fmt.Fprintln(g.errors, line(p))
			}
		}
		return func() {}
	}
	total := 0
	for _, c := range runs {
		total += c.Budget()
	}
	bar := progressbar.NewOptions(total,
		progressbar.OptionSetWriter(g.errors), progressbar.OptionSetDescription("training"),
		progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("step"),
		progressbar.OptionSetPredictTime(true), progressbar.OptionThrottle(200e6), progressbar.OptionClearOnFinish())
	steps, before := map[string]int{}, map[string]int{} // before: in an earlier process
	store.Progress = func(p experiment.Progress) {
		mutex.Lock()
		defer mutex.Unlock()
		if p.Waiting {
			fmt.Fprintf(g.errors, "\n%s\n", line(p))
			return
		}
		if _, ok := before[p.Name]; !ok {
			before[p.Name] = p.Step - 1
			total -= p.Step - 1
			bar.ChangeMax(total)
		}
		steps[p.Name] = p.Step - before[p.Name]
		sum := 0
		for _, n := range steps {
			sum += n
		}
		bar.Set(sum) //nolint:errcheck // only the display is lost
	}
	return func() { bar.Finish() } //nolint:errcheck // only the display is lost
}

// terminal says whether errors go to one.
func (g *globals) terminal() bool {
	file, ok := g.errors.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// line says how far a training run is.
func line(p experiment.Progress) string {
	switch {
	case p.Waiting:
		return fmt.Sprintf("another process is at %s, waiting", p.Name)
	case p.StepsPerSecond > 0:
		left := time.Duration(float64(p.Steps-p.Step) / p.StepsPerSecond * float64(time.Second))
		return fmt.Sprintf("%s: %d of %d steps, %.3g steps/s, %v left",
			p.Name, p.Step, p.Steps, p.StepsPerSecond, left.Round(time.Second))
	}
	return fmt.Sprintf("%s: %d of %d steps", p.Name, p.Step, p.Steps)
}
