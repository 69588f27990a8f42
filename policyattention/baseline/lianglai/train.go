package lianglai

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/safetensors"
	"icrl/policyattention/baseline"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/seed"
	"icrl/policyattention/train"
)

// Config is the recipe that trains a block to imitate the analytic actor–critic block with α = β = 1;
// [Block.WithSteps] gives other step sizes to what it learned.
//
// A training example is a window of transitions, drawn from one of the MDPs under softmax(θ), with θ and w standard
// normal. The loss is the mean over a batch of the squared distance between the increments of block and teacher. It is
// a polynomial in the parameters, whose gradient is written out here. The optimizer is stochastic gradient descent in
// float64, preconditioned by the Kronecker-factored Gauss–Newton matrix (Martens and Grosse, arXiv 1503.05671). The
// teacher is in the model class, so the noise of batches vanishes with the loss, no rate schedule is needed, and the
// loss falls by a constant factor a step down to rounding.
//
// The loss has bad valleys: with one-hot features the states hardly interact, each of them can be learned with either
// sign of V, but all share P's entry for the reward. A state whose sign is the wrong one stays on its branch of a
// hyperbola, V → 0 and P → ∞. So θ and w start from zero, like those of a fresh learner, and grow to full scale
// over the first Warmup steps: as long as δ is the reward alone, that one entry gives all states the same sign.
//
// A run whose loss grows without bound all the same starts again at half the rate. Package train makes AdamW's steps
// in float32; these need float64, a preconditioner from the batch, and restarts.
type Config struct {
	Seed    uint64  `json:"seed"`    // root of every random stream
	States  int     `json:"states"`  // S
	Actions int     `json:"actions"` // A
	Gamma   float64 `json:"gamma"`   // discount γ of MDPs and teacher
	MDPs    int     `json:"mdps"`    // number of training MDPs
	Batch   int     `json:"batch"`   // windows a step
	Steps   int     `json:"steps"`   // optimizer steps
	Rate    float64 `json:"rate"`    // of the optimizer; 1 would be a full Newton step of P and of V
	Scale   float64 `json:"scale"`   // standard deviation of the initial parameters
	Warmup  int     `json:"warmup"`  // steps over which θ and w grow to their full scale
	Damping float64 `json:"damping"` // ridge of each factor, relative to its mean eigenvalue
}

// Native is the shape in which Liang and Lai train, S=9, A=4, γ=.5, at the paper's budget of 10,000 MDPs and 10⁷
// windows.
func Native(seed uint64) Config {
	t := Harness(seed, 9)
	t.Actions, t.Gamma = 4, 0.5
	return t
}

// Harness is the same recipe in the shape of the common harness, A=3, γ=.9.
func Harness(seed uint64, states int) Config {
	return Config{Seed: seed, States: states, Actions: mdp.Actions, Gamma: mdp.Discount,
		MDPs: 10_000, Batch: 20_000, Steps: 500, Rate: 0.5, Scale: 0.1, Warmup: 20, Damping: 1e-3}
}

// Validate reports the first field that makes no sense.
func (t Config) Validate() error {
	const most = 1 << 24 // MDPs, windows and steps: beyond it no run ends
	bad := func(format string, args ...any) error { return fmt.Errorf("lianglai: training "+format, args...) }
	switch {
	case min(t.States, t.Actions) < 2 || max(t.States, t.Actions) > 4096:
		return bad("on S=%d states and A=%d actions, want 2 to 4096 of each", t.States, t.Actions)
	case !(t.Gamma >= 0 && t.Gamma < 1):
		return bad("with γ = %v, want 0 ≤ γ < 1", t.Gamma)
	case min(t.MDPs, t.Batch, t.Steps, t.Warmup) < 1 || max(t.MDPs, t.Batch, t.Steps, t.Warmup) > most:
		return bad("with %d MDPs, batch %d, %d steps, of which %d warm up, want 1 to %d of each",
			t.MDPs, t.Batch, t.Steps, t.Warmup, most)
	case !(t.Rate > 0 && t.Rate <= 1 && t.Scale > 0 && t.Damping > 0) || math.IsInf(t.Scale+t.Damping, 1):
		return bad("with rate %v, scale %v and damping %v, want positive finite numbers, and a rate of at most 1",
			t.Rate, t.Scale, t.Damping)
	}
	return nil
}

// Trained is the result of a training run.
type Trained struct {
	Block *Block    // for α = β = 1
	Loss  []float64 // of each batch before its step [Steps]
}

// LossRatio is the last loss over the first.
func (r *Trained) LossRatio() float64 { return r.Loss[len(r.Loss)-1] / r.Loss[0] }

// Train runs a valid recipe, of which alone the result is a function. The function progress hears of each step, from 0
// again after a restart. An error says that the loss grows without bound at every rate, or has ctx's cause.
func (t Config) Train(ctx context.Context, progress func(step int, loss float64)) (*Trained, error) {
	problems, err := t.problems(seed.New(t.Seed, "lianglai", "mdps").Uint64(), t.MDPs)
	if err != nil {
		return nil, err
	}
	for rate := t.Rate; ; rate /= 2 {
		t.Rate = rate
		result, err := t.attempt(ctx, problems, progress)
		if !errors.Is(err, errDiverged) || rate < 0.01 {
			return result, err
		}
	}
}

// errDiverged is wrapped by the error of a run whose loss has grown without bound.
var errDiverged = errors.New("the loss grows without bound")

// attempt is Train on the given MDPs, at one rate.
func (t Config) attempt(ctx context.Context, problems []mdp.Problem, progress func(int, float64)) (*Trained, error) {
	prompt, rng := NewActorCriticPrompt(t.States, t.Actions), seed.New(t.Seed, "lianglai", "init")
	draw := func() *mat.Dense { return baseline.NormalMatrix(prompt.width, prompt.width, t.Scale, rng) }
	block := &Block{prompt, draw(), draw()}
	p, v := block.active()
	fit, batch := &fit{rate: t.Rate, damping: t.Damping, p: p, v: v}, newBatch(prompt, t.Batch)
	result := &Trained{Block: block}
	for step := range t.Steps {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("lianglai: training stopped before step %d: %w", step, context.Cause(ctx))
		}
		rng := seed.New(t.Seed, "lianglai", "batch", step)
		batch.draw(rng, problems, t.Gamma, min(1, float64(step)/float64(t.Warmup)))
		loss, err := fit.step(batch, rng)
		if err != nil {
			return nil, fmt.Errorf("lianglai: training step %d: %w", step, err)
		}
		result.Loss = append(result.Loss, loss)
		progress(step, loss)
	}
	return result, nil
}

// problems draws n random problems, with the discount γ in place of the family's.
func (t Config) problems(root uint64, n int) ([]mdp.Problem, error) {
	problems, err := mdp.Random.Draw(root, t.States, t.Actions, n)
	for i := 0; i < len(problems) && err == nil; i++ {
		m := problems[i].MDP
		problems[i].MDP, err = mdp.New(t.Gamma, m.DenseP(), m.R)
	}
	return problems, err
}

// active returns, as views, the parts of P and V that the increments depend on: P's rows of context coordinates and
// columns of query coordinates, V's rows of θ and w and columns of context coordinates. Everything else multiplies a
// zero of the prompt or is not read, has no gradient, and keeps its initial value.
func (b *Block) active() (activeP, activeV *mat.Dense) {
	context := b.Prompt.theta
	activeP = b.P.Slice(0, context, context, b.Prompt.width).(*mat.Dense)
	return activeP, b.V.Slice(context, b.Prompt.one, 0, context).(*mat.Dense)
}

// batch is a set of windows with their queries and the teacher's increments.
type batch struct {
	prompt  *ActorCriticPrompt
	windows [][]baseline.Transition
	pi      []*mat.Dense // [S, A], the policy of each window
	query   *mat.Dense   // [B, SA+S+1]: θ, w, 1
	target  *mat.Dense   // [B, SA+S]: Δθ, Δw
}

func newBatch(prompt *ActorCriticPrompt, size int) *batch {
	return &batch{prompt: prompt, windows: make([][]baseline.Transition, size), pi: make([]*mat.Dense, size),
		query:  mat.NewDense(size, prompt.width-prompt.theta, nil),
		target: mat.NewDense(size, prompt.one-prompt.theta, nil)}
}

// draw fills the batch anew, with θ and w from N(0, scale²).
func (b *batch) draw(rng *rand.Rand, problems []mdp.Problem, gamma, scale float64) {
	for i := range b.windows {
		query := b.query.RawRowView(i)
		for j := range query[:len(query)-1] {
			query[j] = scale * rng.NormFloat64()
		}
		query[len(query)-1] = 1
		learner := b.learner(i)
		b.pi[i] = learner.Policy()
		m := problems[rng.IntN(len(problems))].MDP
		b.windows[i] = baseline.NewChain(m, rng).Walk(b.windows[i][:0], b.pi[i], baseline.Window)
		b.target.SetRow(i, learner.Increment(b.windows[i], b.pi[i], gamma, baseline.StepSizes{Alpha: 1, Beta: 1}))
	}
}

// learner returns the learner of window i, whose parameters are views.
func (b *batch) learner(i int) *baseline.ActorCritic {
	sa, query := b.prompt.States*b.prompt.Actions, b.query.RawRowView(i)
	theta := mat.NewDense(b.prompt.States, b.prompt.Actions, query[:sa])
	return &baseline.ActorCritic{Theta: theta, W: query[sa : len(query)-1]}
}

// mix sets row i of out to C_i u_i, u_i that of u and C_i = (1/n) Σ z zᵀ over the sparse columns z of window i.
func (b *batch) mix(out, u *mat.Dense) {
	p := b.prompt
	out.Reset()
	out.ReuseAs(u.Dims())
	for i, window := range b.windows {
		from, to := u.RawRowView(i), out.RawRowView(i)
		for _, t := range window {
			pi := b.pi[i].RawRowView(t.State)
			at := t.State * p.Actions
			score := from[at+t.Action] + from[p.state+t.State] + from[p.next+t.Next] + t.Reward*from[p.reward]
			for a, prob := range pi {
				score -= prob * from[at+a]
			}
			score /= float64(len(window))
			to[at+t.Action] += score
			to[p.state+t.State] += score
			to[p.next+t.Next] += score
			to[p.reward] += score * t.Reward
			for a, prob := range pi {
				to[at+a] -= score * prob
			}
		}
	}
}

// fit is a block on its way to the teacher.
type fit struct {
	rate, damping float64
	p, v          *mat.Dense // the active parameters
	// Second moments of the vectors in the gradients, which are of e yᵀ and of (C Vᵀe) qᵀ for residuals e.
	value, sensitivity, query moment

	u, y, out, signs, g, h, gradP, gradV mat.Dense // reused in every step
}

// gradient returns the loss, mean_i ‖V C_i P q_i − target_i‖², and leaves half its gradient in gradP and gradV.
func (f *fit) gradient(b *batch) (loss float64) {
	n, _ := b.query.Dims()
	f.u.Mul(b.query, f.p.T())
	b.mix(&f.y, &f.u)
	f.out.Mul(&f.y, f.v.T())
	f.out.Sub(&f.out, b.target)
	for _, e := range f.out.RawMatrix().Data {
		loss += e * e
	}
	f.out.Scale(1/float64(n), &f.out)
	f.gradV.Mul(f.out.T(), &f.y)
	f.g.Mul(&f.out, f.v)
	b.mix(&f.h, &f.g)
	f.gradP.Mul(f.h.T(), b.query)
	return loss / float64(n)
}

// step takes a step of the optimizer and returns the loss before it. The Gauss–Newton matrix of V given P is I ⊗
// E[y yᵀ]; that of P given V is E[C Vᵀ V C ⊗ q qᵀ], which factors since q hardly depends on the window. Random
// signs ε estimate E[C Vᵀ V C] as the second moment of C Vᵀ ε.
func (f *fit) step(b *batch, rng *rand.Rand) (loss float64, err error) {
	loss = f.gradient(b)
	if !(loss <= 1e30) { // it starts at order one and does not come back from there
		return loss, errDiverged
	}
	f.signs.Apply(func(int, int, float64) float64 { return float64(2*rng.IntN(2) - 1) }, &f.out)
	f.g.Mul(&f.signs, f.v)
	b.mix(&f.h, &f.g)
	f.value.add(&f.y)
	f.sensitivity.add(&f.h)
	f.query.add(b.query)

	var stepP, stepV, half mat.Dense
	for _, solve := range []func() error{
		func() error { return f.sensitivity.solve(&half, &f.gradP, f.damping) },
		func() error { return f.query.solve(&stepP, half.T(), f.damping) },
		func() error { return f.value.solve(&stepV, f.gradV.T(), f.damping) },
	} {
		if err := solve(); err != nil {
			return loss, err
		}
	}
	stepP.Scale(f.rate, &stepP)
	stepV.Scale(f.rate, &stepV)
	f.p.Sub(f.p, stepP.T())
	f.v.Sub(f.v, stepV.T())
	return loss, nil
}

// moment is a running mean of the second moment of vectors.
type moment struct {
	sum    mat.SymDense
	weight float64
}

// add takes in a batch of vectors, the rows of x.
func (m *moment) add(x *mat.Dense) {
	const keep = 0.9
	n, d := x.Dims()
	if m.sum.IsEmpty() {
		m.sum.ReuseAsSym(d)
	}
	m.sum.ScaleSym(keep, &m.sum)
	m.sum.SymRankK(&m.sum, (1-keep)/float64(n), x.T())
	m.weight = keep*m.weight + 1 - keep
}

// solve sets x to (M + ridge·I)⁻¹ y, M being the running mean and ridge the damping times its mean eigenvalue. The
// ridge also covers the directions in which there is nothing to learn, such as adding a constant to a row of θ.
func (m *moment) solve(x *mat.Dense, y mat.Matrix, damping float64) error {
	d := m.sum.SymmetricDim()
	var ridged mat.SymDense
	ridged.ScaleSym(1/m.weight, &m.sum)
	ridge := damping * mat.Trace(&ridged) / float64(d)
	for i := range d {
		ridged.SetSym(i, i, ridged.At(i, i)+ridge)
	}
	var chol mat.Cholesky
	if !chol.Factorize(&ridged) {
		return errors.New("second moments are not positive definite")
	}
	return chol.SolveTo(x, y)
}

// write stores a trained block: "P" and "V" [d, d] and "loss" [Steps], and the recipe as JSON under "config".
func (t Config) write(path string, trained *Trained) error {
	b, d := trained.Block, trained.Block.Prompt.width
	f := &safetensors.File{Metadata: map[string]string{"config": string(train.JSON(t))}, Tensors: []safetensors.Tensor{
		{Name: "P", Shape: []int{d, d}, Data: b.P.RawMatrix().Data},
		{Name: "V", Shape: []int{d, d}, Data: b.V.RawMatrix().Data},
		{Name: "loss", Shape: []int{len(trained.Loss)}, Data: trained.Loss},
	}}
	return safetensors.WriteFile(path, f)
}

// read reads what write stored of this very recipe, after its last step. It returns an error for another file, and on
// tensors of other shapes or with numbers that are not finite.
func (t Config) read(path string, step int) (*Trained, error) {
	f, err := safetensors.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("lianglai: %w", err)
	}
	if config := f.Metadata["config"]; config != string(train.JSON(t)) || step != t.Steps {
		return nil, fmt.Errorf("lianglai: %s holds configuration %.12s, want step %d of %.12s", path,
			train.Hash([]byte(config)), step, method.Hash(t))
	}
	prompt, parts := NewActorCriticPrompt(t.States, t.Actions), [3][]float64{}
	d := prompt.width
	for i, name := range []string{"P", "V", "loss"} {
		size := []int{d * d, d * d, t.Steps}[i]
		parts[i], err = safetensors.Get[float64](f, name)
		if err == nil && (len(parts[i]) != size || !(floats.Norm(parts[i], math.Inf(1)) <= math.MaxFloat64)) {
			err = fmt.Errorf("%d numbers, want %d that are finite", len(parts[i]), size)
		}
		if err != nil {
			return nil, fmt.Errorf("lianglai: tensor %q: %w (in %s)", name, err, path)
		}
	}
	block := &Block{prompt, mat.NewDense(d, d, parts[0]), mat.NewDense(d, d, parts[1])}
	return &Trained{Block: block, Loss: parts[2]}, nil
}
