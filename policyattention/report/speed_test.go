package report

import (
	"encoding/json"
	"reflect"
	"testing"

	"icrl/policyattention/bench"
)

// Of each framework the fastest variant that did not fail is shown.
func TestBenchTable(t *testing.T) {
	var c bench.Comparison
	if err := json.Unmarshal([]byte(`{"machine": {"cpu": "C", "backend": "B"}, "peak_gflops": 90, "results": [
		{"row": "actor", "setting": "1 × 2", "program": "GoMLX", "steps_s": 12.34, "share_of_peak": 0.31},
		{"row": "actor", "setting": "1 × 2", "program": "JAX", "steps_s": 9, "share_of_peak": 0.2},
		{"row": "actor", "setting": "1 × 2", "program": "JAX, vmap", "steps_s": 10.5, "share_of_peak": 0.25},
		{"row": "actor", "setting": "1 × 2", "program": "PyTorch, compiled", "error": "no compiler"},
		{"row": "actor", "setting": "1 × 2", "program": "PyTorch", "steps_s": 120, "share_of_peak": 0.4},
		{"row": "loop", "setting": "2 × 1", "program": "GoMLX", "steps_s": 3, "share_of_peak": 0.1}
	]}`), &c); err != nil {
		t.Fatal(err)
	}
	got := BenchTable(&c)
	columns := []string{"work", "processes × threads", "GoMLX", "JAX", "PyTorch", "GoMLX over the better peer"}
	rows := [][]string{
		{"actor", "1 × 2", "12 (31 %)", "10 (25 %; JAX, vmap)", "120 (40 %)", "0.10"},
		{"loop", "2 × 1", "3 (10 %)", NotRun, NotRun, NotRun},
	}
	if !reflect.DeepEqual(got.Columns, columns) || !reflect.DeepEqual(got.text(), rows) {
		t.Errorf("%q\n%q", got.Columns, got.Rows)
	}
}

func TestProfileTable(t *testing.T) {
	var p bench.Profile
	if err := json.Unmarshal([]byte(`{"machine": {"cpu": "C", "backend": "B"}, "peak_gflops": 80, "rows": [
		{"row": "actor", "flops": {"linear": 2e8, "attention": 3e7}, "programs": [{"program": "GoMLX", "cpu_milliseconds":
			{"linear": 5, "attention": 3, "layer norm": 1, "optimizer": 0.25, "step": 9}}]}
	]}`), &p); err != nil {
		t.Fatal(err)
	}
	got := ProfileTable(&p)
	want := [][]string{{"actor", "GoMLX", "5.00 (40, 50 %)", "3.00 (10, 12 %)", "1.00", "0.25", "-0.25", "9.00"}}
	if !reflect.DeepEqual(got.text(), want) || len(got.Columns) != len(want[0]) {
		t.Errorf("%q\n%q", got.Columns, got.Rows)
	}
}
