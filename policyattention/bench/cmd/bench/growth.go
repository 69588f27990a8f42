package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"

	"icrl/policyattention/backend"
	"icrl/policyattention/bench"
)

// growthCmd measures the growth study, a process on one core for each point;
// 'policyattention growth' prints what it found.
type growthCmd struct {
	Out     string  `help:"File for the results." default:"artifacts/growth/growth.json" type:"path"`
	Seconds float64 `help:"Least processor time of a measurement." default:"2"`
}

func (c growthCmd) Run() error {
	b, err := backend.New("")
	if err != nil {
		return err
	}
	here := bench.Describe(backend.Describe(b).Name)
	b.Finalize()
	total, err := memory()
	if err != nil {
		return err
	}
	g := &bench.Growth{Machine: here.CPU, Cores: here.Cores, Memory: total, Backend: here.Backend}
	if err := g.Resume(c.Out); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for i, axis := range bench.Axes() {
		at := slices.IndexFunc(g.Series, func(s bench.Series) bool { return s.Name == axis.Name && s.Axis == axis.Axis })
		if at < 0 {
			at = len(g.Series)
			g.Series = append(g.Series, axis.Series)
		}
		s := &g.Series[at]
		for _, x := range axis.X {
			if slices.ContainsFunc(s.Points, func(p bench.Point) bool { return p.X == x }) {
				continue
			}
			cmd := exec.Command("taskset", "-c", "0", self, "point", fmt.Sprint(i), fmt.Sprint(x), "--seconds", fmt.Sprint(c.Seconds))
			cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
			cmd.Stderr = os.Stderr
			text, err := cmd.Output()
			if err != nil {
				return fmt.Errorf("%s, %s=%g: %w", axis.Name, axis.Axis, x, err)
			}
			var p bench.Point
			if err := json.Unmarshal(text, &p); err != nil {
				return fmt.Errorf("%s, %s=%g: %w", axis.Name, axis.Axis, x, err)
			}
			fmt.Printf("%s, %s=%g: %.3g s %s, %.0f MB\n", axis.Name, axis.Axis, x, p.Seconds, axis.Unit, p.Megabytes)
			s.Points = append(s.Points, p)
			slices.SortFunc(s.Points, func(a, b bench.Point) int { return cmp.Compare(a.X, b.X) })
			if err := g.Write(c.Out); err != nil {
				return err
			}
		}
	}
	return nil
}

type pointCmd struct {
	Axis    int     `arg:""`
	X       float64 `arg:""`
	Seconds float64
}

func (c pointCmd) Run() error {
	b, err := backend.New("")
	if err != nil {
		return err
	}
	defer b.Finalize()
	axes := bench.Axes()
	if c.Axis < 0 || c.Axis >= len(axes) {
		return fmt.Errorf("axis %d, want 0 to %d", c.Axis, len(axes)-1)
	}
	p, err := axes[c.Axis].Measure(b, c.X, c.Seconds)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(p)
}
