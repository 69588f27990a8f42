package equal

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"icrl/policyattention/artifact"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
)

// Row is a method in a condition at a size.
type Row struct {
	States int `json:"states"`
	Condition
	Method string `json:"method"`
	// Untuned says that the free numbers are the published ones.
	Untuned bool      `json:"untuned,omitempty"`
	Values  []float64 `json:"values,omitempty"` // of the method's parameters, in their order
	Tuning  *Tuning   `json:"tuning,omitempty"` // absent where nothing was searched
	Use     []Use     `json:"use"`              // [horizons], mean over problems and runs
	Seconds float64   `json:"seconds"`          // of wall time a problem and run, all rounds
	// Losses [runs][problems][horizons] stand in a file of their own, to five digits.
	Losses [][][]float64 `json:"-"`
}

// Name returns for instance "S8/generative-48/pmd-all".
func (r Row) Name() string {
	name := fmt.Sprintf("S%d/%s", r.States, r.Information)
	if r.N > 0 {
		name += fmt.Sprintf("-%d", r.N)
	}
	name += "/" + r.Method
	if r.Untuned {
		name += "-untuned"
	}
	return name
}

// At returns the losses [runs][problems] at a horizon, which must be one of Horizons.
func (r Row) At(horizon int) [][]float64 {
	h := slices.Index(Horizons, horizon)
	at := make([][]float64, len(r.Losses))
	for j, run := range r.Losses {
		for _, losses := range run {
			at[j] = append(at[j], losses[h])
		}
	}
	return at
}

// Evidence is everything that was measured.
type Evidence struct {
	Rounds      int           `json:"rounds"`
	Problems    int           `json:"problems"`
	Calibrating int           `json:"calibrating"`
	Horizons    []int         `json:"horizons"`
	Roots       map[int]Seeds `json:"roots"` // by number of states
	Rows        []Row         `json:"rows"`
	CPUSeconds  float64       `json:"cpu_seconds"`
	Digest      string        `json:"losses"` // SHA-256 of losses.csv.gz
}

// protocol returns an Evidence without results.
func protocol() *Evidence {
	return &Evidence{Rounds: Rounds, Problems: Problems, Calibrating: Calibrating, Horizons: Horizons, Roots: Roots}
}

// Files of the evidence.
const (
	evidenceFile = "evidence.json"
	lossesFile   = "losses.csv.gz"
)

// Plan lists the rows there are to be, without results. A method that takes the numbers of
// another comes after it.
func Plan() (rows []Row) {
	for _, states := range Sizes {
		for _, c := range Conditions {
			for _, m := range Methods(c.Information) {
				if !m.can(c, states) {
					continue
				}
				rows = append(rows, Row{States: states, Condition: c, Method: m.Name})
				if m.Published != nil && c.N <= 20 { // what the paper's comparison has
					rows = append(rows, Row{States: states, Condition: c, Method: m.Name, Untuned: true})
				}
			}
		}
	}
	return rows
}

// fixtures are problems with their scales.
type fixtures struct {
	problems []mdp.Problem
	scales   []*control.Scale
}

func draw(root uint64, states, n int) (f fixtures, err error) {
	if f.problems, err = mdp.Random.Draw(root, states, Actions, n); err != nil {
		return f, err
	}
	f.scales, err = control.NewScales(f.problems)
	return f, err
}

// Make measures the rows of some sizes that are not in the folder work, and keeps each that
// is done there, so that a run that is stopped goes on from there and sizes can be made by
// processes of their own. The function progress is told of rows. Once all rows are there,
// it writes the evidence into the folder.
func Make(ctx context.Context, n *Networks, sizes []int, folder, work string, progress func(string)) error {
	if err := os.MkdirAll(work, 0o755); err != nil {
		return fmt.Errorf("equal: %w", err)
	}
	e := protocol()
	done := map[string]Row{}
	drawn := map[uint64]fixtures{}
	missing := 0
	for _, row := range Plan() {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		path := filepath.Join(work, fmt.Sprintf("%.8x.json", sha256.Sum256([]byte(row.Name()))))
		kept, err := readRow(path, row)
		if errors.Is(err, fs.ErrNotExist) && !slices.Contains(sizes, row.States) {
			missing++
			continue
		}
		if errors.Is(err, fs.ErrNotExist) {
			meter := artifact.StartMeter()
			progress(row.Name())
			if kept.Row, err = measure(n, row, done, drawn); err == nil {
				kept.CPUSeconds = meter.Cost().CPUSeconds
				err = kept.write(path)
			}
		}
		if err != nil {
			return err
		}
		done[row.Name()] = kept.Row
		e.Rows, e.CPUSeconds = append(e.Rows, kept.Row), e.CPUSeconds+kept.CPUSeconds
	}
	if missing > 0 {
		return nil
	}
	return e.write(folder)
}

// measure chooses the row's numbers and runs it. done are the rows before it, by name;
// drawn are the fixtures so far, by root.
func measure(n *Networks, row Row, done map[string]Row, drawn map[uint64]fixtures) (Row, error) {
	m, err := Find(row.Information, row.Method)
	if err != nil {
		return row, err
	}
	fixed := func(root uint64, count int) (fixtures, error) {
		if f, ok := drawn[root]; ok {
			return f, nil
		}
		f, err := draw(root, row.States, count)
		drawn[root] = f
		return f, err
	}
	roots := Roots[row.States]
	switch {
	case row.Untuned:
		row.Values = m.Published(row.States)
	case m.As != "":
		other := row
		other.Method = m.As
		row.Values = done[other.Name()].Values
	case len(m.Parameters) > 0:
		f, err := fixed(roots.Calibration, Calibrating)
		if err != nil {
			return row, err
		}
		values, t, err := m.Tune(n, row.Condition, row.States, f.problems, f.scales)
		if err != nil {
			return row, err
		}
		row.Values, row.Tuning = values, &t
	}
	f, err := fixed(roots.Evaluation, Problems)
	if err != nil {
		return row, err
	}
	runs := m.runs(row.Condition)
	row.Use = make([]Use, len(Horizons))
	for j := range runs {
		r, err := m.Run(row.of(n, j), f.problems, f.scales)
		if err != nil {
			return row, err
		}
		for h, u := range r.Use {
			row.Use[h].Transitions += u.Transitions / float64(runs)
			row.Use[h].Entries += u.Entries / float64(runs)
			row.Use[h].Operations += u.Operations / float64(runs)
		}
		row.Seconds += r.Seconds / float64(runs)
		row.Losses = append(row.Losses, r.Loss)
	}
	return row, nil
}

// of returns the case of a run of the row.
func (r Row) of(n *Networks, run int) Case {
	return Case{
		Networks: n, Condition: r.Condition, States: r.States, Run: run, Values: r.Values, Untuned: r.Untuned,
		Root: Roots[r.States].Samples + uint64(run),
	}
}

// kept is a row in the folder of work.
type kept struct {
	Protocol   Evidence // without results
	Row        Row
	Losses     [][][]float64
	CPUSeconds float64
}

func (k kept) write(path string) error {
	k.Protocol, k.Losses = *protocol(), k.Row.Losses
	return artifact.WriteJSON(path, k, "")
}

func readRow(path string, row Row) (k kept, err error) {
	if err := artifact.ReadJSON(path, &k); err != nil {
		return k, err
	}
	want, _ := json.Marshal(protocol()) // numbers alone
	if got, _ := json.Marshal(k.Protocol); !bytes.Equal(got, want) || k.Row.Name() != row.Name() {
		return k, fmt.Errorf("equal: %s is of another protocol or row", path)
	}
	k.Row.Losses = k.Losses
	return k, nil
}

// header names the columns of losses.csv.gz. A line is one problem of one run of a row,
// which is counted from 0 in evidence.json.
func header() []string {
	h := []string{"row", "run", "problem"}
	for _, t := range Horizons {
		h = append(h, fmt.Sprintf("loss_%d", t))
	}
	return h
}

// write stores the evidence in a folder.
func (e *Evidence) write(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fmt.Errorf("equal: %w", err)
	}
	var lines [][]string
	for i, row := range e.Rows {
		for j, run := range row.Losses {
			for p, losses := range run {
				line := []string{strconv.Itoa(i), strconv.Itoa(j), strconv.Itoa(p)}
				for _, v := range losses {
					line = append(line, artifact.Field(v, 5))
				}
				lines = append(lines, line)
			}
		}
	}
	path := filepath.Join(folder, lossesFile)
	err := artifact.WriteLines(path, gzip.BestCompression, header(), lines)
	if err != nil {
		return err
	}
	if e.Digest, err = artifact.FileDigest(path); err != nil {
		return err
	}
	return artifact.WriteJSON(filepath.Join(folder, evidenceFile), e, " ")
}

// Read reads the evidence in a folder. It returns an error if the losses have been changed
// or are not those of the rows.
func Read(folder string) (*Evidence, error) {
	e := &Evidence{}
	if err := artifact.ReadJSON(filepath.Join(folder, evidenceFile), e); err != nil {
		return nil, err
	}
	if !slices.Equal(e.Horizons, Horizons) {
		return nil, fmt.Errorf("equal: %s has the horizons %d, want %d", folder, e.Horizons, Horizons)
	}
	path := filepath.Join(folder, lossesFile)
	if err := artifact.CheckFile(path, e.Digest); err != nil {
		return nil, err
	}
	lines, err := artifact.ReadLines(path, header())
	if err != nil {
		return nil, err
	}
	if err := e.losses(lines); err != nil {
		return nil, fmt.Errorf("equal: %s: %w", path, err)
	}
	return e, nil
}

// losses takes in the lines of losses.csv.
func (e *Evidence) losses(lines [][]string) (err error) {
	for n, line := range lines {
		var at [3]int
		for k := range at {
			if at[k], err = strconv.Atoi(line[k]); err != nil {
				return fmt.Errorf("line %d: %w", n+2, err)
			}
		}
		if at[0] < 0 || at[0] >= len(e.Rows) {
			return fmt.Errorf("line %d is of row %d, there are %d", n+2, at[0], len(e.Rows))
		}
		row := &e.Rows[at[0]]
		if at[2] == 0 {
			row.Losses = append(row.Losses, nil)
		}
		if at[1] != len(row.Losses)-1 || at[1] < 0 || at[2] != len(row.Losses[at[1]]) {
			return fmt.Errorf("line %d is not of the next problem of a run", n+2)
		}
		losses := make([]float64, len(Horizons))
		for h := range losses {
			if losses[h], err = artifact.Number(line[3+h]); err != nil || math.IsNaN(losses[h]) {
				return fmt.Errorf("line %d: loss %q", n+2, line[3+h])
			}
		}
		row.Losses[at[1]] = append(row.Losses[at[1]], losses)
	}
	for _, row := range e.Rows {
		for _, run := range row.Losses {
			if len(run) != e.Problems {
				return fmt.Errorf("%s has %d problems in a run, want %d", row.Name(), len(run), e.Problems)
			}
		}
		if len(row.Losses) == 0 {
			return fmt.Errorf("%s has no losses", row.Name())
		}
	}
	return nil
}
