package train_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"icrl/policyattention/backend"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/train"
)

// An actor for problems of one's own size: the paper's network and recipe for 3
// states and 2 actions. With its 51,200 steps it takes minutes on XLA; here are 20,
// after which it has hardly left the uniform policy. The file of weights is what
// `policyattention solve --actor` takes.
func ExampleJob_Run() {
	dir, err := os.MkdirTemp("", "actor")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	b, err := backend.New("") // the best there is
	if err != nil {
		log.Fatal(err)
	}
	c := train.Standard(train.Proximal, train.Plain(), 1, 3)
	c.Actions, c.Steps = 2, 20
	job, err := c.Job()
	if err != nil {
		log.Fatal(err)
	}
	result, err := job.Run(context.Background(), b, dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	model, err := train.Load(result.Weights)
	if err != nil {
		log.Fatal(err)
	}
	loop := control.ExactPMD(0.8)
	if loop.Actor, err = model.Actor(); err != nil {
		log.Fatal(err)
	}
	problems, err := mdp.Random.Draw(1, 3, 2, 1)
	if err != nil {
		log.Fatal(err)
	}
	trajectories, err := loop.Run(problems, 40)
	if err != nil {
		log.Fatal(err)
	}
	scored, err := control.Score(problems, trajectories)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(scored[0].Loss), "losses from", scored[0].Loss[0])
	// Output: 41 losses from 1
}
