package distill

import (
	"math"
	"slices"
	"testing"

	. "github.com/gomlx/gomlx/core/graph"
	"github.com/gomlx/gomlx/core/tensors"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/baseline"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
	"icrl/policyattention/transformer"
	"icrl/policyattention/transformer/engine"
)

// tiny is a recipe in which contexts overflow after two rounds.
func tiny() Config {
	c := Paper(7, 4)
	c.Histories, c.Length, c.Context, c.Batch, c.Steps = 6, 120, 55, 3, 5
	c.Layers, c.Heads, c.Width, c.Hidden = 2, 2, 8, 12
	return c
}

func problems(t *testing.T, n int) []mdp.Problem {
	t.Helper()
	return testkit.Must(mdp.Random.Draw(3, 4, 3, n))(t)
}

// model is untrained, with parameters large enough to make policies differ.
func model(t *testing.T, c Config) (*engine.Network[float32], []float32) {
	t.Helper()
	params := c.Network().Init(seed.New(1, "test"))
	return testkit.Must(engine.New[float32](c.Network(), params))(t), params
}

// live deploys it.
func live(t *testing.T, c Config, root uint64, cleared bool) baseline.InContext {
	t.Helper()
	network, _ := model(t, c)
	return baseline.InContext{Name: "distill", States: c.States, Actions: c.Actions, Root: root,
		Reader: func(lives int) baseline.Reader { return newReader(c, network, lives, cleared) }}
}

func TestRecipes(t *testing.T) {
	if got := Paper(1, 8).Network().Size(); got != 1_138_467 { // about the paper's 1.14M
		t.Errorf("the paper's network has %d parameters", got)
	}
	for name, c := range map[string]Config{"paper": Paper(1, 8), "first attempt": FirstAttempt(1, 16),
		"CPU": CPU(1, 8), "short": CPU(1, 8).ShortContext(), "tiny": tiny()} {
		if err := c.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, spoil := range []func(*Config){
		func(c *Config) { c.Method = "" },
		func(c *Config) { c.Context = baseline.Window },
		func(c *Config) { c.Length++ },
		func(c *Config) { c.Source.Alpha = math.Inf(1) },
		func(c *Config) { c.Optimizer.LearningRate = 0 },
		func(c *Config) { c.Heads = 3 },
	} {
		c := tiny()
		spoil(&c)
		if c.Validate() == nil {
			t.Errorf("%+v passed", c)
		}
	}
}

func TestHistoriesAreThoseOfALearner(t *testing.T) {
	c := tiny()
	c.Histories, c.Length, c.Source = 200, 400, baseline.StepSizes{Alpha: 16, Beta: 0.2}
	histories := testkit.Must(c.histories())(t)
	root := seed.New(c.Seed, "distill", "mdps").Uint64()
	ps := testkit.Must(mdp.Random.Draw(root, c.States, c.Actions, c.Histories))(t)
	early, late := 0., 0.
	for i, h := range histories {
		if len(h) != c.Length+1 {
			t.Fatalf("history %d has another length", i)
		}
		if h[0].Previous != baseline.None || h[0].Reward != 0 {
			t.Errorf("history %d begins with action %d, reward %v", i, h[0].Previous, h[0].Reward)
		}
		for k := 1; k < c.Length; k++ {
			if h[k].Reward != float32(ps[i].MDP.R.At(int(h[k-1].State), int(h[k].Previous))) {
				t.Fatalf("history %d: token %d does not tell of step %d", i, k, k-1)
			}
			if k <= c.Length/4 {
				early += float64(h[k].Reward)
			} else if k > c.Length*3/4 {
				late += float64(h[k].Reward)
			}
		}
	}
	if n := float64(c.Histories * c.Length / 4); late/n < early/n+0.1 { // .17 and .40 when written
		t.Errorf("mean reward goes from %v to %v", early/n, late/n)
	}
}

// full is the forward pass on the last tokens of a history, at most n, without a
// cache: the distribution of the action at the last one.
func full(t *testing.T, c Config, params []float32, h []baseline.Token, n int) []float64 {
	t.Helper()
	h = h[max(0, len(h)-n):]
	n = len(h)
	position := make([]int32, n)
	for i := range position {
		position[i] = int32(i)
	}
	exec, err := NewExec(testkit.Backend(t), func(in []*Node) *Node {
		return transformer.Bind(c.Network(), in[0]).Tail(c.tokens(in[1], in[2], in[3], in[4]), n)
	})
	testkit.Check(t, err)
	in := baseline.Arrays(func(i int) baseline.Token { return h[i] }, 1, n)
	out, err := exec.Call1(params, in[1], in[2], in[3], tensors.FromFlatDataAndDimensions(position, 1, n))
	testkit.Check(t, err)
	logits := testkit.Must(tensors.CopyFlatData[float32](out))(t)
	p := make([]float64, c.Actions)
	for a := range p {
		p[a] = float64(logits[(n-1)*c.Actions+a])
	}
	pmd.Softmax(p)
	return p
}

func near(t *testing.T, what string, got, want []float64) {
	t.Helper()
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-5 { // float32 sums of up to some hundred terms over two blocks
			t.Fatalf("%s: distribution %v, want %v", what, got, want)
		}
	}
}

func TestCachedPassAndQueryAgreeWithFullPasses(t *testing.T) {
	c := tiny()
	network, params := model(t, c)
	ps := problems(t, 2)
	var chains []*baseline.Chain
	for i, p := range ps {
		chains = append(chains, baseline.NewChain(p.MDP, seed.New(1, "chain", i)))
	}
	r := newReader(c, network, len(ps), false)
	a := baseline.NewLives(r, chains)
	for round := range 4 {
		testkit.Check(t, a.Begin())
		testkit.Check(t, a.Act(baseline.Window, nil))
		// The context is what the cache holds, and the pending token.
		if want := min(20*(round+1), 34+20); r.cache.Length != want {
			t.Fatalf("after round %d the cache holds %d tokens, want %d", round, r.cache.Length, want)
		}
		policies := testkit.Must(a.Policies(4))(t)
		again := testkit.Must(a.Policies(4))(t)
		for i := range ps {
			if !mat.Equal(policies[i], again[i]) {
				t.Fatalf("round %d: asking again changes the answer", round)
			}
			for s := range ps[i].MDP.States() {
				h := slices.Clone(a.Histories[i])
				h[len(h)-1].State = int32(s)
				near(t, "query", policies[i].RawRowView(s), full(t, c, params, h, r.cache.Length+1))
			}
		}
		before := r.cache.Length
		rows := testkit.Must(a.Take(1))(t)
		for i := range ps {
			near(t, "next action", rows[i].RawRowView(0), policies[i].RawRowView(chains[i].State))
		}
		r.cache.Length = before // as if it had not been asked
		a.Pending--
	}
}

// A recorded life, shown to the network a round at a time, gives the policies
// that were returned when it was lived action by action; records of actions that cannot have been
// taken are refused.
func TestReliveAgreesWithLive(t *testing.T) {
	ps, rounds := problems(t, 2), 5
	for name, c := range map[string]baseline.InContext{
		"long": live(t, tiny(), 5, false), "short": live(t, tiny().ShortContext(), 5, false),
		"cleared": live(t, tiny(), 5, true),
	} {
		lived, actions, err := c.Record(ps, rounds)
		testkit.Check(t, err)
		again := testkit.Must(c.Replay(ps, rounds, actions, 1e-5))(t)
		for i := range ps {
			for k, pi := range lived[i].Policies {
				if d := mdp.MaxAbsDiff(again[i].Policies[k], pi); d > 1e-5 { // float32, as in near
					t.Errorf("%s, problem %d, round %d: policies differ by %v", name, i, k, d)
				}
			}
		}
		was := actions[1]
		for what, changed := range map[string][]int32{
			"another action": slices.Replace(slices.Clone(was), 37, 38, (was[37]+1)%3),
			"no action":      slices.Replace(slices.Clone(was), 37, 38, 3),
			"half a round":   was[:len(was)-10],
		} {
			if _, err := c.Replay(ps, rounds, [][]int32{actions[0], changed}, 1e-5); err == nil {
				t.Errorf("%s passed", what)
			}
		}
		if _, err := c.Run(nil, 1); err == nil {
			t.Error("no problems passed")
		}
	}
}

// The policy returned depends on rounds before the last unless the context is cleared.
func TestClearedForgets(t *testing.T) {
	for _, cleared := range []bool{false, true} {
		var policies [2]*mat.Dense
		for k, before := range []float32{.25, -.75} { // a reward of the first round
			h, rng := []baseline.Token{baseline.First(2)}, seed.New(4)
			for range 2 * baseline.Window {
				x := baseline.Transition{Action: rng.IntN(3), Reward: 2*rng.Float64() - 1, Next: rng.IntN(4)}
				h = append(h, x.Token())
			}
			h[3].Reward = before
			a := baseline.Lives{Reader: live(t, tiny(), 1, cleared).Reader(1), Histories: [][]baseline.Token{h}}
			for range 2 {
				testkit.Check(t, a.Begin())
				testkit.Must(a.Take(baseline.Window))(t)
			}
			policies[k] = testkit.Must(a.Policies(4))(t)[0]
		}
		if d := mdp.MaxAbsDiff(policies[0], policies[1]); (d < 1e-6) != cleared { // float32
			t.Errorf("cleared %v: the first round matters by %v", cleared, d)
		}
	}
}

// The loss on a batch against full passes over prefixes, token by token.
func TestLossIsTheNegativeLogLikelihood(t *testing.T) {
	c := tiny()
	c.Batch, c.Context = 2, 21
	_, params := model(t, c)
	histories := testkit.Must(c.histories())(t)
	data := testkit.Must(c.data())(t)
	start := c.batch(3)
	exec, err := NewExec(testkit.Backend(t), func(in []*Node) *Node {
		return c.loss(transformer.Bind(c.Network(), in[0]).Tail, in[2:], in[1:2])
	})
	testkit.Check(t, err)
	at := tensors.FromFlatDataAndDimensions(start, c.Batch, 1)
	out := testkit.Must(exec.Call1(params, at, data[0], data[1], data[2], data[3]))(t)
	want := 0.
	for _, at := range start {
		h, from := histories[int(at)/c.Length], int(at)%c.Length
		for k := from; k < from+c.Context; k++ {
			p := full(t, c, params, h[from:k+1], c.Context)
			want -= math.Log(p[h[k+1].Previous]) / float64(c.Batch*c.Context)
		}
	}
	if got := float64(tensors.ToScalar[float32](out)); math.Abs(got-want) > 1e-5 { // float32
		t.Errorf("loss is %v, want %v", got, want)
	}
}

// The weights of a run are those of its configuration.
func TestTraining(t *testing.T) {
	c := tiny()
	j := testkit.Must(c.Job())(t)
	result := testkit.Must(j.Run(t.Context(), testkit.Backend(t), t.TempDir(), nil))(t)
	testkit.Check(t, method.Last(c).Check(result.Weights))
	// An untrained network is close to uniform: log 3 = 1.10 at first.
	if first := float64(result.Losses[0]); first < 0.8 || first > 2.5 {
		t.Errorf("first loss is %v", first)
	}
}
