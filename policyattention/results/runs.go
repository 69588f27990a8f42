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

// list reads runs.json or trainings.json.
func (s *Store) list(file string) (all []run, err error) {
	text, err := os.ReadFile(filepath.Join(s.Folder, file))
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("results: %s: %w", file, err)
	}
	return all, nil
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
	runs, err := s.list("runs.json")
	trainings, missing := s.list("trainings.json")
	t.err = errors.Join(err, missing)
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
			t.err = errors.Join(t.err, err)
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
	var order []string // of trainings and blocks
	made := map[string][]run{}
	for _, file := range []string{"trainings.json", "runs.json"} {
		all, err := s.list(file)
		t.err = errors.Join(t.err, err)
		for _, r := range all {
			what := "training " + ofOne.ReplaceAllString(r.Name, "")
			if r.Block != "" {
				what = "block " + r.Block
			}
			if r.Block != "" && r.Cost.CPU == 0 {
				continue
			}
			if made[what] == nil {
				order = append(order, what)
			}
			made[what] = append(made[what], r)
		}
	}
	for _, what := range order {
		hours, longest, on := 0.0, 0.0, []string(nil)
		for _, r := range made[what] {
			hours, longest = hours+r.Cost.CPU/3600, max(longest, r.Cost.CPU/3600)
			if name := r.Produced.Backend.Name; name != "" && !slices.Contains(on, name) {
				on = append(on, name)
			}
		}
		t.Add(what, len(made[what]), hours, longest, strings.Join(on, ", "))
	}
	return t
}

// ofOne is what of a training's name is its seed and the step size of a source.
var ofOne = regexp.MustCompile(`-source\d+|-\d+$`)
