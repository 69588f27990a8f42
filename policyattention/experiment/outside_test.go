package experiment_test

import (
	"fmt"
	"image/color"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/control"
	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/method/all"
	"icrl/policyattention/pmd"
	"icrl/policyattention/report"
	"icrl/policyattention/results"
)

// A method as a module of its own would add it: the step size of PMD times one number, which descends
// the proximal loss towards its minimum at 1.
var scaled = method.Method{
	Name: "scaled-step", Label: "scaled step", Colour: color.RGBA{0, 128, 128, 255},
	Signal: "proximal loss", Access: "exact one-step backup, no samples", Cost: "–",
	Deploy: func(s method.Setting) (method.Deployment, error) {
		problems, err := mdp.Random.Draw(s.Identity.Task, s.States, s.Actions, 8)
		d := method.Descent{Method: "scaled-step", Recipe: s.Recipe, States: s.States, Seed: s.Identity.Model, Steps: 40, Trained: 1, On: "8 MDPs"}
		d.Start = func() []float64 { return []float64{0.1} }
		d.Step = func(step int, x []float64) (loss float64, err error) {
			stepped(step)
			p := problems[step%len(problems)]
			q, err := p.MDP.PolicyValue(p.Pi0)
			if err != nil {
				return 0, err
			}
			at := func(scale float64) float64 {
				next, _ := pmd.Step(p.Pi0, q, scale*s.Eta) // of a valid context
				return pmd.ProximalLoss(next, p.Pi0, q, s.Eta)
			}
			x[0] -= 2 * (at(x[0]+1e-4) - at(x[0]-1e-4)) / 2e-4
			return at(x[0]), nil
		}
		return method.Descended{Descent: d, Make: func(x []float64, eta float64, _ uint64) (control.Controller, error) {
			loop := control.ExactPMD(eta)
			loop.Actor = control.ActorFunc(func(c control.Context) (*mat.Dense, error) { return pmd.Step(c.Pi, c.Q, x[0]*c.Eta) })
			return loop, nil
		}}, err
	},
}

// outside returns a preset of the method beside exact PMD.
func outside() experiment.Preset {
	p := experiment.Presets["smoke"]
	p.Name, p.Methods = "outside", append(slices.Clone(all.Methods), scaled)
	p.Rows = []experiment.Row{
		{Block: experiment.Benchmark, Method: experiment.ExactPMD, Sizes: []int{8}},
		{Block: experiment.Benchmark, Method: scaled.Name, Sizes: []int{8}, Runs: 2},
	}
	return p
}

// To here it is the method, with its registration and preset.

// stepped is told of every step of a training run.
var stepped = func(step int) {}

const killed = "POLICYATTENTION_TEST_KILLED"

// A method from outside is planned, trained, killed, resumed, evaluated, verified, and
// stands in a table with an interval.
func TestMethodFromOutside(t *testing.T) {
	if folder := os.Getenv(killed); folder != "" { // in the process to be killed
		stepped = func(step int) {
			if step == 25 {
				syscall.Kill(os.Getpid(), syscall.SIGKILL) //nolint:errcheck // the parent finds out
			}
		}
		s := testkit.Must(outside().Open(folder, "go"))(t)
		testkit.Must(s.Evaluate(t.Context(), s.Preset.Plan()[1]))(t)
	}
	folder := t.TempDir()
	s := testkit.Must(outside().Open(folder, "go"))(t)
	tasks, err := s.Preset.Tasks()
	if err != nil || len(tasks) != 5 || tasks[0].Name() != "scaled-step-S8-18100" {
		t.Fatalf("%d tasks, %v", len(tasks), err)
	}

	child := exec.Command(os.Args[0], "-test.run=^TestMethodFromOutside$")
	child.Env = append(os.Environ(), killed+"="+folder)
	if out, err := child.CombinedOutput(); child.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the process to be killed ended with %v: %s", err, out)
	}
	if state, _, err := s.State(tasks[0]); state != experiment.Begun || err != nil {
		t.Fatalf("after the kill the training run is %q, %v", state, err)
	}
	steps := map[int]int{}
	stepped = func(step int) { steps[step]++ }
	defer func() { stepped = func(int) {} }()
	for _, task := range tasks {
		testkit.Must(s.Run(t.Context(), task))(t)
	}
	if steps[0] != 1 { // of the second run alone
		t.Errorf("step 0 was made %d times after the kill, want once", steps[0])
	}
	whole := testkit.Must(outside().Open(t.TempDir(), "go"))(t)
	testkit.Must(whole.Run(t.Context(), tasks[0]))(t)
	if got, want := weights(t, s, tasks[0]), weights(t, whole, tasks[0]); got != want {
		t.Error("the run that was killed has other weights than one that was not")
	}

	v := testkit.Must(s.Verify(t.Context(), 1, nil))(t)
	if v.Err() != nil || v.Trainings != 2 || v.Cells != 3 || v.Missing != 0 {
		t.Errorf("%v: %v", v, v.Discrepancies)
	}
	rows := testkit.Must(results.New(s).Benchmark())(t)
	found := false
	for _, r := range rows {
		if r.Method != scaled.Name || r.T != 20 {
			continue
		}
		found = true
		if !(r.Ratio.Lo <= r.Ratio.Value && r.Ratio.Value <= r.Ratio.Hi && r.Ratio.Lo > 0.5 && r.Ratio.Hi < 2) || r.Loss.Runs != 2 {
			t.Errorf("%+v; a step that is nearly PMD's has nearly its loss", r)
		}
	}
	table := testkit.Must(report.BuildTable(s, "benchmark"))(t)
	if !found || !slices.ContainsFunc(table.Rows, func(row []report.Cell) bool {
		return row[0].String() == scaled.Label && strings.Contains(fmt.Sprint(row), "[")
	}) {
		t.Errorf("the table has no row of it with an interval: %q", table.Rows)
	}
}

// weights returns a training run's weights.
func weights(t *testing.T, s *experiment.Store, task experiment.Task) string {
	t.Helper()
	run := testkit.Must(s.FindTraining(task.Training))(t)
	b := testkit.Must(os.ReadFile(filepath.Join(run.Folder, "weights.safetensors")))(t)
	return string(b)
}
