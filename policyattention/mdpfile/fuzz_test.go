package mdpfile

import (
	"os"
	"path/filepath"
	"testing"

	"gonum.org/v1/gonum/floats"

	"icrl/internal/testkit"
	"icrl/policyattention/mdp"
)

// fuzz reads files of the name: whatever they hold, there is an error or a problem whose rows
// are distributions.
func fuzz(f *testing.F, name string, seeds ...string) {
	for _, seed := range seeds {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, content, beside string) {
		half := .5
		problem, err := decode(name, []byte(content), Options{Gamma: &half},
			func(string) ([]byte, error) { return []byte(beside), nil })
		if err != nil {
			return
		}
		m := problem.MDP
		if err := m.CheckPolicy(problem.Pi0); err != nil {
			t.Errorf("an invalid policy: %v", err)
		}
		for s := range m.States() {
			for a := range m.Actions() {
				if _, p := m.Successors(s, a); m.Exists(s, a) {
					if sum := floats.Sum(p); sum < 1-mdp.Tolerance || sum > 1+mdp.Tolerance {
						t.Fatalf("P(·|s=%d,a=%d) sums to %v", s, a, sum)
					}
				}
			}
		}
	})
}

func FuzzJSON(f *testing.F) {
	fuzz(f, "x.json", `{"gamma":0.5,"P":[[[1]]],"r":[[2]],"pi0":[[1]]}`,
		`{"gamma":0.9,"P":[[[1,0],[0,1]],[[0.5,0.5],null]],"r":[[0,1],[1,-Infinity]],"terminal":[1],"start":0,`+
			`"shape":[1,2]}`,
		`{"states":["a","b"],"actions":2,"transitions":[["a",0,"b",1,2.5e0,true],["b",1,"b",1,0]],"minimize":true}`,
		`{"P":{"0":{"0":[[1.0, 1, 0.0, false]]},"1":{"0":[[1.0, 0, 1.0, true]]}}, "costs":[1,2], "normalize":true}`,
		`{"layout":"A,S,S","P":"x.npz","r":[[[1,0],[null,2]]]}`)
}

func FuzzNPZ(f *testing.F) {
	for _, path := range testkit.Must(filepath.Glob("testdata/*.npz"))(f) {
		content := string(testkit.Must(os.ReadFile(path))(f))
		f.Add(content, content)
	}
	fuzz(f, "x.npz")
}

func FuzzCSV(f *testing.F) {
	fuzz(f, "x.csv", "# gamma: 0.9\n# start: a\n# terminal: b\n# shape: 1, 2\n"+
		"state,action,next,probability,reward\na,go,b,1,2\nb,go,,,\n",
		"s\ta\ts'\tp\tcost\tdone\n0\t0\t1\t.5\t1\tTrue\n0\t0\t0\t.5\t1\tfalse\n",
		"state;action;next;probability;r\n1;1;1;1;\"0\"\n")
}

func FuzzCassandra(f *testing.F) {
	fuzz(f, "x.POMDP", "discount: 0.95\nvalues: cost\nstates: a b\nactions: 2\nobservations: y n\nstart include: a\n"+
		"T: * identity\nT: 0 : a uniform\nT: 1 : b reset\nT: 1 : b : * 0.5\nO: *\n0.5 0.5\n1 0\n"+
		"R: * : * : b : y 1\nR: 0 : a : b\n1 2\n",
		"discount: 1 values: reward states: 2 actions: 1 start: 0.5 0.5 T: 0 0 1 1 0 R: 0 1 2 3 4",
		"states: 1 actions: 1 start: uniform T: * uniform R: * : * : * 1")
}

func FuzzPRISM(f *testing.F) {
	fuzz(f, "x.tra", "2 3 4\n0 0 0 1/2 go\n0 0 1 0.5 go\n0 1 0 1 stay\n1 0 1 1 stay\n",
		"2 3\n0 1 1\n1 0 0.5\n1 1 .5\n", "2 2\n0 1\n1 3\n",
		"2 2 3\n0 0.5:0 0.5:1 a\n1 1:0\n", "2 1 1\n0 0 0 1\n", "0=\"init\"\n0: 0\n")
}
