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
	"strconv"

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
	t, err := s.FindTraining(c)
	if !errors.Is(err, ErrMissing) {
		return t, err
	}
	folder, name := s.trainingFolder(c), TrainingName(c)
	unlock, err := s.lock(ctx, name, folder)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if t, err := s.FindTraining(c); !errors.Is(err, ErrMissing) {
		return t, err // made while waiting
	}
	b, err := s.backend()
	if err != nil {
		return nil, err
	}
	work := filepath.Join(s.root, workFolder, filepath.Base(folder))
	var progress func(train.Progress)
	if s.Progress != nil {
		progress = func(p train.Progress) { s.Progress(Progress{Name: name, Progress: p}) }
	}
	result, err := train.Train(ctx, c, b, work, progress)
	if err != nil {
		return nil, err
	}
	err = s.publish(folder, func(dir string) (*Manifest, error) {
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
			Name: name, Hash: c.Hash(), Training: &c, Produced: produced(&d),
			Cost: Cost{
				WallSeconds: result.WallSeconds, CPUSeconds: result.CPUSeconds,
				PeakMemory: usage().peak, StepsPerSecond: result.StepsPerSecond,
			},
		}, nil
	})
	if err != nil {
		return nil, err
	}
	if err := os.RemoveAll(work); err != nil {
		return nil, fmt.Errorf("experiment: %w", err)
	}
	return s.FindTraining(c)
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
