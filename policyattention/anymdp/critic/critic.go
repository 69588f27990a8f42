// Package critic is a critic with memory for any finite MDP: any numbers of states and actions, any number m of sampled
// transitions a pair and round, any discount factor and any scale and offset of rewards.
//
// A round gives it m generative transitions of every pair, as it gives every critic that sees samples. Others forget
// them; this one keeps how often each pair has led where. From those counts an [Estimator] makes rows p̂(·|s,a), and
// the critic answers, with v_j the values ⟨π̂_{j+1}(·|s'), Q_j(s',·)⟩ that round j is to be backed up from,
//
//	Q_{k+1}(s,a) = r + γ ( p̂_k·v_k + (p̂_k − p̂_{k−1})·Σ_{j<k} v_j ).
//
// The first term is the one-step backup by the newest rows. The second takes back what the rows of earlier rounds were
// wrong by. The logits of PMD with a constant step size are log π₀ + η Σ Q, so that with the correction they are
// at any time those of the newest rows for all rounds so far: Σ_{j≤k} Q_{j+1} = (k+1) r + γ p̂_k·Σ_{j≤k} v_j.
// Without it, errors of early rows stay in the logits, and memory makes a loop worse: the means of all samples so far
// have errors that are alike from round to round, where those of fresh samples average out.
//
// # The first table
//
// A loop begins with Q_0 = Q^{π_0}, which is exact, and r is known once a pair has been
// sampled. So Q_0(s,a) = r + γ P(·|s,a)·v_0, with v_0 = ⟨π_0, Q_0⟩, says of every row its mean
// of v_0 without any noise. An anchored critic takes the rows nearest to p̂ that agree,
//
//	argmin KL(p' ‖ p̂)  subject to  p'·v_0 = (Q_0(s,a) − r)/γ,
//
// which are p'(s') ∝ p̂(s') exp(θ v_0(s')): θ v_0 is added to the logits of attention, a step of PMD on the row,
// with the θ(s,a) that meets the constraint. Values of later rounds resemble v_0, so most of the sampling error goes.
// Every critic in a loop is given Q_0; the others do not use it. π_0 is what PMD came from in the first round,
// log π_0 = log π̂_1 − ηQ_0 up to a constant: with another actor v_0 is off by as much as that actor is.
//
// This is not what the paper's critic is told, which sees the samples of one round.
package critic

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/internal/numeric"
	"icrl/policyattention/anymdp"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
	"icrl/policyattention/transformer"
)

// Counts is how often the pairs of a problem have led where.
type Counts struct {
	States int
	Total  int         // transitions of each pair, the same for all
	Next   [][]float64 // [pairs][S], each row of sum Total
}

// Estimator makes rows p̂ [pairs][S], each a distribution, of the counts of a problem.
type Estimator func(c *Counts) ([][]float64, error)

// Critic is a control.Critic that remembers. It samples from the MDP of a context. A problem's memory begins with the
// first round that it is asked in, and anew when it is asked in the same or an earlier round, or with another MDP;
// where that is round 0, whose table must be Q^{π_0}, rows agree with it. It is not for concurrent use.
type Critic struct {
	Estimate Estimator
	Samples  int    // m, of every pair a round
	Root     uint64 // of the samples: a round of a problem has a stream of its own below it

	problems map[int]*memory // by the number of the problem
}

// memory is what is kept of a problem.
type memory struct {
	Counts
	mdp    *mdp.MDP
	round  int
	sum    []float64 // Σ_{j≤k} v_j [S]
	said   []float64 // p̂_{k−1}·Σ_{j<k} v_j of each pair
	anchor *anchor   // nil without
}

// Evaluate implements control.Critic. It returns an error for an invalid context, and
// without an estimator or a sample. A later round of a problem is answered after the earlier one.
func (c *Critic) Evaluate(batch []control.Context) ([]*mat.Dense, error) {
	if c.Estimate == nil || c.Samples < 1 {
		return nil, fmt.Errorf("critic: %d samples of every pair, want at least one, and an estimator", c.Samples)
	}
	values, err := control.CriticFunc(func(x control.Context) (*mat.Dense, error) {
		m, err := c.remember(x)
		if err != nil {
			return nil, err
		}
		rows, err := c.Estimate(&m.Counts)
		if err != nil {
			return nil, err
		}
		for pair, p := range rows {
			if m.anchor != nil && m.exists(pair) {
				m.anchor.tilt(pair, p)
			}
		}
		return mat.NewDense(m.States, x.MDP.Actions(), m.answer(rows)), nil
	}).Evaluate(batch)
	if err != nil {
		return nil, fmt.Errorf("critic: %w", err)
	}
	return values, nil
}

// remember samples a round and adds it, and the values to back up from, to the memory of its problem.
func (c *Critic) remember(x control.Context) (*memory, error) {
	if x.MDP == nil {
		return nil, errors.New("the MDP is missing, from which a critic samples")
	}
	states, actions := x.MDP.States(), x.MDP.Actions()
	if err := x.Check(states, actions); err != nil {
		return nil, err
	}
	m := c.problems[x.Problem]
	if m == nil || m.mdp != x.MDP || x.Round <= m.round {
		pairs := states * actions
		m = &memory{mdp: x.MDP, sum: make([]float64, states), said: make([]float64, pairs)}
		m.States, m.Next = states, make([][]float64, pairs)
		for pair := range m.Next {
			m.Next[pair] = make([]float64, states)
		}
		if c.problems == nil {
			c.problems = map[int]*memory{}
		}
		c.problems[x.Problem] = m
	}
	m.round = x.Round
	rng := seed.New(c.Root, "critic", x.Problem, x.Round)
	for pair, next := range m.Next {
		if !m.exists(pair) {
			continue
		}
		for range c.Samples {
			_, successor := x.MDP.Transition(rng, pair/actions, pair%actions)
			next[successor]++
		}
	}
	if x.Round == 0 && m.Total == 0 {
		m.anchor = newAnchor(x)
	}
	m.Total += c.Samples
	floats.Add(m.sum, x.MDP.StateValues(x.Pi, x.Q))
	return m, nil
}

// exists says whether there is the action of a pair.
func (m *memory) exists(pair int) bool {
	actions := m.mdp.Actions()
	return m.mdp.Exists(pair/actions, pair%actions)
}

// answer returns Q_{k+1} [pairs] by rows p̂ [pairs][S].
func (m *memory) answer(rows [][]float64) []float64 {
	q := make([]float64, len(rows))
	for pair, p := range rows {
		if !m.exists(pair) {
			q[pair] = math.Inf(-1)
			continue
		}
		all := numeric.Dot(p, m.sum)
		q[pair] = m.mdp.R.RawMatrix().Data[pair] + float64(m.mdp.Gamma*(all-m.said[pair]))
		m.said[pair] = all
	}
	return q
}

// anchor is what the table of the first round says of the rows of P.
type anchor struct {
	values []float64 // v_0 [S], scaled to [−½, ½]
	means  []float64 // of the values under P, of each pair
}

// newAnchor returns the anchor of a context of round 0; nil where its table says nothing: γ is 0 or all values equal.
func newAnchor(x control.Context) *anchor {
	states, actions := x.Pi.Dims()
	pi0 := mat.NewDense(states, actions, nil)
	for s := range states {
		before := pi0.RawRowView(s) // log π_0 and then π_0
		for b, p := range x.Pi.RawRowView(s) {
			if before[b] = math.Inf(-1); p > 0 {
				before[b] = numeric.Log(p) - float64(x.Eta*x.Q.At(s, b))
			}
		}
		pmd.Softmax(before)
	}
	a := &anchor{values: x.MDP.StateValues(pi0, x.Q), means: make([]float64, states*actions)}
	least, most := slices.Min(a.values), slices.Max(a.values)
	if x.MDP.Gamma == 0 || !(most > least) {
		return nil
	}
	scaled := func(v float64) float64 { return (v-least)/(most-least) - .5 }
	for s, v := range a.values {
		a.values[s] = scaled(v)
	}
	for pair, r := range x.MDP.R.RawMatrix().Data {
		a.means[pair] = scaled((x.Q.RawMatrix().Data[pair] - r) / x.MDP.Gamma)
	}
	return a
}

// steepest is the largest θ in size. A mean that is out of a row's reach is met as nearly as it allows.
const steepest = 60

// tilt makes p [S] the row of p(s') exp(θ v(s')) with the anchor's mean, by Newton's method between bounds.
func (a *anchor) tilt(pair int, p []float64) {
	theta, low, high := 0., -float64(steepest), float64(steepest)
	w := make([]float64, len(p))
	for range 200 {
		sum, mean, square := 0., 0., 0.
		for s, v := range a.values {
			w[s] = p[s] * numeric.Exp(float64(theta*v))
			sum += w[s]
			mean += float64(w[s] * v)
			square += float64(float64(w[s]*v) * v)
		}
		mean /= sum
		off := a.means[pair] - mean
		for s := range w {
			w[s] /= sum
		}
		if math.Abs(off) < 1e-15 || high-low < 1e-13 {
			break
		}
		if off > 0 {
			low = theta
		} else {
			high = theta
		}
		if theta += off / (square/sum - float64(mean*mean)); !(theta > low && theta < high) {
			theta = (low + high) / 2
		}
	}
	copy(p, w)
}

const (
	Features = 7  // of a token
	Slots    = 16 // tokens of the sequences that the network was trained on
	Most     = 6  // the largest logit of a virtual packet, in size
)

// tokens encodes the first pairs of a problem, each as a sequence with a token for each successor state s'. With n(s')
// of the N packets of the pair,
//
//	[ n/N | n/(n+1) | S/(S+N) | ρ | log(1+E)/10 | log S/4 | 1 ]
//
// where E is the number of pairs of packets, each of one state-action pair, in the whole problem, and
//
//	ρ = (c S − 1)/(S − 1),  c the share of these E that agree on s'.
//
// The expectation of ρ is 1/(S α + 1) where rows are from Dirichlet(α, …, α): what all pairs of the problem tell
// about how concentrated its rows are. It is ½ while E is 0. Sequences are filled up to [Slots] tokens with zeros,
// which stand for no state. Tokens have no positions, so that the network is equivariant to renaming states, and pairs
// are not seen together; nothing says how many actions there are, and no reward, value or discount factor is seen.
func (c *Counts) tokens(pairs int) [][][]float64 {
	states, total := float64(c.States), float64(c.Total)
	agree, of, agreement := 0.0, float64(len(c.Next)*c.Total*(c.Total-1)), .5
	for _, row := range c.Next {
		for _, n := range row {
			agree += float64(n * (n - 1))
		}
	}
	if of > 0 && c.States > 1 {
		agreement = (float64(agree/of*states) - 1) / (states - 1)
	}
	evidence, all := numeric.Log(1+of/2)/10, make([][][]float64, pairs)
	for pair := range all {
		all[pair] = make([][]float64, max(Slots, c.States))
		for s := range all[pair] {
			token := make([]float64, Features)
			if s < c.States {
				n := c.Next[pair][s]
				copy(token, []float64{n / total, n / (n + 1), states / (states + total), agreement, evidence,
					numeric.Log(states) / 4, 1})
				for k, v := range token {
					token[k] = float64(float32(v)) // as networks are trained on
				}
			}
			all[pair][s] = token
		}
	}
	return all
}

// Learned is the estimator of a network. It writes o(s') for each token, and the answer is softmax attention: over the
// N packets of the pair, whose logits are 0, and over one virtual packet a state, whose logit is ℓ = 6 tanh(o/6):
//
//	p̂(s') = (n(s') + e^ℓ(s')) / (N + Σ e^ℓ).
//
// So an answer is always a convex combination of values of states. It is a residual read-out: the frequencies of the
// packets are given, and what to hold of them is learned. As N grows it becomes them, whatever the network says.
func Learned(forward anymdp.Forward) Estimator {
	return func(c *Counts) ([][]float64, error) {
		outputs, err := forward(c.tokens(len(c.Next)))
		if err != nil {
			return nil, err
		}
		rows := make([][]float64, len(outputs))
		for pair, n := range c.Next {
			row, sum := make([]float64, c.States), 0.0
			for s, o := range outputs[pair][:c.States] {
				if math.IsNaN(o) || math.IsInf(o, 0) {
					return nil, fmt.Errorf("an output of the network is %v", o)
				}
				row[s] = n[s] + virtual(o)
				sum += row[s]
			}
			for s := range row {
				row[s] /= sum
			}
			rows[pair] = row
		}
		return rows, nil
	}
}

// virtual returns e^ℓ of an output.
func virtual(o float64) float64 {
	up, down := numeric.Exp(o/Most), numeric.Exp(-o/Most)
	if math.IsInf(up, 0) || math.IsInf(down, 0) {
		return numeric.Exp(math.Copysign(Most, o))
	}
	return numeric.Exp(Most * (up - down) / (up + down))
}

// Shape is the shape of the network.
func Shape() transformer.Config {
	return transformer.Config{
		Features: Features, Layers: 2, Heads: 4, Width: 32, Hidden: 64, Outputs: 1, Unordered: true,
	}
}
