package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"
	"github.com/gomlx/compute"

	"icrl/internal/usage"
	"icrl/policyattention/backend"
)

// Execution chooses how runs are carried out on a device. It changes no result
// beyond rounding and is in no configuration. The zero value is the choice for
// a CPU.
type Execution struct {
	// StepsPerCall is the number of optimizer steps that one call of the device
	// makes, in a loop there; 0 stands for 1. Many spare a GPU the latency of
	// its calls; on a CPU the loop is slower than the calls.
	StepsPerCall int
}

// Run is a job and where it is done.
type Run struct {
	Job      Job
	Dir      string
	Progress func(Progress) // may be nil
	// Stages is the folder where a run that is made in stages (see Job.Line) leaves its
	// state when it ends or is stopped, in place of that of an earlier stage, and from
	// which it goes on where Dir holds no state of its own. "" stands for none.
	Stages string
}

// RunTogether carries out several runs at once, a step of each in turn, all on
// the same device: see [Job.Run] for one. Together they keep a GPU busier than
// one after the other. Their wall and processor times are shares of the
// common ones.
//
// A run that fails, because its data cannot be had or its loss is not finite, leaves the
// others alone; its result is nil, and the error joins those of all that failed. A failure of
// the device or of the disk ends them all; they go on from what was saved last.
//
// GoMLX's backend in pure Go makes the runs one after the other, without loops:
// in v0.28.2 it cannot run one ("input … not computed yet"), and it hung on a graph
// that held two runs.
func RunTogether(ctx context.Context, b compute.Backend, execution Execution, runs []Run) ([]*Result, error) {
	inGo := backend.IsGo(b)
	if inGo {
		execution.StepsPerCall = 1
	}
	members := make([]*member, len(runs))
	defer func() {
		for _, m := range members {
			if m.lock != nil {
				m.lock.Unlock() //nolint:errcheck // the process's end would unlock it too
			}
		}
	}()
	for i, r := range runs {
		m, err := r.open()
		if err != nil {
			m = &member{Run: r, err: err}
		}
		members[i] = m
	}
	for {
		active := slices.DeleteFunc(slices.Clone(members), func(m *member) bool {
			return m.err != nil || m.s.step == m.Job.Steps
		})
		if len(active) == 0 {
			break
		}
		if inGo {
			active = active[:1]
		}
		if err := advance(ctx, b, execution, active); err != nil {
			return nil, errors.Join(err, failures(members))
		}
	}
	results := make([]*Result, len(members))
	for i, m := range members {
		if m.err == nil {
			results[i], m.err = m.result()
		}
	}
	return results, failures(members)
}

// failures joins what runs failed of.
func failures(members []*member) (err error) {
	for _, m := range members {
		err = errors.Join(err, m.err)
	}
	return err
}

// member is a run that is being carried out.
type member struct {
	Run
	s    state
	path string // where s is kept
	lock *flock.Flock
	err  error // why it ended before its last step
}

// open locks the folder of a run and reads where it is.
func (r Run) open() (*member, error) {
	if err := r.Job.validate(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(r.Dir, 0o755); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	lock := flock.New(filepath.Join(r.Dir, "lock"))
	if locked, err := lock.TryLock(); err != nil {
		return nil, fmt.Errorf("train: locking %s: %w", r.Dir, err)
	} else if !locked {
		return nil, fmt.Errorf("train: another process is training in %s", r.Dir)
	}
	m := &member{Run: r, path: filepath.Join(r.Dir, "state.safetensors"), lock: lock}
	var err error
	m.s, err = r.Job.loadState(m.path)
	if errors.Is(err, os.ErrNotExist) {
		m.s, err = r.begin()
	}
	if err != nil {
		lock.Unlock() //nolint:errcheck // nothing was done under it
		return nil, err
	}
	return m, nil
}

// result checks and returns what a finished run has left.
func (m *member) result() (*Result, error) {
	j, s := m.Job, m.s
	r := &Result{
		Weights: filepath.Join(m.Dir, "weights.safetensors"), Snapshots: map[int]string{}, Losses: s.losses,
		WallSeconds: s.wall, CPUSeconds: s.cpu, StepsPerSecond: float64(j.Steps) / s.wall,
		Stretches: s.stretches,
	}
	if _, _, err := j.readWeights(r.Weights); err != nil {
		// The state is the record; the weights are taken from it.
		if err := j.saveWeights(r.Weights, s); err != nil {
			return nil, err
		}
	}
	for _, step := range j.Snapshots {
		r.Snapshots[step] = snapshotPath(m.Dir, step)
		if _, _, err := j.readWeights(r.Snapshots[step]); err != nil {
			return nil, fmt.Errorf("%w: remove %s to train again", err, m.Dir)
		}
	}
	return r, nil
}

// stop returns the first step after the present one at which the run has to be
// on the host: a snapshot or the last step.
func (m *member) stop() int {
	for _, step := range m.Job.Snapshots {
		if step > m.s.step {
			return step
		}
	}
	return m.Job.Steps
}

// take adds the losses of the steps that were made on a backend and a processor.
func (m *member) take(losses []float32, on backend.Stretch) {
	for i, loss := range losses {
		if math.IsNaN(float64(loss)) || math.IsInf(float64(loss), 0) {
			m.err = fmt.Errorf("train: the loss of step %d is %v", m.s.step+i+1, loss)
			return
		}
	}
	m.s.made(losses, on)
}

// advance takes runs on until one of them has ended, well or not, or ctx is
// done. What has not failed is saved then.
func advance(ctx context.Context, b compute.Backend, execution Execution, members []*member) error {
	began, cpu := time.Now(), usage.Processor()
	jobs, states := make([]Job, len(members)), make([]*state, len(members))
	for i, m := range members {
		jobs[i], states[i] = m.Job, &m.s
	}
	g, err := newStepper(b, execution, jobs, states)
	if err != nil {
		return blame(members, err)
	}
	defer g.finalize()
	on := backend.Stretch{Backend: backend.Describe(b).Name, CPU: backend.Processor()}
	p := &party{stepper: g, members: members, on: on, began: began, since: began, cpu: cpu}
	for _, m := range members {
		p.first = append(p.first, m.s.step)
	}
	saved, reported := time.Now(), time.Now()
	for {
		if !slices.ContainsFunc(members, func(m *member) bool { return !m.between() }) {
			if ctx.Err() != nil {
				if err := p.leave(); err != nil {
					return err
				}
				return fmt.Errorf("train: stopped after step %d, which is saved; called again it goes on from there: %w", members[0].s.step, context.Cause(ctx))
			}
			if time.Since(saved) > saveEvery {
				if err := p.save(); err != nil {
					return err
				}
				saved = time.Now()
			}
		}
		ended, err := p.call(b)
		if err != nil {
			if err := blame(members, err); err != nil {
				return err
			}
			return p.leave()
		}
		if ended {
			if err := p.leave(); err != nil {
				return err
			}
		}
		if ended || time.Since(reported) > reportEvery {
			reported = time.Now()
			p.report()
		}
		if ended {
			return nil
		}
	}
}

// fault is an error that is of one run alone.
type fault struct {
	run int
	err error
}

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

// blame lets a run end with an error that is its own. Others it returns.
func blame(members []*member, err error) error {
	var f *fault
	if !errors.As(err, &f) {
		return err
	}
	members[f.run].err = f.err
	return nil
}

// between reports whether the run can go on from its state alone, without the rollouts of an
// earlier step.
func (m *member) between() bool { return m.s.step%m.Job.every() == 0 }

// party is runs whose steps are made together.
type party struct {
	stepper stepper
	members []*member
	on      backend.Stretch // where the steps are made
	began   time.Time
	first   []int         // step of each run then
	since   time.Time     // until when wall time has been shared out
	cpu     time.Duration // processor time that has been
}

// call makes the steps of one call of the device, after what is due between batches, and
// keeps snapshots. It reports whether a run has ended.
func (p *party) call(b compute.Backend) (ended bool, err error) {
	n := p.stepper.call()
	for i, m := range p.members {
		err := m.Job.collect(b, m.s.step, func() ([]float32, error) {
			err := p.stepper.read(i, &m.s)
			return m.s.params, err
		})
		if err != nil {
			return false, &fault{i, err}
		}
		n = min(n, m.stop()-m.s.step, m.Job.left(m.s.step))
	}
	losses, err := p.stepper.steps(n)
	if err != nil {
		return false, err
	}
	for i, m := range p.members {
		m.take(losses[i], p.on)
		if m.err == nil && slices.Contains(m.Job.Snapshots, m.s.step) {
			if err := p.stepper.read(i, &m.s); err != nil {
				return false, err
			}
			if err := m.Job.saveWeights(snapshotPath(m.Dir, m.s.step), m.s); err != nil {
				return false, err
			}
		}
		ended = ended || m.err != nil || m.s.step == m.Job.Steps
	}
	return ended, nil
}

// save reads the runs that have not failed from the device, saves those that can go on from
// there, and shares the time since the last save out.
func (p *party) save() error {
	share := float64(len(p.members))
	elapsed, used := time.Since(p.since).Seconds()/share, (usage.Processor()-p.cpu).Seconds()/share
	p.since, p.cpu = time.Now(), usage.Processor()
	for i, m := range p.members {
		m.s.wall += elapsed
		m.s.cpu += used
		if m.err != nil {
			continue
		}
		if err := p.stepper.read(i, &m.s); err != nil {
			return err
		}
		if !m.between() {
			continue
		}
		if err := m.Job.saveState(m.path, m.s); err != nil {
			return err
		}
	}
	return nil
}

// leave saves the runs and leaves their stages.
func (p *party) leave() error {
	if err := p.save(); err != nil {
		return err
	}
	for _, m := range p.members {
		if m.err != nil || !m.between() {
			continue
		}
		if err := m.leaveStage(); err != nil {
			return err
		}
	}
	return nil
}

// report tells of the runs that have not failed how far they are.
func (p *party) report() {
	for i, m := range p.members {
		if m.Progress != nil && m.err == nil {
			m.Progress(Progress{
				Step: m.s.step, Steps: m.Job.Steps, Loss: float64(m.s.losses[len(m.s.losses)-1]),
				StepsPerSecond: float64(m.s.step-p.first[i]) / time.Since(p.began).Seconds(),
			})
		}
	}
}
