package distill

import (
	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/method"
)

// informed is the network with equal information: with the tuned rate of its source, or, as
// published, with the paper's. It has no free numbers of its own.
func informed() []method.Form {
	return []method.Form{{
		Information: method.ByWindow, Label: "Algorithm Distillation", Learned: true, New: controllerOf,
		Published: func(int) []float64 { return []float64{} },
		Same:      func(n int) bool { return n > baseline.Window }, // its first rounds are those of its own window
	}}
}

func controllerOf(c method.Case) (control.Controller, error) {
	recipe := "cpu-tuned"
	if c.Untuned {
		recipe = "cpu"
	}
	d, err := c.Networks.Deployment(name, recipe, c.States, c.Run)
	if err != nil {
		return nil, err
	}
	below := *d.(*Deployment)
	below.Distill.Root = c.Root
	controller, err := below.Controller(c.Networks.Models(), 0, c.Root)
	return paced{controller, c.N}, err
}

// paced is the network where a round has another number of transitions than the one it
// acts for at a time: the policy is the one after the last of its own rounds that is
// complete.
type paced struct {
	control.Controller
	n int
}

// Own implements method.Paced.
func (p paced) Own(k int) int { return k * p.n / baseline.Window }
