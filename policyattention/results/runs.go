package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"icrl/internal/safetensors"
)

// run is what runs.json says of an evaluation, or trainings.json of a training.
type run struct {
	Name     string // of a training
	Block    string
	Method   string
	Recipe   string
	S        int
	Seed     int64
	Weights  map[string]string
	Hash     string
	Produced struct{ Backend struct{ Name string } }
	Cost     struct {
		CPU float64 `json:"cpu_seconds"`
	}
}

// list reads runs.json or trainings.json.
func (s *Store) list(name string) (all []run, err error) {
	text, err := os.ReadFile(filepath.Join(s.Folder, name))
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("results: %s: %w", name, err)
	}
	return all, nil
}

// parameters counts the numbers in the weights of a training.
func (s *Store) parameters(training run) (n int, err error) {
	folder := training.Name
	if len(training.Hash) >= 12 {
		folder += "-" + training.Hash[:12]
	}
	f, err := safetensors.ReadFile(filepath.Join(s.Folder, "train", folder, "weights.safetensors"))
	if err != nil {
		return 0, fmt.Errorf("results: %w", err)
	}
	for _, t := range f.Tensors {
		if t.Name == "loss" { // of the training
			continue
		}
		size := 1
		for _, d := range t.Shape {
			size *= d
		}
		n += size
	}
	return n, nil
}

// interfaces are what Table 4 says of methods in words.
var interfaces = []struct{ method, recipe, signal, access, data, paper string }{
	{"policyattention", "plain", "proximal loss", "exact backup, 0 samples", "24 MDPs, 2,048 examples, 51,200 steps",
		"272k; .19–.24 GPU-h"},
	{"pmd-target", "plain", "labels of exact PMD", "exact backup, 0 samples", "as PolicyAttention",
		"272k; .19–.24 GPU-h"},
	{"policyattention-learned-critic", "plain", "proximal loss; backups", "144 generative transitions",
		"as PolicyAttention", "–"},
	{"liang-lai", "paper", "increments of its teacher", "20 on-policy transitions", "10,000 MDPs, 10⁷ windows",
		"10.9k; 17 CPU-min"},
	{"algorithm-distillation", "full", "actions of histories", "20 on-policy transitions",
		"2,000 histories of 1,000 steps", "1.14M; .63–.75 GPU-h"},
	{"algorithm-distillation", "cpu-tuned", "actions of histories", "20 on-policy transitions",
		"1,000 histories of 1,000 steps", "–"},
	{"s5rl", "cpu", "reward, online (PPO)", "20 on-policy transitions", "5,120 lives of 800 steps", "–"},
}

func (s *Store) table4() (t Table) {
	t.Title = "Table 4: what methods are given, at S = 8, and what a training run costs"
	t.Columns = []string{"method", "training signal", "online access a round", "training data",
		"paper: parameters; cost", "parameters", "CPU-h"}
	t.Notes = []string{"Costs of the first run: processor time on the machine that trained it, not comparable with " +
		"the paper's."}
	runs, err := s.list("runs.json")
	trainings, errT := s.list("trainings.json")
	if t.err = errors.Join(err, errT); t.err != nil {
		return t
	}
	for _, x := range interfaces {
		at := slices.IndexFunc(runs, func(r run) bool {
			return r.Block == "benchmark" && r.Method == x.method && r.Recipe == x.recipe && r.S == 8
		})
		if at < 0 {
			continue
		}
		n, hours := 0, 0.0
		for _, training := range trainings {
			if _, used := runs[at].Weights[training.Name]; !used {
				continue
			}
			size, err := s.parameters(training)
			if err != nil {
				t.err = err
				return t
			}
			n, hours = n+size, hours+training.Cost.CPU/3600
		}
		t.Add(labelled(x.method, x.recipe), x.signal, x.access, x.data, x.paper, n, hours)
	}
	return t
}

// labelled is a method with its recipe where it has several.
func labelled(method, recipe string) string {
	if recipe == "" || recipe == None || recipe == "plain" {
		return Label(method)
	}
	return fmt.Sprintf("%s (%s)", Label(method), recipe)
}

func (s *Store) costs() (t Table) {
	t.Title = "Processor time of trainings and evaluations"
	t.Columns = []string{"what", "runs", "CPU-h", "longest: CPU-h", "made on"}
	runs, err := s.list("runs.json")
	trainings, errT := s.list("trainings.json")
	if t.err = errors.Join(err, errT); t.err != nil {
		return t
	}
	type sum struct {
		n              int
		hours, longest float64
		on             []string
	}
	sums, order := map[string]*sum{}, []string{}
	add := func(what string, r run) {
		x := sums[what]
		if x == nil {
			x = &sum{}
			sums[what], order = x, append(order, what)
		}
		x.n, x.hours, x.longest = x.n+1, x.hours+r.Cost.CPU/3600, max(x.longest, r.Cost.CPU/3600)
		if on := r.Produced.Backend.Name; on != "" && !slices.Contains(x.on, on) {
			x.on = append(x.on, on)
		}
	}
	for _, r := range trainings {
		add("training "+family(r.Name), r)
	}
	for _, r := range runs {
		if r.Cost.CPU > 0 {
			add("block "+r.Block, r)
		}
	}
	for _, what := range order {
		x := sums[what]
		t.Add(what, x.n, x.hours, x.longest, strings.Join(x.on, ", "))
	}
	return t
}

var ofOne = regexp.MustCompile(`-source\d+|-\d+$`)

// family is a training's name without its seed and without the step size of a source.
func family(name string) string { return ofOne.ReplaceAllString(name, "") }
