package mdp

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/seed"
)

// chain is a two-state MDP with a closed form: action 0 stays, action 1 moves
// to the other state; reward 1 for staying in state 1, 0 elsewhere.
func chain(t testing.TB, gamma float64) *MDP {
	t.Helper()
	p := mat.NewDense(4, 2, []float64{
		1, 0, // s0 stay
		0, 1, // s0 move
		0, 1, // s1 stay
		1, 0, // s1 move
	})
	m := testkit.Must(New(gamma, p, mat.NewDense(2, 2, []float64{0, 0, 1, 0})))(t)
	return m
}

func TestFamilies(t *testing.T) {
	const s, a, n = 6, 3, 20
	for _, family := range append([]Family{Random}, Shifts...) {
		problems := testkit.Must(family.Draw(3, s, a, n))(t)
		shorter, _ := family.Draw(3, s, a, 2)
		for i := range shorter {
			if !mat.Equal(shorter[i].MDP.DenseP(), problems[i].MDP.DenseP()) ||
				!mat.Equal(shorter[i].Pi0, problems[i].Pi0) {
				t.Errorf("%s: problem %d depends on how many are drawn", family, i)
			}
		}
		other, _ := family.Draw(4, s, a, 1)
		if mat.Equal(other[0].Pi0, problems[0].Pi0) {
			t.Errorf("%s: another root gave the same policy", family)
		}
		for i, p := range problems {
			zeros, rewards := 0, 0
			for _, v := range p.MDP.DenseP().RawMatrix().Data {
				if v == 0 {
					zeros++
				}
				if family == StrongMixing && v < 0.9/s {
					t.Fatalf("%s %d: probability %v below the floor", family, i, v)
				}
			}
			for _, v := range p.MDP.R.RawMatrix().Data {
				if v != 0 {
					rewards++
				}
			}
			if family == SparseTransitions && zeros != s*a*(s-2) {
				t.Errorf("%s %d: %d zero probabilities, want %d", family, i, zeros, s*a*(s-2))
			}
			if family == SparseRewards && (rewards == 0 || rewards == s*a) {
				t.Errorf("%s %d: %d of %d rewards differ from zero", family, i, rewards, s*a)
			}
			if family == Ring && !mat.Equal(p.MDP.DenseP(), problems[0].MDP.DenseP()) {
				t.Errorf("ring %d: another MDP", i)
			}
			if p.MDP.RMax() > 1 {
				t.Errorf("%s %d: R_max = %v", family, i, p.MDP.RMax())
			}
		}
	}
	if _, err := Family("no-such").Draw(1, 4, 3, 1); err == nil || !strings.Contains(err.Error(), "no-such") {
		t.Errorf("an unknown family gave %v", err)
	}
	if _, err := Random.Draw(1, 1, 3, 1); err == nil {
		t.Error("one state was accepted")
	}
}

// TestPinned guards the committed fixtures: a change of a distribution would change every
// MDP of the evidence.
func TestPinned(t *testing.T) {
	for family, want := range map[Family]string{
		Random: "c1c49a49d0d61178", SparseTransitions: "82b51919060099dc", StrongMixing: "ed5511417db7528b",
		SparseRewards: "9a0408f62ff08358", Ring: "5edf4b502063e843",
	} {
		problems := testkit.Must(family.Draw(28100, 8, 3, 2))(t)
		h := sha256.New()
		for _, p := range problems {
			binary.Write(h, binary.LittleEndian, p.MDP.DenseP().RawMatrix().Data)
			binary.Write(h, binary.LittleEndian, p.MDP.R.RawMatrix().Data)
			binary.Write(h, binary.LittleEndian, p.Pi0.RawMatrix().Data)
		}
		if got := hex.EncodeToString(h.Sum(nil))[:16]; got != want {
			t.Errorf("%s: the fixtures of root 28100 hash to %s, want %s", family, got, want)
		}
	}
}

// TestDirichletMoments holds the first two moments of Dirichlet(1,1,1), 1/3 and
// 1/6, against 30,000 draws: five standard errors of the mean.
func TestDirichletMoments(t *testing.T) {
	problems := testkit.Must(Random.Draw(11, 100, 3, 100))(t)
	mean, square, n := 0.0, 0.0, 0.0
	for _, p := range problems {
		for s := range 100 {
			v := p.Pi0.At(s, 0)
			mean, square, n = mean+v, square+v*v, n+1
		}
	}
	mean, square = mean/n, square/n
	if se := math.Sqrt(1.0 / 18 / n); math.Abs(mean-1.0/3) > 5*se || math.Abs(square-1.0/6) > 5*se {
		t.Errorf("moments %v and %v, want 1/3 and 1/6 within %v", mean, square, 5*se)
	}
}

func TestSampleFollowsItsDistribution(t *testing.T) {
	rng := seed.New(1, "test", "sample")
	p := []float64{0.5, 0, 0.125, 0.375, 0}
	const n = 100_000
	counts := make([]int, len(p))
	for range n {
		counts[Sample(rng, p)]++
	}
	for i, c := range counts {
		// Five standard deviations of a binomial count; exact where p is 0.
		if math.Abs(float64(c)-n*p[i]) > 5*math.Sqrt(n*p[i]*(1-p[i])) {
			t.Errorf("index %d was drawn %d times in %d, want about %v", i, c, n, n*p[i])
		}
	}
	// A row that sums to less than one by rounding never gives an empty index.
	if got := Sample(rng, []float64{0, 1e-300, 0}); got != 1 {
		t.Errorf("drew index %d, which has no probability", got)
	}
}

func TestRefused(t *testing.T) {
	p := func(v ...float64) *mat.Dense { return mat.NewDense(4, 2, v) }
	r := mat.NewDense(2, 2, []float64{0, 0, 1, 0})
	good := []float64{1, 0, 0, 1, 0, 1, 1, 0}
	bad := func(i int, v float64) []float64 {
		c := append([]float64(nil), good...)
		c[i] = v
		return c
	}
	for _, test := range []struct {
		name  string
		gamma float64
		p, r  *mat.Dense
		want  string
	}{
		{"gamma 1", 1, p(good...), r, "gamma is 1"},
		{"gamma negative", -0.1, p(good...), r, "gamma is -0.1"},
		{"gamma NaN", math.NaN(), p(good...), r, "gamma is NaN"},
		{"row sum", 0.9, p(bad(0, 0.5)...), r, "P(·|s=0,a=0) sums to 0.5"},
		{"printed", 0.9, p(bad(0, 1+1e-5)...), r, "sums to 1.00001, want 1 within 1e-06; print more digits"},
		{"negative", 0.9, p(bad(3, -1)...), r, "P(·|s=0,a=1) has entry 1 equal to -1"},
		{"NaN", 0.9, p(bad(7, math.NaN())...), r, "P(·|s=1,a=1) has entry 1 equal to NaN"},
		{"reward", 0.9, p(good...), mat.NewDense(2, 2, []float64{0, math.Inf(1), 0, 0}), "r(s=0,a=1) is +Inf"},
		{"shape", 0.9, p(good...), mat.NewDense(2, 1, nil), "P are [4, 2], want [S·A, S] = [2, 2]"},
		{"nil", 0.9, nil, r, "must not be empty"},
	} {
		if _, err := New(test.gamma, test.p, test.r); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want one with %q", test.name, err, test.want)
		}
	}
	m := chain(t, 0.9)
	for _, pi := range []*mat.Dense{
		nil,
		mat.NewDense(2, 3, nil),
		mat.NewDense(2, 2, []float64{0.5, 0.5, 0.5, 0.6}),
		mat.NewDense(2, 2, []float64{1.5, -0.5, 0.5, 0.5}),
		mat.NewDense(2, 2, []float64{math.NaN(), 1, 0.5, 0.5}),
	} {
		if _, err := m.PolicyValue(pi); err == nil {
			t.Errorf("the policy %v was accepted", pi)
		}
	}
}

// TestNewCopies changes what an MDP was made from: views of wider matrices, whose hidden entries are none of its.
func TestNewCopies(t *testing.T) {
	view := func(columns int) *mat.Dense {
		wide := mat.NewDense(9, columns+1, nil)
		for s := range 9 {
			wide.Set(s, columns, 1e9)
		}
		return wide.Slice(0, 9, 0, columns).(*mat.Dense)
	}
	p, r, pi0 := view(9), view(1), UniformPolicy(9, 1)
	for s := range 9 {
		p.Set(s, (s+1)%9, 1)
		r.Set(s, 0, float64(s))
	}
	problem := testkit.Must(NewProblem(.9, p, r, pi0))(t)
	before := testkit.Must(problem.MDP.PolicyValue(problem.Pi0))(t)
	if problem.MDP.RMax() != 8 {
		t.Errorf("R_max of views is %v, want 8", problem.MDP.RMax())
	}
	p.Zero()
	r.Zero()
	pi0.Zero()
	if err := problem.Check(); err != nil {
		t.Error(err)
	}
	if after, err := problem.MDP.PolicyValue(problem.Pi0); err != nil || !mat.Equal(before, after) {
		t.Errorf("the values are another MDP's: %v", err)
	}
	if d := MaxAbsDiff(problem.MDP.EvaluationBackup(problem.Pi0, before), before); d > 1e-12 {
		t.Errorf("the values are %v from their own backup", d)
	}
	if err := (Problem{Pi0: pi0}).Check(); err == nil || !strings.Contains(err.Error(), "without an MDP") {
		t.Errorf("no MDP: %v", err)
	}
}

func TestBackupPanics(t *testing.T) {
	m := chain(t, 0.9)
	for _, c := range []struct{ pi, q *mat.Dense }{
		{m.Uniform(), mat.NewDense(2, 3, nil)},
		{m.Uniform(), mat.NewDense(3, 2, nil)},
		{mat.NewDense(3, 2, nil), m.Uniform()},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("π %v and Q %v were backed up", c.pi.RawMatrix(), c.q.RawMatrix())
				}
			}()
			m.EvaluationBackup(c.pi, c.q)
		}()
	}
}

// Problems picked are those drawn.
func TestPick(t *testing.T) {
	drawn := testkit.Must(Random.Draw(7, 3, 2, 6))(t)
	picked := testkit.Must(Random.Pick(7, 3, 2, []int32{4, 1}))(t)
	for k, i := range []int{4, 1} {
		if !mat.Equal(picked[k].Pi0, drawn[i].Pi0) || !mat.Equal(picked[k].MDP.R, drawn[i].MDP.R) ||
			picked[k].Index(k) != i {
			t.Errorf("problem %d is another one", i)
		}
	}
	if _, err := Random.Pick(7, 3, 2, []int32{-1}); err == nil {
		t.Error("problem −1 is drawn")
	}
}
