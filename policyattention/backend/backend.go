// Package backend chooses the GoMLX backend that computations run on, in one place for
// the command, the notebooks and the tests.
//
// A backend is named as in GoMLX's GOMLX_BACKEND:
//
//	go         GoMLX's own backend in pure Go: needs nothing. Networks of package transformer are
//	           trained by package engine there
//	xla:cpu    XLA on the CPU, through a PJRT plugin ("xla" is short for it)
//	xla:cuda   XLA on an NVIDIA GPU, through its PJRT plugin. Matrix products are in TF32, whose
//	           factors are rounded to 10 bits, unless it is xla:cuda,tf32=false
//
// A program has XLA if it imports package xla below this one, as the command does:
//
//	import _ "icrl/policyattention/backend/xla"
//
// Built with GOEXPERIMENT=simd on x86-64, as the Makefile builds everything, GoMLX's own backend has
// vector kernels; package engine needs no such flag.
//
// Options follow after commas, e.g. "xla:cuda,tf32=false" or "go:parallelism=1"; see
// the documentation of github.com/gomlx/go-xla/compute/xla.
package backend

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/gobackend"
)

// ErrNoPlugin is wrapped by the errors of New that say that no file of a plugin was found, or
// that the program has no XLA.
var ErrNoPlugin = errors.New("no PJRT plugin")

// A Driver makes backends that are not in pure Go.
type Driver interface {
	// New loads a plugin, such as cpu or cuda. Its error wraps ErrNoPlugin if there is none.
	New(plugin, options string) (compute.Backend, error)
	// Describe describes what New returned, and says of others that it does not know them.
	Describe(b compute.Backend) (d Description, ok bool)
	// Cores is Cores for what New returned.
	Cores(b compute.Backend, n int) ([]*Core, error)
}

var driver Driver

// Register is called by package xla.
func Register(d Driver) { driver = d }

// New returns the backend called name. An empty name means the value of GOMLX_BACKEND,
// and, where that is empty too, the best that the program has: xla:cpu if it has XLA and the
// plugin is there, else go; one line on standard error says if only the plugin is missing. A
// backend that was asked for by name and cannot be had is an error, and so is a plugin that is
// there but cannot be loaded.
func New(name string) (compute.Backend, error) {
	if name == "" {
		name = os.Getenv(compute.ConfigEnvVar)
	}
	if name != "" {
		return named(name)
	}
	if driver == nil {
		return named("go")
	}
	b, err := named("xla:cpu")
	if errors.Is(err, ErrNoPlugin) {
		fmt.Fprintln(os.Stderr, "backend: no XLA plugin found ('make setup' installs it), using the pure-Go backend")
		return named("go")
	}
	return b, err
}

// Check returns an error unless New can know what a name means; an empty one means its choice.
func Check(name string) error {
	kind, _, _ := strings.Cut(name, ":")
	if name == "" || kind == "go" || kind == "xla" {
		return nil
	}
	return fmt.Errorf("backend: unknown name %q, want xla:cpu, xla:cuda or go", name)
}

func named(name string) (compute.Backend, error) {
	if err := Check(name); err != nil {
		return nil, err
	}
	var b compute.Backend
	var err error
	kind, config, _ := strings.Cut(name, ":")
	plugin, options, _ := strings.Cut(config, ",")
	switch {
	case kind == "go": // operations in the order in which they are built: a graph says what memory is free when
		b, err = gobackend.New("ops_sequential,creation_order," + config)
	case driver == nil:
		err = fmt.Errorf("%w: built without XLA (import _ %q; it needs cgo)", ErrNoPlugin,
			"icrl/policyattention/backend/xla")
	default:
		b, err = driver.New(cmp.Or(plugin, "cpu"), options)
	}
	if err != nil {
		return nil, fmt.Errorf("backend: %q: %w", name, err)
	}
	return b, nil
}

// Description says what a backend is, for manifests. It holds no paths.
type Description struct {
	Name    string   `json:"name"`             // "xla:cpu", "xla:cuda", "xla:cuda,tf32=false" or "go"
	Plugin  string   `json:"plugin,omitempty"` // version of the plugin's C API, e.g. "PJRT 0.81"
	Devices []string `json:"devices"`
}

// Stretch is consecutive steps of a run that one kind of backend made on one kind of
// processor. A run that was stopped may go on elsewhere, and its bytes then depend on where.
type Stretch struct {
	Backend string `json:"backend"`       // a name of [Description], or "" if it was not recorded
	CPU     string `json:"cpu,omitempty"` // a name that [Processor] gives, or "" if it was not recorded
	Step    int    `json:"step"`          // the last one
}

// Describe describes a backend that New returned.
func Describe(b compute.Backend) Description {
	d := Description{Name: gobackend.BackendName}
	if driver != nil {
		if of, ok := driver.Describe(b); ok {
			d = of
		}
	}
	d.Devices = make([]string, b.NumDevices())
	for i := range d.Devices {
		d.Devices[i] = b.DeviceDescription(compute.DeviceNum(i))
	}
	return d
}

// IsXLACPU says that b is xla:cpu.
func IsXLACPU(b compute.Backend) bool { return Describe(b).Name == "xla:cpu" }

// IsGo says that b is GoMLX's own backend in pure Go.
func IsGo(b compute.Backend) bool { return Describe(b).Name == gobackend.BackendName }

// Processor returns the name of this machine's processor, with its family and model, where the
// kernel tells them: virtual machines often name no more than the brand.
func Processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	says := map[string]string{}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		if key = strings.TrimSpace(key); says[key] == "" { // of the first processor
			says[key] = strings.TrimSpace(value)
		}
	}
	name := says["model name"]
	if family, model := says["cpu family"], says["model"]; name != "" && family != "" && model != "" {
		name += fmt.Sprintf(", family %s model %s", family, model)
	}
	return name
}

// A Core is one processor of this process with a backend of its own. One backend would share
// its work out to all processors operation by operation, and the operations of small networks are
// too short for that to gain much; those of a core each share out a whole computation.
type Core struct {
	compute.Backend
	Work chan<- func() // to the thread that does the core's work; nil for any thread
}

// Cores starts a Core on each of the processors that this process may use, on at most n of
// them, for a backend xla:cpu on Linux. For others, and where that is one, the only Core is b
// and any thread. Close each of them.
func Cores(b compute.Backend, n int) ([]*Core, error) {
	if n > 1 && IsXLACPU(b) {
		return driver.Cores(b, n)
	}
	return []*Core{{Backend: b}}, nil
}

// Do calls f on the core's thread and returns its error. It panics after Close.
func (c *Core) Do(f func() error) error {
	if c.Work == nil {
		return f()
	}
	done := make(chan error)
	c.Work <- func() { done <- f() }
	return <-done
}

// Close ends the core's own backend and its thread. It is called once.
func (c *Core) Close() {
	if c.Work != nil {
		c.Backend.Finalize()
		close(c.Work)
	}
}
