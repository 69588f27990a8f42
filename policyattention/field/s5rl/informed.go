package s5rl

import (
	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/method"
)

// informed is the network with equal information: on a walk, which is what it was trained on. It
// has no free numbers.
var informed = method.Informed{method.ByWindow: controllerOf}

func controllerOf(c method.Case) (control.Controller, error) {
	d, err := c.Deploy(name, "cpu")
	if err != nil {
		return nil, err
	}
	below := *d.(*Deployment)
	below.S5RL.Root = c.Root
	controller, err := below.Controller(c.Models, 0, c.Root)
	return baseline.Paced{Controller: controller, N: c.N}, err
}
