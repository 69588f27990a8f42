package bench

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// A row that is measured again replaces its results, in the place it had.
func TestResume(t *testing.T) {
	rows := Rows()
	result := func(row int, setting string, best float64) Result {
		return Result{Row: rows[row].Name(), Program: "GoMLX", Setting: setting, Best: best}
	}
	earlier := &Comparison{Machine: Describe("go"), Peak: 100, Results: []Result{
		result(0, "1 × 2", 1), result(0, "2 × 1", 2), result(2, "1 × 2", 3),
	}}
	path := filepath.Join(t.TempDir(), "bench.json")
	if err := earlier.Write(path); err != nil {
		t.Fatal(err)
	}
	read, err := ReadComparison(path)
	if err != nil {
		t.Fatal(err)
	}
	c := &Comparison{Machine: Describe("go")}
	c.Peak, read.Results[0].Share = 200, .5
	if err := c.Resume(read); err != nil {
		t.Fatal(err)
	}
	if c.Results[0].Share != .25 || c.Peak != 200 { // of a larger peak
		t.Errorf("share %v of %v", c.Results[0].Share, c.Peak)
	}
	c.Results[0].Share = 0
	c.Put([]Result{result(0, "2 × 1", 5)})
	c.Put([]Result{result(1, "1 × 2", 4)})
	want := []Result{result(0, "1 × 2", 1), result(0, "2 × 1", 5), result(1, "1 × 2", 4), result(2, "1 × 2", 3)}
	if !reflect.DeepEqual(c.Results, want) {
		t.Errorf("results %+v, want %+v", c.Results, want)
	}
	other := &Comparison{Machine: Describe("xla:cpu")}
	if err := other.Resume(read); err == nil || !strings.Contains(err.Error(), "another machine") || other.Results != nil {
		t.Errorf("results of another backend: %v, %+v", err, other.Results)
	}
}
