package experiment

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gomlx/compute"

	"icrl/policyattention/backend"
	"icrl/policyattention/train"
)

const lossFile = "loss.csv.gz"

// Training is a finished training run.
type Training struct {
	Config   train.Config
	Folder   string
	Manifest *Manifest
}

// WeightsPath returns the file of the weights after a step.
func (t *Training) WeightsPath(step int) string {
	return filepath.Join(t.Folder, weightsFile(t.Config, step))
}

func weightsFile(c train.Config, step int) string {
	if step == c.Steps {
		return "weights.safetensors"
	}
	return fmt.Sprintf("weights-%d.safetensors", step)
}

// Losses returns the objective on each step's batch [Steps].
func (t *Training) Losses() ([]float64, error) {
	rows, err := readCSV(filepath.Join(t.Folder, lossFile), []string{"step", "loss"})
	if err != nil {
		return nil, err
	}
	losses := make([]float64, len(rows))
	for i, row := range rows {
		if row[0] != float64(i+1) {
			return nil, fmt.Errorf("experiment: %s: row %d is of step %v", filepath.Join(t.Folder, lossFile), i+1, row[0])
		}
		losses[i] = row[1]
	}
	return losses, nil
}

// FindTraining returns the training run of a configuration; the error wraps
// ErrMissing if it has not been run.
func (s *Store) FindTraining(c train.Config) (*Training, error) {
	folder := s.trainingFolder(c)
	m, err := s.open(TrainingName(c), c.Hash(), folder)
	if err != nil {
		return nil, err
	}
	return &Training{Config: c, Folder: folder, Manifest: m}, nil
}

// Train returns the training run of a configuration, training where it has not
// been run. An interrupted run is saved and continues at the next call; another
// process on the same run is waited for.
func (s *Store) Train(ctx context.Context, c train.Config) (*Training, error) {
	if t, err := s.FindTraining(c); !errors.Is(err, ErrMissing) {
		return t, err
	}
	if err := s.TrainTogether(ctx, []train.Config{c}); err != nil {
		return nil, err
	}
	return s.FindTraining(c)
}

// TrainTogether trains what is missing of several runs at once, in this process
// and a step of each in turn: see [train.RunTogether]. A run that fails does
// not stop the others.
func (s *Store) TrainTogether(ctx context.Context, configs []train.Config) error {
	missing, err := s.Missing(configs)
	if err != nil {
		return err
	}
	// All processes lock in one order, so that no two wait for each other.
	slices.SortFunc(missing, func(x, y train.Config) int {
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
	b, err := s.backend()
	if err != nil {
		return err
	}
	runs := make([]train.Run, len(missing))
	for i, c := range missing {
		var progress func(train.Progress)
		if s.Progress != nil {
			progress = func(p train.Progress) { s.Progress(Progress{Name: TrainingName(c), Progress: p}) }
		}
		if runs[i], err = c.Run(filepath.Join(s.root, workFolder, filepath.Base(s.trainingFolder(c))), progress); err != nil {
			return err
		}
	}
	results, err := train.RunTogether(ctx, b, s.Execution, runs)
	for i, result := range results {
		if result != nil {
			err = errors.Join(err, s.publishTraining(missing[i], b, result, runs[i].Dir))
		}
	}
	return err
}

// publishTraining makes a finished run an artifact and removes the folder work
// that it was made in.
func (s *Store) publishTraining(c train.Config, b compute.Backend, result *train.Result, work string) error {
	err := s.publish(s.trainingFolder(c), func(dir string) (*Manifest, error) {
		for step, path := range result.Snapshots {
			if err := copyFile(filepath.Join(dir, weightsFile(c, step)), path); err != nil {
				return nil, err
			}
		}
		if err := copyFile(filepath.Join(dir, weightsFile(c, c.Steps)), result.Weights); err != nil {
			return nil, err
		}
		rows := make([][]float64, len(result.Losses))
		for i, loss := range result.Losses {
			rows[i] = []float64{float64(i + 1), float64(loss)}
		}
		if err := writeCSV(filepath.Join(dir, lossFile), []string{"step", "loss"}, rows); err != nil {
			return nil, err
		}
		d := backend.Describe(b)
		return &Manifest{
			Name: TrainingName(c), Hash: c.Hash(), Training: &c, Produced: produced(&d),
			Cost: Cost{
				WallSeconds: result.WallSeconds, CPUSeconds: result.CPUSeconds,
				PeakMemory: usage().peak, StepsPerSecond: result.StepsPerSecond,
			},
		}, nil
	})
	if err != nil {
		return err
	}
	if err := os.RemoveAll(work); err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	return nil
}

func copyFile(to, from string) error {
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o644)
	}
	if err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	return nil
}

// writeCSV writes a gzipped table of numbers whose bytes depend on it alone.
// NaN stands for an empty field.
func writeCSV(path string, header []string, rows [][]float64) error {
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	w := csv.NewWriter(z)
	if err := w.Write(header); err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	record := make([]string, len(header))
	for _, row := range rows {
		for i, v := range row {
			record[i] = formatCell(v)
		}
		if err := w.Write(record); err != nil {
			return fmt.Errorf("experiment: %w", err)
		}
	}
	w.Flush()
	if err := errors.Join(w.Error(), z.Close()); err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	if err := os.WriteFile(path, buf.Bytes(), 0o644); err != nil {
		return fmt.Errorf("experiment: %w", err)
	}
	return nil
}

func formatCell(v float64) string {
	if v != v {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// maxTable bounds the unpacked size of a table in bytes.
const maxTable = 256 << 20

// readCSV reads a table that writeCSV wrote with this header.
func readCSV(path string, header []string) ([][]float64, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("experiment: %w", err)
	}
	rows, err := parseCSV(b, header)
	if err != nil {
		return nil, fmt.Errorf("experiment: %s: %w", path, err)
	}
	return rows, nil
}

func parseCSV(b []byte, header []string) ([][]float64, error) {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(io.LimitReader(z, maxTable+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxTable {
		return nil, fmt.Errorf("more than %d bytes", maxTable)
	}
	r := csv.NewReader(bytes.NewReader(text))
	r.FieldsPerRecord, r.ReuseRecord = len(header), true
	var rows [][]float64
	for line := 0; ; line++ {
		record, err := r.Read()
		if err == io.EOF {
			if line == 0 {
				return nil, errors.New("no header")
			}
			return rows, nil
		}
		if err != nil {
			return nil, err
		}
		if line == 0 {
			for i, want := range header {
				if record[i] != want {
					return nil, fmt.Errorf("column %d is %q, want %q", i+1, record[i], want)
				}
			}
			continue
		}
		row := make([]float64, len(header))
		for i, field := range record {
			if field == "" {
				row[i] = nan
			} else if row[i], err = strconv.ParseFloat(field, 64); err != nil {
				return nil, fmt.Errorf("row %d, column %s: %w", line, header[i], err)
			}
		}
		rows = append(rows, row)
	}
}
