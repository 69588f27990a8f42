package mdpfile

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sbinet/npyio/npz"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/mdp"
)

// say writes a problem as one line a pair: "s a r -> next:p …", names and all.
func say(m *mdp.MDP) string {
	var b strings.Builder
	fmt.Fprintf(&b, "γ=%v", m.Gamma)
	sign := 1.0
	if m.Minimize {
		b.WriteString(" costs")
		sign = -1
	}
	if m.Start != nil {
		fmt.Fprintf(&b, " start=%v", m.Start)
	}
	if m.Terminal != nil {
		fmt.Fprintf(&b, " terminal=%v", m.Terminal)
	}
	if m.Rows > 0 {
		fmt.Fprintf(&b, " grid=%dx%d", m.Rows, m.Columns)
	}
	for s := range m.States() {
		for a := range m.Actions() {
			if m.Exists(s, a) && !slices.Contains(m.Terminal, s) {
				fmt.Fprintf(&b, "|%v %v %.4g ->", mdp.Label(m.StateNames, s), mdp.Label(m.ActionNames, a),
					0+sign*m.R.At(s, a)) // never −0
				next, p := m.Successors(s, a)
				for k, t := range next {
					fmt.Fprintf(&b, " %v:%.4g", mdp.Label(m.StateNames, int(t)), p[k])
				}
			}
		}
	}
	return b.String()
}

// read reads a file whose neighbours are files too.
func read(name, content string, files map[string]string, o Options) (mdp.Problem, error) {
	return decode(name, []byte(content), o, func(name string) ([]byte, error) {
		if text, ok := files[name]; ok {
			return []byte(text), nil
		}
		return nil, fs.ErrNotExist
	})
}

func gamma(v float64) *float64 { return &v }

// simple is one problem in many forms.
const simple = "γ=0.9|0 0 1 -> 0:0.5 1:0.5|0 1 2 -> 1:1|1 0 0 -> 0:0.25 1:0.75|1 1 -1 -> 0:1"

// ended earns 1 and then 2, with which its episodes end although state 0 goes on: V(0) = 1 + .9·2.
const ended = "γ=0.9 terminal=[2]|0 0 1 -> 1:1|1 0 2 -> 2:1"

func TestSame(t *testing.T) {
	for name, test := range map[string]struct {
		file, content string
		files         map[string]string
		o             Options
		want          string
	}{
		"dense": {content: `{"gamma":0.9,"P":[[[0.5,0.5],[0,1]],[[0.25,0.75],[1,0]]],"r":[[1,2],[0,-1]]}`},
		"r(s,a,s')": {content: `{"gamma":0.9,"P":[[[0.5,0.5],[0,1]],[[0.25,0.75],[1,0]]],` +
			`"r":[[[2,0],[9,2]],[[3,-1],[-1,3]]]}`},
		"gamma by hand": {content: `{"P":[[[0.5,0.5],[0,1]],[[0.25,0.75],[1,0]]],"r":[[1,2],[0,-1]]}`,
			o: Options{Gamma: gamma(.9)}},
		"layout by hand": {content: `{"gamma":0.9,"P":[[[0.5,0.5],[0.25,0.75]],[[0,1],[1,0]]],"r":[[1,2],[0,-1]]}`,
			o: Options{Layout: "A,S,S"}},
		"layout": {content: `{"gamma":0.9,"layout":"A,S,S","P":[[[0.5,0.5],[0.25,0.75]],[[0,1],` +
			`[1,0]]],"r":[[1,2],[0,-1]]}`},
		"layout and r": {content: `{"gamma":0.9,"layout":"A,S,S","P":[[[0.5,0.5],[0.25,0.75]],[[0,1],` +
			`[1,0]]],"r":[[[2,0],[3,-1]],[[0,2],[-1,3]]]}`},
		"transitions": {content: `{"gamma":0.9,"transitions":[[1,1,0,1,-1],[0,0,0,0.5,2],[0,0,1,0.5,0],` +
			`[0,1,1,1,2],[1,0,1,0.75,0],[1,0,0,0.25,0]]}`},
		"transitions and r": {content: `{"gamma":0.9,"transitions":[[1,1,0,1],[0,0,0,0.5],[0,0,1,0.5],[0,1,1,1],` +
			`[1,0,1,0.75],[1,0,0,0.25]],"r":[[1,2],[0,-1]]}`},
		"twice": {content: `{"gamma":0.9,"transitions":[[1,1,0,1,-1],[0,0,0,0.25,2],[0,0,1,0.5,0],` +
			`[0,0,0,0.25,2],[0,1,1,1,2],[1,0,1,0.75,0],[1,0,0,0.25,0]]}`},
		"gymnasium": {content: `{"gamma":0.9,"P":{"0":{"0":[[0.5,0,2,false],[0.5,1,0,false]],"1":[[1,1,2,false]]},
			"1":{"0":[[0.25,0,3,false],[0.75,1,-1,false]],"1":[[1,0,-1,false]]}}}`},
		"gymnasium alone": {content: `{"0":{"0":[[0.5,0,2,false],[0.5,1,0,false]],"1":[[1,1,2,false]]},
			"1":[[[0.25,0,3,false],[0.75,1,-1,false]],[[1,0,-1,false]]]}`, o: Options{Gamma: gamma(.9)}},
		"csv": {file: "x.csv", content: "# gamma: 0.9\nstate,action,next,probability,reward\n0,0,0,.5,2\n" +
			"0,0,1,.5,0\n0,1,1,1,2\n1,0,1,.75,-1\n1,0,0,.25,3\n1,1,0,1,-1\n"},
		"tsv": {file: "x.tsv", content: "s\ta\tnext_state\tp\tr\n0\t0\t0\t.5\t2\n0\t0\t1\t.5\t0\n0\t1\t1\t1\t2\n" +
			"1\t0\t1\t.75\t-1\n1\t0\t0\t.25\t3\n1\t1\t0\t1\t-1\n", o: Options{Gamma: gamma(.9)}},
		"cassandra": {file: "x.POMDP", content: `# a comment
			discount: 0.9
			values: reward
			states: 2
			actions: 2
			T: 0 : 0 uniform
			T: 0 : 1
			0.25 0.75
			T: 1
			0 1
			1 0
			R: 0 : 0 : 0 2
			R: 1 : * : 0 : * -1
			R: 1 : 0 : * 2`},
		"prism": {file: "x.tra", content: "2 4 6\n0 0 0 .5\n0 0 1 0.5\n0 1 1 1\n1 0 1 .75\n1 0 0 .25\n1 1 0 1\n",
			o:     Options{Gamma: gamma(.9)},
			files: map[string]string{"x.srew": "2 1\n0 2\n", "x1.trew": "2 4 3\n0 0 1 -2\n1 1 0 -1\n"}},
		"prism with one file of rewards": {file: "x.tra", o: Options{Gamma: gamma(.9)},
			content: "2 4 6\n0 0 0 .5\n0 0 1 .5\n0 1 1 1\n1 0 0 .25\n1 0 1 .75\n1 1 0 1\n",
			files: map[string]string{"x.rew": "# Reward structure: \"r\"\n# Transition rewards\n2 4 4\n" +
				"0 0 0 2\n0 1 1 2\n1 1 0 -1\n"}},

		"masks": {content: `{"gamma":0.9,"P":[[[0.5,0.5],null],[[0,1],[1,0]]],"r":[[1,2],[null,-Infinity]],` +
			`"terminal":[1]}`,
			want: "γ=0.9 terminal=[1]|0 0 1 -> 0:0.5 1:0.5"},
		"ragged": {content: `{"gamma":0.9,"P":[[[0.5,0.5]],[[0,1],[1,0]]],"r":[[1],[0,-1]]}`,
			want: "γ=0.9|0 0 1 -> 0:0.5 1:0.5|1 0 0 -> 1:1|1 1 -1 -> 0:1"},
		"ragged r(s,a,s')": {content: `{"gamma":0.9,"P":[[[0.5,0.5]],[[0,1],[1,0]]],"r":[[[2,0]],[[0,0],[-1,8]]]}`,
			want: "γ=0.9|0 0 1 -> 0:0.5 1:0.5|1 0 0 -> 1:1|1 1 -1 -> 0:1"},
		"costs": {content: `{"gamma":0.9,"P":[[[0.5,0.5],[0,1]],[[0,1],[1,0]]],"costs":[[1,2],[Infinity,-1]]}`,
			want: "γ=0.9 costs|0 0 1 -> 0:0.5 1:0.5|0 1 2 -> 1:1|1 1 -1 -> 0:1"},
		"names": {content: `{"gamma":0.9,"states":["near","far"],"actions":["go","stay"],"start":{"far":1},
			"shape":[1,2],
			"transitions":[["near","go","far",1,3],["far","stay","far",1,0],[0,1,0,1,1]]}`,
			want: "γ=0.9 start=[0 1] grid=1x2|near go 3 -> far:1|near stay 1 -> near:1|far stay 0 -> far:1"},
		"state rewards": {content: `{"gamma":0.9,"P":[[[0,1]],[[1,0]]],"r":[1,2],"start":[0.5,0.5]}`,
			want: "γ=0.9 start=[0.5 0.5]|0 0 1 -> 1:1|1 0 2 -> 0:1"},
		"episodes that end": {content: `{"gamma":0.9,"transitions":[[0,0,1,1,5,true],[0,1,0,1,0,false]],"start":0}`,
			want: "γ=0.9 start=[1 0] terminal=[1]|0 0 5 -> 1:1|0 1 0 -> 0:1"},
		"an end that is passed": {content: `{"gamma":0.9,"transitions":[[0,0,1,1,5,true],[0,1,1,1,0,false],` +
			`[1,0,0,1,0]]}`,
			want: "γ=0.9 terminal=[2]|0 0 5 -> 2:1|0 1 0 -> 1:1|1 0 0 -> 0:1"},
		"an end at a state that goes on": {content: `{"gamma":0.9,"transitions":[[0,0,1,1,1],[1,0,0,1,2,true]]}`,
			want: ended},
		"the same as Gymnasium's": {content: `{"gamma":0.9,"P":{"0":{"0":[[1,1,1,false]]},"1":{"0":[[1,0,2,true]]}}}`,
			want: ended},
		"the same as a table": {file: "x.csv", want: ended,
			content: "# gamma: .9\ns,a,s',p,r,done\n0,0,1,1,1,False\n1,0,0,1,2,True\n"},
		"the same as arrays": {file: "x.npz", want: ended, content: archived(t, map[string]any{
			"gamma": .9, "state": []float64{0, 1}, "action": []float64{0, 0}, "next": []float64{1, 0},
			"probability": []float64{1, 1}, "reward": []float64{1, 2}, "ends": []float64{0, 1}})},
		"the same with r(s,a,s')": {file: "x.npz", want: ended, content: archived(t, map[string]any{
			"gamma": .9, "state": []float64{0, 1}, "action": []float64{0, 0}, "next": []float64{1, 0},
			"probability": []float64{1, 1}, "ends": []float64{0, 1},
			"r": [2][1][2]float64{{{7, 1}}, {{2, 7}}}})},
		"an end at a terminal state": {content: `{"gamma":0.9,"terminal":[1],"shape":[1,2],"transitions":` +
			`[[0,0,1,0.5,1,true],[0,0,1,0.5,3],[1,0,0,1,0]]}`, want: "γ=0.9 terminal=[1] grid=1x2|0 0 2 -> 1:1"},
		"a grid with ends that are passed": {content: `{"gamma":0.9,"shape":[1,2],"transitions":` +
			`[[0,0,1,0.5,1,true],[0,0,1,0.5,3],[1,0,0,1,0]]}`,
			want: "γ=0.9 terminal=[2] grid=1x2|0 0 2 -> 1:0.5 2:0.5|1 0 0 -> 0:1"},
		"a mask of terminal states": {file: "x.npz", want: "γ=0.9 terminal=[1]|0 0 1 -> 1:1",
			content: string(testkit.Must(os.ReadFile("testdata/ends.npz"))(t))},
		"remarks anywhere": {file: "x.csv", want: "γ=0.9 start=[1 0] terminal=[1]|0 0 1 -> 1:1",
			content: "# gamma: .9\n\n# terminal: 1\nstate,action,next,probability,reward\n0,0,1,1,1\n# start: 0\n"},
		"−∞ without successors": {file: "x.npz", want: "γ=0.9|0 0 1 -> 0:1",
			content: archived(t, map[string]any{"gamma": .9,
				"P": [1][2][1]float64{{{1}, {0}}},
				"r": [1][2][1]float64{{{1}, {math.Inf(-1)}}}})},
		"one step": {content: `{"gamma":0.9,"P":{"0":{"0":[[0.5,0,1,true],[0.5,0,3,true]]}}}`,
			want: "γ=0.9 terminal=[1]|0 0 2 -> 1:1"},
		"a hole": {content: `{"gamma":0.9,"P":{"0":{"0":[[1,1,1,true]]},"1":{"0":[[1,1,0,true]]},` +
			`"2":{"0":[[1,2,0,true]]}}}`,
			want: "γ=0.9 terminal=[1 2]|0 0 1 -> 1:1"},
		"numbers as names": {file: "x.csv",
			content: "# gamma: 0.9\nstate;action;next;probability;reward\n10;1;2;1;1\n2;1;10;1;0\n",
			want:    "γ=0.9|2 1 0 -> 10:1|10 1 1 -> 2:1"},
		"csv with names, masks and more": {file: "x.csv",
			content: "# gamma: 0.5\n# start: a\n# terminal: z\n# shape: 1, 3\n" +
				"state,action,next,probability,cost\na,go,b,1,2\na,fly,,,\nb,go,z,1,1\nb,fly,z,1,None\n",
			want: "γ=0.5 costs start=[1 0 0] terminal=[2] grid=1x3|a go 2 -> b:1|b go 1 -> z:1"},
		"cassandra with all": {file: "x.mdp", content: `discount : 0.5 values: cost
			states: a b c actions: go stop
			start exclude: a
			T: * identity
			T: go : a reset
			T: go : b : c 1.0
			T: go : b : b 0
			R: * : * : * 1
			R: go : b
			0 0 7
			R: stop : * : * 0.0`,
			want: "γ=0.5 costs start=[0 0.5 0.5]|a go 1 -> b:0.5 c:0.5|a stop 0 -> a:1|b go 7 -> c:1|" +
				"b stop 0 -> b:1|c go 1 -> c:1|c stop 0 -> c:1"},
		"rewards whatever is observed": {file: "x.pomdp",
			content: `discount: 0.5 values: reward states: 2 actions: 1 observations: y n
			start: uniform
			T: * uniform
			O: * : 0
			0.75 0.25
			O: * : 1 uniform
			R: * : * : * : * 4
			R: 0 : 0
			3 3
			5 5`,
			want: "γ=0.5 start=[0.5 0.5]|0 0 4 -> 0:0.5 1:0.5|1 0 4 -> 0:0.5 1:0.5"},
		"prism with names": {file: "x.tra", content: "3 3 3\n0 0 1 1 east\n0 1 2 1 south\n1 0 0 1 west\n",
			o: Options{Gamma: gamma(.9)},
			files: map[string]string{"x.srew": "3 0\n", "x.lab": "0=\"init\" 1=\"deadlock\"\n0: 0\n2: 1\n",
				"x.sta": "(s)\n0:(0)\n1:(1)\n2:(2)\n"},
			want: "γ=0.9 start=[1 0 0] terminal=[2]|(0) east 0 -> (1):1|(0) south 0 -> (2):1|(1) west 0 -> (0):1"},
	} {
		if test.want == "" {
			test.want = simple
		}
		if test.file == "" {
			test.file = "x.json"
		}
		problem, err := read(test.file, test.content, test.files, test.o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got := say(problem.MDP); got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, test.want)
		}
	}
}

// TestSciPy reads what testdata/make.py writes with NumPy and SciPy.
func TestSciPy(t *testing.T) {
	for content, want := range map[string]string{
		"whole.npz": simple, "toolbox.npz": simple,
		"triplets.npz": "γ=0.9 start=[1 0] terminal=[1] grid=2x1|A go 1 -> A:0.5 B:0.5|A stay 2 -> B:1",
		"masked.npz":   "γ=0.9 costs start=[0 1]|0 0 1 -> 0:0.5 1:0.5|0 1 2 -> 1:1|1 0 0 -> 0:0.25 1:0.75",
		`{"gamma":0.9,"P":"csr.npz","r":[[1,2],[0,-1]]}`:                     simple,
		`{"gamma":0.9,"P":"csc.npz","r":[[1,2],[0,-1]]}`:                     simple,
		`{"gamma":0.9,"P":"coo.npz","r":[[1,2],[0,-1]]}`:                     simple,
		`{"gamma":0.9,"P":["action0.npz","action1.npz"],"r":[[1,2],[0,-1]]}`: simple,
		`{"gamma":0.9,"layout":"A,S,S","P":"coo.npz","r":[[1,2],[0,-1]]}`: "γ=0.9|0 0 1 -> 0:0.5 1:0.5|" +
			"0 1 2 -> 0:0.25 1:0.75|1 0 0 -> 1:1|1 1 -1 -> 0:1",
		`{"gamma":0.9,"states":["A","B"],"P":"csr.npz","r":[5,6],"terminal":[]}`: "γ=0.9|A 0 5 -> A:0.5 B:0.5|" +
			"A 1 5 -> B:1|B 0 6 -> A:0.25 B:0.75|B 1 6 -> A:1",
	} {
		path, o := filepath.Join("testdata", content), Options{}
		if strings.HasPrefix(content, "toolbox") {
			o.Layout = "A,S,S"
		}
		if content[0] == '{' {
			path = filepath.Join(t.TempDir(), "x.json")
			for _, name := range []string{"csr", "csc", "coo", "action0", "action1"} {
				data := testkit.Must(os.ReadFile(filepath.Join("testdata", name+".npz")))(t)
				if err := os.WriteFile(filepath.Join(filepath.Dir(path), name+".npz"), data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		problem, err := Read(path, o)
		if err != nil {
			t.Errorf("%s: %v", content, err)
		} else if got := say(problem.MDP); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", content, got, want)
		}
	}
}

// TestRemedies: what is refused, or taken with a warning, says what to write instead.
func TestRemedies(t *testing.T) {
	rows := func(p string) string { return `{"gamma":0.9,"P":[[` + p + `],[[0,1]]],"r":[[1],[0]]}` }
	for _, test := range []struct {
		file, content, want string
		warned              bool
	}{
		{"x.json", rows(`[0.5,0.4999995]`), "divided by its sum", true},
		{"x.json", rows(`[0.333333,0.666666]`), "divided by its sum", true},
		{"x.json", rows(`[1,-5.55e-17]`), "", true},
		{"x.json", rows(`[0.5,0.499]`), "--normalize", false},
		{"x.json", rows(`[0,0]`), "terminal", false},
		{"x.json", `{"gamma":0.99,"P":[[[0.5,0.5],[0.8,0.2]],[[0,1],[0.1,0.9]]],"r":[[5,10],[-1,2]]}`,
			`"layout": "A,S,S"`, true},
		{"x.json", `{"gamma":0.99,"P":[[[1,0],[1,0]],[[0,1],[1,0]],[[0,1],[1,0]]],"r":[[5,10,1],[-1,2,1]]}`,
			`--layout A,S,S`, false},
		{"x.json", `{"P":[[[1]]],"r":[[2]]}`, "--gamma", false},
		{"x.json", `{"gamma":1,"P":[[[1]]],"r":[[2]]}`, "gamma", false},
		{"x.json", `{"gamma":2,"P":[[[1]]],"r":[[2]]}`, "or 1 where episodes surely end", false},
		{"x.json", rows(`[1,-1e-9]`), "--normalize", false},
		{"x.json", `{"gamma":0.5,"r":[[2]]}`, `"P" or "transitions"`, false},
		{"x.json", `{"gamma":0.5,"P":[[[1]]]}`, `add "r"`, false},
		{"x.json", `{"gamma":0.5,"P":[[[1]]],"r":[[NaN]]}`, "write null or -Infinity", false},
		{"x.json", `{"gamma":0.5,"P":[[[1],[1]]],"r":[[null,null]]}`, "terminal", false},
		{"x.json", `{"gamma":0.5,"P":[[[1]]],"R":[[2]]}`, `"R": unknown name`, false},
		{"x.json", `{"gamma":0.9,"P":{"0":{"0":[[1,0,1,false]]}},"transitions":[[0,0,0,1,5]]}`, "leave one of them",
			false},
		{"x.csv", "# gamma: .9\n# shape: 2 2\ns,a,s',p,r\n0,0,0,1,1\n", "2 rows and 2 columns does not hold 1", false},
		{"x.csv", "# gamma: 1\n# terminal: e\ns,a,s',p,cost\na,go,e,1,1\na,stay,a,1,0\n", "make its cost positive",
			false},
		{"x.json", `{"gamma":0.5,"P":[[[1]]],"r":[[2]],"gamma":0.7}`, `duplicate object member name "gamma"`, false},
		{"x.json", `{"gamma":0.5,"P":[[[1]]],"r":["2"]}`, `"r" holds "2", want numbers`, false},
		{"x.json", `{"gamma":0.5,"transitions":[[0,0,0,1,0,true,7]]}`,
			"transition 0: it has more than 6 entries", false},
		{"x.json", `{"0":{"0":[[1,0,0,true,7]]}}`, "more than 4 entries", false},
		{"x.json", `{"gamma":0.5,"transitions":[[0,0,0]]}`, "transition 0: it has 3 entries, want [state", false},
		{"x.json", `{"gamma":[0.5],"shape":[1,2,3]}`, "[1 2 3], want [rows, columns]", false},
		{"x.json", `{"gamma":0.5,"P":[[[1]]],"r":[["2"]]}`, `"r": "2" stands there, want a number`, false},
		{"x.json", `{"gamma":0.5,"P":[1,[[1]]],"r":[[2]]}`, "side by side", false},
		{"x.json", `{"gamma":0.5,"P":[[[1]]],"r":[[2]]`, "ends too early", false},
		{"x.json", ``, "ends too early", false},
		{"x.json", `{"gamma":0.5,"P":[[[1]]],"r":[[2]]} x`, "follows", false},
		{"x.json", `{"gamma":0.5,"P":[[[1e999]]],"r":[[2]]}`, "too large", false},
		{"x.json", `{"gamma":0.5,"P":[[[1,0]]],"r":[[2]]}`, "as many successors as states", false},
		{"x.json", `{"gamma":0.5,"P":[[[1]],[[1]]],"r":[[2]]}`, `"P" has shape [2 1 1]`, false},
		{"x.json", `{"gamma":0.5,"P":[[[1,0],[0,1]],[[1,0]]],"r":[[2,1],[3,1]]}`, "write null", false},
		{"x.json", `{"gamma":0.5,"P":[[[1]]],"r":[[2]],"terminal":[0]}`, "write the reward of reaching it", false},
		{"x.json", `{"gamma":0.5,"P":[[[1]]],"r":[[2]],"pi0":[[0.5]]}`, "sums to 0.5", false},
		{"x.json", `{"gamma":0.5,"P":[[[1]]],"r":[[2]],"pi0":[[1,0]]}`, `"pi0" has shape`, false},
		{"x.json", `{"gamma":0.5,"states":1000000000,"transitions":[[0,0,0,1,0]]}`, "the file has 61 bytes", false},
		{"x.json", `{"gamma":0.5,"transitions":[["a",0,"b",1,0],["b",0,"c",1,0]]}`, "taken as terminal: c", true},
		{"x.json", `{"gamma":0.5,"transitions":[[1,0,2,1,0],[2,0,1,1,0]]}`, "taken as names: 1, 2", true},
		{"x.json", `{"gamma":0.5,"transitions":[[1,0,3,1,0],[3,0,1,1,0]],"start":0}`, `no state "0"`, false},
		{"x.npz", archived(t, map[string]any{"mask": 1.}), `unknown array "mask"`, false},
		{"x.npz", archived(t, map[string]any{"r": []float64{1}, "costs": []float64{1}}), "leave one of them out",
			false},
		{"x.json", `{"gamma":0.5,"states":["a"],"transitions":[["a",0,"b",1,0]]}`, `no state "b"`, false},
		{"x.json", `{"gamma":0.5,"P":"none.npz","r":[[1]]}`, "not beside this file", false},
		{"x.json", `{"gamma":0.5,"P":[[[1]]],"r":[[1e308]]}`, "divide all rewards", false},
		{"x.npz", string(testkit.Must(os.ReadFile("testdata/csr.npz"))(t)), "one sparse matrix alone", false},
		{"x.npz", archived(t, map[string]any{"gamma": math.NaN()}), "it holds NaN", false},
		{"x.csv", "state,action,next,probability\n0,0,0,1\n", "no rewards", false},
		{"x.csv", "s;A;neXt;p;r\n;\x9a;0;1;0", "not UTF-8", false},
		{"x.csv", "# gamma: .5\nstate,action,next,probability,bonus\n0,0,0,1,1\n", `unknown column "bonus"`, false},
		{"x.csv", "# gamma: .5\nstate,action,next,probability,reward\n0,0,0,1,x\n", `line 3: "x" is no number`, false},
		{"x.POMDP", "discount: 0.5\nvalues: reward\nstates: 1000000000\nactions: 1\nT: * identity",
			"the file has 72 bytes", false},
		{"x.POMDP", "discount: 0.5\nstates: 2\nactions: 1\nT: 0 : 0 uniform\nR: 0 : 0 : 0 1", "T: 0 : 1 and a row",
			false},
		{"x.POMDP", "discount: 0.5\nstates: 2\nactions: 1\nT: 0 : 0\n1\n", "line 4: 1 numbers, want 2", false},
		{"x.POMDP", "discount: 0.5\nstates: 1\nactions: 1\nobservations: 2\nT: 0 identity\nR: * : * : * : * 1",
			"passed over", true},
		{"x.POMDP", "discount: 0.5\nstates: 1\nactions: 1\nT: 0 identity\n", "no rewards", false},
		{"x.POMDP", "discount: 0.5\nstates: 1\nactions: 1\nobservations: 2\nT: 0 identity\nR: * : * : * : 0 1",
			"with its mean", false},
		{"x.POMDP", "discount: 0.5\nstates: 1\nactions: 1\nobservations: 2\nT: 0 identity\nR: 0 : 0 : 0\n1 2",
			"with its mean", false},
		{"input", "# x\ndiscount: 0.5\nstates: 1\nactions: 1\nobservations: 2\nT: 0 identity\nR: * : * : * : * 1",
			"passed over", true},
		{"input", "# gamma: .5\n\nnext,action,state,probability,reward\nb,0,a,1,1\n", "taken as terminal: b", true},
		{"x.tra", "1000000000 1 1\n0 0 0 1\n", "the numbers of states", false},
		{"x.tra", "1 1 1\n0 0 0 1\n", "put x.srew or x.trew beside it", false},
		{"x.srew", "1 1\n0 1\n", "name that one", false},
		{"x.txt", "hello", "want .json, .npz, .csv", false},
	} {
		o := Options{}
		if test.file == "x.tra" {
			o.Gamma = gamma(.5)
		}
		if strings.HasSuffix(test.content, ",probability\n0,0,0,1\n") {
			o.Gamma = gamma(.5)
		}
		problem, err := read(test.file, test.content, nil, o)
		switch {
		case test.warned && err != nil:
			t.Errorf("%.80q: %v", test.content, err)
		case test.warned && !strings.Contains(strings.Join(problem.MDP.Warnings, "\n"), test.want):
			t.Errorf("%.80q: warnings %q, want one with %q", test.content, problem.MDP.Warnings, test.want)
		case !test.warned && (err == nil || !strings.Contains(err.Error(), test.want)):
			t.Errorf("%.80q: error %v, want one with %q", test.content, err, test.want)
		}
	}
}

// TestNormalize takes what is wrong by more than rounding, and a discount that is none.
func TestNormalize(t *testing.T) {
	content := `{"gamma":0.9,"P":[[[1,-1e-9]],[[0.4,0.62]]],"r":[[1],[0]]}`
	if got := say(testkit.Must(read("x.json", content, nil, Options{Normalize: true}))(t).MDP); got !=
		"γ=0.9|0 0 1 -> 0:1|1 0 0 -> 0:0.3922 1:0.6078" {
		t.Error(got)
	}
	for row, want := range map[string]string{
		"[0.5,0.25]": "sums to 0.75, want 1", "[1,-1e-3]": "entry 1 equal to -0.001",
	} {
		content := `{"gamma":0.9,"P":[[` + row + `],[[0,1]]],"r":[[1],[0]]}`
		if _, err := read("x.json", content, nil, Options{Normalize: true}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", row, err, want)
		}
	}
	if _, err := read("x.json", content, nil, Options{Gamma: gamma(math.NaN())}); err == nil ||
		!strings.Contains(err.Error(), "gamma is NaN") {
		t.Error(err)
	}
}

// TestHostile reads small files that stand for much, or have something looked up very often. Each takes
// less than a second a megabyte and .1 s, and here much more for a machine that is busy.
func TestHostile(t *testing.T) {
	lines := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for name, content := range map[string]string{
		"x.POMDP": "discount: 0.5 states: 1500 actions: 1 T: * uniform R: * : * : * 1\n" +
			lines(3000, "R: 0 : %d\n"),
		"rows.POMDP": "discount: 0.5 states: 1500 actions: 2 R: * : * : * 1\n" + strings.Repeat("T: * uniform\n", 2000),
		"ends.POMDP": "discount: 0.5 states: 60000 actions: 1\n" + strings.Repeat("start: uniform\n", 2000),
		"names.json": `{"gamma":0.5,"states":["x"` + lines(10000, `,"s%d"`) + `],"transitions":[[0,0,0,1,0]` +
			lines(10000, `,[%d,0,0,1,0]`) + "]}",
		"terminal.json": `{"gamma":0.5,"transitions":[[0,0,0,1,0]` + lines(10000, `,[0,"a%d",0,1,0]`) +
			`],"terminal":[0` + strings.Repeat(",0", 50000) + "]}",
		"end.csv": "# gamma: 1\nstate,action,next,probability,reward\n" + lines(10000, "%d,go,0,.5,-1\n") +
			lines(10000, "%d,go,10000,.5,-1\n"),
		"wide.csv": "# gamma: .5\nstate,action,next,probability,reward\n" + lines(500, "%[1]d,%[1]d,0,1,1\n"),
		"zero.npz": archived(t, map[string]any{"gamma": []float64{.5}, "P": new([1000][1000][2]float64)}),
	} {
		start := time.Now()
		_, err := read(name, content, nil, Options{})
		took, size := time.Since(start), float64(len(content))/1e6
		if t.Logf("%s: %.3f MB, %v, %v", name, size, took, err); took > 20*time.Second {
			t.Errorf("%s: %v for %.3f MB: %v", name, took, size, err)
		}
	}
}

// archived returns an .npz archive.
func archived(t testing.TB, arrays map[string]any) string {
	t.Helper()
	var b strings.Builder
	w := npz.NewWriter(&b)
	for name, value := range arrays {
		testkit.Check(t, w.Write(name, value))
	}
	testkit.Check(t, w.Close())
	return b.String()
}

// TestCases: the same problem as an array of JSON, of NumPy, and packed.
func TestCases(t *testing.T) {
	for _, name := range []string{"aima4x3", "forest3", "two-state-infeasible-inf", "shuttle95", "small-issue39",
		"cancer", "riverswim"} {
		path := filepath.Join("testdata", name)
		want := say(testkit.Must(Read(path+".json", Options{}))(t).MDP)
		if got := say(testkit.Must(Read(path+".npz", Options{}))(t).MDP); got != want {
			t.Errorf("%s.npz:\ngot  %s\nwant %s", name, got, want)
		}
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		if _, err := w.Write(testkit.Must(os.ReadFile(path + ".json"))(t)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if got := say(testkit.Must(Decode("x.json.gz", packed.Bytes(), Options{}))(t).MDP); got != want {
			t.Errorf("%s.json.gz:\ngot  %s\nwant %s", name, got, want)
		}
	}
}

// TestDocument reads the examples of docs/your-own.md.
func TestDocument(t *testing.T) {
	blocks := strings.Split(string(testkit.Must(os.ReadFile("../../docs/your-own.md"))(t)), "```")
	for file, want := range map[string]string{
		"1.json": "γ=0.9 start=[1 0] terminal=[1]|near go 1 -> near:0.2 far:0.8|near stay 0 -> near:1",
		"3.json": "γ=0.9 terminal=[1]|near go 1 -> near:0.2 far:0.8",
		"5.csv":  "γ=0.95 start=[1 0 0] terminal=[1 2]|entry left 1.7 -> pit:0.1 goal:0.9",
	} {
		var block int
		if _, err := fmt.Sscanf(file, "%d", &block); err != nil {
			t.Fatal(err)
		}
		_, content, _ := strings.Cut(blocks[block], "\n")
		if got := say(testkit.Must(Decode(file, []byte(content), Options{}))(t).MDP); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", file, got, want)
		}
	}
}

// TestSinglePrecision reads what numpy.savez writes of float32 arrays, whose rows sum to 1 + 3e-8.
func TestSinglePrecision(t *testing.T) {
	write := func(p float32) string {
		path := filepath.Join(t.TempDir(), "single.npz")
		w := testkit.Must(npz.Create(path))(t)
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
