package experiment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomlx/compute"

	"icrl/policyattention/backend"
	"icrl/policyattention/baseline/distill"
	"icrl/policyattention/baseline/lianglai"
	"icrl/policyattention/train"
)

const lossFile = "loss.csv.gz"

// TrainingConfig is everything that a training run depends on, but for the
// backend's arithmetic: a train.Config, a lianglai.Training or a distill.Config.
type TrainingConfig interface {
	Hash() string // SHA-256 of the configuration in hexadecimal
	Validate() error
	Budget() int     // optimizer steps
	Parameters() int // that are trained
}

// TrainingName returns the name of a training run, unique within a preset.
func TrainingName(c TrainingConfig) string {
	switch c := c.(type) {
	case train.Config:
		return actorName(c)
	case lianglai.Training:
		return fmt.Sprintf("%s-S%d-%d", LiangLai, c.States, c.Seed)
	case distill.Config:
		return fmt.Sprintf("%s-source%v-context%d-steps%d-S%d-%d", Distillation, c.Source.Alpha, c.Context, c.Steps, c.States, c.Seed)
	}
	panic(fmt.Sprintf("experiment: no training is configured by a %T", c))
}

// actorName returns the name of a run of an actor or critic: objective-recipe-S8-18100,
// with S4+8 for several sizes, and with the steps before the sizes where no preset
// trains its runs so long.
func actorName(c train.Config) string {
	parts := []string{string(c.Objective), c.Recipe.Name}
	own := false
	for _, p := range Presets {
		own = own || p.Steps == c.Steps
	}
	if !own {
		parts = append(parts, fmt.Sprint(c.Steps))
	}
	sizes := make([]string, len(c.Sizes))
	for i, s := range c.Sizes {
		sizes[i] = fmt.Sprint(s)
	}
	return strings.Join(append(parts, "S"+strings.Join(sizes, "+"), fmt.Sprint(c.Seed)), "-")
}

// trained returns the configuration of a training run's manifest, or nil.
func (m *Manifest) trained() TrainingConfig {
	switch {
	case m.Training != nil:
		return *m.Training
	case m.LiangLai != nil:
		return *m.LiangLai
	case m.Distill != nil:
		return *m.Distill
	}
	return nil
}

// setTraining is the inverse of trained.
func (m *Manifest) setTraining(c TrainingConfig) {
	switch c := c.(type) {
	case train.Config:
		m.Training = &c
	case lianglai.Training:
		m.LiangLai = &c
	case distill.Config:
		m.Distill = &c
	}
}

// weightSteps lists the steps whose weights are kept.
func weightSteps(c TrainingConfig) []int {
	var steps []int
	if c, ok := c.(train.Config); ok {
		steps = slices.Clone(c.Snapshots)
	}
	return append(steps, c.Budget())
}

// readWeights returns the configuration and step that a file of weights of the
// kind of run c says it holds.
func readWeights(c TrainingConfig, path string) (stored TrainingConfig, step int, err error) {
	switch c.(type) {
	case lianglai.Training:
		stored, _, err := lianglai.Read(path)
		return stored, stored.Steps, err
	case distill.Config:
		stored, _, err := distill.ReadWeights(path)
		return stored, stored.Steps, err
	}
	stored, step, _, err = train.ReadWeights(path)
	return stored, step, err
}

// Training is a finished training run.
type Training struct {
	Config   TrainingConfig
	Folder   string
	Manifest *Manifest
}

// WeightsPath returns the file of the weights after a step.
func (t *Training) WeightsPath(step int) string {
	return filepath.Join(t.Folder, weightsFile(t.Config, step))
}

// lastWeights is the file of the weights after the last step.
const lastWeights = "weights.safetensors"

func weightsFile(c TrainingConfig, step int) string {
	if step == c.Budget() {
		return lastWeights
	}
	return fmt.Sprintf("weights-%d.safetensors", step)
}

// held reports whether the weights are there: see Preset.omits.
func (t *Training) held() bool {
	if t.Manifest.Omitted == nil {
		return true
	}
	_, err := os.Stat(filepath.Join(t.Folder, lastWeights))
	return err == nil
}

// weightsDigest returns the SHA-256 of the weights after a step.
func (t *Training) weightsDigest(step int) (string, error) {
	if !t.held() {
		return t.Manifest.Omitted[lastWeights], nil
	}
	return fileDigest(t.WeightsPath(step))
}

// Loss is the mean objective on the batches of some consecutive steps, the last
// of which is Step, from 1.
type Loss struct {
	Step int
	Mean float64
}

// Losses returns the objective along training, in stretches of as many steps
// each, but for the last. See lossRows.
func (t *Training) Losses() ([]Loss, error) {
	path := filepath.Join(t.Folder, lossFile)
	rows, err := readCSV(path, lossHeader)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("experiment: %s has no rows", path)
	}
	_, double := t.Config.(lianglai.Training) // networks train in float32
	losses := make([]Loss, len(rows))
	for i, row := range rows {
		if want := math.Min(float64(i+1)*rows[0][0], float64(t.Config.Budget())); row[0] != want {
			return nil, fmt.Errorf("experiment: %s: row %d is of step %v, want %v", path, i+1, row[0], want)
		}
		losses[i] = Loss{int(row[0]), row[1]}
		if !double {
			losses[i].Mean = float64(float32(row[1]))
		}
	}
	if last := losses[len(losses)-1].Step; last != t.Config.Budget() {
		return nil, fmt.Errorf("experiment: %s ends at step %d of %d", path, last, t.Config.Budget())
	}
	return losses, nil
}

// FindTraining returns the training run of a configuration; the error wraps
// ErrMissing if it has not been run.
func (s *Store) FindTraining(c TrainingConfig) (*Training, error) {
	folder := s.trainingFolder(c)
	m, err := s.open(TrainingName(c), c.Hash(), folder)
	if err != nil {
		return nil, err
	}
	return &Training{Config: c, Folder: folder, Manifest: m}, nil
}

// Train returns the training run of a configuration, training where it has not
// been run. An interrupted run is saved and continues at the next call; another
// process on the same run is waited for. Liang–Lai's blocks take minutes and start
// again.
func (s *Store) Train(ctx context.Context, c TrainingConfig) (*Training, error) {
	if t, err := s.FindTraining(c); !errors.Is(err, ErrMissing) {
		return t, err
	}
	if err := s.TrainTogether(ctx, []TrainingConfig{c}); err != nil {
		return nil, err
	}
	return s.FindTraining(c)
}

// TrainTogether trains what is missing of several runs at once, in this process
// and a step of each in turn: see [train.RunTogether]. A run that fails does
// not stop the others.
func (s *Store) TrainTogether(ctx context.Context, configs []TrainingConfig) error {
	missing, err := s.Missing(configs)
	if err != nil {
		return err
	}
	// All processes lock in one order, so that no two wait for each other.
	slices.SortFunc(missing, func(x, y TrainingConfig) int {
		return strings.Compare(s.trainingFolder(x), s.trainingFolder(y))
	})
	for _, c := range missing {
		unlock, err := s.lock(ctx, TrainingName(c), s.trainingFolder(c))
		if err != nil {
			return err
		}
		defer unlock()
	}
	// Others may have made some while this process waited.
	if missing, err = s.Missing(missing); err != nil || len(missing) == 0 {
		return err
	}
	var networks []TrainingConfig
	var runs []train.Run
	for _, missing := range missing {
		work := filepath.Join(s.root, workFolder, filepath.Base(s.trainingFolder(missing)))
		switch c := missing.(type) {
		case lianglai.Training: // needs no backend
			err = errors.Join(err, s.trainLiangLai(ctx, c, s.progress(c)))
		case networkConfig:
			run, err := c.In(work, s.progress(c))
			if err != nil {
				return err
			}
			networks, runs = append(networks, missing), append(runs, run)
		}
	}
	if len(runs) == 0 {
		return err
	}
	b, failed := s.backend()
	if failed != nil {
		return errors.Join(err, failed)
	}
	results, failed := train.RunTogether(ctx, b, s.Execution, runs)
	err = errors.Join(err, failed)
	for i, result := range results {
		if result != nil {
			err = errors.Join(err, s.publishTraining(networks[i], b, result, runs[i].Dir))
		}
	}
	return err
}

// publishTraining makes a finished run an artifact and removes the folder work
// that it was made in.
func (s *Store) publishTraining(c TrainingConfig, b compute.Backend, result *train.Result, work string) error {
	err := s.publish(s.trainingFolder(c), func(dir string) (*Manifest, error) {
		for step, path := range result.Snapshots {
			if err := copyFile(filepath.Join(dir, weightsFile(c, step)), path); err != nil {
				return nil, err
			}
		}
		if err := copyFile(filepath.Join(dir, weightsFile(c, c.Budget())), result.Weights); err != nil {
			return nil, err
		}
		if err := writeLosses(dir, result.Losses); err != nil {
			return nil, err
		}
		d := backend.Describe(b)
		m := &Manifest{
			Name: TrainingName(c), Hash: c.Hash(), Produced: produced(&d),
			Cost: Cost{
				WallSeconds: result.WallSeconds, CPUSeconds: result.CPUSeconds,
				PeakMemory: usage().peak, StepsPerSecond: result.StepsPerSecond,
			},
		}
		m.setTraining(c)
		if s.Preset.omits(c) {
			m.Omitted = map[string]string{lastWeights: ""}
		}
		return m, nil
	})
	if err != nil {
		return err
	}
	if err := os.RemoveAll(work); err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	return nil
}

// restore trains once more what its artifact has been left without. It errs if
// other weights come out than its manifest tells of.
func (s *Store) restore(ctx context.Context, t *Training) error {
	name := TrainingName(t.Config)
	unlock, err := s.lock(ctx, name, t.Folder)
	if err != nil {
		return err
	}
	defer unlock()
	if t.held() {
		return nil
	}
	work := filepath.Join(s.root, workFolder, filepath.Base(t.Folder))
	run, err := t.Config.(networkConfig).In(work, s.progress(t.Config))
	if err != nil {
		return err
	}
	b, err := s.backend()
	if err != nil {
		return err
	}
	results, err := train.RunTogether(ctx, b, s.Execution, []train.Run{run})
	if err != nil {
		return err
	}
	digest, err := fileDigest(results[0].Weights)
	if err != nil {
		return err
	}
	if digest != t.Manifest.Omitted[lastWeights] {
		return fmt.Errorf("experiment: %s, trained again, has other weights than %s tells of, which were made on %s, perhaps by another version of this library: what needs them can be made in another folder of artifacts", name, t.Folder, t.Manifest.Produced.CPU)
	}
	if err := os.Rename(results[0].Weights, filepath.Join(t.Folder, lastWeights)); err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	if err := os.RemoveAll(work); err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	return nil
}

// networkConfig configures the training of a network.
type networkConfig interface {
	TrainingConfig
	In(dir string, progress func(train.Progress)) (train.Run, error)
}

// progress returns what tells of a training run's steps, or nil.
func (s *Store) progress(c TrainingConfig) func(train.Progress) {
	if s.Progress == nil {
		return nil
	}
	return func(p train.Progress) { s.Progress(Progress{Name: TrainingName(c), Progress: p}) }
}

// trainLiangLai makes a trained block an artifact.
func (s *Store) trainLiangLai(ctx context.Context, c lianglai.Training, progress func(train.Progress)) error {
	began, reported, meter := time.Now(), time.Now(), startMeter()
	trained, err := c.Train(ctx, func(step int, loss float64) {
		if progress != nil && (step == c.Steps-1 || time.Since(reported) > time.Second/2) {
			reported = time.Now()
			progress(train.Progress{
				Step: step + 1, Steps: c.Steps, Loss: loss, StepsPerSecond: float64(step+1) / time.Since(began).Seconds(),
			})
		}
	})
	if err != nil {
		return err
	}
	return s.publish(s.trainingFolder(c), func(dir string) (*Manifest, error) {
		if err := c.Write(filepath.Join(dir, weightsFile(c, c.Steps)), trained); err != nil {
			return nil, err
		}
		if err := writeLosses(dir, trained.Loss); err != nil {
			return nil, err
		}
		m := &Manifest{Name: TrainingName(c), Hash: c.Hash(), Produced: produced(nil), Cost: meter.cost()}
		m.setTraining(c)
		m.Cost.StepsPerSecond = float64(c.Steps) / m.Cost.WallSeconds
		return m, nil
	})
}

// lossRows bounds the rows of a table of losses. A run of more steps has the
// means of stretches of steps in it: the losses of all steps would be as large
// as the weights.
const lossRows = 1024

var lossHeader = []string{"step", "loss"}

// writeLosses writes the losses of a run [Steps] into dir, with the digits that
// tell numbers of their type apart.
func writeLosses[T float32 | float64](dir string, losses []T) error {
	stretch := 1
	for stretch*lossRows < len(losses) {
		stretch *= 2 // 64 in a run at full budget: whole passes over its 2,048 examples
	}
	var rows [][]float64
	for start := 0; start < len(losses); start += stretch {
		end, sum := min(start+stretch, len(losses)), 0.0
		for _, loss := range losses[start:end] {
			sum += float64(loss)
		}
		rows = append(rows, []float64{float64(end), shortest(T(sum / float64(end-start)))})
	}
	return writeCSV(filepath.Join(dir, lossFile), lossHeader, rows)
}

// shortest returns the float64 with the fewest digits that rounds to x.
func shortest[T float32 | float64](x T) float64 {
	if y, ok := any(x).(float32); ok {
		short, err := strconv.ParseFloat(strconv.FormatFloat(float64(y), 'g', -1, 32), 64)
		if err != nil {
			panic(err) // it was just written
		}
		return short
	}
	return float64(x)
}
