package cli_test

import (
	"bytes"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/cli"
	"icrl/policyattention/control"
	"icrl/policyattention/experiment"
	"icrl/policyattention/method"
	"icrl/policyattention/paper"
)

// towardGreedy is conservative policy iteration (Kakade and Langford, 2002), a step toward the greedy policy with the
// exact critic, as data: its JSON becomes part of a hash.
type towardGreedy struct {
	Step float64 `json:"greedy_step"`
}

func (towardGreedy) Weights() []method.Weights { return nil } // nothing is trained

func (g towardGreedy) Controller(_ *method.Models, eta float64, _ uint64) (control.Controller, error) {
	loop := control.ExactPMD(eta)
	loop.Actor = control.ActorFunc(func(c control.Context) (*mat.Dense, error) {
		next := mat.DenseCopyOf(c.Pi)
		next.Scale(1-g.Step, next)
		for s := range next.RawMatrix().Rows {
			best := floats.MaxIdx(c.Q.RawRowView(s))
			next.Set(s, best, next.At(s, best)+g.Step)
		}
		return next, nil
	})
	return loop, nil
}

var conservative = method.Method{Name: "conservative", Label: "conservative policy iteration", Untrained: true,
	Deploy: func(method.Setting) (method.Deployment, error) { return towardGreedy{0.2}, nil }}

// A program of another module that adds a method to the command, by what packages export and with cli.Main for
// cli.Run, plans, runs, stores, verifies and tabulates it.
func TestMethodFromOutside(t *testing.T) {
	row := func(name string) experiment.Row {
		return experiment.Row{Block: experiment.Benchmark, Method: name, Sizes: []int{8}}
	}
	preset := experiment.Preset{Name: "outside", Steps: 1, Problems: 6,
		Rows: []experiment.Row{row("exact-pmd"), row(conservative.Name)}}
	preset = preset.With(&experiment.PaperProtocol, append(paper.Methods, conservative))
	artifacts := t.TempDir()
	for _, tc := range []struct{ command, want string }{
		{"plan", "benchmark/conservative-S8"}, {"evaluate", "benchmark/conservative-S8"},
		{"verify --whole", "2 evaluations (0 not yet run"}, {"table benchmark", "| conservative policy iteration "},
	} {
		args := append([]string{"--artifacts", artifacts, "--preset", "outside"}, strings.Fields(tc.command)...)
		var out bytes.Buffer
		if code := cli.Run(args, &out, &out, preset); code != 0 || !strings.Contains(out.String(), tc.want) {
			t.Errorf("%s: exit code %d, %s, want %q", tc.command, code, &out, tc.want)
		}
	}
}
