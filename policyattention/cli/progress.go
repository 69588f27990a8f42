package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"icrl/policyattention/experiment"
)

// progress returns what tells of training: lines of JSON on standard output where the caller is a
// machine, and elsewhere a line a run and interval. Processes of one program can call it at once.
func (g *globals) progress() func(experiment.Progress) {
	var mutex sync.Mutex
	last, encoder := map[string]time.Time{}, json.NewEncoder(g.out)
	return func(p experiment.Progress) {
		mutex.Lock()
		defer mutex.Unlock()
		before, now := last[p.Name], time.Now()
		switch {
		case g.JSON:
			encoder.Encode(p) //nolint:errcheck // nobody may be reading
		case p.Waiting || now.Sub(before) >= g.interval() || p.Step == p.Steps:
			if before.IsZero() {
				p.StepsPerSecond = 0 // of the first steps, compilation and all
			}
			last[p.Name] = now
			fmt.Fprintln(g.errors, line(p))
		}
	}
}

// interval is the time from one line about what takes long to the next.
func (g *globals) interval() time.Duration {
	if file, ok := g.errors.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return 5 * time.Second
	}
	return time.Minute
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
