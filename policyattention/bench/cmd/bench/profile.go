package main

import (
	"fmt"
	"os"
	"path/filepath"

	"icrl/policyattention/backend"
	"icrl/policyattention/bench"
	"icrl/policyattention/transformer/fused"
)

// profileCmd measures the parts of a training step on one core, here and in
// PyTorch, and writes profile.json and profile.md. Each part is a process of its
// own, and all parts of a row take turns.
type profileCmd struct {
	Python  string  `help:"Python with the peers' packages; without it only our own parts are measured." placeholder:"FILE"`
	Out     string  `help:"Folder for the results." default:"artifacts/bench" type:"path"`
	Rounds  int     `help:"Turns of each part." default:"7"`
	Seconds float64 `help:"Length of a turn." default:"0.5"`
}

func (c profileCmd) Run() error {
	b, err := backend.New("")
	if err != nil {
		return err
	}
	p := &bench.Profile{Machine: bench.Describe(backend.Describe(b).Name)}
	b.Finalize()
	work, err := os.MkdirTemp("", "profile")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	for i, row := range bench.TrainingRows() {
		problem := filepath.Join(work, "problem.safetensors")
		if err := row.Export(problem, row.Scan()); err != nil {
			return err
		}
		measured, peak, err := c.row(i, row, problem)
		if err != nil {
			return fmt.Errorf("%s: %w", row.Name(), err)
		}
		p.Rows, p.Peak = append(p.Rows, measured), max(p.Peak, peak)
		// What is done is kept if a later row fails.
		if err := p.Write(filepath.Join(c.Out, "profile.json")); err != nil {
			return err
		}
	}
	fmt.Println("written to", filepath.Join(c.Out, "profile.json"))
	return nil
}

// row measures all programs on a row, and the peak in GFLOP/s.
func (c profileCmd) row(i int, row bench.TrainingRow, problem string) (bench.ProfileRow, float64, error) {
	self, err := os.Executable()
	if err != nil {
		return bench.ProfileRow{}, 0, err
	}
	out := bench.ProfileRow{Row: row.Name(), FLOPs: row.PartFLOPs()}
	product := &timed{}
	if err := product.start(self, "part", "product"); err != nil {
		return out, 0, err
	}
	defer product.worker.Close()
	all := []*timed{product}
	programs := []struct {
		name    string
		command func(part fused.Part) []string
	}{
		{"GoMLX", func(part fused.Part) []string {
			if part == bench.Step {
				return []string{self, "serve", fmt.Sprint(i), fmt.Sprint(row.Scan())}
			}
			return []string{self, "part", string(part), fmt.Sprint(i)}
		}},
		{"PyTorch", func(part fused.Part) []string {
			if part == bench.Step {
				return peer(c.Python, "torch_peer.py", problem, "1")
			}
			return peer(c.Python, "torch_profile.py", problem, string(part))
		}},
	}
	if c.Python == "" {
		programs = programs[:1]
	}
	parts := make([][]*timed, len(programs)) // by program, in the order of bench.Parts
	for j, program := range programs {
		for _, part := range bench.Parts {
			t := &timed{}
			if err := t.start(program.command(part)...); err != nil {
				return out, 0, err
			}
			defer t.worker.Close()
			parts[j], all = append(parts[j], t), append(all, t)
		}
		whole := len(bench.Parts) - 1
		if _, err := bench.Compare(parts[0][whole].worker.Losses, parts[j][whole].worker.Losses); err != nil {
			return out, 0, fmt.Errorf("%s: %w", program.name, err)
		}
		fmt.Fprintf(os.Stderr, "%s, %s: ready\n", row.Name(), program.name)
	}
	for _, t := range all { // finds the lengths of turns
		if err := t.turn(3); err != nil {
			return out, 0, err
		}
		t.steps, t.speed = max(3, int(c.Seconds*t.speed)), 0
	}
	for range c.Rounds {
		for _, t := range all {
			if err := t.turn(t.steps); err != nil {
				return out, 0, err
			}
		}
	}
	for j, program := range programs {
		b := bench.Breakdown{Program: program.name, Milliseconds: map[fused.Part]float64{}}
		for k, part := range bench.Parts {
			b.Milliseconds[part] = 1e3 / parts[j][k].speed
		}
		out.Programs = append(out.Programs, b)
	}
	return out, bench.ProductFLOPs * product.speed / 1e9, nil
}

// timed is a worker on one core and the best that it did.
type timed struct {
	worker *bench.Worker
	speed  float64 // steps per second of processor time
	steps  int     // of a turn
}

func (t *timed) start(command ...string) (err error) {
	t.worker, err = bench.Start([]string{"OMP_NUM_THREADS=1", "GOMAXPROCS=1"}, append([]string{"taskset", "-c", "0"}, command...)...)
	return err
}

func (t *timed) turn(steps int) error {
	speed, err := t.worker.Time(steps)
	t.speed = max(t.speed, speed.CPU)
	return err
}

type partCmd struct {
	Part fused.Part `arg:"" help:"What to time: a part of a step, or the product of the peak."`
	Row  int        `arg:"" optional:"" help:"Index of the row."`
}

func (c partCmd) Run() error {
	b, err := backend.New("")
	if err != nil {
		return err
	}
	defer b.Finalize()
	return bench.Serve(func() (bench.Session, error) {
		if c.Part == "product" {
			return bench.StartProduct(b)
		}
		return bench.TrainingRows()[c.Row].StartPart(b, c.Part)
	}, 1, os.Stdin, os.Stdout)
}
