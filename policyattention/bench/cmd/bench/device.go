package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/gomlx/compute"

	"icrl/internal/usage"
	"icrl/policyattention/artifact"
	"icrl/policyattention/backend"
	"icrl/policyattention/bench"
	"icrl/policyattention/method"
	"icrl/policyattention/method/all"
	"icrl/policyattention/train"
)

// deviceCmd times training on one device, and says what runs of the paper's
// budgets would take: how many steps a call of the device should make and how
// many runs it should make together. Writes device.json.
type deviceCmd struct {
	Backend      string   `help:"Backend; without it GOMLX_BACKEND, then the best there is." placeholder:"NAME"`
	Out          string   `help:"Folder for the results." default:"artifacts/bench" type:"path"`
	Runs         []string `help:"What to train, at S = 8: actor, critic, or a sampled method by its name; without it all of these."`
	StepsPerCall []int    `help:"Steps that a call makes." default:"1,100"`
	Together     []int    `help:"Runs at once." default:"1,3,8"`
	Seconds      float64  `help:"Least length of a measurement." default:"5"`
}

// execution is a row of device.json.
type execution struct {
	Run           string  `json:"run"`
	StepsPerCall  int     `json:"steps_per_call"`
	Together      int     `json:"together"`
	CompileSecs   float64 `json:"compile_seconds"`  // data and the first call
	StepsPerSec   float64 `json:"steps_per_second"` // of all runs
	HoursPerRun   float64 `json:"device_hours_a_run"`
	PeakMegabytes float64 `json:"peak_host_megabytes"`
}

func (c deviceCmd) Run() error {
	b, err := backend.New(c.Backend)
	if err != nil {
		return err
	}
	defer b.Finalize()
	out := struct {
		Machine bench.Machine `json:"machine"`
		Device  []string      `json:"device"`
		Rows    []execution   `json:"rows"`
	}{Machine: bench.Describe(backend.Describe(b).Name), Device: backend.Describe(b).Devices}
	if len(c.Runs) == 0 {
		c.Runs = []string{"actor", "critic"}
		for name := range budgets {
			c.Runs = append(c.Runs, name)
		}
		slices.Sort(c.Runs[2:])
	}
	fmt.Println("run, steps a call, runs together: steps/s of all runs, device-hours a run, compilation")
	for _, run := range c.Runs {
		for _, together := range c.Together {
			for _, steps := range c.StepsPerCall {
				row, err := c.measure(b, run, together, steps)
				if err != nil {
					return err
				}
				out.Rows = append(out.Rows, row)
				fmt.Printf("%s, %d, %d: %.1f steps/s, %.4f h, %.1f s\n", run, steps, together, row.StepsPerSec, row.HoursPerRun, row.CompileSecs)
				// What is done is kept if a later row fails.
				if err := artifact.WriteJSON(filepath.Join(c.Out, "device.json"), out, "  "); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// budgets are the recipes that baselines are timed at.
var budgets = map[string]string{"algorithm-distillation": "full", "s5rl": "cpu"}

// job returns a training run at the paper's budget, or the first budget of a method that the paper
// has no numbers for.
func job(run string, seed uint64) (train.Job, error) {
	objective := map[string]train.Objective{"actor": train.Proximal, "critic": train.Critic}[run]
	if objective != "" {
		r, err := train.Standard(objective, train.Plain(), seed, 8).In("", nil)
		return r.Job, err
	}
	m, err := all.Methods.Find(method.Name(run))
	if err != nil {
		return train.Job{}, err
	}
	return bench.Job(m, budgets[run], seed, nil)
}

func (c deviceCmd) measure(b compute.Backend, run string, together, stepsPerCall int) (execution, error) {
	jobs := make([]train.Job, together)
	for i := range jobs {
		var err error
		if jobs[i], err = job(run, uint64(i+1)); err != nil {
			return execution{}, err
		}
	}
	row := execution{Run: run, StepsPerCall: stepsPerCall, Together: together}
	began := time.Now()
	session, err := train.NewJobSession(b, train.Execution{StepsPerCall: stepsPerCall}, jobs...)
	if err != nil {
		return row, err
	}
	defer session.Close()
	if _, err := session.Steps(stepsPerCall); err != nil {
		return row, err
	}
	row.CompileSecs = time.Since(began).Seconds()
	began = time.Now()
	steps := 0
	for time.Since(began).Seconds() < c.Seconds {
		if _, err := session.Steps(stepsPerCall); err != nil {
			return row, err
		}
		steps += stepsPerCall * together
	}
	row.StepsPerSec = float64(steps) / time.Since(began).Seconds()
	row.HoursPerRun = float64(jobs[0].Steps) / row.StepsPerSec / 3600
	row.PeakMegabytes = float64(usage.Peak()) / (1 << 20)
	return row, nil
}
