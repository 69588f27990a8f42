package distill

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/method"
	"icrl/policyattention/pmd"
	"icrl/policyattention/train"
	"icrl/policyattention/transformer/engine"
)

// Method is Algorithm Distillation among the methods, whose source is [Source]. Its recipes are
//
//	full             the paper's, with its source rate
//	full-cleared     its control: its weights, with the context cleared before each round
//	full-short       another: with a context of one round
//	full-tuned       the paper's with the tuned source rate
//	first            the paper's first attempt, which failed to qualify
//	cpu              the budget for machines without a GPU, with the paper's source rate
//	cpu-tuned        with the tuned source rate
//	cpu-tuned-short  its control
//	cpu-source-X     with source rate X, for tuning
var Method = method.Method{
	Name: name, Label: "Algorithm Distillation",
	// It has no free numbers of its own; published is its source's rate.
	Informed: method.Informed{method.ByWindow: method.Walking(name, "cpu-tuned", "cpu")},
	Deploy: func(s method.Setting) (method.Deployment, error) {
		name, cleared := strings.CutSuffix(s.Recipe, "-cleared")
		c, err := recipe(name, s.Identity.Model, s.States, s.Tuned["source"])
		if err != nil {
			return nil, err
		}
		s.Limits.Bound("histories", &c.Histories)
		s.Limits.Bound("length", &c.Length)
		s.Limits.Bound("context", &c.Context)
		s.Limits.Bound("batch", &c.Batch)
		s.Limits.Bound("steps", &c.Steps)
		s.Limits.Bound("width", &c.Width, &c.Hidden)
		return &deployment{method.InContext[Config]{Training: c, States: c.States, Actions: c.Actions,
			Root: s.Identity.Model, Cleared: cleared, Open: open}}, nil
	},
}

// recipes are those that others are variations of.
var recipes = map[string]func(seed uint64, states int) Config{"full": Paper, "first": FirstAttempt, "cpu": CPU}

// recipe returns the configuration of a recipe, given the tuned step sizes of the source.
func recipe(name string, seed uint64, states int, tuned baseline.StepSizes) (c Config, err error) {
	base, short := strings.CutSuffix(name, "-short")
	base, isTuned := strings.CutSuffix(base, "-tuned")
	base, rate, rated := strings.Cut(base, "-source-")
	of, ok := recipes[base]
	if !ok || isTuned && rated {
		return c, fmt.Errorf("no recipe %q of Algorithm Distillation", name)
	}
	if c = of(seed, states); isTuned {
		c.Source = tuned
	}
	if rated {
		c.Source.Alpha, err = strconv.ParseFloat(rate, 64)
		if err != nil || !(c.Source.Alpha > 0 && c.Source.Alpha <= math.MaxFloat64) {
			err = fmt.Errorf("recipe %q of Algorithm Distillation: the rate is %q, want a number above 0", name, rate)
		}
	}
	if short {
		c = c.ShortContext()
	}
	return c, err
}

// deployment has the step sizes of its source.
type deployment struct{ method.InContext[Config] }

var _ method.Learner = (*deployment)(nil)

// StepSizes implements method.Learner.
func (d *deployment) StepSizes() baseline.StepSizes { return d.Training.Source }

// Key, Name and Seconds implement method.Training.
func (c Config) Key() string { return "distill" }
func (c Config) Name() string {
	return fmt.Sprintf("%s-source%v-context%d-steps%d-S%d-%d", name, c.Source.Alpha, c.Context, c.Steps, c.States,
		c.Seed)
}
func (c Config) Seconds() float64 {
	const perParameter = 4e-11 // and token
	tokens := float64(c.Steps) * float64(c.Batch) * float64(c.Context)
	perToken := train.SecondsPerToken*float64(c.Layers)/4 + perParameter*float64(c.Network().Size()) +
		train.SecondsPerContext*float64(c.Context)
	return tokens * perToken
}

// Source is the source algorithm by itself, tabular actor–critic, among the methods. What Algorithm Distillation can
// be asked for is to learn as fast as the histories that it imitates. Its recipes are
//
//	source        with the paper's rate
//	source-tuned  with the tuned one
var Source = method.Method{
	Name: "actor-critic", Label: "Actor–critic", Untrained: true,
	Deploy: func(s method.Setting) (method.Deployment, error) {
		steps, ok := map[string]baseline.StepSizes{
			"source": Paper(0, s.States).Source, "source-tuned": s.Tuned["source"]}[s.Recipe]
		if !ok {
			return nil, fmt.Errorf("no recipe %q of actor–critic", s.Recipe)
		}
		d := &SourceDeployment{}
		d.ActorCritic.Steps, d.ActorCritic.Start = steps, baseline.Uniform
		return d, nil
	},
}

// SourceDeployment deploys the source algorithm.
type SourceDeployment struct {
	ActorCritic struct {
		Steps baseline.StepSizes `json:"steps"`
		Start baseline.Start     `json:"start"`
	} `json:"actor_critic"`
}

// Weights and Controller implement method.Deployment. Transitions come from streams below root.
func (d *SourceDeployment) Weights() []method.Weights { return nil }
func (d *SourceDeployment) Controller(_ *method.Models, _ float64, root uint64) (control.Controller, error) {
	return baseline.Teacher(d.ActorCritic.Steps, d.ActorCritic.Start, baseline.OneHot, root), nil
}

// open reads the network of a deployment.
func open(m *method.Models, d *method.InContext[Config]) (func(lives int) baseline.Reader, error) {
	network, err := method.Network(m, d.Training)
	return func(lives int) baseline.Reader { return newReader(d.Training, network, lives, d.Cleared) }, err
}

// reader implements baseline.Reader.
type reader struct {
	Config
	network *engine.Network[float32]
	cache   *engine.Cache[float32] // of what each life has shown, with room for the context
}

// newReader returns one that has read nothing. Its context has room for one round where it is cleared before each.
func newReader(c Config, network *engine.Network[float32], lives int, cleared bool) *reader {
	if cleared {
		return &reader{c, network, network.NewCache(lives, c.ShortContext().Context)}
	}
	return &reader{c, network, network.NewCache(lives, c.Context)}
}

// Begin implements baseline.Reader. Where the context has no room for a round and the query after it, the cache is
// emptied, and positions count from the first token that is read again.
func (r *reader) Begin() (again int) {
	if r.cache.Length+baseline.Window+1 <= r.cache.Room {
		return 0
	}
	r.cache.Length = 0
	return r.cache.Room - baseline.Window - 1
}

// Read implements baseline.Reader.
func (r *reader) Read(k int, alternatives bool, token func(life, j int) baseline.Token) ([]*mat.Dense, error) {
	n, features := r.cache.Sequences, r.Network().Features
	tokens := make([]float32, n*k*features)
	for i := range n {
		for j := range k {
			position := r.cache.Length
			if !alternatives {
				position += j
			}
			r.token(tokens[(i*k+j)*features:][:features], token(i, j), position)
		}
	}
	logits, err := r.network.Extend(r.cache, k, tokens, alternatives)
	if err != nil {
		return nil, fmt.Errorf("distill: %w", err)
	}
	rows := make([]*mat.Dense, n)
	for i := range rows {
		rows[i] = mat.NewDense(k, r.Actions, nil)
		for j, z := range logits[i*k*r.Actions:][:k*r.Actions] {
			rows[i].RawMatrix().Data[j] = float64(z)
		}
		for j := range k {
			pmd.Softmax(rows[i].RawRowView(j))
		}
	}
	return rows, nil
}

// token writes the network's input from a token and its position.
func (c Config) token(into []float32, x baseline.Token, position int) {
	if x.Previous != baseline.None {
		into[x.Previous] = 1
	}
	into[c.Actions] = x.Reward
	into[c.Actions+1+int(x.State)] = 1
	into[c.Actions+1+c.States+position] = 1
}
