package distill

import (
	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/method"
)

// informed is the network with equal information: with the tuned rate of its source, or, as
// published, with the paper's. It has no free numbers of its own.
var informed = method.Informed{method.ByWindow: controllerOf}

func controllerOf(c method.Case) (control.Controller, error) {
	recipe := "cpu-tuned"
	if c.Untuned {
		recipe = "cpu"
	}
	d, err := c.Deploy(name, recipe)
	if err != nil {
		return nil, err
	}
	below := *d.(*Deployment)
	below.Distill.Root = c.Root
	controller, err := below.Controller(c.Models, 0, c.Root)
	return baseline.Paced{Controller: controller, N: c.N}, err
}
