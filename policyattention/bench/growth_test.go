package bench

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"icrl/policyattention/backend"
)

// Points on power laws give them back, and the limits follow by hand.
func TestGrowth(t *testing.T) {
	s := Series{Name: "work", Axis: "S", Unit: "a step", Budget: 1000}
	for _, x := range []float64{1, 2, 4, 8, 16} {
		p := Point{X: x, Seconds: 0.01 * x * x, Megabytes: 10 * x}
		if x < 4 {
			p.Seconds, p.Megabytes = 1, 100 // the lower end does not count
		}
		s.Points = append(s.Points, p)
	}
	if l := s.Time(); math.Abs(l.P-2) > 1e-12 || math.Abs(l.C-0.01) > 1e-12 {
		t.Errorf("time %+v", l)
	}
	// 1000·0.01·x² = 86,400 s at x = 92.95; 10·x = 500 MB at x = 50.
	if x, why := s.Limit(500); math.Abs(x-50) > 1e-9 || why != "memory" {
		t.Errorf("limit %v by %s", x, why)
	}
	if x, why := s.Limit(5000); math.Abs(x-math.Sqrt(8640)) > 1e-9 || why != "a day" {
		t.Errorf("limit %v by %s", x, why)
	}
	s.Table = PowerLaw{1, 2} // x² = 400 MB at x = 20
	if x, why := s.Limit(400); math.Abs(x-20) > 1e-9 || why != "memory" {
		t.Errorf("limit %v by %s", x, why)
	}
	path := filepath.Join(t.TempDir(), "sub", "growth.json")
	g := &Growth{Machine: "m", Cores: 2, Memory: 5000, Series: []Series{s}}
	if err := g.Write(path); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadGrowth(path); err != nil || len(got.Series) != 1 || got.Series[0].Points[4] != s.Points[4] {
		t.Errorf("%+v, %v", got, err)
	}
	g.Series[0].Points = s.Points[:2]
	if err := g.Write(path); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadGrowth(path); err == nil || !strings.Contains(err.Error(), "2 points") {
		t.Errorf("an unfinished study: %v", err)
	}
	begun := &Growth{Machine: "m", Cores: 2}
	if err := begun.Resume(path); err != nil || len(begun.Series) != 1 || len(begun.Series[0].Points) != 2 || begun.Memory != 5000 {
		t.Errorf("a study taken up again: %+v, %v", begun, err)
	}
	if err := (&Growth{Machine: "m", Cores: 4}).Resume(path); err == nil || !strings.Contains(err.Error(), "another machine (m, 2 cores") {
		t.Errorf("a study of another machine: %v", err)
	}
	if err := (&Growth{}).Resume(path + ".none"); err != nil {
		t.Errorf("no study: %v", err)
	}
}

// Every axis can be measured, at its smallest point.
func TestMeasure(t *testing.T) {
	b, err := backend.New("go")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range Axes() {
		if strings.Contains(a.Name, "training") {
			continue // takes seconds a step in pure Go
		}
		if p, err := a.Measure(b, a.X[0], 0); err != nil || !(p.Seconds > 0) || !(p.Megabytes > 0) {
			t.Errorf("%s, %s: %+v, %v", a.Name, a.Axis, p, err)
		}
	}
}
