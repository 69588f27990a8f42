// The command policyattention with one method more, from a module of its own: conservative policy
// iteration (Kakade and Langford, 2002), a step toward the greedy policy with the exact critic.
package main

import (
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/cli"
	"icrl/policyattention/control"
	"icrl/policyattention/experiment"
	"icrl/policyattention/method"
	"icrl/policyattention/paper"
)

// towardGreedy is the method's controller as data: its JSON becomes part of a hash.
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

var own = method.Method{Name: "conservative", Label: "conservative policy iteration", Untrained: true,
	Deploy: func(method.Setting) (method.Deployment, error) { return towardGreedy{0.2}, nil }}

func main() {
	row := func(name string) experiment.Row {
		return experiment.Row{Block: experiment.Benchmark, Method: name, Sizes: []int{8}}
	}
	preset := experiment.Preset{Name: "outside", Steps: 1, Problems: 6,
		Rows: []experiment.Row{row("exact-pmd"), row(own.Name)}}
	cli.Main(preset.With(&experiment.PaperProtocol, append(paper.Methods, own)))
}
