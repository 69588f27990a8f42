package bench

import (
	"os"
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

// By hand at S = 4: 12 tokens of 10 features, batch 64.
func TestTrainingFLOPs(t *testing.T) {
	row := TrainingRows()[0]
	const examples = 3 * 64 * 12 // forward once, backward twice
	linear := examples * 2. * (10*64 + 4*(64*192+64*64+64*128+128*64) + 64)
	attention := examples * 2. * 4 * (2 * 12 * 64) // scores and their use, for 12 keys
	if row.FLOPs() != linear+attention {
		t.Errorf("the step has %v, its parts %v", row.FLOPs(), linear+attention)
	}
}

// What cannot be read is named.
func TestMalformed(t *testing.T) {
	for name, text := range map[string]string{"broken": `{"rows": [`, "empty": `{}`} {
		path := filepath.Join(t.TempDir(), name+".json")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadComparison(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestReadComparison(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bench.json")
	want := Result{Row: "actor", Program: "JAX, scan", Setting: "1 × 2", Best: 3}
	if err := (&Comparison{Peak: 9, Results: []Result{want}}).Write(path); err != nil {
		t.Fatal(err)
	}
	c, err := ReadComparison(path)
	if err != nil || len(c.Results) != 1 || c.Results[0] != want || c.Peak != 9 {
		t.Fatalf("%+v, %v", c, err)
	}
	if family := c.Results[0].Family(); family != "JAX" {
		t.Errorf("family %q", family)
	}
}
