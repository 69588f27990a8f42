package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"icrl/policyattention/artifact"
)

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

func profile() *Profile {
	ms := map[Part]float64{Linear: 4, Attention: 3, LayerNorm: 1, Optimizer: 0.5, Step: 8}
	return &Profile{Peak: 100, Rows: []ProfileRow{{
		Row: "actor", FLOPs: map[Part]float64{Linear: 2e8},
		Programs: []Breakdown{{Program: "GoMLX", Milliseconds: ms}},
	}}}
}

func TestReadProfile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "profile.json")
	if err := artifact.WriteJSON(path, profile(), ""); err != nil {
		t.Fatal(err)
	}
	p, err := ReadProfile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := p.Rows[0]
	if rest := r.Programs[0].Rest(); rest != -0.5 {
		t.Errorf("the rest is %v, want −0.5", rest)
	}
	if rate := r.Rate(r.Programs[0], Linear); rate != 50 {
		t.Errorf("%v GFLOP/s, want 50", rate)
	}
	unfinished := profile()
	delete(unfinished.Rows[0].Programs[0].Milliseconds, Attention)
	if err := artifact.WriteJSON(path, unfinished, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadProfile(path); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "attention") {
		t.Errorf("a profile without attention: %v", err)
	}
}

// What cannot be read is named.
func TestMalformed(t *testing.T) {
	for name, text := range map[string]string{"broken": `{"rows": [`, "empty": `{}`} {
		path := filepath.Join(t.TempDir(), name+".json")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		for reader, read := range map[string]func(string) error{
			"profile":    func(p string) error { _, err := ReadProfile(p); return err },
			"comparison": func(p string) error { _, err := ReadComparison(p); return err },
		} {
			if err := read(path); err == nil || !strings.Contains(err.Error(), path) {
				t.Errorf("%s, read as a %s: %v", name, reader, err)
			}
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
