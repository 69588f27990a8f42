package results

import (
	_ "embed"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"

	"icrl/policyattention/experiment"
)

// Number is a number that the paper prints.
type Number struct {
	Value float64 `json:"value"`
	Lo    float64 `json:"lo,omitempty"` // interval, where Lo < Hi
	Hi    float64 `json:"hi,omitempty"`
	Where string  `json:"where"` // in the paper
}

// Span returns the number's interval, or the number twice.
func (n Number) Span() (lo, hi float64) {
	if n.Lo < n.Hi {
		return n.Lo, n.Hi
	}
	return n.Value, n.Value
}

// Key names a number of the paper: a block, a quantity, and S and T where they
// matter.
type Key struct {
	Block    experiment.Block
	Quantity string
	S, T     int
}

// Paper returns a number of the paper, or nil where it prints none.
func Paper(k Key) *Number {
	n, ok := paper[k]
	if !ok {
		return nil
	}
	return &n
}

//go:embed paper.csv
var printed string

// paper holds the numbers of the paper that ours stand beside; what it prints
// otherwise stands with its sentence in the claims of package report.
var paper = func() map[Key]Number {
	numbers, err := readNumbers(printed)
	if err != nil {
		panic(err) // a file of this package
	}
	return numbers
}()

// readNumbers reads lines of block, quantity, states, horizon, value, lo, hi, where. It
// returns an error if a line is malformed or names a number for the second time.
func readNumbers(text string) (map[Key]Number, error) {
	lines := csv.NewReader(strings.NewReader(text))
	lines.Comment = '#'
	rows, err := lines.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("results: paper.csv: %w", err)
	}
	numbers := map[Key]Number{}
	for _, row := range rows[1:] {
		k, n := Key{Block: experiment.Block(row[0]), Quantity: row[1]}, Number{Where: row[7]}
		for i, to := range []*int{&k.S, &k.T} {
			if *to, err = strconv.Atoi(row[2+i]); err != nil {
				return nil, fmt.Errorf("results: paper.csv: %q: %w", row, err)
			}
		}
		for i, to := range []*float64{&n.Value, &n.Lo, &n.Hi} {
			if row[4+i] == "" && i > 0 {
				continue
			}
			if *to, err = strconv.ParseFloat(row[4+i], 64); err != nil {
				return nil, fmt.Errorf("results: paper.csv: %q: %w", row, err)
			}
		}
		if _, twice := numbers[k]; twice {
			return nil, fmt.Errorf("results: paper.csv: %q stands there twice", row)
		}
		numbers[k] = n
	}
	return numbers, nil
}
