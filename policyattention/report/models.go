package report

import (
	"slices"

	"icrl/policyattention/experiment"
	"icrl/policyattention/results"
)

// model is a trained network with what its closed loop says of it.
type model struct {
	Run    string
	Method string
	Recipe string
	S      int
	SHA256 string // of the weights
	Here   results.Group
}

// modelsExcerpt lists the actors and critics whose weights are in the repository, with
// the loss of the closed loop that each identity ran in.
func modelsExcerpt(s *source) (Table, error) {
	var t Table
	var rows []model
	runs, err := s.Where(func(c experiment.Cell) bool {
		blocks := []experiment.Block{experiment.Confirmation, experiment.Benchmark, experiment.Replication, experiment.Prior, experiment.Critics}
		return c.Seed != 0 && slices.Contains(blocks, c.Block) && !s.Store.Preset.Methods.Sampled(c.Method)
	})
	if err != nil {
		return t, err
	}
	seen := map[string]bool{}
	for _, e := range runs.Found {
		trainings := e.Config.Trainings()
		c := trainings[len(trainings)-1] // the critic, where there is one
		run, err := s.Training(c)
		if err != nil {
			return t, err
		}
		if run == nil || seen[run.Folder] || run.Manifest.Files["weights.safetensors"] == "" {
			continue
		}
		seen[run.Folder] = true
		oracle, err := s.Source.Oracle(e.Cell.S)
		if err != nil {
			return t, err
		}
		one := selection(e.Cell.Block, e.Cell.Method, e.Cell.S)
		one.Seed = e.Cell.Seed
		group, err := s.Group("", one, oracle, 20)
		if err != nil {
			return t, err
		}
		rows = append(rows, model{c.Name(), s.Series(e.Cell.Method, "").Label, e.Cell.Recipe, e.Cell.S, run.Manifest.Files["weights.safetensors"], group})
	}
	type R = model
	fill(&t, rows, slices.Concat(
		[]column[R]{
			{"folder in `paper/train`", func(r R) any { return r.Run }},
			{"deployed as", func(r R) any { return r.Method }},
			{"recipe", func(r R) any { return r.Recipe }},
			{"S", func(r R) any { return r.S }},
		},
		joined("loss at T = 20", func(r R) results.Estimate { return r.Here.Loss }),
		[]column[R]{
			{"ratio of medians", func(r R) any { return value(r.Here.Ratio) }},
			{"of means", func(r R) any { return value(r.Here.Tail.RatioOfMeans) }},
			{"worst excess", func(r R) any { return r.Here.Tail.Worst }},
			{"SHA-256 of weights.safetensors", func(r R) any { return r.SHA256[:16] + "…" }},
		},
	)...)
	return t, nil
}
