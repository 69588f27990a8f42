// Command bench makes training steps and closed loops of this library for scripts/race.py, which times them beside
// JAX and PyTorch programs of the same work, in the folder peers. All read the same exported weights and data.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/alecthomas/kong"
	"github.com/gomlx/compute"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/safetensors"
	"icrl/policyattention/backend"
	"icrl/policyattention/control"
	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/paper"
	"icrl/policyattention/seed"
	"icrl/policyattention/train"
)

var cli struct {
	Works  worksCommand  `cmd:"" help:"Describe the machine and the works, as JSON."`
	Export exportCommand `cmd:"" help:"Write what other programs need to repeat the first steps of a work."`
	Serve  serveCommand  `cmd:"" help:"Do a work: some steps, then as many as each line of the input says."`
}

type worksCommand struct{}

func (worksCommand) Run(all []work, b compute.Backend) error {
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"machine": experiment.Machine(b), "works": all})
}

type exportCommand struct {
	Work  int    `arg:"" help:"Index of the work."`
	Steps int    `arg:"" help:"Number of steps."`
	File  string `arg:"" help:"Where to write them, as safetensors."`
}

func (e exportCommand) Run(all []work) error { return all[e.Work].export(e.File, e.Steps) }

type serveCommand struct {
	Work  int `arg:"" help:"Index of the work."`
	Steps int `arg:"" help:"Steps whose numbers are written first."`
}

func (s serveCommand) Run(all []work, b compute.Backend) error {
	once, err := all[s.Work].start(b)
	if err != nil {
		return err
	}
	return serve(once, s.Steps, os.Stdin, os.Stdout)
}

// answer is a line that a program writes: first the numbers of the first steps, and then, for each number of
// steps that it is told on its standard input, the seconds that they took.
type answer struct {
	Losses []float64 `json:"losses,omitempty"`
	Steps  int       `json:"steps,omitempty"`
	Wall   float64   `json:"wall,omitempty"`
	CPU    float64   `json:"cpu,omitempty"`
}

// serve makes steps and answers.
func serve(once step, first int, in io.Reader, out io.Writer) error {
	encoder := json.NewEncoder(out)
	for n, losses := first, true; ; losses = false {
		a, meter := answer{Steps: n}, experiment.StartMeter()
		for range n {
			numbers, err := once()
			if err != nil {
				return err
			}
			if losses {
				a.Losses = append(a.Losses, numbers...)
			}
		}
		cost := meter()
		a.Wall, a.CPU = cost.WallSeconds, cost.CPUSeconds
		if err := encoder.Encode(a); err != nil {
			return err
		}
		if _, err := fmt.Fscanln(in, &n); err == io.EOF {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading a number of steps: %w", err)
		}
	}
}

func main() {
	pureGo := func() (compute.Backend, error) { return backend.New("go") }
	ctx := kong.Parse(&cli, kong.BindToProvider(works), kong.BindToProvider(pureGo))
	ctx.FatalIfErrorf(ctx.Run())
}

// step makes the next step of a work and returns numbers that show what it has computed.
type step func() ([]float64, error)

// work is what programs are timed at, step by step.
type work struct {
	Name   string `json:"name"`
	Parity int    `json:"parity"` // steps whose numbers are compared first
	Scan   int    `json:"scan"`   // steps of a call of JAX, where it makes several: a second's worth or so
	Runs   int    `json:"runs"`   // that JAX trains in one call, where it trains several; 1 for none
	// export writes what the other programs need to repeat the first n steps.
	export func(path string, n int) error
	start  func(compute.Backend) (step, error)
}

// works returns the training steps of the actor at S = 4, 8 and 16, of the critic and of Algorithm
// Distillation's full recipe at S = 8, and the closed loops at S = 4 and 8.
func works() (list []work, err error) {
	m, err := paper.Methods.Find("algorithm-distillation")
	if err != nil {
		return nil, err
	}
	s := method.Setting{Recipe: "full", States: 8, Actions: mdp.Actions, Identity: method.Identity{Model: 1}}
	d, err := m.Deploy(s)
	if err != nil {
		return nil, err
	}
	of := func(o train.Objective, states int) train.Config { return train.Standard(o, train.Plain(), 1, states) }
	for _, t := range []struct {
		work
		method.Training
	}{
		{work{Name: "actor S=4", Parity: paritySteps, Scan: 50, Runs: 2}, of(train.Proximal, 4)},
		{work{Name: "actor S=8", Parity: paritySteps, Scan: 50, Runs: 2}, of(train.Proximal, 8)},
		{work{Name: "actor S=16", Parity: paritySteps, Scan: 50, Runs: 2}, of(train.Proximal, 16)},
		{work{Name: "critic S=8", Parity: paritySteps, Scan: 5, Runs: 2}, of(train.Critic, 8)},
		// A step takes seconds, and gigabytes in some programs, so that a few have to do.
		{work{Name: m.Label + " S=8", Parity: 6, Scan: 2, Runs: 1}, d.Weights()[0].Training},
	} {
		j, err := t.Job()
		if err != nil {
			return nil, err
		}
		t.export, t.start = j.Export, func(b compute.Backend) (step, error) { return training(b, j) }
		list = append(list, t.work)
	}
	for _, states := range []int{4, 8} {
		w, err := loop(of(train.Proximal, states))
		if err != nil {
			return nil, err
		}
		list = append(list, w)
	}
	return list, nil
}

// paritySteps is how many losses of training are compared before anything is timed.
const paritySteps = 100

// training makes optimizer steps, whose numbers are losses.
func training(b compute.Backend, j train.Job) (step, error) {
	session, err := train.NewSession(b, j)
	return func() ([]float64, error) {
		losses, err := session.Steps(1)
		if err != nil {
			return nil, err
		}
		return []float64{float64(losses[0])}, nil
	}, err
}

// loop is 40 rounds of a closed loop of an actor as it is before training with the exact critic, on
// 64 problems at once. Its numbers are the means of ⟨π̂_{k+1}, Q_k⟩ over problems and states, by round.
func loop(c train.Config) (work, error) {
	const rounds = 40
	w := work{Name: fmt.Sprintf("closed loop S=%d", c.States()), Parity: 1, Scan: rounds, Runs: 1} // JAX scans rounds
	params := c.Network().Init(seed.New(c.Seed, "bench"))
	problems, err := mdp.Random.Draw(c.Seed, c.States(), c.Actions, 64)
	if err != nil {
		return w, err
	}
	model, err := train.NewModel(c, params)
	if err != nil {
		return w, err
	}
	actor, err := model.Actor()
	l := control.Loop{Actor: actor, Critic: control.ExactCritic{}, Eta: control.NominalStep}
	w.export = func(path string, _ int) error { return exportLoop(path, c, params, problems) }
	once := func() ([]float64, error) {
		means := make([]float64, rounds)
		trajectories, err := l.Run(problems, rounds)
		for _, t := range trajectories {
			for k, q := range t.Q {
				var product mat.Dense
				product.MulElem(t.Policies[k+1], q)
				means[k] += mat.Sum(&product) / float64(len(trajectories)*q.RawMatrix().Rows)
			}
		}
		return means, err
	}
	w.start = func(compute.Backend) (step, error) { return once, nil }
	return w, err
}

// exportLoop writes weights by name and the problems: "transitions" [64, S, A, S], "rewards"
// [64, S, A], "policy" π_0 and "values" Q^{π_0} [64, S, A], "discount" and "eta" [1].
func exportLoop(path string, c train.Config, params []float32, problems []mdp.Problem) error {
	n, s, a := len(problems), c.States(), c.Actions
	f := &safetensors.File{}
	add := func(name string, data []float32, shape ...int) {
		f.Tensors = append(f.Tensors, safetensors.Tensor{Name: name, Shape: shape, Data: data})
	}
	for _, t := range c.Network().Layout() {
		add(t.Name, params[t.Offset:][:t.Size()], t.Shape...)
	}
	tables := map[string][]float32{}
	for _, p := range problems {
		q, err := p.MDP.PolicyValue(p.Pi0)
		if err != nil {
			return err
		}
		all := map[string]*mat.Dense{"transitions": p.MDP.DenseP(), "rewards": p.MDP.R, "policy": p.Pi0, "values": q}
		for name, table := range all {
			for _, v := range table.RawMatrix().Data {
				tables[name] = append(tables[name], float32(v))
			}
		}
	}
	add("transitions", tables["transitions"], n, s, a, s)
	for _, name := range []string{"rewards", "policy", "values"} {
		add(name, tables[name], n, s, a)
	}
	add("discount", []float32{float32(problems[0].MDP.Gamma)}, 1)
	add("eta", []float32{control.NominalStep}, 1)
	return safetensors.WriteFile(path, f)
}
