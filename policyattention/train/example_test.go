package train_test

import (
	"context"
	"fmt"
	"os"

	"icrl/policyattention/backend"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/train"
)

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// An actor for problems of one's own size: the paper's network and recipe for 3
// states and 2 actions. With its 51,200 steps it takes minutes; here are 20,
// after which it has hardly left the uniform policy. The file of weights is what
// `policyattention solve --actor` takes.
func ExampleJob_Run() {
	dir := must(os.MkdirTemp("", "actor"))
	defer os.RemoveAll(dir)
	c := train.Standard(train.Proximal, train.Plain(), 1, 3)
	c.Actions, c.Steps = 2, 20
	b := must(backend.New(""))
	result := must(must(c.Job()).Run(context.Background(), b, dir, nil))
	loop := control.ExactPMD(0.8)
	loop.Actor = must(must(train.Load(result.Weights)).Actor())
	problems := must(mdp.Random.Draw(1, 3, 2, 1))
	scored := must(control.Score(problems, must(loop.Run(problems, 40))))
	fmt.Println(len(scored[0].Loss), "losses from", scored[0].Loss[0])
	// Output: 41 losses from 1
}
