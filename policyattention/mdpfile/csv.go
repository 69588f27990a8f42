package mdpfile

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
)

// columns are what a table of transitions is made of, by the names that they go by.
var columns = map[string]string{
	"state": "state", "s": "state", "action": "action", "a": "action", "next": "next", "next_state": "next",
	"s'": "next", "probability": "probability", "prob": "probability", "p": "probability", "reward": "reward",
	"r": "reward", "cost": "cost", "ends": "ends", "terminated": "ends", "done": "ends",
}

// readCSV reads a table of transitions with the columns state, action, next, probability and reward (or cost, which is
// minimized), and perhaps ends (whether the episode does), under a line of these names. States and actions are numbers
// from 0 or names. Pairs that are not in the table, or that have no probability or no reward in it, are actions that
// the state does not have. Lines that begin with # may say more of the problem:
//
//	# gamma: 0.95
//	# terminal: goal, pit
//	# start: entry
//	# minimize: true
//	# shape: 3, 4
func readCSV(d *draft, name string, data []byte, _ opener) error {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if err := d.comments(data); err != nil {
		return err
	}
	r := csv.NewReader(bytes.NewReader(data))
	r.Comment, r.ReuseRecord = '#', true
	header := firstLine(data)
	switch {
	case strings.EqualFold(filepath.Ext(trimGzip(name)), ".tsv") || bytes.IndexByte(header, '\t') >= 0:
		r.Comma = '\t'
	case bytes.IndexByte(header, ',') < 0 && bytes.IndexByte(header, ';') >= 0:
		r.Comma = ';'
	}
	at, err := head(r)
	if err != nil {
		return err
	}
	d.Minimize = d.Minimize || at["cost"] >= 0
	d.priced = max(at["reward"], at["cost"]) >= 0
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := d.record(row, at); err != nil {
			line, _ := r.FieldPos(0)
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
}

// head reads the names of the columns and returns their places, −1 for those that are missing.
func head(r *csv.Reader) (map[string]int, error) {
	const want = "state, action, next, probability and reward (or cost), and perhaps ends"
	at := map[string]int{"reward": -1, "cost": -1, "ends": -1}
	names, err := r.Read()
	if err != nil {
		return nil, fmt.Errorf("there is no line with the names of the columns: %s", want)
	}
	for i, name := range names {
		column, ok := columns[strings.ToLower(strings.TrimSpace(name))]
		if !ok {
			return nil, fmt.Errorf("unknown column %q, want %s", name, want)
		}
		if old, ok := at[column]; ok && old >= 0 {
			return nil, fmt.Errorf("two columns hold the %s", column)
		}
		at[column] = i
	}
	for _, column := range []string{"state", "action", "next", "probability"} {
		if _, ok := at[column]; !ok {
			return nil, fmt.Errorf("there is no column %q, want %s", column, want)
		}
	}
	return at, nil
}

func (d *draft) record(row []string, at map[string]int) (err error) {
	var x arrow
	for i := range row {
		row[i] = strings.TrimSpace(row[i])
	}
	next := row[at["next"]]
	if x.p, err = entry(row[at["probability"]]); err != nil {
		return err
	}
	if d.priced {
		if x.r, err = entry(row[max(at["reward"], at["cost"])]); err != nil {
			return err
		}
	}
	if i := at["ends"]; i >= 0 {
		if x.ends, err = truth(row[i]); err != nil {
			return err
		}
	}
	if math.IsNaN(x.p) || math.IsNaN(x.r) {
		next = ""
	} else if next == "" {
		return errors.New("there is no next state")
	}
	return d.arrow(row[at["state"]], row[at["action"]], next, x)
}

// entry reads a number; NaN where there is none.
func entry(text string) (float64, error) {
	switch strings.ToLower(text) {
	case "", "none", "null", "na", "nan":
		return math.NaN(), nil
	}
	return number(text)
}

// firstLine returns the first line that is neither empty nor a comment.
func firstLine(data []byte) []byte {
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return line
		}
	}
	return nil
}

// comments takes the lines "# name: value, value …" that say something of the problem.
func (d *draft) comments(data []byte) error {
	for line := range bytes.Lines(data) {
		if line[0] != '#' {
			continue
		}
		name, said, _ := strings.Cut(string(line[1:]), ":")
		name = strings.ToLower(strings.TrimSpace(name))
		if !slices.Contains(strings.Fields("gamma discount minimize normalize start terminal shape"), name) {
			continue
		}
		words := strings.Split(said, ",")
		for i := range words {
			words[i] = strings.TrimSpace(words[i])
		}
		if err := d.remark(name, words, len(words) > 1); err != nil {
			return fmt.Errorf("%q: %w", bytes.TrimSpace(line), err)
		}
	}
	return nil
}
