// Package capability is the paper's Table 1 as a table in which every tick is opened by
// evidence. Each system says in its own folder what it can do; package field lists them.
package capability

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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

// Evidence opens a tick: a test, an artifact or a claim of this repository.
type Evidence struct {
	// Test is a package below policyattention and a test in it, as in
	// "field/wang.TestEachLayerIsAStep".
	Test string `json:"test,omitempty"`
	// Artifact is a pattern of files below artifacts (path.Match).
	Artifact string `json:"artifact,omitempty"`
	// Claim is a statement of artifacts/paper/claims.json, and Says what a line of what was
	// measured of it must begin with.
	Claim string `json:"claim,omitempty"`
	Says  string `json:"says,omitempty"`
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
	// Step, where there is a construction, makes one step of it: from values 0 or, for
	// control, from π₀.
	Step func(Walk) (Step, error) `json:"-"`
}

// Test is the evidence of a test, as in "field/wang.TestEachLayerIsAStep".
func Test(name string) Evidence { return Evidence{Test: name} }

// Files is the evidence of files below artifacts that match a pattern.
func Files(pattern string) Evidence { return Evidence{Artifact: pattern} }

// Claim is the evidence of a statement among the claims of which a line of what was measured
// begins with says.
func Claim(statement, says string) Evidence { return Evidence{Claim: statement, Says: says} }

// Yes is the cell of what a system can do.
func Yes(e ...Evidence) Tick { return Tick{"yes", e} }

// Word is a cell with another word of the paper's.
func Word(mark string, e ...Evidence) Tick { return Tick{mark, e} }

// ErrMissing is wrapped by the errors of evidence that is not there.
var ErrMissing = errors.New("evidence is missing")

// Open returns where the evidence is in the repository at root: the file and, for a test, the
// comment above it and its first line. It returns an error that wraps ErrMissing if there is
// no such test or file, or if a claim does not say so.
func (e Evidence) Open(root string) (string, error) {
	if e.Claim != "" {
		return e.claim(filepath.Join(root, "artifacts", "paper", "claims.json"))
	}
	if e.Artifact != "" {
		files, err := filepath.Glob(filepath.Join(root, "artifacts", filepath.FromSlash(e.Artifact)))
		if err != nil {
			return "", fmt.Errorf("capability: pattern %q: %w", e.Artifact, err)
		}
		if len(files) == 0 {
			return "", fmt.Errorf("capability: %w: no file artifacts/%s", ErrMissing, e.Artifact)
		}
		slices.Sort(files)
		for i, f := range files {
			if err := readable(f); err != nil {
				return "", err
			}
			if files[i], err = filepath.Rel(root, f); err != nil {
				return "", fmt.Errorf("capability: %w", err)
			}
		}
		return strings.Join(files, "\n"), nil
	}
	folder, name, _ := strings.Cut(e.Test, ".")
	files, err := filepath.Glob(filepath.Join(root, "policyattention", filepath.FromSlash(folder), "*_test.go"))
	if err != nil {
		return "", fmt.Errorf("capability: test %q: %w", e.Test, err)
	}
	head, err := regexp.Compile(`(?m)((?:^//.*\n)*)^(func ` + regexp.QuoteMeta(name) + `\(t \*testing\.T\)) \{$`)
	if err != nil || name == "" {
		return "", fmt.Errorf("capability: %q is not a package and a test", e.Test)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return "", fmt.Errorf("capability: %w", err)
		}
		if found := head.FindSubmatch(text); found != nil {
			relative, err := filepath.Rel(root, f)
			if err != nil {
				return "", fmt.Errorf("capability: %w", err)
			}
			return relative + "\n" + string(found[1]) + string(found[2]), nil
		}
	}
	return "", fmt.Errorf("capability: %w: no test %s below policyattention", ErrMissing, e.Test)
}

// readable returns an error if a file of evidence that ends in .json is none.
func readable(path string) error {
	if filepath.Ext(path) != ".json" {
		return nil
	}
	text, err := os.ReadFile(path)
	if err == nil && !json.Valid(text) {
		err = errors.New("this is not JSON, or not all of it")
	}
	if err != nil {
		return fmt.Errorf("capability: %s: %w", path, err)
	}
	return nil
}

// claim returns the path and the line that was measured.
func (e Evidence) claim(path string) (string, error) {
	missing := func(why string) (string, error) { return "", fmt.Errorf("capability: %w: %s", ErrMissing, why) }
	var claims struct{ Rows [][]string } // section, statement, the paper's number, measured, verdict
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return missing("no claims")
	}
	if err == nil {
		err = json.Unmarshal(text, &claims)
	}
	if err != nil {
		return "", fmt.Errorf("capability: %s: %w", path, err)
	}
	for _, row := range claims.Rows {
		if len(row) < 4 || row[1] != e.Claim {
			continue
		}
		for line := range strings.Lines(row[3]) {
			if line = strings.TrimSpace(line); strings.HasPrefix(line, e.Says) {
				return filepath.Join("artifacts", "paper", "claims.json") + "\n" + line, nil
			}
		}
		return missing(fmt.Sprintf("of %q was measured %q, not %q", e.Claim, row[3], e.Says))
	}
	return missing(fmt.Sprintf("no claim %q", e.Claim))
}

// Cell is a tick as it prints.
type Cell struct {
	System     string
	Capability Capability
	Mark       string // what is opened; empty where evidence is missing
	Missing    error  // why not, wrapping ErrMissing
}

// Map opens every tick of systems in the repository at root. A tick that claims something prints its mark
// only if there is evidence and all of it is there.
func Map(root string, systems []System) ([]Cell, error) {
	if _, err := os.Stat(filepath.Join(root, "policyattention")); err != nil {
		return nil, fmt.Errorf("capability: evidence is in the tests too, and %s holds no source code: call it in the repository, whose folder artifacts lies beside the code: %w", root, err)
	}
	var cells []Cell
	for _, s := range systems {
		for _, c := range Capabilities() {
			tick, ok := s.Ticks[c]
			if !ok {
				tick = Tick{Mark: No}
			}
			cell := Cell{System: s.Name, Capability: c, Mark: tick.Mark}
			if tick.Mark != No && len(tick.Evidence) == 0 {
				cell.Missing = fmt.Errorf("capability: %w: nothing shows it yet", ErrMissing)
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
