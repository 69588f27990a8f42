package main

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"icrl/internal/testkit"
)

func TestCompare(t *testing.T) {
	ours := slices.Repeat([]float64{-2}, paritySteps)
	ours[3] = 1e-9 // a loss on its way through zero
	for _, tc := range []struct {
		name   string
		at     int
		shift  float64
		passes bool
	}{
		{"equal", 0, 0, true},
		{"rounding", 5, 1e-4, true},
		{"rounding near zero", 3, 1e-4, true},
		{"another number", 5, 1e-3, false},
		{"not a number", 5, math.NaN(), false},
	} {
		theirs := slices.Clone(ours)
		theirs[tc.at] += tc.shift
		if _, err := compare(ours, theirs); (err == nil) != tc.passes {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	if _, err := compare(ours, ours[:5]); err == nil {
		t.Error("five losses passed")
	}
}

// The table has the best variant of a framework, and nothing of a program that failed.
func TestTable(t *testing.T) {
	of := func(program string, best float64, failure string) result {
		return result{Work: "actor S=4", Setting: "1 × 2", Program: program, Best: best, Error: failure}
	}
	c := comparison{Results: []result{
		of("GoMLX", 12, ""), of("JAX", 4, ""), of("JAX, scan", 6, ""), of("PyTorch", 0, "not there"),
	}}
	folder := t.TempDir()
	file, document := filepath.Join(folder, "bench.json"), filepath.Join(folder, "speed.md")
	testkit.Check(t, os.WriteFile(document, []byte("before\n<!-- table: race -->\nold\n<!-- end -->\nafter\n"), 0o644))
	testkit.Check(t, c.write(file, document))
	text := strings.Join(strings.Fields(string(testkit.Must(os.ReadFile(document))(t))), " ")
	for _, want := range []string{"before", "| actor S=4 | 1 × 2 | 12 | 0 | 6 scan | 0 | 2.00 | 0.00 |", "after"} {
		if !strings.Contains(text, want) {
			t.Errorf("the document has no %q:\n%s", want, text)
		}
	}
}

// Our own programs race at a closed loop; a program that computes something else has an error.
func TestRace(t *testing.T) {
	var out strings.Builder
	w := testkit.Must(works())(t)[5]
	once := testkit.Must(w.start(nil))(t)
	testkit.Check(t, serve(once, w.parity, strings.NewReader("1\n"), &out))
	if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); len(lines) != 2 ||
		!strings.Contains(lines[1], `"steps":1`) {
		t.Fatalf("answers %q", lines)
	}
	say := func(losses string) program {
		script := "#!/bin/sh\necho '{\"losses\": [" + losses + "]}'\n" +
			"while read n; do echo \"{\\\"steps\\\": $n, \\\"wall\\\": 1, \\\"cpu\\\": 2}\"; done\n"
		file := filepath.Join(t.TempDir(), "peer")
		testkit.Check(t, os.WriteFile(file, []byte(script), 0o755))
		return program{losses, file}
	}
	programs := []program{say("1, 2"), say("1, 3"), say("1, 2")}
	results := testkit.Must(race(task{work: w, threads: 1}, programs, 1, 2, 1))(t)
	if results[0].Best != 2 || results[0].CPU != 1 || results[1].Error == "" || results[1].Best != 0 ||
		results[2].Best != 2 {
		t.Errorf("results %+v", results)
	}
}
