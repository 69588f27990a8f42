package results

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"icrl/policyattention/report"
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

var stored = Open("../../artifacts/paper")

// paperRows are the stored rows.
func paperRows(*testing.T) *Store { return stored }

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

// Tables that are no single queries.
func TestGoldenTables(t *testing.T) {
	s := paperRows(t)
	all, err := s.study()
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range golden(t) {
		statistic, rest, _ := strings.Cut(query, " ")
		var states, horizon, n int
		var got []float64
		flat := func(estimates ...stats.Estimate) {
			for _, e := range estimates {
				got = append(got, e.Value, e.Lo, e.Hi)
			}
		}
		switch statistic {
		case "audit":
			rows, violations, slack, err := s.Audit("confirmation", "shift")
			if err != nil {
				t.Fatal(err)
			}
			got = []float64{float64(rows), float64(violations), slack}
		case "lead":
			var method string
			scan(t, rest, "%s s=%d t=%d", &method, &states, &horizon)
			l, err := s.LeadOver(method, states, horizon)
			if err != nil {
				t.Fatal(err)
			}
			flat(l.Lead, l.Update, l.Information, l.Tuning, l.UpdateWindow, l.UpdateModel)
		case "equal":
			var method, information string
			scan(t, rest, "%s n=%d %s s=%d t=%d", &information, &n, &method, &states, &horizon)
			loss, d, err := all.besideOurs(informed{method, information, n, states, false}, horizon)
			if err != nil {
				t.Fatal(err)
			}
			got = []float64{loss}
			if flat(d); len(want) == 1 {
				got = got[:1]
			}
		default:
			continue
		}
		compareNumbers(t, query, got, want)
	}
	table, err := s.Table("any")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range table.Rows {
		span := row[6].(report.Interval)
		got := []float64{row[3].(float64), row[4].(float64), row[5].(float64), span.Lo, span.Hi, row[7].(float64),
			row[8].(float64)}
		query := fmt.Sprintf("any %s s=%d t=%s", row[2], row[0], row[1])
		compareNumbers(t, query, got, golden(t)[query])
	}
}

func scan(t *testing.T, text, format string, into ...any) {
	t.Helper()
	if _, err := fmt.Sscanf(text, format, into...); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
}
