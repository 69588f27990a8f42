package experiment

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"github.com/gomlx/compute"
	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/backend"
	"icrl/policyattention/baseline"
	"icrl/policyattention/control"
	"icrl/policyattention/mdp"
	"icrl/policyattention/npz"
	"icrl/policyattention/stats"
	"icrl/policyattention/train"
	"icrl/policyattention/transformer"
)

const (
	roundsFile   = "rounds.csv.gz"
	policiesFile = "policies.npz"
)

var nan = math.NaN()

// roundsHeader names the columns of rounds.csv.gz. Row (problem, k) holds the
// loss of π_k and the residuals ζ_k, mean row-L1, δ_k and ḡ_k of the context
// (π_k, Q_k), which are empty where there are none; gap and e0 repeat.
var roundsHeader = []string{"problem", "round", "loss", "gap", "e0", "zeta", "row_l1", "delta", "defect"}

// Evaluation is the result of one cell.
type Evaluation struct {
	Cell      Cell
	Config    Config
	Folder    string
	Manifest  *Manifest
	Scored    []control.Scored // of a closed loop, one a problem
	OneStep   *OneStep         // of a one-step cell
	Backup    *Backup          // of a cell of one-step backups
	Tuning    []baseline.Score // of a tuning cell, in the grid's order
	Imitation *Imitation       // of a qualification by imitation
}

// Losses returns the normalized loss of the policy returned at horizon T, one a
// problem.
func (e *Evaluation) Losses(horizon int) []float64 {
	losses := make([]float64, len(e.Scored))
	for i, s := range e.Scored {
		losses[i] = s.Loss[horizon]
	}
	return losses
}

// MedianLosses returns the median loss of each round [T+1].
func (e *Evaluation) MedianLosses() []float64 {
	medians := make([]float64, len(e.Scored[0].Loss))
	for k := range medians {
		medians[k] = stats.Median(e.Losses(k))
	}
	return medians
}

// Deviations returns a problem's mean over rounds 0, …, T−1 of the actor's mean
// row-L1 deviation from exact PMD, one a problem.
func (e *Evaluation) Deviations(horizon int) []float64 {
	means := make([]float64, len(e.Scored))
	for i, s := range e.Scored {
		for _, v := range s.RowL1[:horizon] {
			means[i] += v / float64(horizon)
		}
	}
	return means
}

// Draw returns the problems.
func (f Fixtures) Draw() ([]mdp.Problem, error) {
	return f.Family.Draw(f.Root, f.States, f.Actions, f.Problems)
}

// draw returns the problems of the configuration, none where it has no fixtures.
func (c Config) draw() ([]mdp.Problem, error) {
	if c.Imitation != nil {
		return nil, nil
	}
	return c.Fixtures.Draw()
}

// networks reports whether the numbers depend on a backend's arithmetic.
func (c Config) networks() bool {
	return c.OneStep != nil || c.Loop != nil && (c.Loop.Actor != nil || c.Loop.Critic != nil || c.Loop.Distill != nil)
}

// digest returns the SHA-256 of the problems' tables.
func digest(problems []mdp.Problem) string {
	h := sha256.New()
	for _, p := range problems {
		for _, x := range []*mat.Dense{p.MDP.P, p.MDP.R, p.Pi0} {
			for i := range x.RawMatrix().Rows {
				binary.Write(h, binary.LittleEndian, x.RawRowView(i)) //nolint:errcheck // a hash takes every write
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Find returns the result of a cell; the error wraps ErrMissing if it has not
// been run.
func (s *Store) Find(cell Cell) (*Evaluation, error) {
	config, err := s.config(cell)
	if err != nil {
		return nil, err
	}
	folder := s.folder(cell, config)
	m, err := s.open(cell.Name(), config.Hash(), folder)
	if err != nil {
		return nil, err
	}
	e := &Evaluation{Cell: cell, Config: config, Folder: folder, Manifest: m}
	switch {
	case config.OneStep != nil:
		e.OneStep, err = readOneStep(folder, config)
	case config.Backup != nil:
		e.Backup, err = readBackup(folder, config)
	case config.Tuning != nil:
		e.Tuning, err = config.Tuning.read(folder)
	case config.Imitation != nil:
		e.Imitation, err = readImitation(folder, m)
	default:
		e.Scored, err = readRounds(folder, config)
	}
	return e, err
}

func (s *Store) config(cell Cell) (Config, error) {
	if cell.Preset != s.Preset.Name {
		return Config{}, fmt.Errorf("experiment: cell %s is of preset %s, the store is of %s", cell.Name(), cell.Preset, s.Preset.Name)
	}
	return cell.Config()
}

// Evaluate returns the result of a cell, computing it where it is missing, and
// the training runs it needs likewise. Another process on the same cell is
// waited for.
func (s *Store) Evaluate(ctx context.Context, cell Cell) (*Evaluation, error) {
	e, err := s.Find(cell)
	if !errors.Is(err, ErrMissing) {
		return e, err
	}
	config, err := s.config(cell)
	if err != nil {
		return nil, err
	}
	for _, w := range config.weights() {
		t, err := s.Train(ctx, w.Training)
		if err == nil && !t.held() {
			err = s.restore(ctx, t)
		}
		if err != nil {
			return nil, err
		}
	}
	folder := s.folder(cell, config)
	unlock, err := s.lock(ctx, cell.Name(), folder)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if e, err := s.Find(cell); !errors.Is(err, ErrMissing) {
		return e, err // made while waiting
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("experiment: before %s: %w", cell.Name(), context.Cause(ctx))
	}
	err = s.publish(folder, func(dir string) (*Manifest, error) { return s.compute(dir, cell, config) })
	if err != nil {
		return nil, fmt.Errorf("experiment: %s: %w", cell.Name(), err)
	}
	return s.Find(cell)
}

// compute writes the result of a cell into dir.
func (s *Store) compute(dir string, cell Cell, config Config) (*Manifest, error) {
	meter := startMeter()
	problems, err := config.draw()
	if err != nil {
		return nil, err
	}
	m := &Manifest{Name: cell.Name(), Hash: config.Hash(), Cell: &cell, Evaluation: &config, Fixtures: digest(problems)}
	if m.Weights, err = s.weightDigests(config); err != nil {
		return nil, err
	}
	switch {
	case config.OneStep != nil:
		actor, err := s.actor(config.OneStep.Actor)
		if err != nil {
			return nil, err
		}
		o, err := config.OneStep.run(config.Fixtures, problems, actor)
		if err != nil {
			return nil, err
		}
		if err := o.write(dir); err != nil {
			return nil, err
		}
		m.Summary = o.summary()
	case config.Backup != nil:
		critic, err := s.critic(config.Backup.Critic, config.Fixtures.Root)
		if err != nil {
			return nil, err
		}
		b, err := config.Backup.run(config.Fixtures, problems, critic)
		if err != nil {
			return nil, err
		}
		if err := b.write(dir); err != nil {
			return nil, err
		}
		m.Summary = b.summary()
	case config.Tuning != nil:
		if m.Summary, err = config.Tuning.compute(dir, problems); err != nil {
			return nil, err
		}
	case config.Imitation != nil:
		if m.Summary, err = s.computeImitation(dir, *config.Imitation); err != nil {
			return nil, err
		}
	default:
		trajectories, arrays, err := s.run(cell, config, problems)
		if err != nil {
			return nil, err
		}
		scored, err := control.Score(problems, trajectories)
		if err != nil {
			return nil, err
		}
		if err := writeCSV(filepath.Join(dir, roundsFile), roundsHeader, roundRows(scored)); err != nil {
			return nil, err
		}
		if err := writeArrays(filepath.Join(dir, policiesFile), arrays); err != nil {
			return nil, err
		}
		m.Summary = summarize(scored)
	}
	var d *backend.Description
	if config.networks() {
		b, err := s.backend()
		if err != nil {
			return nil, err
		}
		description := backend.Describe(b)
		d = &description
	}
	m.Produced, m.Cost = produced(d), meter.cost()
	return m, nil
}

// controller returns the controller of a closed loop.
func (s *Store) controller(config Config) (control.Controller, error) {
	switch l := config.Loop; {
	case l.LiangLai != nil:
		return s.liangLai(*l.LiangLai)
	case l.Distill != nil:
		return s.distilled(*l.Distill)
	}
	return s.loop(config)
}

// loop returns the loop of actor and critic of a configuration that has one.
func (s *Store) loop(config Config) (control.Loop, error) {
	l := config.Loop
	loop := control.ExactPMD(l.Eta)
	var err error
	if l.Actor != nil {
		if loop.Actor, err = s.actor(*l.Actor); err != nil {
			return control.Loop{}, err
		}
	}
	if l.Phi > 0 {
		loop.Actor = control.MixedActor{Actor: loop.Actor, Phi: l.Phi}
	}
	if l.Critic != nil {
		if loop.Critic, err = s.critic(*l.Critic, config.Fixtures.Root); err != nil {
			return control.Loop{}, err
		}
	}
	return loop, nil
}

func (s *Store) actor(w Weights) (control.Actor, error) {
	model, err := s.model(w)
	if err != nil {
		return nil, err
	}
	return model.Actor()
}

// critic samples its transitions below root.
func (s *Store) critic(w Weights, root uint64) (control.Critic, error) {
	model, err := s.model(w)
	if err != nil {
		return nil, err
	}
	return model.Critic(root)
}

// networkProgram is what a compiled program of a network depends on. An actor for
// eight states has the shape of a critic for four.
type networkProgram struct {
	network transformer.Config
	tokens  int // for each state-action pair
}

// model loads weights. Models are kept, since many cells share them, and share
// one compiled program for each network.
func (s *Store) model(w Weights) (*train.Model, error) {
	t, err := s.FindTraining(w.Training)
	if err != nil {
		return nil, err
	}
	path := t.WeightsPath(w.Step)
	s.mu.Lock()
	defer s.mu.Unlock()
	if m, ok := s.models[path]; ok {
		return m, nil
	}
	program := networkProgram{w.Training.Network(), w.Training.ContextTokens(1)}
	m, compiled := s.networks[program]
	if compiled {
		m, err = m.With(path)
	} else {
		var b compute.Backend
		if b, err = s.backend(); err != nil {
			return nil, err
		}
		m, err = train.Load(b, path)
	}
	if err != nil {
		return nil, err
	}
	if m.Config.Hash() != w.Training.Hash() || m.Step != w.Step {
		return nil, fmt.Errorf("experiment: %s holds step %d of configuration %.12s, want step %d of %.12s", path, m.Step, m.Config.Hash(), w.Step, w.Training.Hash())
	}
	s.models[path], s.networks[program] = m, m
	return m, nil
}

// weightDigests returns the SHA-256 of the weights that a configuration uses.
func (s *Store) weightDigests(config Config) (map[string]string, error) {
	digests := map[string]string{}
	for _, w := range config.weights() {
		t, err := s.FindTraining(w.Training)
		if err != nil {
			return nil, err
		}
		if digests[TrainingName(w.Training)], err = t.weightsDigest(w.Step); err != nil {
			return nil, err
		}
	}
	return digests, nil
}

// roundRows returns the rows of rounds.csv.gz.
func roundRows(scored []control.Scored) [][]float64 {
	at := func(values []float64, k int) float64 {
		if k < len(values) {
			return values[k]
		}
		return nan
	}
	var rows [][]float64
	for i, s := range scored {
		for k, loss := range s.Loss {
			rows = append(rows, []float64{
				float64(i), float64(k), loss, s.Gap, s.E0,
				at(s.Zeta, k), at(s.RowL1, k), at(s.Delta, k), at(s.Defect, k),
			})
		}
	}
	return rows
}

// readRounds is the inverse of roundRows.
func readRounds(folder string, config Config) ([]control.Scored, error) {
	path := filepath.Join(folder, roundsFile)
	rows, err := readCSV(path, roundsHeader)
	if err != nil {
		return nil, err
	}
	return parseRounds(path, rows, config)
}

// parseRounds is readRounds for rows that have been read from path.
func parseRounds(path string, rows [][]float64, config Config) ([]control.Scored, error) {
	rounds := config.Loop.Rounds + 1
	if want := config.Fixtures.Problems * rounds; len(rows) != want {
		return nil, fmt.Errorf("experiment: %s has %d rows, want %d", path, len(rows), want)
	}
	scored := make([]control.Scored, config.Fixtures.Problems)
	for n, row := range rows {
		i, k := n/rounds, n%rounds
		if row[0] != float64(i) || row[1] != float64(k) {
			return nil, fmt.Errorf("experiment: %s: row %d is of problem %v, round %v, want problem %d, round %d", path, n+1, row[0], row[1], i, k)
		}
		s := &scored[i]
		if math.IsNaN(row[2]) {
			return nil, fmt.Errorf("experiment: %s: row %d has no loss", path, n+1)
		}
		s.Loss, s.Gap, s.E0 = append(s.Loss, row[2]), row[3], row[4]
		for j, values := range []*[]float64{&s.Zeta, &s.RowL1, &s.Delta, &s.Defect} {
			if v := row[5+j]; !math.IsNaN(v) {
				*values = append(*values, v)
			}
		}
	}
	return scored, nil
}

// summarize returns the medians of a closed loop at the table's horizons.
func summarize(scored []control.Scored) map[string]Values {
	e := Evaluation{Scored: scored}
	summary := map[string]Values{}
	for _, horizon := range []int{20, 40} {
		v := Values{"median_loss": stats.Median(e.Losses(horizon))}
		if scored[0].RowL1 != nil {
			v["median_row_l1"] = stats.Median(e.Deviations(horizon))
		}
		summary[fmt.Sprintf("T%d", horizon)] = v
	}
	return summary
}

// arrays returns what policies.npz holds: the kept rounds [K], their policies
// [N, K, S, A] and, for a learned critic whose rounds are all kept, its tables q
// [N, T, S, A]. With the exact critic they follow from the policies.
func (l *LoopConfig) arrays(kept []int, trajectories []control.Trajectory) map[string]npz.Array {
	var policies, tables [][]*mat.Dense
	for _, t := range trajectories {
		var some []*mat.Dense
		for _, k := range kept {
			some = append(some, t.Policies[k])
		}
		policies, tables = append(policies, some), append(tables, t.Q)
	}
	arrays := map[string]npz.Array{"rounds": roundArray(kept), "policies": stack(policies)}
	if l.Critic != nil && len(kept) > l.Rounds {
		arrays["q"] = stack(tables)
	}
	return arrays
}

func roundArray(rounds []int) npz.Array {
	a := npz.Array{Shape: []int{len(rounds)}}
	for _, k := range rounds {
		a.Data = append(a.Data, float64(k))
	}
	return a
}

// kept returns the rounds whose policies a cell stores, where the loop does not
// say: all of exact PMD and of the networks whose certificates are audited round
// by round; those of the tables' horizons elsewhere, since the weights give the
// others again.
func (c Cell) kept(l *LoopConfig) []int {
	switch {
	case l.Kept != nil:
		return l.Kept
	case c.Method == ExactPMD, c.Block == Confirmation, c.Block == Shift:
		return l.all()
	}
	return baseline.Horizons
}

// all returns the rounds from 0.
func (l *LoopConfig) all() []int {
	all := make([]int, l.Rounds+1)
	for k := range all {
		all[k] = k
	}
	return all
}

// stack joins tables [N][K] of one shape [S, A] into an array [N, K, S, A].
func stack(tables [][]*mat.Dense) npz.Array {
	s, a := tables[0][0].Dims()
	out := npz.Array{Shape: []int{len(tables), len(tables[0]), s, a}}
	for _, row := range tables {
		for _, x := range row {
			for i := range s {
				out.Data = append(out.Data, x.RawRowView(i)...)
			}
		}
	}
	return out
}

// unstack is the inverse of stack. It errs on another shape than n, k, s, a.
func unstack(a npz.Array, n, k, states, actions int) ([][]*mat.Dense, error) {
	want := []int{n, k, states, actions}
	if fmt.Sprint(a.Shape) != fmt.Sprint(want) {
		return nil, fmt.Errorf("shape %v, want %v", a.Shape, want)
	}
	tables := make([][]*mat.Dense, n)
	size := states * actions
	for i := range tables {
		for j := range k {
			at := (i*k + j) * size
			tables[i] = append(tables[i], mat.NewDense(states, actions, a.Data[at:at+size:at+size]))
		}
	}
	return tables, nil
}

func writeArrays(path string, arrays map[string]npz.Array) error {
	var buf bytes.Buffer
	err := npz.Encode(&buf, arrays)
	if err == nil {
		err = os.WriteFile(path, buf.Bytes(), 0o644)
	}
	if err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	return nil
}

func readArrays(path string) (map[string]npz.Array, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("experiment: %w", err)
	}
	arrays, err := npz.Decode(b)
	if err != nil {
		return nil, fmt.Errorf("experiment: %s: %w", path, err)
	}
	return arrays, nil
}
