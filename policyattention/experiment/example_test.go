package experiment_test

import (
	"context"
	"fmt"
	"image/color"
	"log"
	"os"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/control"
	"icrl/policyattention/experiment"
	"icrl/policyattention/method"
	"icrl/policyattention/method/all"
	"icrl/policyattention/results"
)

// towardGreedy deploys conservative policy iteration (Kakade and Langford, 2002): a step
// toward the greedy policy, with the exact critic. Its JSON becomes part of a cell's hash.
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

// A method of one's own is one value. In a preset of one's own it is run, stored, verified and
// compared as the paper's methods are.
func Example() {
	own := method.Method{
		Name: "conservative", Label: "conservative policy iteration", Colour: color.RGBA{0, 128, 128, 255},
		Signal: "none", Access: "exact one-step backup, no samples", Cost: "–", Untrained: true,
		Deploy: func(method.Setting) (method.Deployment, error) { return towardGreedy{Step: 0.2}, nil },
	}
	preset := experiment.Presets["smoke"] // "paper" has the paper's 64 problems a size
	preset.Name = "own"
	preset.Methods = append(slices.Clone(all.Methods), own)
	preset.Rows = []experiment.Row{
		{Block: experiment.Benchmark, Method: experiment.ExactPMD, Sizes: []int{8}},
		{Block: experiment.Benchmark, Method: own.Name, Sizes: []int{8}},
	}
	artifacts, err := os.MkdirTemp("", "artifacts") // where results are kept
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(artifacts)
	store, err := preset.Open(artifacts, "go")
	if err != nil {
		log.Fatal(err)
	}
	tasks, err := preset.Tasks()
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	for _, task := range tasks {
		if _, err := store.Run(ctx, task); err != nil { // at once if it is done
			log.Fatal(err)
		}
	}
	checked, err := store.Verify(ctx, 1, nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(tasks), "tasks,", len(checked.Discrepancies), "discrepancies")
	rows, err := results.New(store).Benchmark()
	if err != nil {
		log.Fatal(err)
	}
	for _, r := range rows { // report.BuildTable prints them all as a table
		if r.Method == own.Name {
			fmt.Printf("S=%d, T=%d: median loss %.4f, worst excess over exact PMD %.4f\n", r.S, r.T, r.Loss.Value, r.Tail.Worst)
		}
	}
	// Output:
	// 2 tasks, 0 discrepancies
	// S=8, T=20: median loss 0.0114, worst excess over exact PMD 0.0032
	// S=8, T=40: median loss 0.0001, worst excess over exact PMD -0.0005
}
