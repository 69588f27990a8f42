package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
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

// lists reads runs.json and trainings.json.
func (s *Store) lists() (runs, trainings []run, err error) {
	for name, list := range map[string]*[]run{"runs.json": &runs, "trainings.json": &trainings} {
		text, failed := os.ReadFile(filepath.Join(s.Folder, name))
		if failed == nil {
			failed = json.Unmarshal(text, list)
		}
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("results: %s: %w", name, failed))
		}
	}
	return runs, trainings, err
}

// parameters counts the numbers in the weights of a training.
func (s *Store) parameters(training run) (n int, err error) {
	folder := fmt.Sprintf("%s-%.12s", training.Name, training.Hash)
	f, err := safetensors.ReadFile(filepath.Join(s.Folder, "train", folder, "weights.safetensors"))
	if err != nil {
		return 0, fmt.Errorf("results: %w", err)
	}
	for _, t := range f.Tensors {
		if t.Name != "loss" { // of the training
			n += reflect.ValueOf(t.Data).Len()
		}
	}
	return n, nil
}

func (s *Store) table4() (t Table) {
	t.Columns = []string{"method", "training signal", "online access a round", "training data",
		"paper: parameters; cost", "parameters", "CPU-h"}
	runs, trainings, err := s.lists()
	if t.err = err; err != nil {
		return t
	}
	for _, x := range fields(content("table4.tsv"))[1:] {
		at := slices.IndexFunc(runs, func(r run) bool {
			return r.Block == "benchmark" && r.Method == x[0] && r.Recipe == x[1] && r.S == 8
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
		t.Add(labelled(x[0], x[1]), x[2], x[3], x[4], x[5], n, hours)
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
	t.Columns = []string{"what", "runs", "CPU-h", "longest: CPU-h", "made on"}
	runs, trainings, err := s.lists()
	if t.err = err; err != nil {
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
		add("training "+ofOne.ReplaceAllString(r.Name, ""), r)
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

// ofOne is what of a training's name is its seed and the step size of a source.
var ofOne = regexp.MustCompile(`-source\d+|-\d+$`)
