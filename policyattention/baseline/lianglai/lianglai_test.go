package lianglai

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/baseline"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/seed"
)

// close reports whether x and y agree up to the rounding of sums of up to some
// hundred terms of order 1.
func close(x, y []float64) bool {
	for i := range x {
		if math.Abs(x[i]-y[i]) > 1e-13*(1+math.Abs(y[i])) {
			return false
		}
	}
	return len(x) == len(y)
}

// analytic returns the block whose increments are those of [baseline.ActorCritic.Increment].
func (p *ActorCriticPrompt) analytic(gamma float64, steps baseline.StepSizes) *Block {
	b := &Block{p, mat.NewDense(p.width, p.width, nil), mat.NewDense(p.width, p.width, nil)}
	// A score is z_iᵀ P q = r + γ w(s′) − w(s) = δ_i; a value is α ∇log π for θ, and β φ(s) for w.
	b.P.Set(p.reward, p.one, 1)
	for s := range p.States {
		b.P.Set(p.next+s, p.w+s, gamma)
		b.P.Set(p.state+s, p.w+s, -1)
		b.V.Set(p.w+s, p.state+s, steps.Beta)
	}
	for i := range p.States * p.Actions {
		b.V.Set(p.theta+i, p.score+i, steps.Alpha)
	}
	return b
}

func TestAnalyticActorCritic(t *testing.T) {
	for _, shape := range []struct {
		states, actions int
		gamma           float64
		steps           baseline.StepSizes
	}{{2, 2, 0, baseline.StepSizes{Alpha: 1, Beta: 1}}, {9, 4, 0.5, baseline.StepSizes{Alpha: 0.2, Beta: 0.1}}, {8, 3,
		0.9, baseline.StepSizes{Alpha: 2, Beta: 0.2}}} {
		p := NewActorCriticPrompt(shape.states, shape.actions)
		if n := 2 * p.width * p.width; shape.states == 8 && n != 10_952 { // the paper's count
			t.Errorf("at S=8, A=3 a block has %d parameters", n)
		}
		problems := testkit.Must(mdp.Random.Draw(1, shape.states, shape.actions, 5))(t)
		rng := seed.New(2, "test")
		block := p.analytic(shape.gamma, shape.steps)
		scaled := p.analytic(shape.gamma, baseline.StepSizes{Alpha: 1, Beta: 1}).WithSteps(shape.steps)
		for _, problem := range problems {
			l := testkit.Must(baseline.NewActorCritic(problem.Pi0))(t)
			for i := range l.W {
				l.W[i] = 10 * rng.NormFloat64()
			}
			pi := l.Policy()
			window := baseline.NewChain(problem.MDP, rng).Walk(nil, pi, baseline.Window)
			want := l.Increment(window, pi, shape.gamma, shape.steps)
			for _, b := range []*Block{block, scaled} {
				if got := b.increment(l, window, nil, pi); !close(got, want) {
					t.Errorf("S=%d: increment %v, want %v", shape.states, got, want)
				}
			}
		}
	}
}

func TestGradientAgreesWithFiniteDifferences(t *testing.T) {
	p := NewActorCriticPrompt(3, 2)
	problems := testkit.Must(mdp.Random.Draw(1, 3, 2, 4))(t)
	rng := seed.New(3, "test")
	draw := func() *mat.Dense { return baseline.NormalMatrix(p.width, p.width, 1, rng) }
	block := &Block{p, draw(), draw()}
	b := newBatch(p, 7)
	b.draw(rng, problems, 0.9, 1)
	// The loss by the layer itself, so that this also checks the sparse products
	// and that the active parts are all that matters.
	loss := func() float64 {
		sum := 0.0
		for i := range b.windows {
			for j, x := range block.increment(b.learner(i), b.windows[i], nil, b.pi[i]) {
				e := x - b.target.At(i, j)
				sum += e * e
			}
		}
		return sum / float64(len(b.windows))
	}
	f := &fit{}
	f.p, f.v = block.active()
	if got, want := f.gradient(b), loss(); math.Abs(got-want) > 1e-12*want { // rounding
		t.Errorf("loss %v, want %v", got, want)
	}
	gradP, gradV := mat.NewDense(p.width, p.width, nil), mat.NewDense(p.width, p.width, nil)
	activeP, activeV := (&Block{p, gradP, gradV}).active()
	activeP.Scale(2, &f.gradP)
	activeV.Scale(2, &f.gradV)
	for name, part := range map[string]struct{ x, grad *mat.Dense }{"P": {block.P, gradP}, "V": {block.V, gradV}} {
		data := part.x.RawMatrix().Data
		for i, x := range data {
			const h = 1e-4
			data[i] = x + h
			up := loss()
			data[i] = x - h
			down := loss()
			data[i] = x
			// The loss is quadratic in each parameter, so only rounding is left.
			want, got := (up-down)/(2*h), part.grad.RawMatrix().Data[i]
			if math.Abs(got-want) > 1e-8*(1+math.Abs(want)) {
				t.Errorf("∂loss/∂%s[%d] = %v, want %v", name, i, got, want)
			}
		}
	}
}

func quiet(int, float64) {}

// small is a recipe with a hundredth of the full number of windows.
func small(t Config) Config {
	t.MDPs, t.Batch, t.Steps = 200, 500, 200
	return t
}

// The paper's qualification at a hundredth of its budget, with 500
// instead of 3,000 updates of the closed loop.
func TestQualificationInTheNativeShape(t *testing.T) {
	recipe := small(Native(1))
	trained := testkit.Must(recipe.Train(context.Background(), quiet))(t)
	if got := trained.LossRatio(); !(got <= 1e-11) {
		t.Errorf("last/first loss is %g", got)
	}
	study := ImitationConfig{Training: recipe, Windows: 200, MDPs: 4, Updates: 500, Every: 50,
		Steps: baseline.StepSizes{Alpha: 1, Beta: 0.5}}
	updateError := testkit.Must(study.updateError(trained.Block))(t)
	if !(updateError <= 3.2e-6) {
		t.Errorf("relative update error is %g", updateError)
	}
	learned, teacher, err := study.closeLoop(trained.Block)
	testkit.Check(t, err)
	if r, g := likeness(learned, teacher); !(math.Abs(r-1) <= 0.01 && g <= 4.3e-4) {
		t.Errorf("improvement relative to the teacher is %v, mean gap of the curves %v", r, g)
	}
}

func TestHarnessShapeAndController(t *testing.T) {
	recipe := small(Harness(1, 8))
	trained := testkit.Must(recipe.Train(context.Background(), quiet))(t)
	updateError := testkit.Must((ImitationConfig{Training: recipe, Windows: 200}).updateError(trained.Block))(t)
	if !(updateError <= 1.5e-5) { // the paper's
		t.Errorf("relative update error is %g", updateError)
	}
	p := NewActorCriticPrompt(8, 3)
	steps := testkit.Must(PaperSteps(8))(t)
	problems := testkit.Must(mdp.Random.Draw(5, 8, 3, 4))(t)
	want := testkit.Must(baseline.Teacher(steps, baseline.Initial, baseline.OneHot, 1).Run(problems, 40))(t)
	for name, block := range map[string]*Block{"analytic": p.analytic(mdp.Discount, steps),
		"trained": trained.Block.WithSteps(steps)} {
		c := block.on(baseline.Walk(baseline.Window, 1), false, baseline.Initial, baseline.OneHot, 1)
		got := testkit.Must(c.Run(problems, 40))(t)
		for i := range want {
			for k, pi := range want[i].Policies {
				if !mat.EqualApprox(got[i].Policies[k], pi, 1e-6) { // 40 updates with errors of about 1e-8
					t.Fatalf("%s block, problem %d, round %d: policy\n%v, want\n%v", name, i, k,
						mat.Formatted(got[i].Policies[k]), mat.Formatted(pi))
				}
			}
		}
	}
	wrong := testkit.Must(mdp.Random.Draw(5, 4, 3, 1))(t)
	c := trained.Block.on(baseline.Walk(1, 1), false, baseline.Initial, baseline.OneHot, 1)
	if _, err := c.Run(wrong, 1); err == nil {
		t.Error("a problem of another shape passed")
	}
}

func TestFiles(t *testing.T) {
	recipe := small(Harness(1, 3))
	recipe.Steps = 2
	trained := testkit.Must(recipe.Train(context.Background(), quiet))(t)
	path := filepath.Join(t.TempDir(), "block.safetensors")
	testkit.Check(t, recipe.write(path, trained))
	stored := testkit.Must(recipe.read(path, 2))(t)
	if !mat.Equal(stored.Block.P, trained.Block.P) || !mat.Equal(stored.Block.V, trained.Block.V) ||
		!slices.Equal(stored.Loss, trained.Loss) {
		t.Errorf("what was read, %+v, is not what was written, %+v", stored, trained)
	}
	other := recipe
	other.Seed++
	for step, c := range map[int]Config{1: recipe, 2: other} {
		if _, err := c.read(path, step); err == nil || !strings.Contains(err.Error(), "want step") {
			t.Errorf("step %d of %+v: error %v", step, c, err)
		}
	}
	// Numbers that no training wrote.
	for name, at := range map[string]*float64{"P": &stored.Block.P.RawMatrix().Data[3],
		"V": &stored.Block.V.RawMatrix().Data[3], "loss": &stored.Loss[1]} {
		was := *at
		*at = math.NaN()
		testkit.Check(t, recipe.write(path, stored))
		if _, err := recipe.read(path, 2); err == nil || !strings.Contains(err.Error(), strconv.Quote(name)) {
			t.Errorf("NaN in %s: error %v", name, err)
		}
		*at = was
	}
	// A recipe that does not fit the tensors.
	recipe.States = 4
	testkit.Check(t, recipe.write(path, trained))
	if _, err := recipe.read(path, 2); err == nil {
		t.Error("a block of another shape passed")
	}
}

// unstable is a recipe whose loss grows without bound at its rate, because its
// batches are far too small, and falls at half of it.
func unstable() Config {
	t := Harness(1, 3)
	t.MDPs, t.Batch, t.Steps, t.Rate, t.Scale, t.Warmup = 50, 20, 60, 1, 1, 1
	return t
}

func TestDivergingRunRestartsAtHalfTheRate(t *testing.T) {
	recipe := unstable()
	attempts := 0
	trained := testkit.Must(recipe.Train(context.Background(), func(step int, _ float64) {
		if step == 0 {
			attempts++
		}
	}))(t)
	if attempts != 2 || len(trained.Loss) != recipe.Steps || !(trained.LossRatio() < 0.1) {
		t.Fatalf("%d attempts, %d steps, last/first loss %g; want 2, %d, below 0.1",
			attempts, len(trained.Loss), trained.LossRatio(), recipe.Steps)
	}
	halved := recipe
	halved.Rate /= 2
	direct := testkit.Must(halved.Train(context.Background(), quiet))(t)
	if !mat.Equal(direct.Block.P, trained.Block.P) || !mat.Equal(direct.Block.V, trained.Block.V) {
		t.Error("the restarted run is not the run of half the rate")
	}
	hopeless := unstable() // where no rate helps, training says so
	hopeless.Scale = 1e20
	if _, err := hopeless.Train(context.Background(), quiet); !errors.Is(err, errDiverged) {
		t.Errorf("a run that cannot converge returned %v", err)
	}
}

func TestTrainingCanBeStoppedAndRefusesNonsense(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := small(Native(1)).Train(ctx, quiet); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled run returned %v", err)
	}
	for _, spoil := range []func(*Config){
		func(t *Config) { t.States = 1 },
		func(t *Config) { t.Gamma = 1 },
		func(t *Config) { t.Batch = 0 },
		func(t *Config) { t.Rate = 2 },
		func(t *Config) { t.Damping = math.NaN() },
		func(t *Config) { t.Damping = math.Inf(1) },
		func(t *Config) { t.Scale = math.Inf(1) },
		func(t *Config) { t.MDPs = 1 << 62 },
		func(t *Config) { t.States = 1 << 62 },
	} {
		recipe := small(Native(1))
		spoil(&recipe)
		if err := recipe.Validate(); err == nil {
			t.Errorf("%+v passed", recipe)
		}
	}
}

// The block with the expected update makes the expected increments of actor–critic, written
// out; and equal weights are a window's.
func TestExpectedUpdate(t *testing.T) {
	prompt := NewActorCriticPrompt(8, 3)
	problems := testkit.Must(mdp.Random.Draw(1, 8, 3, 1))(t)
	p := problems[0]
	b := prompt.analytic(p.MDP.Gamma, baseline.StepSizes{Alpha: 3, Beta: .5})
	trajectories := testkit.Must(expected{b, baseline.Initial}.Run(problems, 1))(t)
	q := testkit.Must(p.MDP.PolicyValue(p.Pi0))(t)
	want := mat.NewDense(8, 3, nil)
	for s := range 8 {
		value := mat.Dot(p.Pi0.RowView(s), q.RowView(s))
		sum := 0.0
		for a := range 3 { // the mean of δ given s and a is Q − V; its mean under π is 0
			want.Set(s, a, p.Pi0.At(s, a)*math.Exp(3./8*p.Pi0.At(s, a)*(q.At(s, a)-value)))
			sum += want.At(s, a)
		}
		for a := range 3 {
			want.Set(s, a, want.At(s, a)/sum)
		}
	}
	// A few hundred roundings of numbers of about 1.
	if d := mdp.MaxAbsDiff(trajectories[0].Policies[1], want); d > 1e-12 {
		t.Errorf("the policy differs by %v from the expected update", d)
	}
	window := baseline.NewChain(p.MDP, seed.New(1, "chain")).Walk(nil, p.Pi0, 20)
	equalWeights := make([]float64, 20)
	for i := range equalWeights {
		equalWeights[i] = 1. / 20
	}
	x, y := testkit.Must(baseline.Initial.Learner(p.Pi0))(t), testkit.Must(baseline.Initial.Learner(p.Pi0))(t)
	testkit.Check(t, x.Step(b.increment(x, window, nil, p.Pi0)))
	testkit.Check(t, y.Step(b.increment(y, window, equalWeights, p.Pi0)))
	if d := mdp.MaxAbsDiff(x.Theta, y.Theta); d > 1e-12 {
		t.Errorf("equal weights differ by %v from none", d)
	}
}

// The grid of the study ascends, and its losses are the least where the actor's step is neither tiny nor huge.
func TestTuning(t *testing.T) {
	study := testkit.Must(tune(method.Setting{States: 4, Root: 1}))(t).(Tuning)
	if g := study.Grid; !slices.IsSorted(g.Alphas) || !slices.IsSorted(g.Betas) {
		t.Errorf("grid %+v", g)
	}
	study.Grid.Starts = []baseline.Start{baseline.Initial}
	study.Grid.Alphas, study.Grid.Betas = []float64{0.01, 16, 5000}, []float64{0.2, 0.4}
	losses := testkit.Must(study.Compute(nil, testkit.Must(mdp.Random.Draw(1, 4, 3, 8))(t)))(t).Tuned
	if len(losses) != 6*2*8 || losses[3*16].Alpha != 16 || losses[3*16].Beta != .4 {
		t.Fatalf("%d losses, %+v", len(losses), losses[3*16])
	}
	mean := map[float64]float64{}
	for _, l := range losses {
		mean[l.Alpha] += l.Loss
	}
	if !(mean[16] < mean[.01] && mean[16] < mean[5000]) {
		t.Errorf("losses by α: %v, want the least at 16", mean)
	}
}
