package results

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"icrl/policyattention/stats"
)

// golden are numbers in full precision that the repository printed before its results were tidy
// rows, by query. The rows must give each of them to the last digit.
func golden(t *testing.T) map[string][]any {
	t.Helper()
	text, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string][]any
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// paperRows opens the stored rows.
func paperRows(t *testing.T) *Store {
	t.Helper()
	return Open("../../artifacts/paper")
}

func TestGolden(t *testing.T) {
	s := paperRows(t)
	for query, want := range golden(t) {
		statistic, rest, _ := strings.Cut(query, " ")
		var got []float64
		switch statistic {
		case "audit", "lead", "equal", "any":
			continue // see TestGoldenTables
		case "by-run":
			c, err := s.Ask(rest)
			if err != nil {
				t.Fatal(err)
			}
			got = c.ByRun
		case "excess", "spread":
			_, x, y, err := s.asked(query)
			if err != nil {
				t.Fatalf("%s: %v", query, err)
			}
			tail := spread(x.sample)
			if strings.HasPrefix(rest, "tuning") {
				tail.Mean = stats.Mean(x.sample[0]) // in the order of the problems
			}
			if statistic == "excess" {
				tail = excess(pair(x, y))
			}
			got = tailNumbers(tail)
		default:
			c, err := s.Ask(query)
			if err != nil {
				t.Fatal(err)
			}
			got = []float64{c.Value, c.Lo, c.Hi}
		}
		compareNumbers(t, query, got, want)
	}
}

func compareNumbers(t *testing.T, query string, got []float64, want []any) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %v, want %v", query, got, want)
		return
	}
	for i := range want {
		w, ok := want[i].(float64)
		if want[i] == "inf" {
			w, ok = math.Inf(1), true
		}
		if ok && got[i] != w {
			t.Errorf("%s: number %d is %v, want %v", query, i, got[i], w)
		}
	}
}

func spread(sample [][]float64) stats.Tail {
	var all []float64
	for _, run := range sample {
		all = append(all, run...)
	}
	return stats.TailOf(all, 1)
}
