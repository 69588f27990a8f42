package critic_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"icrl/internal/testkit"
	"icrl/policyattention/anymdp/critic"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
	"icrl/policyattention/train"
)

func released(t *testing.T) critic.Estimator {
	t.Helper()
	return testkit.Must(critic.Released())(t)
}

func problems(t *testing.T, root uint64, states, actions, n int) []mdp.Problem {
	t.Helper()
	return testkit.Must(mdp.Random.Draw(root, states, actions, n))(t)
}

// contexts are the critic's after one exact step from π₀.
func contexts(t *testing.T, all []mdp.Problem) []control.Context {
	t.Helper()
	var batch []control.Context
	for i, p := range all {
		q := testkit.Must(p.MDP.PolicyValue(p.Pi0))(t)
		pi := testkit.Must(pmd.Step(p.Pi0, q, .8))(t)
		batch = append(batch, control.Context{Problem: i, MDP: p.MDP, Pi: pi, Q: q})
	}
	return batch
}

func evaluate(t *testing.T, c control.Critic, batch []control.Context) []*mat.Dense {
	t.Helper()
	return testkit.Must(c.Evaluate(batch))(t)
}

// In its first round frequencies are the mean of the same samples, with the correction and without.
func TestFirstRound(t *testing.T) {
	batch := contexts(t, problems(t, 5, 6, 3, 4))
	for _, corrected := range []bool{false, true} {
		got := evaluate(t, &critic.Critic{Estimate: posterior(0), Samples: 7, Root: 9, Corrected: corrected}, batch)
		want := evaluate(t, train.SampleMean{Samples: 7, Root: 9}, batch)
		for i := range got {
			if d := mdp.MaxAbsDiff(got[i], want[i]); d > 1e-13 {
				t.Errorf("problem %d: %v from the mean of samples", i, d)
			}
		}
	}
}

// PMD's logits are those of the newest rows for all rounds so far: the sum of the answers is
// r + γ p̂·v summed over rounds, with p̂ of the counts of all, drawn here again.
func TestCorrectionSumsToNewestRows(t *testing.T) {
	const states, actions, samples, rounds, root = 5, 2, 3, 12, 4
	batch := contexts(t, problems(t, 6, states, actions, 1))
	m := batch[0].MDP
	counts, values := mat.NewDense(states*actions, states, nil), make([]float64, states)
	answers := mat.NewDense(states, actions, nil)
	c := &critic.Critic{Estimate: posterior(1), Samples: samples, Root: root, Corrected: true}
	for k := range rounds {
		x := batch[0]
		x.Round = k
		rng := seed.New(root, "critic", 0, k)
		for pair := range states * actions {
			for range samples {
				_, next := m.Transition(rng, pair/actions, pair%actions)
				counts.Set(pair, next, counts.At(pair, next)+1)
			}
		}
		for s := range states {
			for a := range actions {
				values[s] += x.Pi.At(s, a) * x.Q.At(s, a)
			}
		}
		q := evaluate(t, c, []control.Context{x})[0]
		answers.Add(answers, q)
		pi := testkit.Must(pmd.Step(x.Pi, q, .8))(t)
		batch[0].Pi, batch[0].Q = pi, q
	}
	for pair := range states * actions {
		want, n := 0.0, float64(samples*rounds)
		for s, v := range values {
			want += (counts.At(pair, s) + 1) / (n + states) * v
		}
		want = rounds*m.Reward(pair/actions, pair%actions) + m.Gamma*want
		if got := answers.At(pair/actions, pair%actions); math.Abs(got-want) > 1e-11 {
			t.Errorf("pair %d: answers sum to %v, want %v", pair, got, want)
		}
	}
}

// draw counts n transitions of each pair of a problem.
func draw(rng *rand.Rand, states, pairs, n int) *critic.Counts {
	c := &critic.Counts{States: states, Total: n}
	for range pairs {
		law, row := laws[0].Draw(rng, states), make([]float64, states)
		for range n {
			row[mdp.Sample(rng, law)]++
		}
		c.Next = append(c.Next, row)
	}
	return c
}

func estimate(t *testing.T, e critic.Estimator, all ...*critic.Counts) [][][]float64 {
	t.Helper()
	return testkit.Must(e(all))(t)
}

// The network is not told what rows are drawn from, and finds it in the counts of all pairs.
// Where rows are from Dirichlet(1) its squared error is near that of the posterior mean, which
// no function of the counts surpasses, and below that of the frequencies; where they have two
// successors, it is below that of the posterior mean and near that of the frequencies. From
// S = 7 on, with 21 pairs or more, within 20 % and 2 %; with 9 or 12 pairs, which tell less,
// 35 % and 15 %. Measured: 13 %, 0 %, 27 % and 11 %. S = 32 is beyond what it was trained on.
func TestReleasedIsNearTheBest(t *testing.T) {
	for _, states := range []int{3, 4, 7, 8, 16, 32} {
		for _, n := range []int{6, 60} {
			dense, sparse := 1.2, 1.02
			if states < 7 {
				dense, sparse = 1.35, 1.15
			}
			for _, law := range laws[:2] {
				all := testkit.Must(accuracy(law, states, n, 11, released(t), posterior(0),
					posterior(1)))(t)
				overMean, overPosterior := all[0]/all[1], all[0]/all[2]
				t.Logf("S = %d, N = %d, %s: squared error of the network / frequencies %.3f, / posterior mean %.3f",
					states, n, law.Name, overMean, overPosterior)
				limits := [2]float64{1, dense}
				if law.Name == laws[1].Name {
					limits = [2]float64{sparse, 1}
				}
				if overMean > limits[0] || overPosterior > limits[1] {
					t.Errorf("S = %d, N = %d, %s: want at most %v", states, n, law.Name, limits)
				}
			}
		}
	}
}

// By construction, up to the order of sums: names of states, and which pair is which.
func TestRenamingChangesNothing(t *testing.T) {
	rng := seed.New(12, "rename")
	for _, states := range []int{2, 5, 16, 20} {
		c := draw(rng, states, 6, 9)
		names, pairs := rng.Perm(states), rng.Perm(6)
		other := &critic.Counts{States: states, Total: 9, Next: make([][]float64, 6)}
		for pair, row := range c.Next {
			other.Next[pairs[pair]] = make([]float64, states)
			for s, n := range row {
				other.Next[pairs[pair]][names[s]] = n
			}
		}
		both := estimate(t, released(t), c, other)
		for pair := range c.Next {
			for s, p := range both[0][pair] {
				if d := math.Abs(p - both[1][pairs[pair]][names[s]]); d > 1e-12 {
					t.Errorf("S = %d, pair %d, state %d: probabilities differ by %g", states, pair, s, d)
				}
			}
		}
	}
}

// Rewards of another scale and offset give answers of that scale and offset: an answer is r +
// γ times values, and no value is seen by the network.
func TestScaleAndOffset(t *testing.T) {
	p := problems(t, 8, 5, 3, 1)[0]
	const scale, offset = 300, -7
	r := mat.DenseCopyOf(p.MDP.R)
	r.Apply(func(_, _ int, v float64) float64 { return scale*v + offset }, r)
	m := testkit.Must(mdp.New(p.MDP.Gamma, p.MDP.DenseP(), r))(t)
	run := func(p mdp.Problem, eta float64) *mat.Dense {
		loop := control.ExactPMD(eta)
		loop.Critic = &critic.Critic{Estimate: released(t), Samples: 4, Root: 3, Corrected: true, Anchored: true}
		trajectories := testkit.Must(loop.Run([]mdp.Problem{p}, 15))(t)
		return trajectories[0].Policies[15]
	}
	if d := mdp.MaxAbsDiff(run(p, .8), run(mdp.Problem{MDP: m, Pi0: p.Pi0}, .8/scale)); d > 1e-9 {
		t.Errorf("with rewards %v·r %+v at η/%v policies differ by %g", scale, offset, scale, d)
	}
}

// The same rounds give the same answers, in one batch or problem by problem, and a memory begins
// anew with the first round.
func TestMemoryIsByProblem(t *testing.T) {
	batch := contexts(t, problems(t, 9, 4, 3, 3))
	c := &critic.Critic{Estimate: released(t), Samples: 2, Root: 3, Corrected: true}
	first := evaluate(t, c, batch)
	later := slices.Clone(batch)
	for i := range later {
		later[i].Round = 1
	}
	second := evaluate(t, c, later)
	if mdp.MaxAbsDiff(first[0], second[0]) == 0 {
		t.Error("two rounds have the same answers")
	}
	for i := range batch { // again, from the first round
		if d := mdp.MaxAbsDiff(evaluate(t, c, batch[i:i+1])[0], first[i]); d != 0 {
			t.Errorf("problem %d by itself: round 0 differs by %g", i, d)
		}
	}
	for i := range batch {
		if d := mdp.MaxAbsDiff(evaluate(t, c, later[i:i+1])[0], second[i]); d != 0 {
			t.Errorf("problem %d by itself: round 1 differs by %g", i, d)
		}
	}
}

// Rounds of one problem in one batch are answered as one after the other.
func TestRoundsInOneBatch(t *testing.T) {
	var rounds []control.Context
	for k := range 3 {
		for _, x := range contexts(t, problems(t, 5, 6, 3, 2)) {
			x.Round = k
			rounds = append(rounds, x)
		}
	}
	for i := range rounds { // a problem is known by its MDP
		rounds[i].MDP = rounds[i%2].MDP
	}
	fresh := func() *critic.Critic {
		return &critic.Critic{Estimate: posterior(1), Samples: 7, Root: 9, Corrected: true}
	}
	one := fresh()
	var want []*mat.Dense
	for k := range 3 {
		want = append(want, evaluate(t, one, rounds[2*k:2*k+2])...)
	}
	if mat.Equal(want[0], want[2]) {
		t.Error("a later round's answer is the first one's")
	}
	for i, got := range evaluate(t, fresh(), rounds) {
		if !mat.Equal(got, want[i]) {
			t.Errorf("context %d of a batch of three rounds has another answer", i)
		}
	}
}

func TestRefusals(t *testing.T) {
	batch := contexts(t, problems(t, 9, 4, 3, 1))
	for name, c := range map[string]*critic.Critic{
		"no estimator": {Samples: 2}, "no samples": {Estimate: posterior(1)},
	} {
		if _, err := c.Evaluate(batch); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	missing := slices.Clone(batch)
	missing[0].MDP = nil
	if _, err := (&critic.Critic{Estimate: posterior(1), Samples: 2}).Evaluate(missing); err == nil {
		t.Error("without an MDP: no error")
	}
	broken := critic.Learned(func(sequences [][][]float64) ([][]float64, error) {
		all := make([][]float64, len(sequences))
		for i := range all {
			all[i] = slices.Repeat([]float64{math.NaN()}, len(sequences[i]))
		}
		return all, nil
	})
	if _, err := (&critic.Critic{Estimate: broken, Samples: 2}).Evaluate(batch); err == nil {
		t.Error("outputs that are no numbers: no error")
	}
}

// The rows of an anchored critic agree with the first table: backed up from v_0 again they give
// Q_0, whatever the samples. Of two states that leaves one row, which is P's. Where γ = 0 or all
// values are alike there is nothing to agree with.
func TestAnchor(t *testing.T) {
	for _, size := range [][2]int{{2, 2}, {4, 3}, {9, 2}} {
		p := problems(t, 13, size[0], size[1], 1)[0]
		x := contexts(t, []mdp.Problem{p})[0]
		q, pi := x.Q, x.Pi
		first := evaluate(t, &critic.Critic{Estimate: posterior(1), Samples: 3, Root: 5, Anchored: true},
			[]control.Context{{MDP: p.MDP, Pi: pi, Q: q, Eta: .8}})
		again := evaluate(t, &critic.Critic{Estimate: posterior(1), Samples: 3, Root: 5, Anchored: true},
			[]control.Context{{MDP: p.MDP, Pi: p.Pi0, Q: q}})
		// With η = 0 PMD came from π_0 itself, and v_1 = v_0.
		if d := mdp.MaxAbsDiff(again[0], q); d > 1e-12 {
			t.Errorf("S = %d: v_0 backed up again is off by %g", size[0], d)
		}
		free := evaluate(t, &critic.Critic{Estimate: posterior(1), Samples: 3, Root: 5},
			[]control.Context{{MDP: p.MDP, Pi: pi, Q: q, Eta: .8}})
		exact := p.MDP.EvaluationBackup(pi, q)
		anchored, without := mdp.MaxAbsDiff(first[0], exact), mdp.MaxAbsDiff(free[0], exact)
		if anchored > .7*without || size[0] == 2 && anchored > 1e-11 {
			t.Errorf("S = %d: the anchored backup is off by %g, without by %g", size[0], anchored, without)
		}
	}
	r := mat.NewDense(2, 2, []float64{1, 1, 1, 1})
	for _, gamma := range []float64{0, .9} {
		m := testkit.Must(mdp.New(gamma, mat.NewDense(4, 2, []float64{.5, .5, 1, 0, 0, 1, .2, .8}), r))(t)
		q := mat.NewDense(2, 2, []float64{1 / (1 - gamma), 1 / (1 - gamma), 1 / (1 - gamma), 1 / (1 - gamma)})
		got := evaluate(t, &critic.Critic{Estimate: posterior(1), Samples: 2, Corrected: true, Anchored: true},
			[]control.Context{{MDP: m, Pi: m.Uniform(), Q: q, Eta: 1}})
		if d := mdp.MaxAbsDiff(got[0], q); d > 1e-12 {
			t.Errorf("γ = %v, no differences: off by %g", gamma, d)
		}
	}
}

// In the loop the mean of all samples so far is worse than that of fresh ones, though its
// backups have a third of the error: they are alike from round to round. With the correction the
// posterior mean is as good as fresh samples, and its backups better. On 1,000 problems with the
// same samples; measured: losses 1.13, 1.25 and 1.12 times exact PMD's. Anchored it halves what
// remains, to 1.05, and the error.
func TestLoop(t *testing.T) {
	const n, rounds, root = 1000, 40, 32_900
	all := problems(t, root, 4, 3, n)
	_, exact := measure(t, all, rounds, control.ExactCritic{})
	freshError, fresh := measure(t, all, rounds, train.SampleMean{Samples: 6, Root: root + 1})
	with := func(c critic.Critic) (backup, loss float64) {
		c.Samples, c.Root = 6, root+1
		return measure(t, all, rounds, &c)
	}
	allError, frequencies := with(critic.Critic{Estimate: posterior(0)})
	correctedError, corrected := with(critic.Critic{Estimate: posterior(1), Corrected: true})
	anchoredError, anchored := with(critic.Critic{Estimate: posterior(1), Corrected: true, Anchored: true})
	if anchoredError > .6*freshError || anchored-exact > .6*(fresh-exact) {
		t.Errorf("anchored: error %.4f beside %.4f of fresh samples, loss %.4g beside %.4g and exact PMD's %.4g",
			anchoredError, freshError, anchored, fresh, exact)
	}
	if allError > .4*freshError || frequencies < fresh {
		t.Errorf("all so far: error %.4f beside %.4f of fresh samples, loss %.4g beside %.4g", allError, freshError,
			frequencies, fresh)
	}
	if correctedError > .95*freshError || corrected > 1.01*fresh {
		t.Errorf("corrected: error %.4f beside %.4f of fresh samples, loss %.4g beside %.4g", correctedError,
			freshError, corrected, fresh)
	}
}

// measure returns the mean absolute error of a backup in a loop with the exact actor, and the
// mean loss at its end.
func measure(t *testing.T, all []mdp.Problem, rounds int, c control.Critic) (backup, loss float64) {
	t.Helper()
	loop := control.ExactPMD(control.NominalStep)
	loop.Critic = c
	trajectories := testkit.Must(loop.Run(all, rounds))(t)
	n := float64(len(all))
	for i, x := range trajectories {
		scale := testkit.Must(control.NewScale(all[i]))(t)
		l := testkit.Must(scale.Loss(x.Policies[rounds]))(t)
		loss += l / n
		for k := range rounds - 1 {
			exact := all[i].MDP.EvaluationBackup(x.Policies[k+1], x.Q[k]).RawMatrix().Data
			for j, v := range x.Q[k+1].RawMatrix().Data {
				backup += math.Abs(v-exact[j]) / (float64(len(exact)*(rounds-1)) * n)
			}
		}
	}
	return backup, loss
}
