// Package training trains networks in GoNB notebooks.
package training

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"icrl/internal/safetensors"
	"icrl/policyattention/backend"
	"icrl/policyattention/nb"
	"icrl/policyattention/train"
)

// Run trains a network in a subfolder of its configuration's own, which keeps checkpoints and the weights, and
// returns it. Below the cell stands what it costs, then its progress and the time that is left. An interrupted
// training goes on where it was when the cell is run again; a finished one is read from the folder.
func Run(c train.Config, folder string) *train.Model {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	screen := nb.NewScreen()
	status := func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		screen.HTML(text, text)
	}
	folder = filepath.Join(folder, train.Hash(train.JSON(c))[:8])
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)).Round(time.Second) }
	status("About %v of one core. The training step is being compiled.", seconds(c.Seconds()))
	step := 0
	b := nb.Must(backend.New(""))
	trained, err := nb.Must(c.Job()).Run(ctx, b, folder, func(p train.Progress) {
		step = p.Step
		left := seconds(float64(p.Steps-p.Step) / p.StepsPerSecond)
		status(`Step %d of %d, loss %.4f, %v left <progress value="%d" max="%d"></progress>`, p.Step, p.Steps, p.Loss,
			left, p.Step, p.Steps)
	})
	if errors.Is(err, context.Canceled) {
		status("Interrupted at step %d of %d. Run the cell again to go on from there.", step, c.Steps)
		os.Exit(0)
	}
	nb.Try(err)
	status("Trained for %d steps; the weights are in %s.", c.Steps, folder)
	return nb.Must(train.Load(trained.Weights))
}

// Exported returns, by name, what an independent implementation needs to repeat a training run: see [train.Job.Export].
func Exported(c train.Config) map[string]safetensors.Tensor {
	folder := nb.Must(os.MkdirTemp("", "exported"))
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "start.safetensors")
	nb.Try(nb.Must(c.Job()).Export(path, c.Steps))
	named := map[string]safetensors.Tensor{}
	for _, t := range nb.Must(safetensors.ReadFile(path)).Tensors {
		named[t.Name] = t
	}
	return named
}
