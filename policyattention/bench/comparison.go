package bench

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"icrl/policyattention/artifact"
	"icrl/policyattention/backend"
)

// Comparison is the speed of training steps and closed loops in several
// programs, as measured on one machine.
type Comparison struct {
	Machine  Machine            `json:"machine"`
	Peak     float64            `json:"peak_gflops"` // best rate of a float32 matrix product, see [Peak]
	Results  []Result           `json:"results"`
	Pipeline map[string]float64 `json:"pipeline_seconds"`
}

// Result is one program in one row.
type Result struct {
	Row     string  `json:"row"`
	Program string  `json:"program"`     // as in "JAX, scan": its family, then the variant
	Setting string  `json:"setting"`     // processes × threads
	Best    float64 `json:"steps_s"`     // best turn, summed over processes
	Median  float64 `json:"steps_s_mid"` // median turn
	CPU     float64 `json:"steps_cpu_s"` // best steps per second of processor time
	Share   float64 `json:"share_of_peak"`
	Ready   float64 `json:"ready_s"` // start, compilation and the parity steps
	RSS     float64 `json:"rss_mb"`  // peak memory of one process
	Parity  float64 `json:"largest_relative_difference"`
	Error   string  `json:"error,omitempty"`
}

// Family is the framework of a result's program.
func (r Result) Family() string {
	family, _, _ := strings.Cut(r.Program, ",")
	return family
}

// Machine is where something was measured.
type Machine struct {
	CPU     string `json:"cpu"`
	Cores   int    `json:"cores"`
	OS      string `json:"os"`
	Go      string `json:"go"`
	Backend string `json:"backend"`
	Load    string `json:"load_average_at_start"`
}

// Describe returns this machine, now, with the name of a backend.
func Describe(name string) Machine {
	m := Machine{CPU: backend.Processor(), Cores: runtime.NumCPU(), OS: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(), Backend: name}
	m.Load = strings.Join(loadAverages(3), " ")
	return m
}

// loadAverages returns the first n of this machine's load averages over 1, 5 and 15 minutes;
// none outside Linux.
func loadAverages(n int) []string {
	load, _ := os.ReadFile("/proc/loadavg")
	fields := strings.Fields(string(load))
	return fields[:min(n, len(fields))]
}

// ReadComparison reads what Comparison.Write wrote.
func ReadComparison(path string) (*Comparison, error) {
	c := &Comparison{}
	if err := artifact.ReadJSON(path, c); err != nil {
		return nil, err
	}
	if len(c.Results) == 0 {
		return nil, fmt.Errorf("bench: %s: no results", path)
	}
	return c, nil
}

// Resume takes over the results of an earlier comparison, to be replaced row by row, and the
// larger of both peaks. The earlier one must be of the same machine and versions.
func (c *Comparison) Resume(earlier *Comparison) error {
	here, there := c.Machine, earlier.Machine
	here.Load, there.Load = "", ""
	if here != there {
		return fmt.Errorf("bench: the earlier results are of another machine or version, %+v, this is %+v", there, here)
	}
	c.Results = slices.Clone(earlier.Results)
	for i := range c.Results { // one peak for all: the best seen
		c.Results[i].Share *= earlier.Peak / max(c.Peak, earlier.Peak)
	}
	c.Peak = max(c.Peak, earlier.Peak)
	return nil
}

// Put adds results in place of earlier ones of their rows and settings, in the order
// of [Rows].
func (c *Comparison) Put(results []Result) {
	c.Results = slices.DeleteFunc(c.Results, func(old Result) bool {
		return slices.ContainsFunc(results, func(r Result) bool { return r.Row == old.Row && r.Setting == old.Setting })
	})
	c.Results = append(c.Results, results...)
	place := func(r Result) int {
		return slices.IndexFunc(Rows(), func(row Row) bool { return row.Name() == r.Row })
	}
	slices.SortStableFunc(c.Results, func(a, b Result) int {
		return cmp.Or(cmp.Compare(place(a), place(b)), cmp.Compare(a.Setting, b.Setting))
	})
}

// Write writes the measurements to a file.
func (c *Comparison) Write(path string) error { return artifact.WriteJSON(path, c, "  ") }
