package mdpfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	npyz "github.com/sbinet/npyio/npz"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/mdp"
)

func problem(t testing.TB) mdp.Problem {
	t.Helper()
	problems, err := mdp.Random.Draw(5, 3, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	return problems[0]
}

func TestRoundTrip(t *testing.T) {
	want := problem(t)
	var text strings.Builder
	testkit.Check(t, encode(&text, want))
	got := testkit.Must(Decode("m.json", []byte(text.String()), Options{}))(t)
	if got.MDP.Gamma != want.MDP.Gamma || !mat.Equal(got.MDP.DenseP(), want.MDP.DenseP()) ||
		!mat.Equal(got.MDP.R, want.MDP.R) || !mat.Equal(got.Pi0, want.Pi0) {
		t.Error("the problem changed")
	}
}

// TestSinglePrecision reads what numpy.savez writes of float32 arrays.
func TestSinglePrecision(t *testing.T) {
	want := problem(t)
	single := func(x *mat.Dense) []float32 {
		var values []float32
		for _, v := range x.RawMatrix().Data {
			values = append(values, float32(v))
		}
		return values
	}
	table := func(x *mat.Dense) (t [3][2]float32) {
		for i, v := range single(x) {
			t[i/2][i%2] = v
		}
		return t
	}
	write := func(p []float32) string {
		var cube [3][2][3]float32
		for i, v := range p {
			cube[i/6][i/3%2][i%3] = v
		}
		path := filepath.Join(t.TempDir(), "single.npz")
		w, err := npyz.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]any{
			"gamma": want.MDP.Gamma, "P": cube, "r": table(want.MDP.R), "pi0": table(want.Pi0),
		} {
			if err := w.Write(name, value); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return path
	}
	got, err := Read(write(single(want.MDP.DenseP())), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if d := max(mdp.MaxAbsDiff(got.MDP.DenseP(), want.MDP.DenseP()), mdp.MaxAbsDiff(got.Pi0, want.Pi0)); d == 0 ||
		d > 0x1p-23 {
		t.Errorf("single precision is %v off", d)
	}
	p := single(want.MDP.DenseP())
	p[4] += 1e-3
	if _, err := Read(write(p), Options{}); err == nil || !strings.Contains(err.Error(), "sums to 1.000999") {
		t.Errorf("a row that sums to 1.001: %v", err)
	}
}

func TestRefused(t *testing.T) {
	dir := t.TempDir()
	data := testkit.Must(os.ReadFile(filepath.Join("testdata", "whole.npz")))(t)
	flipped := append([]byte(nil), data...)
	flipped[len(flipped)/2] ^= 0x10
	for name, content := range map[string][]byte{
		"cut.npz": data[:len(data)/2], "flipped.npz": flipped, "empty.npz": nil, "empty.json": nil, "text.txt": []byte("{}"),
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
	p := problem(t)
	pi, q := mdp.ToRows(p.Pi0), mdp.ToRows(testkit.Must(p.MDP.PolicyValue(p.Pi0))(t))
	if err := WriteSolution(filepath.Join(dir, "no", "such", "folder.json"), p.MDP, pi, q); err == nil {
		t.Error("a file was written into a missing folder")
	}
	if entries, _ := filepath.Glob(filepath.Join(dir, "*tmp*")); len(entries) > 0 {
		t.Errorf("left behind: %v", entries)
	}
}
