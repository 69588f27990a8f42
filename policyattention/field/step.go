package field

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/decoder"
	"icrl/policyattention/experiment"
	"icrl/policyattention/field/wang"
	"icrl/policyattention/field/xie"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/method/all"
	"icrl/policyattention/pmd"
	"icrl/policyattention/report"
	"icrl/policyattention/seed"
)

// Step is one step of a system's construction, from a policy and, where it wants any, transitions
// that the policy made.
type Step struct {
	System string `json:"system"`
	// Algorithm is what the step is to be: Distance is the largest difference of a number of
	// the result from it, and Bound what is allowed.
	Algorithm string  `json:"algorithm"`
	Distance  float64 `json:"distance"`
	Bound     float64 `json:"bound"`
	// Attends says what the query of the last state scores by, Keys are what it can look
	// at, and Share [len(Keys)] how much of it goes to each: absolute scores or softmax
	// weights, which sum to 1.
	Attends string    `json:"attends"`
	Keys    []string  `json:"keys"`
	Share   []float64 `json:"share"`
}

// walked is the context that all systems get.
type walked struct {
	problem mdp.Problem
	window  []baseline.Transition
	last    int // the state after the window
}

// Steps makes one step of each system that has a construction, on one random problem with four
// states and the transitions of one round under its policy π₀. Systems of policy evaluation
// start from values 0, those of control from π₀ (Liang–Lai's critic from 0, PolicyAttention's
// from Q^{π₀}).
func Steps(root uint64) ([]Step, error) {
	problems, err := mdp.Random.Draw(root, 4, 3, 1)
	if err != nil {
		return nil, err
	}
	w := walked{problem: problems[0], window: make([]baseline.Transition, baseline.Window)}
	chain := baseline.NewChain(w.problem.MDP, seed.New(root, "field", "step"))
	chain.Walk(w.problem.Pi0, w.window)
	w.last = chain.State
	var made []Step
	for _, step := range []func(walked) (Step, error){walked.wang, walked.xie, walked.liangLai, walked.policyAttention} {
		s, err := step(w)
		if err != nil {
			return nil, fmt.Errorf("field: %s: %w", s.System, err)
		}
		made = append(made, s)
	}
	return made, nil
}

// keys name the transitions.
func (w walked) keys() (names []string) {
	for _, t := range w.window {
		names = append(names, fmt.Sprintf("(s=%d, a=%d, r=%.2f, s′=%d)", t.State, t.Action, t.Reward, t.Next))
	}
	return names
}

// shares returns absolute values over their sum.
func shares(scores []float64) []float64 {
	out := make([]float64, len(scores))
	for i, x := range scores {
		out[i] = math.Abs(x)
	}
	floats.Scale(1/floats.Sum(out), out)
	return out
}

func (w walked) wang() (Step, error) {
	m, n := w.problem.MDP, len(w.window)
	s := Step{System: "Wang et al. 2025", Algorithm: "batch TD(0), one-hot features, α = 1", Attends: "φ_kᵀφ: transitions from the same state, alike", Keys: w.keys()}
	c := &wang.Context{Phi: mat.NewDense(m.States(), n, nil), Next: mat.NewDense(m.States(), n, nil), Queries: mat.NewDense(m.States(), 1, nil)}
	for k, t := range w.window {
		c.Phi.Set(t.State, k, 1)
		c.Next.Set(t.Next, k, m.Gamma)
		c.R = append(c.R, t.Reward)
	}
	c.Queries.Set(w.last, 0, 1)
	spec := wang.Spec{Algorithm: wang.TD0, D: m.States(), N: n, Queries: 1, Alpha: 1}
	layer, err := spec.Layer()
	if err != nil {
		return s, err
	}
	prompt := c.Prompt(0)
	s.Distance = math.Abs(spec.Values(layer.Apply(prompt))[0] - spec.Step(c, make([]float64, m.States()))[w.last])
	s.Bound = wang.Tolerance(m.States(), n) * float64(n)
	var key, scores mat.VecDense
	key.MulVec(layer.Heads[0].Q, prompt.ColView(n))
	scores.MulVec(prompt.T(), &key)
	s.Share = shares(scores.RawVector().Data[:n])
	return s, nil
}

func (w walked) xie() (Step, error) {
	m, n := w.problem.MDP, len(w.window)
	s := Step{System: "Xie et al. 2026", Algorithm: "weighted softmax TD, one-hot features, α = 1", Attends: "softmax of ⟨x, x_k⟩: e times as much to the same state", Keys: w.keys()}
	c := &xie.Context{X: mat.NewDense(m.States(), n+1, nil)}
	for k, t := range w.window {
		c.X.Set(t.State, k, 1)
		c.R = append(c.R, t.Reward)
	}
	c.X.Set(w.last, n, 1)
	spec := xie.Spec{Form: xie.OneHead, D: m.States(), N: n, Gamma: m.Gamma, Alpha: 1}
	layer, err := spec.Layer()
	if err != nil {
		return s, err
	}
	zero := make([]float64, n+1)
	prompt := spec.Prompt(c, zero)
	got, next := layer.Apply(prompt), spec.Step(c, zero)
	s.Distance = floats.Distance(got.RawRowView(m.States()+1), next, math.Inf(1)) // the row of v, see xie.OneHead
	s.Bound = xie.Tolerance(m.States(), n, 1) * (2*floats.Norm(next, math.Inf(1)) + floats.Norm(c.R, math.Inf(1)))
	s.Share = mat.Col(nil, n, xie.Kernel(prompt, layer.Heads[0].A))[:n]
	return s, nil
}

func (w walked) liangLai() (Step, error) {
	m := w.problem.MDP
	s := Step{System: "Liang–Lai 2026", Algorithm: "semi-gradient actor–critic, α = 2, β = .2", Attends: "TD errors δ_k: surprising transitions", Keys: w.keys()}
	liang, err := all.Methods.Find(experiment.LiangLai)
	if err != nil {
		return s, err
	}
	d, err := liang.Deploy(method.Setting{Recipe: "tuned", States: m.States(), Actions: m.Actions()})
	if err != nil {
		return s, err
	}
	written, ok := d.(interface {
		Written(l *baseline.ActorCritic, window []baseline.Transition, gamma float64, steps baseline.StepSizes) (scores []float64, distance float64, err error)
	})
	if !ok {
		return s, fmt.Errorf("%T has no block that is written down", d)
	}
	learner, err := baseline.NewActorCritic(w.problem.Pi0)
	if err != nil {
		return s, err
	}
	steps := baseline.StepSizes{Alpha: 2, Beta: .2}
	scores, distance, err := written.Written(learner, w.window, m.Gamma, steps)
	if err != nil {
		return s, err
	}
	s.Distance, s.Share = distance, shares(scores)
	// A sum of the window's errors, each of at most two roundings more than the numbers in it.
	s.Bound = 2 * float64(len(w.window)+4) * steps.Alpha * (1 + m.Gamma) * 0x1p-53 * m.Bound()
	return s, nil
}

func (w walked) policyAttention() (Step, error) {
	m := w.problem.MDP
	s := Step{System: "PolicyAttention", Algorithm: "policy mirror descent, η = .8 (ζ)", Attends: "softmax of log π + ηQ: memories of the state, better actions more"}
	q, err := m.PolicyValue(w.problem.Pi0)
	if err != nil {
		return s, err
	}
	d, err := decoder.New(decoder.Caps{
		States: m.States(), Actions: m.Actions(), Gamma: m.Gamma, RMax: 1, EtaMin: control.NominalStep, EtaMax: control.NominalStep,
		Rounds: 1, Routing: 1e-3, Alpha: .05, Packets: 1,
	})
	if err != nil {
		return s, err
	}
	next, err := d.Improve(w.problem.Pi0, q, control.NominalStep)
	if err != nil {
		return s, err
	}
	exact, err := pmd.Step(w.problem.Pi0, q, control.NominalStep)
	if err != nil {
		return s, err
	}
	s.Distance, s.Bound = pmd.MaxRowL1(next, exact), d.ZetaAt(control.NominalStep)
	call, err := d.TraceActor(w.problem.Pi0, q, control.NominalStep)
	if err != nil {
		return s, err
	}
	memories := m.States() * m.Actions()
	s.Keys = call.Names[:memories]
	s.Share = call.Blocks[0].Heads[0].Weights(memories + w.last)[:memories]
	return s, nil
}

// StepTable is what Steps returns, with the three keys that most of the attention goes to.
func StepTable(steps []Step) report.Table {
	t := report.Table{
		Name: "step", Title: "One step of each construction on one problem", Values: steps,
		Columns: []string{"system", "one step of", "largest difference", "allowed", "attends to", "most of it goes to"},
		Notes:   []string{"One random problem with S = 4, and 20 transitions of its policy π₀. Shares are absolute scores where attention is linear and weights where it is softmax. Algorithm Distillation and S5RL have no construction: what they do in a step is learned."},
	}
	for _, s := range steps {
		order := make([]int, len(s.Share))
		sorted := append([]float64(nil), s.Share...)
		floats.Argsort(sorted, order)
		most := ""
		for k := range min(3, len(order)) {
			at := order[len(order)-1-k]
			if k > 0 {
				most += "; "
			}
			most += fmt.Sprintf("%s: %.0f %%", s.Keys[at], 100*s.Share[at])
		}
		t.Rows = append(t.Rows, []string{s.System, s.Algorithm, fmt.Sprintf("%.2g", s.Distance), fmt.Sprintf("%.2g", s.Bound), s.Attends, most})
	}
	return t
}
