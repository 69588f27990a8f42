package results

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"icrl/internal/testkit"
	"icrl/policyattention/report"
	"icrl/policyattention/stats"
)

var stored = Open("../../artifacts/paper")

// The golden numbers are in full precision what the repository printed before its results were tidy rows, by query;
// those of the study with equal information, which has had more problems since, what it printed when these were new.
// The rows must give each of them to the last digit.
func TestGolden(t *testing.T) {
	var golden map[string][]any
	testkit.Check(t, json.Unmarshal(testkit.Must(os.ReadFile("testdata/golden.json"))(t), &golden))
	anyRows := map[string][]float64{}
	for _, row := range testkit.Must(stored.Table("any"))(t).Rows {
		span := row[6].(report.Interval)
		anyRows[fmt.Sprintf("any %s s=%d t=%s", row[2], row[0], row[1])] = []float64{row[3].(float64),
			row[4].(float64), row[5].(float64), span.Lo, span.Hi, row[7].(float64), row[8].(float64)}
	}
	for query, want := range golden {
		statistic, rest, _ := strings.Cut(query, " ")
		var got []float64
		add := func(estimates ...stats.Estimate) {
			for _, e := range estimates {
				got = append(got, e.Value, e.Lo, e.Hi)
			}
		}
		switch statistic {
		case "any":
			got = anyRows[query]
		case "by-run":
			got = testkit.Must(stored.Ask(rest))(t).ByRun
		case "excess", "spread":
			_, x, y, err := stored.asked(query)
			testkit.Check(t, err)
			tail := stats.TailOf(slices.Concat(x.sample...), 1)
			if strings.HasPrefix(rest, "tuning") {
				tail.Mean = stats.Mean(x.sample[0]) // in the order of the problems
			}
			if statistic == "excess" {
				tail = excess(pair(x, y))
			}
			got = []float64{tail.Mean, tail.P95, tail.P99, tail.Worst, tail.Above}
		case "audit":
			rows, violations, slack, err := stored.Audit("confirmation", "shift")
			testkit.Check(t, err)
			got = []float64{float64(rows), float64(violations), slack}
		case "lead":
			var method, horizon string
			var states int
			scan(t, rest, "%s s=%d t=%s", &method, &states, &horizon)
			var at any = horizon
			if n, err := strconv.Atoi(horizon); err == nil {
				at = n
			}
			l := testkit.Must(stored.leadOver(method, states, at))(t)
			add(l[:]...)
		case "equal":
			var i informed
			var horizon int
			scan(t, rest, "%s n=%d %s s=%d t=%d", &i.information, &i.n, &i.method, &i.states, &horizon)
			loss, d, err := stored.besideOurs(i, horizon)
			testkit.Check(t, err)
			got = []float64{loss}
			if len(want) > 1 {
				add(d)
			}
		default:
			add(testkit.Must(stored.Ask(query))(t).Estimate)
		}
		if len(got) != len(want) {
			t.Fatalf("%s: %v, want %v", query, got, want)
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
}

func scan(t *testing.T, text, format string, into ...any) {
	t.Helper()
	if _, err := fmt.Sscanf(text, format, into...); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
}
