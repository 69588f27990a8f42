package s5rl

import (
	"fmt"
	"math"
	"math/cmplx"
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
	testkit.Check(t, r.collect(testkit.Backend(t), 0, params))
	return r, params
}

// written is the network on one row of tokens, in float64, written out from the parameters by
// name and with the recurrence.
func written(t *testing.T, c Config, params []float32, life []baseline.Token) (logits [][]float64, values []float64) {
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
	for _, token := range life[:c.Life] {
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
	testkit.Check(t, again.collect(testkit.Backend(t), 0, params))
	for row := range c.Rows {
		logits, values := written(t, c, params, r.histories[row])
		h := r.histories[row]
		if !slices.Equal(again.histories[row], h) {
			t.Errorf("row %d: another look at the same weights gives another life", row)
		}
		for k := range c.Life {
			m, a, x := ps[row].MDP, h[k+1].Previous, r.steps[row][k]
			if want := m.R.At(int(h[k].State), int(a)); math.Abs(float64(h[k+1].Reward)-want) > 1e-7 {
				t.Fatalf("row %d, step %d earned %v, want %v", row, k, h[k+1].Reward, want)
			}
			// float32 against float64, over up to 25 steps.
			p := slices.Clone(logits[k])
			pmd.Softmax(p)
			logp, value := math.Log(p[a]), values[k]
			if math.Abs(float64(x.logp)-logp) > 1e-4 || math.Abs(float64(x.value)-value) > 1e-4*(1+math.Abs(value)) {
				t.Fatalf("row %d, step %d: %+v, want log p %v and value %v", row, k, x, logp, value)
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
	h, steps := [][]baseline.Token{{{}}}, make([]step, 4)
	for i, x := range reward {
		h[0] = append(h[0], baseline.Token{Reward: x})
		steps[i].value = value[i]
	}
	for _, c.Lambda = range []float64{0, .7, 1} {
		(&rollouts{Config: c, histories: h, steps: [][]step{steps}}).estimate(0, value[4])
		for t0 := range reward {
			want := 0.
			for k := t0; k < len(reward); k++ {
				delta := float64(reward[k]) + c.Gamma*float64(value[k+1]) - float64(value[k])
				want += math.Pow(c.Gamma*c.Lambda, float64(k-t0)) * delta
			}
			x := steps[t0]
			if math.Abs(float64(x.advantage)-want) > 1e-6 || math.Abs(float64(x.target-x.advantage-x.value)) > 1e-6 {
				t.Errorf("λ = %v, step %d: %+v, want the advantage %v", c.Lambda, t0, x, want)
			}
		}
	}
	g, last := c.Gamma, float64(value[4])
	if want := 1 - 2*g + .5*g*g + 3*g*g*g + last*g*g*g*g; math.Abs(float64(steps[0].target)-want) > 1e-6 {
		t.Errorf("the return is %v, want %v", steps[0].target, want)
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
	batch := testkit.Must(r.batch(1))(t)
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
		for _, x := range r.steps[row] {
			advantages = append(advantages, float64(x.advantage))
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
			x, action := r.steps[row][k], r.histories[row][k+1].Previous
			sum, entropy := 0., 0.
			for _, z := range logits[k] {
				sum += math.Exp(z)
			}
			for _, z := range logits[k] {
				entropy -= math.Exp(z) / sum * (z - math.Log(sum))
			}
			a := (advantages[n*length+k] - mean) / math.Sqrt(square)
			ratio := math.Exp(logits[k][action] - math.Log(sum) - float64(x.logp))
			if math.Abs(ratio-1) > c.Ratio {
				clipped++
			}
			gain := math.Min(ratio*a, math.Max(1-c.Ratio, math.Min(1+c.Ratio, ratio))*a)
			old, target := float64(x.value), float64(x.target)
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
			h, rng := []baseline.Token{baseline.First(2)}, seed.New(4)
			for i := range 2 * baseline.Window {
				h = append(h, baseline.Transition{State: int(h[i].State), Action: rng.IntN(3),
					Reward: 2*rng.Float64() - 1, Next: rng.IntN(4)}.Token())
			}
			h[3].Reward = float32(before)
			a := baseline.Lives{Reader: controller(t, tiny(), cleared).Reader(1), Histories: [][]baseline.Token{h}}
			for range 2 {
				testkit.Check(t, a.Begin())
				testkit.Must(a.Take(baseline.Window))(t)
			}
			pi := testkit.Must(a.Policies(4))(t)
			next := testkit.Must(a.Take(1))(t)
			row := pi[0].RawRowView(int(h[2*baseline.Window].State))
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

// normalPart returns S = A + PPᵀ [n, n] from the definition of HiPPO-LegS.
func normalPart(n int) *mat.Dense {
	s := mat.NewDense(n, n, nil)
	s.Apply(func(i, j int, _ float64) float64 {
		a := 0.
		switch {
		case i > j:
			a = -math.Sqrt(float64((2*i + 1) * (2*j + 1)))
		case i == j:
			a = -float64(i + 1)
		}
		return a + math.Sqrt((float64(i)+.5)*(float64(j)+.5))
	}, s)
	return s
}

// By hand at n = 2: S + ½ = [[0, √¾], [−√¾, 0]]. That V Λ Vᴴ is the matrix is part of
// TestStepIsTheExactSolution.
func TestDiagonalization(t *testing.T) {
	if lambda, _ := diagonalize(2); math.Abs(imag(lambda[0])+math.Sqrt(.75)) > 1e-15 {
		t.Errorf("%v, want −½ − i√¾", lambda)
	}
}

// Zero-order hold is exact for an input that is constant over a step: it agrees with the
// exponential of the real system of N states, x' = Sx + Bu, by gonum, where S is one HiPPO matrix
// or has three along its diagonal.
func TestStepIsTheExactSolution(t *testing.T) {
	const n, delta, u = 6, .3, 1.7
	for _, blocks := range []int{1, 3} {
		l := Config{Width: 1, State: n, Blocks: blocks, Out: 1, Skip: 1}
		params, size := l.layer(seed.New(1)), n/blocks
		_, v := diagonalize(size)
		p := l.split(params)
		for j := range l.State / 2 {
			p[2][j] = math.Log(delta)
		}
		// states returns the N real states V(·) + its conjugate.
		states := func(x func(j int) complex128) []float64 {
			out := make([]float64, n)
			for i := range out {
				for j := range v {
					out[i] += 2 * real(v[j][i%size]*x(i/size*len(v)+j))
				}
			}
			return out
		}
		b := states(func(j int) complex128 { return complex(p[3][j], p[4][j]) })
		// d/dt (x, u) = (Sx + Bu, 0).
		system, exponential := mat.NewDense(n+1, n+1, nil), new(mat.Dense)
		s := normalPart(size)
		for i := range n {
			for j := range size {
				system.Set(i, i/size*size+j, delta*s.At(i%size, j))
			}
			system.Set(i, n, delta*b[i])
		}
		exponential.Exp(system)
		want := mat.NewVecDense(n+1, nil)
		want.SetVec(n, u)
		x := make([]complex128, l.State/2)
		for range 5 {
			_, x = l.step(params, x, []float64{u}, false)
			var next mat.VecDense
			next.MulVec(exponential, want)
			want.CopyVec(&next)
			for i, got := range states(func(j int) complex128 { return x[j] }) {
				if math.Abs(got-want.AtVec(i)) > 1e-12 {
					t.Fatalf("%d blocks: x[%d] = %v, the exponential gives %v", blocks, i, got, want.AtVec(i))
				}
			}
		}
	}
}

// sequence is inputs [T, B, H], resets [T, B] and states [B, P].
type sequence struct {
	length, batch int
	u, reset      []float64
	re, im        []float64
}

func (l Config) random(length, batch int, share float64, root uint64) sequence {
	rng := seed.New(root, length, batch)
	u, reset := testkit.Normal[float64](rng, length*batch*l.Width), make([]float64, length*batch)
	re, im := testkit.Normal[float64](rng, batch*l.State/2), testkit.Normal[float64](rng, batch*l.State/2)
	s := sequence{length, batch, u, reset, re, im}
	for i := range s.reset {
		if rng.Float64() < share {
			s.reset[i] = 1
		}
	}
	return s
}

// plain returns the outputs [T, B, H] and last states by the recurrence.
func (l Config) plain(t *testing.T, params []float64, s sequence) (out []float64, last [][]complex128) {
	t.Helper()
	out = make([]float64, s.length*s.batch*l.Width)
	for b := range s.batch {
		x := make([]complex128, l.State/2)
		for j := range x {
			x[j] = complex(s.re[b*l.State/2+j], s.im[b*l.State/2+j])
		}
		for k := range s.length {
			at := k*s.batch + b
			y, next := l.step(params, x, s.u[at*l.Width:][:l.Width], s.reset[at] == 1)
			copy(out[at*l.Width:], y)
			x = next
		}
		last = append(last, x)
	}
	return out, last
}

// inputs are the tensors of apply after the parameters.
func (l Config) sequence(s sequence) []any {
	return []any{
		tensors.FromFlatDataAndDimensions(s.u, s.length, s.batch, l.Width),
		tensors.FromFlatDataAndDimensions(s.reset, s.length, s.batch),
		tensors.FromFlatDataAndDimensions(s.re, s.batch, l.State/2),
		tensors.FromFlatDataAndDimensions(s.im, s.batch, l.State/2),
	}
}

// The scan is the recurrence, for lengths around powers of two and others, with no resets, some,
// only resets, and one at every position in turn; to some units of the numbers that are added
// (of order ten).
func TestScanIsTheRecurrence(t *testing.T) {
	on := testkit.Backend(t)
	l := Config{Width: 3, State: 8, Blocks: 2, Out: 1, Skip: 1}
	params := l.layer(seed.New(2))
	check := func(name string, s sequence) {
		t.Helper()
		out := testkit.Must(CallOnceN(on, func(in []*Node) []*Node {
			y, last := l.s5(parts(in[0]), in[1], in[2], number{in[3], in[4]})
			return []*Node{y, last.re, last.im}
		}, append([]any{params}, l.sequence(s)...)...))(t)
		want, last := l.plain(t, params, s)
		for i, y := range tensors.MustCopyFlatData[float64](out[0]) {
			if math.Abs(y-want[i]) > 1e-12 {
				t.Fatalf("%s: output %d is %v, the recurrence has %v", name, i, y, want[i])
			}
		}
		re, im := tensors.MustCopyFlatData[float64](out[1]), tensors.MustCopyFlatData[float64](out[2])
		for b := range last {
			for j, x := range last[b] {
				if at := b*l.State/2 + j; cmplx.Abs(complex(re[at], im[at])-x) > 1e-12 {
					t.Fatalf("%s: state %d is %v + %vi, the recurrence has %v", name, at, re[at], im[at], x)
				}
			}
		}
	}
	for _, length := range []int{1, 2, 3, 7, 8, 9, 37, 64} {
		for _, share := range []float64{0, .2, 1} {
			check(fmt.Sprintf("T = %d, resets %v", length, share), l.random(length, 2, share, 3))
		}
	}
	for at := range 9 {
		s := l.random(9, 1, 0, 4)
		s.reset[at] = 1
		check(fmt.Sprintf("reset at %d", at), s)
	}
}

// split are the parameters by part, see shapes.
func (l Config) split(params []float64) (all [][]float64) {
	for _, shape := range l.shapes() {
		all, params = append(all, params[:size(shape)]), params[size(shape):]
	}
	return all
}

// step makes one step of the recurrence in plain Go: from the state x [P] and the input u [H] it returns the output
// [H] and the next state. With reset the state is cleared before the input comes.
func (l Config) step(params []float64, x []complex128, u []float64, reset bool) (out []float64, next []complex128) {
	p := l.split(params)
	next = make([]complex128, l.State/2)
	for j := range next {
		lambda := complex(p[0][j], p[1][j])
		decay := cmplx.Exp(lambda * complex(math.Exp(p[2][j]), 0))
		input := 0i
		for h, v := range u {
			at := j*l.Width + h
			input += complex(p[3][at], p[4][at]) * complex(v, 0)
		}
		next[j] = (decay - 1) / lambda * input
		if !reset {
			next[j] += decay * x[j]
		}
	}
	g := make([]float64, l.Width)
	for h := range g {
		y := p[7][h] * u[h]
		for j, s := range next {
			at := h*l.State/2 + j
			y += 2 * real(complex(p[5][at], p[6][at])*s)
		}
		g[h] = geluOf(y)
	}
	out = make([]float64, l.Width)
	for h := range out {
		value, gate := p[9][h], p[11][h]
		for k, v := range g {
			value += p[8][h*l.Width+k] * v
			gate += p[10][h*l.Width+k] * v
		}
		out[h] = u[h] + value/(1+math.Exp(-gate))
	}
	return out, next
}

// geluOf is x·Φ(x) by the approximation with tanh that jax.nn.gelu has by default.
func geluOf(x float64) float64 {
	return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+.044715*x*x*x)))
}
