package s5rl

import (
	"math"
	"slices"
	"strings"
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
)

func tiny() Config {
	c := CPU(7, 4)
	c.Width, c.State, c.Blocks, c.Hidden = 8, 8, 2, 5
	c.Steps, c.Rows, c.Life, c.Epochs, c.Minibatches = 12, 4, 25, 2, 2
	c.Optimizer.Cosine = c.Steps
	return c
}

// strange are parameters under which policies differ from state to state.
func strange(c Config) []float32 {
	params := c.Init()
	rng := seed.New(3, "test")
	for i := range params {
		params[i] += float32(.2 * rng.NormFloat64())
	}
	return params
}

// controller deploys strange parameters.
func controller(t *testing.T, c Config, cleared bool) baseline.InContext {
	t.Helper()
	exec, params := testkit.Must(c.compile(testkit.Backend(t)))(t), strange(c)
	return baseline.InContext{Name: name, States: c.States, Actions: c.Actions, Root: 5,
		Reader: func(lives int) baseline.Reader { return c.reader(exec, params, lives, cleared) }}
}

func problems(t *testing.T, n int) []mdp.Problem {
	t.Helper()
	return testkit.Must(mdp.Random.Draw(3, 4, 3, n))(t)
}

// collected returns a rollout under strange parameters, and these.
func collected(t *testing.T, c Config) (*rollouts, []float32) {
	t.Helper()
	r, params := &rollouts{Config: c}, strange(c)
	testkit.Check(t, r.Collect(testkit.Backend(t), 0, params))
	return r, params
}

// written is the network on one row of tokens, in float64, written out from the parameters by
// name and with the recurrence.
func written(t *testing.T, c Config, params []float32, h *baseline.History) (logits [][]float64, values []float64) {
	t.Helper()
	of := map[string][]float64{}
	for _, x := range c.Layout() {
		for _, v := range params[x.Offset:][:x.Size()] {
			of[x.Name] = append(of[x.Name], float64(v))
		}
	}
	through := func(x []float64, name string, linear bool) []float64 {
		w, y := of[name+".weight"], append([]float64(nil), of[name+".bias"]...)
		for o := range y {
			for i, v := range x {
				y[o] += v * w[i*len(y)+o]
			}
			if !linear && y[o] < 0 {
				y[o] /= 100
			}
		}
		return y
	}
	state := make([]complex128, c.State/2)
	for step := range c.Life {
		token := h.At(step)
		pairs := c.States * c.Actions
		x := make([]float64, 2*pairs+c.States+1)
		now := int(token.State)
		for i := range c.States {
			x[2*pairs+i] = -1 / float64(c.States)
		}
		x[2*pairs+now]++
		first := token.Previous < 0
		if first {
			x[len(x)-1] = 1
		} else {
			for i := range pairs {
				x[i] = -1 / float64(pairs)
			}
			pair := int(token.Before)*c.Actions + int(token.Previous)
			x[pair]++
			x[pairs+pair] = c.Scale * float64(token.Reward)
		}
		x = through(x, "encoder", true)
		x, state = c.step(of["s5.0"], state, x, first)
		head := func(name string) []float64 {
			return through(through(through(x, name+"0", false), name+"1", false), name+"2", true)
		}
		logits, values = append(logits, head("actor")[now*c.Actions:][:c.Actions]), append(values, head("critic")[now])
	}
	return logits, values
}

// What is collected is what the network written out says of the same tokens, and what the
// problems say of the actions.
func TestCollectedIsWhatWasSeen(t *testing.T) {
	c := tiny()
	r, params := collected(t, c)
	root := seed.New(c.Seed, "s5rl", "problems", 0).Uint64()
	ps := testkit.Must(mdp.Random.Draw(root, c.States, c.Actions, c.Rows))(t)
	again := &rollouts{Config: c}
	testkit.Check(t, again.Collect(testkit.Backend(t), 0, params))
	for row := range c.Rows {
		logits, values := written(t, c, params, r.histories[row])
		h := r.histories[row]
		if !slices.Equal(again.histories[row].Previous, h.Previous) {
			t.Errorf("row %d: another look at the same weights gives another life", row)
		}
		for k := range c.Life {
			m, a, i := ps[row].MDP, h.Previous[k+1], row*c.Life+k
			if want := m.R.At(int(h.State[k]), int(a)); math.Abs(float64(h.Reward[k+1])-want) > 1e-7 {
				t.Fatalf("row %d, step %d earned %v, want %v", row, k, h.Reward[k+1], want)
			}
			// float32 against float64, over up to 25 steps.
			p := slices.Clone(logits[k])
			pmd.Softmax(p)
			logp, value := math.Log(p[a]), values[k]
			if math.Abs(float64(r.logp[i])-logp) > 1e-4 ||
				math.Abs(float64(r.value[i])-value) > 1e-4*(1+math.Abs(value)) {
				t.Fatalf("row %d, step %d: log p %v and value %v, want %v and %v", row, k, r.logp[i], r.value[i],
					logp, value)
			}
		}
	}
}

// Advantages are those of the definition: sums of (γλ)^k δ_{t+k}; with λ = 1 a target is the
// discounted return with the value after the last step behind it.
func TestEstimate(t *testing.T) {
	c := tiny()
	c.Life = 4
	reward, value := []float32{1, -2, .5, 3}, []float32{.1, .2, -.3, .4, 2}
	advantage, target := make([]float32, 4), make([]float32, 4)
	h := []*baseline.History{{Reward: slices.Insert(slices.Clone(reward), 0, 0)}}
	for _, c.Lambda = range []float64{0, .7, 1} {
		(&rollouts{Config: c, histories: h, value: value, advantage: advantage, target: target}).estimate(0, value[4])
		for t0 := range reward {
			want := 0.
			for k := t0; k < len(reward); k++ {
				delta := float64(reward[k]) + c.Gamma*float64(value[k+1]) - float64(value[k])
				want += math.Pow(c.Gamma*c.Lambda, float64(k-t0)) * delta
			}
			if math.Abs(float64(advantage[t0])-want) > 1e-6 ||
				math.Abs(float64(target[t0]-advantage[t0]-value[t0])) > 1e-6 {
				t.Errorf("λ = %v, step %d: advantage %v, target %v, want %v", c.Lambda, t0, advantage[t0], target[t0],
					want)
			}
		}
	}
	g, last := c.Gamma, float64(value[4])
	if want := 1 - 2*g + .5*g*g + 3*g*g*g + last*g*g*g*g; math.Abs(float64(target[0])-want) > 1e-6 {
		t.Errorf("the return is %v, want %v", target[0], want)
	}
}

// The loss is PPO's, written out from the network's numbers, after the weights have moved away
// from those of the rollout.
func TestLossIsPPOs(t *testing.T) {
	c := tiny()
	c.Entropy, c.Value, c.Ratio = .3, .7, .05
	r, params := collected(t, c)
	for i := range params {
		params[i] *= 1.05
	}
	batch := testkit.Must(r.Batch(1))(t)
	in := []any{params}
	for _, x := range batch {
		in = append(in, x)
	}
	loss := func(in []*Node) *Node { return c.Loss(in[0], nil, in[1:]) }
	out := testkit.Must(CallOnce(testkit.Backend(t), loss, in...))(t)
	order := seed.New(c.Seed, "s5rl", "order", 0).Perm(c.Rows)
	rows, length := order[2:], c.Life
	var advantages []float64
	for _, row := range rows {
		for _, x := range r.advantage[row*length:][:length] {
			advantages = append(advantages, float64(x))
		}
	}
	mean, square := 0., 0.
	for _, x := range advantages {
		mean += x / float64(len(advantages))
	}
	for _, x := range advantages {
		square += (x - mean) * (x - mean) / float64(len(advantages))
	}
	want, clipped := 0., 0
	for n, row := range rows {
		logits, values := written(t, c, params, r.histories[row])
		for k := range length {
			i, action := row*length+k, r.histories[row].Previous[k+1]
			sum, entropy := 0., 0.
			for _, z := range logits[k] {
				sum += math.Exp(z)
			}
			for _, z := range logits[k] {
				entropy -= math.Exp(z) / sum * (z - math.Log(sum))
			}
			a := (advantages[n*length+k] - mean) / math.Sqrt(square)
			ratio := math.Exp(logits[k][action] - math.Log(sum) - float64(r.logp[i]))
			if math.Abs(ratio-1) > c.Ratio {
				clipped++
			}
			gain := math.Min(ratio*a, math.Max(1-c.Ratio, math.Min(1+c.Ratio, ratio))*a)
			old, target := float64(r.value[i]), float64(r.target[i])
			near := old + math.Max(-c.Ratio, math.Min(c.Ratio, values[k]-old))
			critic := math.Max(math.Pow(values[k]-target, 2), math.Pow(near-target, 2)) / 2
			want += (c.Value*critic - gain - c.Entropy*entropy) / float64(len(rows)*length)
		}
	}
	if clipped == 0 {
		t.Error("no ratio was clipped")
	}
	if got := float64(tensors.ToScalar[float32](out)); math.Abs(got-want) > 1e-4 { // float32
		t.Errorf("the loss is %v, want %v", got, want)
	}
}

// A recorded life, shown to the network a round at a time, gives the policies that were returned
// when it was lived action by action.
func TestReliveAgreesWithLive(t *testing.T) {
	ps := problems(t, 2)
	for _, cleared := range []bool{false, true} {
		c := controller(t, tiny(), cleared)
		lived, actions, err := c.Record(ps, 4)
		testkit.Check(t, err)
		again := testkit.Must(c.Replay(ps, 4, actions, 1e-4))(t) // float32, as above
		for i := range ps {
			for k, pi := range lived[i].Policies {
				if d := mdp.MaxAbsDiff(again[i].Policies[k], pi); d > 1e-4 {
					t.Errorf("cleared %v, problem %d, round %d: policies differ by %v", cleared, i, k, d)
				}
			}
		}
	}
}

// The policy returned is what the network would do next in each state; it depends on rounds
// before the last unless the state is cleared.
func TestReturnedPolicy(t *testing.T) {
	for _, cleared := range []bool{false, true} {
		var policies [2]*mat.Dense
		for k, before := range []float64{.25, -.75} { // a reward of the first round
			h := &baseline.History{}
			h.See(nil, 2)
			rng := seed.New(4)
			for range 2 * baseline.Window {
				h.See(&baseline.Transition{Action: rng.IntN(3), Reward: 2*rng.Float64() - 1}, rng.IntN(4))
			}
			h.Reward[3] = float32(before)
			a := baseline.Lives{Reader: controller(t, tiny(), cleared).Reader(1), Histories: []*baseline.History{h}}
			for range 2 {
				testkit.Check(t, a.Begin())
				testkit.Must(a.Take(baseline.Window))(t)
			}
			pi := testkit.Must(a.Policies(4))(t)
			next := testkit.Must(a.Take(1))(t)
			row := pi[0].RawRowView(int(h.State[2*baseline.Window]))
			for j, p := range next[0].RawRowView(0) {
				if math.Abs(p-row[j]) > 1e-5 { // float32
					t.Errorf("asked, p(%d) is %v; acting, %v", j, row[j], p)
				}
			}
			policies[k] = pi[0]
		}
		if same := mdp.MaxAbsDiff(policies[0], policies[1]) < 1e-6; same != cleared {
			t.Errorf("cleared %v: the first round matters by %v", cleared, mdp.MaxAbsDiff(policies[0], policies[1]))
		}
	}
}

// Weights load, and only as what they are.
func TestTraining(t *testing.T) {
	j := testkit.Must(tiny().Job())(t)
	result := testkit.Must(j.Run(t.Context(), testkit.Backend(t), t.TempDir(), nil))(t)
	testkit.Check(t, method.Last(tiny()).Check(result.Weights))
}

func TestRecipes(t *testing.T) {
	s := method.Setting{Recipe: "cpu", States: 8, Actions: 3, Identity: method.Identity{Model: 5}}
	d := testkit.Must(Method.Deploy(s))(t)
	if c := d.(*method.InContext[Config]).Training; c != CPU(5, 8) || c.Validate() != nil {
		t.Errorf("%+v, %v", c, c.Validate())
	}
	s.Recipe = "cpu-cleared"
	control, err := Method.Deploy(s)
	if err != nil || control.Weights()[0] != d.Weights()[0] ||
		!control.(*method.InContext[Config]).Cleared {
		t.Errorf("%+v, %v", control, err)
	}
	s.Recipe = "full"
	if _, err := Method.Deploy(s); err == nil {
		t.Error("there is a recipe full")
	}
	for want, change := range map[string]func(*Config){
		"method":        func(c *Config) { c.Method = "ppo" },
		"an even state": func(c *Config) { c.State = 7 },
		"one layer":     func(c *Config) { c.Layers = 2 },
		"multiples":     func(c *Config) { c.Rows = 3 },
		"γ":             func(c *Config) { c.Gamma = 1 },
		"a rollout":     func(c *Config) { c.Steps++ },
		"two steps":     func(c *Config) { c.Life = 1 },
		"finite":        func(c *Config) { c.Entropy = math.Inf(1) },
		"optimizer":     func(c *Config) { c.Optimizer.LearningRate = 0 },
	} {
		c := tiny()
		change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want an error with %q", err, want)
		}
	}
}
