// Command bench compares training steps and closed loops of this library with JAX
// and PyTorch programs of the same work, times the rest of the pipeline, and writes
// bench.md, bench.json and bench.svg.
//
// The driver starts one worker a variant, checks that all compute the same
// numbers, and then lets them take turns, so that a change of the machine's
// speed meets all of them. Idle workers wait for input.
package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/renameio/v2"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"icrl/policyattention/backend"
	_ "icrl/policyattention/backend/xla"
	"icrl/policyattention/bench"
	"icrl/policyattention/control"
	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/stats"
)

var cli struct {
	Compare compareCmd `cmd:"" default:"withargs" help:"Run the comparison."`
	Serve   serveCmd   `cmd:"" hidden:"" help:"Be one worker: see bench.Serve."`
}

type serveCmd struct {
	Row     int    `arg:"" help:"Index of the row."`
	Steps   int    `arg:"" help:"Steps of the parity check."`
	Backend string `help:"GoMLX backend (default: as everywhere)."`
}

// rowAt returns a row by its number.
func rowAt(i int) (bench.Row, error) {
	rows := bench.Rows()
	if i < 0 || i >= len(rows) {
		return nil, fmt.Errorf("row %d, want 0 to %d", i, len(rows)-1)
	}
	return rows[i], nil
}

func (s serveCmd) Run() error {
	row, err := rowAt(s.Row)
	if err != nil {
		return err
	}
	b, err := backend.New(s.Backend)
	if err != nil {
		return err
	}
	defer b.Finalize()
	return bench.Serve(func() (bench.Session, error) { return row.Start(b) }, s.Steps, os.Stdin, os.Stdout)
}

type compareCmd struct {
	Python  string  `help:"Python with the peers' packages; without it only our own rows run." placeholder:"FILE"`
	Out     string  `help:"Folder for the results." default:"artifacts/bench"`
	Rounds  int     `help:"Turns of each worker." default:"5"`
	Seconds float64 `help:"Length of a turn." default:"2"`
	Rows    []int   `help:"Rows to run (0 to 6; default all); the others keep their results." sep:","`
}

// program is a way to run a row with a number of threads.
type program struct {
	name    string
	command func(t task) []string // nil where the row has no such program
}

// task is what a worker is to do.
type task struct {
	row, steps, threads int // steps of the parity check
	problem             string
}

// peer returns the command of a program of bench/peers with its arguments. PyTorch multiplies
// matrices by MKL, which on AMD's processors uses no AVX-512 unless it is told that they are
// Intel's. A library that tells it so stands beside Python where set-up could build one.
func peer(python string, program ...string) []string {
	command := append([]string{python, "policyattention/bench/peers/" + program[0]}, program[1:]...)
	library, err := filepath.Abs(filepath.Join(filepath.Dir(python), "../lib/mkl_as_on_intel.so"))
	if err != nil || !strings.HasPrefix(program[0], "torch") {
		return command
	}
	if _, err := os.Stat(library); err != nil {
		return command
	}
	return append([]string{"env", "LD_PRELOAD=" + library}, command...)
}

func (c compareCmd) programs() ([]program, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ours := func(t task, more ...string) []string {
		return append([]string{self, "serve", fmt.Sprint(t.row), fmt.Sprint(t.steps)}, more...)
	}
	list := []program{
		{"GoMLX", func(t task) []string { return ours(t) }},
		{"GoMLX in pure Go", func(t task) []string { return ours(t, "--backend=go") }},
	}
	if c.Python == "" {
		return list, nil
	}
	jax := func(t task, more ...string) []string {
		return peer(c.Python, append([]string{"jax_peer.py", t.problem}, more...)...)
	}
	torch := func(t task, more ...string) []string {
		return peer(c.Python, append([]string{"torch_peer.py", t.problem, fmt.Sprint(t.threads)}, more...)...)
	}
	return append(list,
		program{"JAX", func(t task) []string { return jax(t) }},
		program{"JAX, scan", func(t task) []string { return jax(t, fmt.Sprint(bench.Rows()[t.row].Scan())) }},
		program{"JAX, vmap", func(t task) []string {
			row := bench.Rows()[t.row]
			if row.Identities() == 1 {
				return nil
			}
			return jax(t, fmt.Sprint(row.Scan()), fmt.Sprint(row.Identities()))
		}},
		program{"PyTorch", func(t task) []string { return torch(t) }},
		program{"PyTorch, compiled", func(t task) []string { return torch(t, "compile") }}), nil
}

func (c compareCmd) Run() error {
	out := &bench.Comparison{}
	for _, name := range []string{"go", ""} {
		b, err := backend.New(name)
		if err != nil {
			return err
		}
		peak, err := bench.Peak(b)
		if err != nil {
			return err
		}
		out.Machine, out.Peak = bench.Describe(backend.Describe(b).Name), max(out.Peak, peak)
		b.Finalize()
	}
	var err error
	if out.Pipeline, err = pipeline(); err != nil {
		return err
	}
	programs, err := c.programs()
	if err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	rows := c.Rows
	if len(rows) == 0 {
		for i := range bench.Rows() {
			rows = append(rows, i)
		}
	} else if earlier, err := bench.ReadComparison(filepath.Join(c.Out, "bench.json")); err == nil {
		if err := out.Resume(earlier); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, i := range rows {
		row, err := rowAt(i)
		if err != nil {
			return err
		}
		for _, processes := range []int{1, 2} {
			// Losses are compared over all steps once, and then enough to see that
			// the second setting computes the same.
			t := task{row: i, steps: row.Parity(), threads: 2 / processes, problem: filepath.Join(work, "problem.safetensors")}
			if processes > 1 {
				t.steps = min(t.steps, row.Scan())
			}
			if err := row.Export(t.problem, t.steps); err != nil {
				return err
			}
			results, err := c.row(t, row, programs, processes, out.Peak)
			if err != nil {
				return err
			}
			out.Put(results)
			// A row takes minutes: what is done is kept if a later one fails.
			if err := write(out, c.Out); err != nil {
				return err
			}
		}
	}
	fmt.Print(markdown(out))
	return nil
}

// row times all programs on a row, in turns.
func (c compareCmd) row(t task, row bench.Row, programs []program, processes int, peak float64) ([]bench.Result, error) {
	type entry struct {
		result  bench.Result
		workers []*bench.Worker
		turn    int // steps
		walls   []float64
	}
	var entries []*entry
	var ours []float64
	for i, p := range programs {
		command := p.command(t)
		if command == nil {
			continue
		}
		e := &entry{result: bench.Result{Row: row.Name(), Program: p.name, Setting: fmt.Sprintf("%d × %d", processes, t.threads)}}
		entries = append(entries, e)
		for n := range processes {
			// XLA sizes its pools of threads by the affinity mask, ours rests the surplus.
			cpus := fmt.Sprintf("%d-%d", n*t.threads, (n+1)*t.threads-1)
			w, err := bench.Start([]string{fmt.Sprintf("OMP_NUM_THREADS=%d", t.threads)},
				append([]string{"taskset", "-c", cpus}, command...)...)
			if err != nil {
				e.result.Error = err.Error()
				break
			}
			defer w.Close()
			e.workers = append(e.workers, w)
			if i == 0 {
				ours = w.Losses
			}
			if e.result.Parity, err = bench.Compare(ours, w.Losses); err != nil {
				return nil, fmt.Errorf("%s, %s: %w", row.Name(), p.name, err)
			}
			e.result.Ready = max(e.result.Ready, w.Ready)
		}
		fmt.Fprintf(os.Stderr, "%s, %s: ready, numbers within %.1g %s\n", row.Name(), p.name, e.result.Parity, e.result.Error)
	}
	for round := range c.Rounds + 1 {
		for _, e := range entries {
			if e.result.Error != "" {
				continue
			}
			steps := cmp.Or(e.turn, 2)
			wall, cpu, err := together(e.workers, steps)
			if err != nil {
				return nil, err
			}
			if round == 0 { // finds the length of a turn
				e.turn = int(math.Ceil(wall / float64(len(e.workers)) * c.Seconds))
				continue
			}
			e.walls = append(e.walls, wall)
			e.result.CPU = max(e.result.CPU, cpu)
		}
	}
	var results []bench.Result
	for _, e := range entries {
		if len(e.walls) > 0 {
			sort.Float64s(e.walls)
			e.result.Best, e.result.Median = e.walls[len(e.walls)-1], stats.Median(e.walls)
			e.result.Share = e.result.Best * row.FLOPs() / 1e9 / peak
			for _, w := range e.workers {
				e.result.RSS = max(e.result.RSS, w.RSS)
			}
		}
		results = append(results, e.result)
	}
	return results, nil
}

// together lets workers perform steps at once and returns the sum of their
// speeds and the mean of their steps per processor second.
func together(workers []*bench.Worker, steps int) (wall, cpu float64, err error) {
	speeds, failures := make([]bench.Speed, len(workers)), make([]error, len(workers))
	done := make(chan int)
	for i, w := range workers {
		go func() {
			speeds[i], failures[i] = w.Time(steps)
			done <- i
		}()
	}
	for range workers {
		i := <-done
		wall += speeds[i].Wall
		cpu += speeds[i].CPU / float64(len(workers))
		if failures[i] != nil {
			err = failures[i]
		}
	}
	return wall, cpu, err
}

// pipeline times what no peer does.
func pipeline() (map[string]float64, error) {
	seconds := map[string]float64{}
	for _, s := range []int{4, 8, 16} {
		problems, err := mdp.Family("random").Draw(1, s, mdp.Actions, 64)
		if err != nil {
			return nil, err
		}
		began := time.Now()
		trajectories, err := control.ExactPMD(experiment.PaperProtocol.Eta).Run(problems, experiment.PaperProtocol.Rounds)
		if err != nil {
			return nil, err
		}
		seconds[fmt.Sprintf("exact oracle, 64 MDPs × 40 rounds, S=%d", s)] = time.Since(began).Seconds()
		began = time.Now()
		if _, err := control.Score(problems, trajectories); err != nil {
			return nil, err
		}
		seconds[fmt.Sprintf("scoring 64 MDPs × 40 rounds, S=%d", s)] = time.Since(began).Seconds()
	}
	sample := make([][]float64, 5)
	for j := range sample {
		sample[j] = make([]float64, 64)
		for i := range sample[j] {
			sample[j][i] = float64((i*37+j*11)%64) / 64
		}
	}
	began := time.Now()
	if _, err := stats.Standard.Median(sample); err != nil {
		return nil, err
	}
	seconds["10,000 bootstrap replicates, 5 runs × 64 MDPs"] = time.Since(began).Seconds()
	return seconds, nil
}

// write writes bench.json, bench.md and bench.svg.
func write(o *bench.Comparison, folder string) error {
	if err := o.Write(filepath.Join(folder, "bench.json")); err != nil {
		return err
	}
	if err := renameio.WriteFile(filepath.Join(folder, "bench.md"), []byte(markdown(o)), 0o644); err != nil {
		return err
	}
	return figure(o, filepath.Join(folder, "bench.svg"))
}

func markdown(o *bench.Comparison) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %d cores, %s, %s. Load at start: %s. Matmul peak (2048², float32): %.0f GFLOP/s.\n\n",
		o.Machine.CPU, o.Machine.Cores, o.Machine.Go, o.Machine.Backend, o.Machine.Load, o.Peak)
	b.WriteString("| row | processes × threads | program | steps/s best (median) | steps per CPU-s | share of peak | ready s | MB | numbers within |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range o.Results {
		if r.Error != "" {
			fmt.Fprintf(&b, "| %s | %s | %s | failed: %s | | | | | |\n", r.Row, r.Setting, r.Program, r.Error)
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %.1f (%.1f) | %.1f | %.0f%% | %.1f | %.0f | %.1g |\n",
			r.Row, r.Setting, r.Program, r.Best, r.Median, r.CPU, 100*r.Share, r.Ready, r.RSS, r.Parity)
	}
	b.WriteString("\n| pipeline | ms |\n|---|---|\n")
	var names []string
	for name := range o.Pipeline {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		fmt.Fprintf(&b, "| %s | %.1f |\n", name, 1e3*o.Pipeline[name])
	}
	return b.String()
}

// figure draws steps per second, a group of bars a row and setting.
func figure(o *bench.Comparison, path string) error {
	p := plot.New()
	p.Y.Label.Text = "steps or loops per second"
	p.Y.Min = 0
	var groups, programs []string
	values := map[[2]string]float64{}
	add := func(list []string, s string) []string {
		for _, x := range list {
			if x == s {
				return list
			}
		}
		return append(list, s)
	}
	for _, r := range o.Results {
		group := r.Row + "\n" + r.Setting
		groups, programs = add(groups, group), add(programs, r.Program)
		values[[2]string{group, r.Program}] = r.Best
	}
	const width = 9
	for i, program := range programs {
		var v plotter.Values
		for _, group := range groups {
			v = append(v, values[[2]string{group, program}])
		}
		bars, err := plotter.NewBarChart(v, vg.Points(width))
		if err != nil {
			return err
		}
		bars.Color = plotutil.Color(i)
		bars.LineStyle.Width = 0
		bars.Offset = vg.Points(width * (float64(i) - float64(len(programs)-1)/2))
		p.Add(bars)
		p.Legend.Add(program, bars)
	}
	p.Legend.Top = true
	p.NominalX(groups...)
	drawn, err := p.WriterTo(vg.Length(len(groups)+1)*2.4*vg.Centimeter, 9*vg.Centimeter, "svg")
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if _, err := drawn.WriteTo(&b); err != nil {
		return err
	}
	return renameio.WriteFile(path, b.Bytes(), 0o644)
}

func main() {
	ctx := kong.Parse(&cli)
	ctx.FatalIfErrorf(ctx.Run())
}
