package mdpfile

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	npyz "github.com/sbinet/npyio/npz"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/mdp"
)

// TestSinglePrecision reads what numpy.savez writes of float32 arrays, whose rows sum to 1 + 3e-8.
func TestSinglePrecision(t *testing.T) {
	write := func(p float32) string {
		path := filepath.Join(t.TempDir(), "single.npz")
		w := testkit.Must(npyz.Create(path))(t)
		row := [3]float32{1. / 3, 1. / 3, p}
		table := [3][3]float32{row, row, row}
		testkit.Check(t, w.Write("gamma", .9))
		testkit.Check(t, w.Write("P", [3][3][3]float32{table, table, table}))
		testkit.Check(t, w.Write("r", table))
		testkit.Check(t, w.Write("pi0", table))
		testkit.Check(t, w.Close())
		return path
	}
	got := testkit.Must(Read(write(1./3), Options{}))(t)
	for _, x := range []*mat.Dense{got.MDP.DenseP(), got.Pi0} {
		if d := x.At(0, 2) - 1./3; math.Abs(d) > 1e-16 {
			t.Errorf("a third in single precision is %v off", d)
		}
	}
	if _, err := Read(write(.334333), Options{}); err == nil || !strings.Contains(err.Error(), "sums to 1.000999") {
		t.Errorf("a row that sums to 1.001: %v", err)
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	data := testkit.Must(os.ReadFile(filepath.Join("testdata", "whole.npz")))(t)
	flipped := append([]byte(nil), data...)
	flipped[len(flipped)/2] ^= 0x10
	for name, content := range map[string][]byte{
		"cut.npz": data[:len(data)/2], "flipped.npz": flipped, "empty.npz": nil, "empty.json": nil,
		"text.txt": []byte("{}"),
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(path, Options{}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: error %v, want one that names the file", name, err)
		}
	}
	if _, err := Read(filepath.Join(dir, "none.json"), Options{}); err == nil {
		t.Error("a missing file was read")
	}
	p := testkit.Must(mdp.Random.Draw(5, 3, 2, 1))(t)[0]
	q := testkit.Must(p.MDP.PolicyValue(p.Pi0))(t)
	if err := WriteSolution(filepath.Join(dir, "no", "such", "folder.json"), p.MDP, p.Pi0, q); err == nil {
		t.Error("a file was written into a missing folder")
	}
	if entries, _ := filepath.Glob(filepath.Join(dir, "*tmp*")); len(entries) > 0 {
		t.Errorf("left behind: %v", entries)
	}
}
