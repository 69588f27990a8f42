package main

import (
	"cmp"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
	"golang.org/x/sync/errgroup"

	"icrl/policyattention/experiment"
	"icrl/policyattention/report"
	"icrl/policyattention/stats"
)

// comparison is the speed of programs, measured on one machine.
type comparison struct {
	Machine experiment.Produced `json:"machine"`
	Load    string              `json:"load_average_at_start"` // /proc/loadavg: over 1, 5 and 15 minutes, and processes
	Results []result            `json:"results"`
}

// result is one program at one work.
type result struct {
	Work    string  `json:"row"`
	Program string  `json:"program"`     // as in "JAX, scan": its framework, then the variant
	Setting string  `json:"setting"`     // processes × threads
	Best    float64 `json:"steps_s"`     // best turn, summed over processes
	Median  float64 `json:"steps_s_mid"` // median turn
	CPU     float64 `json:"steps_cpu_s"` // best steps per second of processor time
	Parity  float64 `json:"largest_relative_difference"`
	Error   string  `json:"error,omitempty"`
}

// program is a way to do a work: its name and its command, in which $PROBLEM is the exported file.
type program struct{ name, command string }

// programs are ours and those of the folder peers.
var programs = []program{
	{"GoMLX", "$BENCH serve $WORK $STEPS"},
	{"GoMLX in pure Go", "$BENCH serve $WORK $STEPS --backend=go"},
	{"JAX", "$PYTHON $PEERS/jax_peer.py $PROBLEM"},
	{"JAX, scan", "$PYTHON $PEERS/jax_peer.py $PROBLEM $SCAN"},
	{"JAX, vmap", "$PYTHON $PEERS/jax_peer.py $PROBLEM $SCAN $RUNS"},
	{"PyTorch", "$PYTHON $PEERS/torch_peer.py $PROBLEM $THREADS"},
	{"PyTorch, compiled", "$PYTHON $PEERS/torch_peer.py $PROBLEM $THREADS compile"},
}

// task is what a worker is to do.
type task struct {
	work
	at, steps, threads int // index of the work, steps of the parity check
	problem, python    string
}

// command returns the command of a program; nil where it cannot do the task.
func (t task) command(p program) []string {
	if strings.Contains(p.command, "$PYTHON") && t.python == "" || strings.Contains(p.command, "$RUNS") && t.runs == 1 {
		return nil
	}
	values := map[string]any{
		"BENCH": os.Args[0], "PYTHON": t.python, "PEERS": "policyattention/bench/peers", "PROBLEM": t.problem,
		"WORK": t.at, "STEPS": t.steps, "SCAN": t.scan, "RUNS": t.runs, "THREADS": t.threads,
	}
	return strings.Fields(os.Expand(p.command, func(name string) string { return fmt.Sprint(values[name]) }))
}

// contender is a program in a race.
type contender struct {
	result
	workers []*worker
	turn    int       // steps
	walls   []float64 // steps a second, by turn
}

// race has all programs do a task, so many processes of each, in turns of so many seconds: a change
// of the machine's speed meets all of them, and who waits is idle. A program that cannot be started,
// or computes other numbers than the first, has no speed but an error.
func race(t task, list []program, processes, turns int, seconds float64) (results []result, err error) {
	var all []*contender
	var ours []float64
	for _, p := range list {
		command := t.command(p)
		if command == nil {
			continue
		}
		setting := fmt.Sprintf("%d × %d", processes, t.threads)
		c := &contender{result: result{Work: t.name, Program: p.name, Setting: setting}}
		defer func() {
			for _, w := range c.workers {
				w.close()
			}
		}()
		all = append(all, c)
		err := c.start(command, processes, t.threads)
		for _, w := range c.workers {
			if ours == nil {
				ours = w.losses
			}
			if err == nil {
				c.Parity, err = compare(ours, w.losses)
			}
		}
		if err != nil {
			c.Error = fmt.Sprintf("%v: %v", command, err)
		}
		fmt.Fprintf(os.Stderr, "%s, %s, %s: numbers within %.1g %s\n", t.name, setting, p.name, c.Parity, c.Error)
	}
	for range turns + 1 {
		for _, c := range all {
			if c.Error != "" {
				continue
			}
			if err := c.take(seconds); err != nil {
				return nil, err
			}
		}
	}
	for _, c := range all {
		if c.Error == "" {
			c.Best, c.Median = slices.Max(c.walls), stats.Median(c.walls)
		}
		results = append(results, c.result)
	}
	return results, nil
}

// start starts a contender's processes, each on processors of its own.
func (c *contender) start(command []string, processes, threads int) error {
	for n := range processes {
		// XLA sizes its pools of threads by the affinity mask, ours rests the surplus.
		cpus := fmt.Sprintf("%d-%d", n*threads, (n+1)*threads-1)
		pinned := append([]string{"taskset", "-c", cpus}, command...)
		w, err := begin(fmt.Sprintf("OMP_NUM_THREADS=%d", threads), pinned)
		if err != nil {
			return err
		}
		c.workers = append(c.workers, w)
	}
	return nil
}

// take has a contender's processes make a turn at once. The first finds how many steps a turn has.
func (c *contender) take(seconds float64) error {
	walls, cpus := make([]float64, len(c.workers)), make([]float64, len(c.workers))
	var all errgroup.Group
	for i, w := range c.workers {
		all.Go(func() (err error) {
			walls[i], cpus[i], err = w.time(cmp.Or(c.turn, 2))
			return err
		})
	}
	err := all.Wait()
	wall, cpu, n := 0., 0., float64(len(c.workers))
	for i := range walls {
		wall, cpu = wall+walls[i], cpu+cpus[i]/n
	}
	if c.turn == 0 {
		c.turn = int(math.Ceil(wall / n * seconds))
		return err
	}
	c.walls, c.CPU = append(c.walls, wall), max(c.CPU, cpu)
	return err
}

// frameworks are what documents compare.
var frameworks = []string{"GoMLX", "GoMLX in pure Go", "JAX", "PyTorch"}

// table is the race as documents show it: the best variant of each framework.
func (c comparison) table(string) (report.Table, error) {
	t := report.Table{Columns: slices.Concat([]string{"work", "processes × threads"}, frameworks,
		[]string{"GoMLX over the better peer", "pure Go over the better peer"})}
	for i, first := range c.Results {
		if first.Program != frameworks[0] {
			continue
		}
		best := map[string]result{}
		for _, r := range c.Results[i:] {
			framework, _, _ := strings.Cut(r.Program, ",")
			if r.Work == first.Work && r.Setting == first.Setting && r.Best > best[framework].Best {
				best[framework] = r
			}
		}
		row := []any{first.Work, first.Setting}
		for _, framework := range frameworks {
			r := best[framework]
			variant := strings.Replace(strings.TrimPrefix(r.Program, framework), ",", "", 1)
			row = append(row, fmt.Sprintf("%.3g%s", r.Best, variant))
		}
		for _, framework := range frameworks[:2] {
			row = append(row, fmt.Sprintf("%.2f", best[framework].Best/max(best["JAX"].Best, best["PyTorch"].Best)))
		}
		t.Add(row...)
	}
	const format = "%s, %d cores, %s, %s, load at the start %s."
	t.Notes = []string{fmt.Sprintf(format, c.Machine.CPU, c.Machine.Cores, c.Machine.Platform, c.Machine.Go, c.Load)}
	return t, nil
}

// write stores the race, and its table in a document.
func (c comparison) write(path, document string) error {
	if err := experiment.WriteJSON(path, c); err != nil {
		return err
	}
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	filled, err := report.Fill(string(text), c.table)
	if err != nil {
		return err
	}
	return renameio.WriteFile(document, []byte(filled), 0o644)
}
