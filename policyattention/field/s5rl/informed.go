package s5rl

import (
	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/method"
)

// informed is the network with equal information: on a walk, which is what it was trained on. It
// has no free numbers.
func informed() []method.Form {
	return []method.Form{{
		Information: method.ByWindow, Label: "S5RL (CPU budget)", Learned: true, New: controllerOf,
		Same: func(n int) bool { return n > baseline.Window }, // its first rounds are those of its own window
	}}
}

func controllerOf(c method.Case) (control.Controller, error) {
	d, err := c.Networks.Deployment(name, "cpu", c.States, c.Run)
	if err != nil {
		return nil, err
	}
	below := *d.(*Deployment)
	below.S5RL.Root = c.Root
	controller, err := below.Controller(c.Networks.Models(), 0, c.Root)
	return baseline.Paced{Controller: controller, N: c.N}, err
}
