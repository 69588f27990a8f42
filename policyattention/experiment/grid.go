package experiment

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"icrl/policyattention/artifact"
	"icrl/policyattention/backend"
	"icrl/policyattention/method"
)

// Long reports whether a cell is missing a training run that would take a core more
// than a day.
func (s *Store) Long(cell Cell) (bool, error) {
	needed, err := s.Preset.Trainings(cell)
	if err != nil {
		return false, err
	}
	missing, err := s.Missing(needed)
	return slices.ContainsFunc(missing, func(c method.Training) bool {
		return c.Seconds() > (24 * time.Hour).Seconds()
	}), err
}

// Missing returns those of the training runs that are not yet there, each once.
func (s *Store) Missing(configs []method.Training) ([]method.Training, error) {
	var missing []method.Training
	seen := map[string]bool{}
	for _, c := range configs {
		if hash := c.Hash(); seen[hash] {
			continue
		} else {
			seen[hash] = true
		}
		if _, err := s.FindTraining(c); errors.Is(err, artifact.ErrMissing) {
			missing = append(missing, c)
		} else if err != nil {
			return nil, err
		}
	}
	return missing, nil
}

// Alike deals training runs into groups of at most n, each of networks and data
// of one shape, as TrainTogether makes best.
func Alike(configs []method.Training, n int) [][]method.Training {
	var groups [][]method.Training
	open := map[string]int{} // the group to fill, by shape
	for _, c := range configs {
		shape := fmt.Sprintf("%T %s", c, c.Shape())
		i, ok := open[shape]
		if !ok || len(groups[i]) == n {
			i = len(groups)
			groups, open[shape] = append(groups, nil), i
		}
		groups[i] = append(groups[i], c)
	}
	return groups
}

// TrainAll trains the missing runs among configs in worker processes, at most
// workers at a time, each on a share of the processors of its own: a network
// this small trains faster in two single-threaded processes than in one with
// two threads.
//
// The command that worker returns trains the named run, prints Progress as
// lines of JSON, and on SIGINT saves and ends. A run that fails does not stop
// the others; TrainAll returns all errors.
func (s *Store) TrainAll(ctx context.Context, configs []method.Training, workers int, worker func(ctx context.Context, name string) *exec.Cmd) error {
	if workers < 1 {
		return fmt.Errorf("experiment: %d workers, want at least one", workers)
	}
	missing, err := s.Missing(configs)
	if err != nil {
		return err
	}
	shares, err := backend.Shares(min(workers, len(missing)))
	if err != nil {
		return err
	}
	queue := make(chan string, len(missing))
	for _, c := range missing {
		queue <- c.Name()
	}
	close(queue)
	var group sync.WaitGroup
	var mutex sync.Mutex
	var failures []error
	for _, share := range shares {
		group.Go(func() {
			for name := range queue {
				if ctx.Err() != nil {
					return
				}
				if err := s.runWorker(worker(ctx, name), share); err != nil {
					mutex.Lock()
					failures = append(failures, fmt.Errorf("experiment: training %s: %w", name, err))
					mutex.Unlock()
				}
			}
		})
	}
	group.Wait()
	if ctx.Err() != nil {
		return fmt.Errorf("experiment: training stopped, and will continue where it was: %w", context.Cause(ctx))
	}
	return errors.Join(failures...)
}

// runWorker runs a worker on its share of the processors and hands on what it
// reports.
func (s *Store) runWorker(cmd *exec.Cmd, share backend.Share) error {
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute // to save the run
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := share.Start(cmd); err != nil {
		return err
	}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		var p Progress
		if err := json.Unmarshal(lines.Bytes(), &p); err == nil && s.Progress != nil {
			s.Progress(p)
		}
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	return lines.Err()
}
