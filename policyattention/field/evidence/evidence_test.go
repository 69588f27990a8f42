package evidence

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

type row struct {
	Name  string
	Value float64
	Error float64 `verify:"rounding"`
}

func TestDifferences(t *testing.T) {
	type all struct {
		Rows []row
		Seed int
	}
	stored := &all{[]row{{"a", 1, 1e-17}, {"b", -2, 3e-16}}, 3}
	for name, c := range map[string]struct {
		change func(*all)
		want   []string
	}{
		"nothing":     {func(*all) {}, nil},
		"rounding":    {func(a *all) { a.Rows[0].Value *= 1 + 1e-7; a.Rows[0].Error = 5e-10 }, nil},
		"value":       {func(a *all) { a.Rows[1].Value *= 1 + 1e-5 }, []string{".Rows[1].Value is -2, want -2.00002"}},
		"not finite":  {func(a *all) { a.Rows[1].Error = math.NaN() }, []string{".Rows[1].Error is NaN, want a finite number ≥ 0"}},
		"a row less":  {func(a *all) { a.Rows = a.Rows[:1] }, []string{".Rows has 2 rows, want 1"}},
		"name, seed":  {func(a *all) { a.Rows[0].Name = "c"; a.Seed = 4 }, []string{".Rows[0].Name is a, want c", ".Seed is 3, want 4"}},
		"NaN instead": {func(a *all) { a.Rows[0].Value = math.NaN() }, []string{".Rows[0].Value is 1, want NaN"}},
	} {
		again := &all{slices.Clone(stored.Rows), stored.Seed}
		c.change(again)
		if got := Differences(stored, again); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestWriteAndRead(t *testing.T) {
	dir := t.TempDir()
	want := row{"x", .1, 1e-17}
	if err := Write(dir, want); err != nil {
		t.Fatal(err)
	}
	if got, err := Read[row](dir); err != nil || *got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	if _, err := Read[row](t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, File), []byte(`{"Name"`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Read[row](dir); err == nil {
		t.Error("half a file was read")
	}
	if err := Write(dir, math.Inf(1)); err == nil {
		t.Error("a number that JSON has not was written")
	}
}

// By hand: 1, 2, 6 have the mean 3 and the squared deviations 4 + 1 + 9, over 3·2.
func TestMoments(t *testing.T) {
	if mean, standard := Moments([]float64{1, 2, 6}); math.Abs(mean-3) > 1e-15 || math.Abs(standard-math.Sqrt(14./6)) > 1e-15 {
		t.Errorf("%v ± %v", mean, standard)
	}
	if mean, standard := Moments([]float64{5}); mean != 5 || standard != 0 {
		t.Errorf("of one value: %v ± %v", mean, standard)
	}
}
