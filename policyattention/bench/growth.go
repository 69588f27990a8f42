package bench

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"strings"

	"github.com/gomlx/compute"
	"gonum.org/v1/gonum/stat"

	"icrl/internal/usage"
	"icrl/policyattention/artifact"
	"icrl/policyattention/baseline/distill"
	"icrl/policyattention/control"
	"icrl/policyattention/decoder"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/seed"
	"icrl/policyattention/train"
)

// Growth is how costs grow with sizes, as measured on one machine.
type Growth struct {
	Machine string   `json:"machine"`
	Cores   int      `json:"cores"`
	Memory  float64  `json:"memory_megabytes"`
	Backend string   `json:"backend"`
	Note    string   `json:"note,omitempty"` // on the circumstances
	Series  []Series `json:"series"`
}

// Series is the cost of one kind of work along one axis.
type Series struct {
	Name   string  `json:"name"`
	Axis   string  `json:"axis"`
	Unit   string  `json:"unit"`   // of work, as in "a step"
	Budget float64 `json:"budget"` // units in one run of the paper's budget
	// Table is the megabytes of the problem's own tables, which what was measured
	// may be too small to show beside the program's memory.
	Table  PowerLaw `json:"table"`
	Points []Point  `json:"points"`
}

// Point is a measurement on one core. Seconds are of processor time, which
// neighbours on the machine disturb less than time on the wall.
type Point struct {
	X         float64 `json:"x"`
	Seconds   float64 `json:"cpu_seconds"` // a unit; the least of several
	Megabytes float64 `json:"megabytes"`   // most that the process held
	Load      string  `json:"load_average"`
}

// upper is how many points at the upper end a power law is fitted to.
const upper = 3

// PowerLaw is a power law c·xᵖ, fitted by least squares in logarithms.
type PowerLaw struct {
	C float64 `json:"c"`
	P float64 `json:"p"`
}

// At returns its value.
func (p PowerLaw) At(x float64) float64 { return p.C * math.Pow(x, p.P) }

// Reaches returns where it reaches a value; +Inf if it does not grow.
func (p PowerLaw) Reaches(value float64) float64 {
	if p.P < 0.05 {
		return math.Inf(1)
	}
	return math.Pow(value/p.C, 1/p.P)
}

func fit(points []Point, value func(Point) float64) PowerLaw {
	points = points[max(0, len(points)-upper):]
	var x, y []float64
	for _, p := range points {
		x, y = append(x, math.Log(p.X)), append(y, math.Log(value(p)))
	}
	intercept, slope := stat.LinearRegression(x, y, nil, false)
	return PowerLaw{math.Exp(intercept), slope}
}

// Time returns the power law of the seconds at the upper end.
func (s Series) Time() PowerLaw { return fit(s.Points, func(p Point) float64 { return p.Seconds }) }

// Space returns the power law of the megabytes at the upper end.
func (s Series) Space() PowerLaw { return fit(s.Points, func(p Point) float64 { return p.Megabytes }) }

// day is the longest that a run is waited for.
const day = 24 * 3600.

// Limit returns where a run stops fitting one machine: by the power laws, where
// it needs more than the memory, or one core longer than a day.
func (s Series) Limit(memory float64) (x float64, why string) {
	space, time := min(s.Space().Reaches(memory), s.Table.Reaches(memory)), s.Time().Reaches(day/s.Budget)
	if space < time {
		return space, "memory"
	}
	return time, "a day"
}

// ReadGrowth reads what Growth.Write wrote.
func ReadGrowth(path string) (*Growth, error) {
	g := &Growth{}
	if err := artifact.ReadJSON(path, g); err != nil {
		return nil, err
	}
	for _, s := range g.Series {
		if len(s.Points) < upper {
			return nil, fmt.Errorf("bench: %s: series %q has %d points, want at least %d: measure on", path, s.Name, len(s.Points), upper)
		}
	}
	return g, nil
}

// Resume takes over what a file holds of a study that has begun, which must be of the same
// machine and backend; a file that is not there holds nothing.
func (g *Growth) Resume(path string) error {
	var earlier Growth
	if err := artifact.ReadJSON(path, &earlier); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if earlier.Machine != g.Machine || earlier.Cores != g.Cores || earlier.Backend != g.Backend {
		return fmt.Errorf("bench: %s is of another machine (%s, %d cores, %s): write to another file", path, earlier.Machine, earlier.Cores, earlier.Backend)
	}
	*g = earlier
	return nil
}

// Write writes the measurements to a file.
func (g *Growth) Write(path string) error { return artifact.WriteJSON(path, g, "  ") }

// Axis is a series to measure: its values of x and how one is prepared.
type Axis struct {
	Series
	X []float64
	// work returns a function that does one unit, and one that ends it.
	work func(b compute.Backend, x int) (unit func() error, end func(), err error)
}

// tables are the float64s of a problem's P [S·A, S], at A = 3 or S = 8, and the
// five numbers of each of 24m packets.
var tables = map[string]PowerLaw{"S": {3 * 8. / (1 << 20), 2}, "A": {8 * 64. / (1 << 20), 1}, "m": {5 * 8 * 24. / (1 << 20), 1}}

// Axes are the series of the growth study. All but one axis stay at the paper's
// S = 8, A = 3, m = 6 and batch 64.
func Axes() []Axis {
	const steps = 51_200 // of the paper's runs
	axis := func(name, axis, unit string, budget float64, work func(compute.Backend, int) (func() error, func(), error), x ...float64) Axis {
		return Axis{Series{Name: name, Axis: axis, Unit: unit, Budget: budget, Table: tables[axis]}, x, work}
	}
	list := []Axis{
		axis("actor training", "S", "a step", steps, training(func(x int) train.Config {
			return train.Standard(train.Proximal, train.Plain(), 1, x)
		}), 2, 4, 8, 16, 32, 64),
		axis("actor training", "A", "a step", steps, training(func(x int) train.Config {
			c := train.Standard(train.Proximal, train.Plain(), 1, 8)
			c.Actions = x
			return c
		}), 2, 3, 6, 12, 24),
		axis("critic training", "m", "a step", steps, training(func(x int) train.Config {
			c := train.Standard(train.Critic, train.Plain(), 1, 8)
			c.Samples = x
			return c
		}), 1, 2, 4, 6, 12),
	}
	// One sequence a step, at the shape of the recipe with the longest context, of which only so much
	// is used.
	list = append(list, axis("distillation training", "context", "a sequence", 40_000*128, func(b compute.Backend, x int) (func() error, func(), error) {
		job, err := Job(distill.Method, "first", 1, method.Limits{"context": x, "batch": 1, "histories": 10})
		if err != nil {
			return nil, nil, err
		}
		return session(b, job)
	}, 50, 100, 200, 400))
	return append(list,
		axis("actor training, all runs", "identities", "a step of each", steps, identities, 1, 2, 4),
		axis("exact solution", "S", "an MDP", 64, solution, 2, 4, 8, 16, 32, 64),
		axis("exact PMD and its score, 40 rounds", "S", "a problem", 64, closedLoop, 2, 4, 8, 16, 32, 64),
		axis("decoder", "S", "a round", 64*40, decoderRound(func(x int) (s, a, m int) { return x, 3, 6 }), 2, 4, 8, 16, 32, 64),
		axis("decoder", "A", "a round", 64*40, decoderRound(func(x int) (s, a, m int) { return 8, x, 6 }), 2, 3, 6, 12, 24),
		axis("decoder", "m", "a round", 64*40, decoderRound(func(x int) (s, a, m int) { return 8, 3, x }), 2, 6, 16, 64, 256, 1024),
	)
}

// Measure takes the point of an axis at x, for at least so many seconds of
// processor time. The peak of memory is that of the whole process, so each point
// wants a process of its own.
func (a Axis) Measure(b compute.Backend, x, seconds float64) (Point, error) {
	unit, end, err := a.work(b, int(x))
	if err != nil {
		return Point{}, err
	}
	defer end()
	if err := unit(); err != nil { // compiles
		return Point{}, err
	}
	p := Point{X: x, Seconds: math.Inf(1)}
	began := usage.Processor()
	for turn, count := 0, 1; ; turn++ {
		before := usage.Processor()
		for range count {
			if err := unit(); err != nil {
				return Point{}, err
			}
		}
		after := usage.Processor()
		p.Megabytes = peakMB()
		if used := (after - before).Seconds(); used < 0.02 {
			count *= 4 // shorter than the clock's tick tells
		} else {
			p.Seconds = min(p.Seconds, used/float64(count))
			if turn >= 3 && (after-began).Seconds() > seconds {
				p.Load = strings.Join(loadAverages(1), " ")
				return p, nil
			}
		}
	}
}

func session(b compute.Backend, jobs ...train.Job) (func() error, func(), error) {
	s, err := train.NewJobSession(b, train.Execution{}, jobs...)
	if err != nil {
		return nil, nil, err
	}
	return func() error { _, err := s.Steps(1); return err }, s.Close, nil
}

func training(config func(x int) train.Config) func(compute.Backend, int) (func() error, func(), error) {
	return func(b compute.Backend, x int) (func() error, func(), error) {
		c := config(x)
		c.Examples = 128 // more would be the same work
		run, err := c.In("", nil)
		if err != nil {
			return nil, nil, err
		}
		return session(b, run.Job)
	}
}

// identities trains several runs in one computation.
func identities(b compute.Backend, n int) (func() error, func(), error) {
	jobs := make([]train.Job, n)
	for i := range jobs {
		c := train.Standard(train.Proximal, train.Plain(), uint64(i+1), 8)
		c.Examples = 128
		run, err := c.In("", nil)
		if err != nil {
			return nil, nil, err
		}
		jobs[i] = run.Job
	}
	return session(b, jobs...)
}

// Job returns the training run of a recipe of a method at S = 8. It returns an error if the method
// does not train by the common trainer.
func Job(m method.Method, recipe string, seed uint64, limits method.Limits) (train.Job, error) {
	d, err := m.Deploy(method.Setting{Recipe: recipe, States: 8, Actions: mdp.Actions, Identity: method.Identity{Model: seed}, Limits: limits})
	if err != nil {
		return train.Job{}, err
	}
	shared, ok := d.Weights()[0].Training.(method.Shared)
	if !ok {
		return train.Job{}, fmt.Errorf("bench: %s does not train by the common trainer", m.Label)
	}
	run, err := shared.In("", nil)
	return run.Job, err
}

func draw(states, actions int) (mdp.Problem, error) {
	problems, err := mdp.Random.Draw(1, states, actions, 1)
	if err != nil {
		return mdp.Problem{}, err
	}
	return problems[0], nil
}

func solution(_ compute.Backend, states int) (func() error, func(), error) {
	p, err := draw(states, 3)
	return func() error { _, err := p.MDP.Optimal(); return err }, func() {}, err
}

func closedLoop(_ compute.Backend, states int) (func() error, func(), error) {
	p, err := draw(states, 3)
	return func() error {
		problems := []mdp.Problem{p}
		trajectories, err := control.ExactPMD(control.NominalStep).Run(problems, 40)
		if err == nil {
			_, err = control.Score(problems, trajectories)
		}
		return err
	}, func() {}, err
}

// decoderRound is an actor call, the sampling of m packets a pair, and a critic
// call.
func decoderRound(sizes func(x int) (s, a, m int)) func(compute.Backend, int) (func() error, func(), error) {
	return func(_ compute.Backend, x int) (func() error, func(), error) {
		s, a, m := sizes(x)
		d, err := decoder.New(decoder.Caps{
			States: s, Actions: a, Gamma: mdp.Discount, RMax: 1, EtaMax: control.NominalStep, Rounds: 40, Routing: 1e-6, Alpha: .05, Packets: m,
		})
		if err != nil {
			return nil, nil, err
		}
		p, err := draw(s, a)
		if err != nil {
			return nil, nil, err
		}
		q, err := p.MDP.PolicyValue(p.Pi0)
		if err != nil {
			return nil, nil, err
		}
		rng := seed.New(1, "bench", "decoder")
		return func() error {
			next, err := d.Improve(p.Pi0, q, control.NominalStep)
			if err == nil {
				_, err = d.Backup(next, q, decoder.Sample(p.MDP, next, m, rng))
			}
			return err
		}, func() {}, nil
	}
}
