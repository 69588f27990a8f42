package experiment

import (
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"icrl/policyattention/backend"
)

// Produced says what made a result.
type Produced struct {
	Go       string               `json:"go"`
	Platform string               `json:"platform"`
	CPU      string               `json:"cpu"`
	Cores    int                  `json:"cores"`
	Backend  *backend.Description `json:"backend,omitempty"`
	// Earlier are the stretches of a training run before the one on Backend and CPU.
	Earlier []backend.Stretch `json:"earlier,omitempty"`
	Modules map[string]string `json:"modules"` // versions of what computes
}

// Cost is what a result took to make.
type Cost struct {
	WallSeconds    float64 `json:"wall_seconds"`
	CPUSeconds     float64 `json:"cpu_seconds"`
	PeakMemory     int64   `json:"peak_memory_bytes"` // of the process that made it
	StepsPerSecond float64 `json:"steps_per_second,omitempty"`
}

// computing are the modules whose versions can change results.
var computing = []string{"github.com/gomlx/gomlx", "github.com/gomlx/compute", "github.com/gomlx/go-xla",
	"gonum.org/v1/gonum"}

// Machine describes the machine, the program and its backend, which may be nil.
func Machine(d *backend.Description) Produced {
	p := Produced{
		Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, CPU: backend.Processor(),
		Cores: runtime.NumCPU(), Backend: d, Modules: map[string]string{},
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if slices.Contains(computing, m.Path) {
				p.Modules[m.Path] = m.Version
			}
		}
	}
	return p
}

// Meter measures the cost of what happens after it was started.
type Meter struct {
	began time.Time
	cpu   time.Duration
}

// StartMeter returns a meter that was started now.
func StartMeter() Meter { return Meter{time.Now(), backend.ProcessorTime()} }

// Cost returns the cost so far.
func (m Meter) Cost() Cost {
	return Cost{WallSeconds: time.Since(m.began).Seconds(), CPUSeconds: (backend.ProcessorTime() - m.cpu).Seconds(),
		PeakMemory: backend.PeakMemory()}
}
