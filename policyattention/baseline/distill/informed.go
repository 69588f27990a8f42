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
		Information: method.ByWindow, Label: "Algorithm Distillation (CPU budget)", Learned: true, New: controllerOf,
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
	return baseline.Paced{Controller: controller, N: c.N}, err
}
