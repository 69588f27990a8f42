// Package field sets PolicyAttention beside the systems that its paper names: what each can
// do, as a table in which every tick is opened by evidence.
//
// The systems of policy evaluation are below this folder, each a room of its own: package wang
// (arXiv 2405.13861) and package xie (arXiv 2605.07333), on the Markov reward processes of
// package mrp and by the small trainer of package fit. Package s5 is the layer and package s5rl the
// agent of Lu et al. (arXiv 2303.03982). Liang–Lai and Algorithm Distillation are in package
// baseline.
package field

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Capability is a column of the paper's Table 1.
type Capability string

const (
	Softmax     Capability = "softmax"      // standard softmax attention in the construction or model
	Evaluation  Capability = "evaluation"   // of policies, in context
	Control     Capability = "control"      // improves policies in context
	Learned     Capability = "learned"      // by training, not by construction alone
	ReturnError Capability = "return-error" // residuals of returned policies that bound the loss
)

// Capabilities are the columns in the table's order.
func Capabilities() []Capability {
	return []Capability{Softmax, Evaluation, Control, Learned, ReturnError}
}

// Evidence opens a tick: a test or an artifact of this repository.
type Evidence struct {
	// Test is a package below policyattention and a test in it, as in
	// "field/wang.TestEachLayerIsAStep".
	Test string `json:"test,omitempty"`
	// Artifact is a pattern of files below artifacts (path.Match).
	Artifact string `json:"artifact,omitempty"`
}

// Tick is a cell of the table.
type Tick struct {
	Mark     string     `json:"mark"` // as the paper prints it: "yes", "no", or a word
	Evidence []Evidence `json:"evidence,omitempty"`
}

// No is the cell of what a system has not.
const No = "no"

// System is a row of the table.
type System struct {
	Name   string              `json:"name"`
	Source string              `json:"source"`
	Ticks  map[Capability]Tick `json:"ticks"`
	// What it needs: of the problem, of samples, of trained numbers, and of work.
	Model   string `json:"model"`   // of the environment
	Samples string `json:"samples"` // in its context
	Weights string `json:"weights"` // trained numbers
	Work    string `json:"work"`    // a layer or a round, n transitions in context
}

// Systems are the rows: the paper's Table 1 and S5RL, which its text names.
func Systems() []System {
	test := func(name string) Evidence { return Evidence{Test: name} }
	file := func(pattern string) Evidence { return Evidence{Artifact: pattern} }
	yes := func(e ...Evidence) Tick { return Tick{"yes", e} }
	no := Tick{Mark: No}
	return []System{
		{
			Name: "Wang et al. 2025", Source: "arXiv 2405.13861",
			Ticks: map[Capability]Tick{
				Softmax:     {"emp.", []Evidence{file("field/wang/softmax-looped-1.safetensors"), file("field/wang/evidence.json")}},
				Evaluation:  yes(test("field/wang.TestEachLayerIsAStep"), test("field/wang.TestDemoHasTheFiguresErrors")),
				Control:     no,
				Learned:     yes(file("field/wang/linear-looped-*.safetensors"), file("field/wang/evidence.json")),
				ReturnError: no,
			},
			Model: "none", Samples: "n transitions of one policy", Weights: "2(2d+1)² a layer: 162 at d = 4, looped", Work: "O(d²n) a layer, linear attention",
		},
		{
			Name: "Xie et al. 2026", Source: "arXiv 2605.07333",
			Ticks: map[Capability]Tick{
				Softmax:     yes(test("field/xie.TestEachLayerIsAStep")),
				Evaluation:  yes(test("field/xie.TestTheoremTwo"), file("field/xie/evidence.json")),
				Control:     no,
				Learned:     yes(file("field/xie/features-*.safetensors"), file("field/xie/evidence.json")),
				ReturnError: no,
			},
			Model: "none", Samples: "n transitions of one policy", Weights: "d² + 3 under the masks: 19 at d = 4", Work: "O(dn²) a layer, softmax attention",
		},
		{
			Name: "Liang–Lai 2026", Source: "arXiv 2605.05755",
			Ticks: map[Capability]Tick{
				Softmax:     {"linear", []Evidence{test("baseline/lianglai.TestAnalyticActorCritic")}},
				Evaluation:  yes(test("baseline/lianglai.TestAnalyticActorCritic"), test("baseline/lianglai.TestQualificationInTheNativeShape")),
				Control:     yes(file("paper/benchmark/liang-lai-paper-S8-18100-*/manifest.json")),
				Learned:     yes(test("baseline/lianglai.TestHarnessShapeAndController"), file("paper/qualification/liang-lai-*/manifest.json")),
				ReturnError: no,
			},
			Model: "none", Samples: "20 transitions a round", Weights: "2(2SA+3S+2)²: 10,952 at S = 8", Work: "one layer a round",
		},
		{
			Name: "Algorithm Distillation", Source: "arXiv 2210.14215",
			Ticks: map[Capability]Tick{
				Softmax:     yes(test("baseline/distill.TestCachedPassAndQueryAgreeWithFullPasses")),
				Evaluation:  {"implicit", []Evidence{file("paper/qualification/algorithm-distillation-*/manifest.json")}},
				Control:     yes(file("paper/benchmark/algorithm-distillation-*/manifest.json")),
				Learned:     yes(test("baseline/distill.TestTrainingLearnsResumesAndRepeats")),
				ReturnError: no,
			},
			Model: "none", Samples: "20 transitions a round, 200 tokens in context", Weights: "1,138,467 at S = 8", Work: "20 passes of a token a round",
		},
		{
			Name: "S5RL", Source: "arXiv 2303.03982",
			Ticks: map[Capability]Tick{
				Softmax:     no,
				Evaluation:  {"implicit", []Evidence{test("field/s5.TestOperatorOfThePaper"), file("paper/qualification/s5rl-cpu-S8-*/manifest.json")}},
				Control:     yes(file("paper/qualification/s5rl-cpu-cleared-S8-*/manifest.json"), file("paper/benchmark/s5rl-cpu-S8-*/manifest.json")),
				Learned:     yes(test("field/s5rl.TestLossIsPPOs"), file("paper/train/s5rl-S8-*/weights.safetensors")),
				ReturnError: no,
			},
			Model: "none", Samples: "20 transitions a round", Weights: "28,756 at S = 8", Work: "20 steps of the recurrence a round",
		},
		{
			Name: "PolicyAttention", Source: "this paper",
			Ticks: map[Capability]Tick{
				Softmax:     yes(test("decoder.TestBounds")),
				Evaluation:  yes(test("decoder.TestBounds"), test("decoder.TestCoverage")),
				Control:     yes(file("paper/benchmark/policyattention-S8-18100-*/manifest.json"), test("decoder.TestConverges")),
				Learned:     yes(file("paper/train/proximal-plain-S8-18100-*/weights.safetensors"), test("train.TestTrainLearns")),
				ReturnError: yes(test("control.TestProve"), test("decoder.TestAudit")),
			},
			Model: "a backup of the model, or 144 samples a round", Samples: "none, or 144 a round", Weights: "272,451 at S = 8; the fixed decoder: none", Work: "one pass a round",
		},
	}
}

// ErrMissing is wrapped by the errors of evidence that is not there.
var ErrMissing = errors.New("evidence is missing")

// Open returns where the evidence is in the repository at root: the file and, for a test, the
// comment above it and its first line. It returns an error that wraps ErrMissing if there is
// no such test or file.
func (e Evidence) Open(root string) (string, error) {
	if e.Artifact != "" {
		files, err := filepath.Glob(filepath.Join(root, "artifacts", filepath.FromSlash(e.Artifact)))
		if err != nil {
			return "", fmt.Errorf("field: pattern %q: %w", e.Artifact, err)
		}
		if len(files) == 0 {
			return "", fmt.Errorf("field: %w: no file artifacts/%s", ErrMissing, e.Artifact)
		}
		slices.Sort(files)
		for i, f := range files {
			if files[i], err = filepath.Rel(root, f); err != nil {
				return "", fmt.Errorf("field: %w", err)
			}
		}
		return strings.Join(files, "\n"), nil
	}
	folder, name, _ := strings.Cut(e.Test, ".")
	files, err := filepath.Glob(filepath.Join(root, "policyattention", filepath.FromSlash(folder), "*_test.go"))
	if err != nil {
		return "", fmt.Errorf("field: test %q: %w", e.Test, err)
	}
	head, err := regexp.Compile(`(?m)((?:^//.*\n)*)^(func ` + regexp.QuoteMeta(name) + `\(t \*testing\.T\)) \{$`)
	if err != nil || name == "" {
		return "", fmt.Errorf("field: %q is not a package and a test", e.Test)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return "", fmt.Errorf("field: %w", err)
		}
		if found := head.FindSubmatch(text); found != nil {
			relative, err := filepath.Rel(root, f)
			if err != nil {
				return "", fmt.Errorf("field: %w", err)
			}
			return relative + "\n" + string(found[1]) + string(found[2]), nil
		}
	}
	return "", fmt.Errorf("field: %w: no test %s below policyattention", ErrMissing, e.Test)
}

// Cell is a tick as it prints.
type Cell struct {
	System     string
	Capability Capability
	Mark       string // what is opened; empty where evidence is missing
	Missing    error  // why not, wrapping ErrMissing
}

// Map opens every tick in the repository at root. A tick that claims something prints its mark
// only if there is evidence and all of it is there.
func Map(root string) ([]Cell, error) {
	var cells []Cell
	for _, s := range Systems() {
		for _, c := range Capabilities() {
			tick := s.Ticks[c]
			cell := Cell{System: s.Name, Capability: c, Mark: tick.Mark}
			if tick.Mark != No && len(tick.Evidence) == 0 {
				cell.Missing = fmt.Errorf("field: %w: nothing shows it yet", ErrMissing)
			}
			for _, e := range tick.Evidence {
				_, err := e.Open(root)
				if errors.Is(err, ErrMissing) && cell.Missing == nil {
					cell.Missing = err
				} else if err != nil && !errors.Is(err, ErrMissing) {
					return nil, err
				}
			}
			if cell.Missing != nil {
				cell.Mark = ""
			}
			cells = append(cells, cell)
		}
	}
	return cells, nil
}

// Folder is where the weights and the evidence of a method are below artifacts.
func Folder(artifacts, method string) string { return filepath.Join(artifacts, "field", method) }
