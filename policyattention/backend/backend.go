// Package backend chooses the GoMLX backend that the command, the notebooks and the tests compute on.
//
// A backend is named as in GoMLX's GOMLX_BACKEND:
//
//	go         GoMLX's own backend in pure Go, the default: needs nothing
//	xla:cpu    XLA on the CPU, through a PJRT plugin ("xla" is short for it)
//	xla:cuda   XLA on an NVIDIA GPU, through its PJRT plugin. Matrix products are in TF32, whose
//	           factors are rounded to 10 bits, unless it is xla:cuda,tf32=false
//
// On CPUs package engine trains networks of package transformer, whatever the backend.
//
// A program has XLA if it imports package xla below this one, as the command does:
//
//	import _ "icrl/policyattention/backend/xla"
//
// Built with GOEXPERIMENT=simd on x86-64, as the Makefile builds everything, GoMLX's own backend has
// vector kernels; package engine needs no such flag.
//
// Options follow after commas: "xla:cuda,tf32=false" or "go:parallelism=1", see github.com/gomlx/go-xla/compute/xla.
package backend

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/gobackend"
)

// ErrNoPlugin is wrapped by errors of New that say that no plugin's file was found, or that the program has no XLA.
var ErrNoPlugin = errors.New("no PJRT plugin")

// XLA makes backends that are not in pure Go. Package xla sets it.
var XLA interface {
	// New loads a plugin, such as cpu or cuda. Its error wraps ErrNoPlugin if there is none.
	New(plugin, options string) (compute.Backend, error)
	// Describe describes what New returned, and says of others that it does not know them.
	Describe(b compute.Backend) (d Description, ok bool)
}

// New returns the backend called name. An empty name means the value of GOMLX_BACKEND, or, where that is empty too, go.
// A backend that cannot be had is an error.
func New(name string) (b compute.Backend, err error) {
	name = cmp.Or(name, os.Getenv(compute.ConfigEnvVar), "go")
	if err := Check(name); err != nil {
		return nil, err
	}
	kind, config, _ := strings.Cut(name, ":")
	plugin, options, _ := strings.Cut(config, ",")
	switch {
	case kind == "go": // operations in the order in which they are built: a graph says what memory is free when
		b, err = gobackend.New("ops_sequential,creation_order," + config)
	case XLA == nil:
		err = fmt.Errorf(`%w: built without XLA (import _ "icrl/policyattention/backend/xla", with cgo)`, ErrNoPlugin)
	default:
		b, err = XLA.New(cmp.Or(plugin, "cpu"), options)
	}
	if err != nil {
		return nil, fmt.Errorf("backend: %q: %w", name, err)
	}
	return b, nil
}

// Check returns an error unless New can know what a name means; an empty one means its choice.
func Check(name string) error {
	kind, _, _ := strings.Cut(name, ":")
	if name == "" || kind == "go" || kind == "xla" {
		return nil
	}
	return fmt.Errorf("backend: unknown name %q, want go, xla:cpu or xla:cuda", name)
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
	if XLA != nil {
		if of, ok := XLA.Describe(b); ok {
			d = of
		}
	}
	d.Devices = make([]string, b.NumDevices())
	for i := range d.Devices {
		d.Devices[i] = b.DeviceDescription(compute.DeviceNum(i))
	}
	return d
}

// OnCPU says that b computes on the CPU.
func OnCPU(b compute.Backend) bool {
	name := Describe(b).Name
	return name == gobackend.BackendName || name == "xla:cpu"
}

// Processor returns the name of this machine's processor, with its family and model, where the
// kernel tells them: virtual machines often name no more than the brand.
func Processor() string {
	says := told("/proc/cpuinfo")
	name := says["model name"]
	if family, model := says["cpu family"], says["model"]; name != "" && family != "" && model != "" {
		name += fmt.Sprintf(", family %s model %s", family, model)
	}
	return name
}

// told returns what the kernel tells in a file of lines "key: value": the first of each key, such as of the first
// processor; nothing where there is no such file.
func told(file string) map[string]string {
	text, _ := os.ReadFile(file)
	says := map[string]string{}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		if key = strings.TrimSpace(key); says[key] == "" {
			says[key] = strings.TrimSpace(value)
		}
	}
	return says
}

// ProcessorTime returns the processor time of all threads of this process so far, or 0 where the system does not tell.
func ProcessorTime() time.Duration {
	u := self()
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// PeakMemory returns the largest memory of this process so far in bytes, or 0 where the system does not tell.
func PeakMemory() int64 {
	// On Linux, what getrusage says begins with the peak of the program that started this one.
	var kilobytes int64
	if n, _ := fmt.Sscanf(told("/proc/self/status")["VmHWM"], "%d kB", &kilobytes); n == 1 {
		return kilobytes * 1024
	}
	peak := int64(self().Maxrss)
	if runtime.GOOS != "darwin" {
		peak *= 1024 // macOS counts bytes, others kilobytes
	}
	return peak
}

func self() (u syscall.Rusage) {
	syscall.Getrusage(syscall.RUSAGE_SELF, &u) //nolint:errcheck // zeros are what is said then
	return u
}
