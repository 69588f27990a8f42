// Package backend chooses the GoMLX backend that computations run on, in one place for
// the command, the notebooks and the tests.
//
// A backend is named as in GoMLX's GOMLX_BACKEND:
//
//	xla:cpu    XLA on the CPU, through a PJRT plugin ("xla" is short for it)
//	xla:cuda   XLA on an NVIDIA GPU, through its PJRT plugin. Matrix products are in TF32, whose
//	           factors are rounded to 10 bits, unless it is xla:cuda,tf32=false
//	go         GoMLX's own backend in pure Go: needs nothing
//
// Built with GOEXPERIMENT=simd on x86-64, as the Makefile builds everything, the pure-Go
// backend has vector kernels: on an EPYC (Zen 4) a training step at S = 8 takes it .068 s of
// processor time, and XLA .029 s.
//
// Options follow after commas, e.g. "xla:cuda,tf32=false" or "go:parallelism=1"; see
// the documentation of github.com/gomlx/go-xla/compute/xla. XLA reads its own flags from
// XLA_FLAGS.
//
// Plugins are files pjrt_c_api_<plugin>_plugin.so. If PJRT_PLUGIN_LIBRARY_PATH is set, they
// are looked for in the folders it lists and nowhere else; otherwise in the .local folder
// of this repository (found from the working directory or the executable, upwards), where
// set-up puts them, and then where GoMLX's installer puts them for a user or a system.
// Nothing is ever downloaded from here.
//
// XLA's CPU backend is meant for large networks; these settings make it fit small
// ones. On Linux the program tells glibc's allocator to keep freed memory
// (malloc_linux.c), which spares training steps their page faults; if
// MALLOC_MMAP_MAX_, MALLOC_TRIM_THRESHOLD_, MALLOC_TOP_PAD_ or GLIBC_TUNABLES is
// set, it leaves all of that to you. For the CPU's plugin two flags are added to XLA_FLAGS,
// unless they are set there already: one lets a graph say what is to be computed once, the other
// asks for vectors of 512 bits. XLA shares each operation out to its threads, and the
// operations of small networks are too short for that. So a training starts a client
// of XLA for each processor it may use (GOMAXPROCS and taskset limit them), gives
// each some parts of a batch, and adds up their gradients in the order of the parts:
// more processors change no bit of the result. On Linux the threads of such a client
// stay on their processor at a lower priority, so that other programs go first but do not
// stop a training; where there are several clients, so does the thread of Go's runtime
// that looks after its others.
package backend

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/compute/gobackend"
)

// ErrNoPlugin is wrapped by the errors of New that say that no file of a plugin was found.
var ErrNoPlugin = errors.New("no PJRT plugin")

// notices is where New says that it fell back to the pure-Go backend.
var notices io.Writer = os.Stderr

// New returns the backend called name. An empty name means the value of GOMLX_BACKEND,
// and, where that is empty too, the best available: xla:cpu if its plugin is there, else
// go, which a line on standard error then says. A backend that was asked for by name and
// cannot be had is an error, and so is a plugin that is there but cannot be loaded.
func New(name string) (compute.Backend, error) {
	if name == "" {
		name = os.Getenv(compute.ConfigEnvVar)
	}
	if name != "" {
		return named(name)
	}
	b, err := named("xla:cpu")
	if errors.Is(err, ErrNoPlugin) {
		fmt.Fprintln(notices, "backend: no XLA plugin found, using GoMLX's pure-Go backend, on which training is several times slower ('make setup' installs the plugin)")
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
	kind, config, _ := strings.Cut(name, ":")
	if kind == "go" {
		b, err := newGo(config)
		if err != nil {
			return nil, fmt.Errorf("backend: %q: %w", name, err)
		}
		return b, nil
	}
	plugin, options, _ := strings.Cut(config, ",")
	if plugin == "" {
		plugin = "cpu"
	}
	b, err := newXLA(plugin, options)
	if err != nil {
		return nil, fmt.Errorf("backend: %q: %w", name, err)
	}
	return b, nil
}

// newGo returns a backend in pure Go. Operations that run at the same time can take all of its
// workers and then wait for one, each of them, for ever (compute v0.1.2, Pool.Saturate). They
// run in the order in which they are built, so that a graph says what memory is free when.
func newGo(config string) (compute.Backend, error) {
	return gobackend.New("ops_sequential,creation_order," + config)
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
	d := Description{Name: gobackend.BackendName, Devices: make([]string, b.NumDevices())}
	for i := range d.Devices {
		d.Devices[i] = b.DeviceDescription(compute.DeviceNum(i))
	}
	describeXLA(b, &d)
	return d
}

// IsXLACPU says that b is xla:cpu.
func IsXLACPU(b compute.Backend) bool { return Describe(b).Name == "xla:cpu" }

// IsGo says that b is GoMLX's own backend in pure Go.
func IsGo(b compute.Backend) bool { return Describe(b).Name == gobackend.BackendName }

// findPlugin returns the path of the file of a plugin in the first folder that has it: the one
// without a version in its name, else the one of the latest version.
func findPlugin(plugin string, folders []string) (string, error) {
	for _, folder := range folders {
		// GoMLX's installer puts a version into the name: pjrt_c_api_cpu_v0.83.1_plugin.so.
		for _, pattern := range []string{"pjrt_c_api_%s_plugin.*", "pjrt_c_api_%s_v*_plugin.*"} {
			files, err := filepath.Glob(filepath.Join(folder, fmt.Sprintf(pattern, plugin)))
			if err != nil {
				return "", fmt.Errorf("plugin name %q: %w", plugin, err)
			}
			files = slices.DeleteFunc(files, func(file string) bool {
				return !slices.Contains([]string{".so", ".dylib", ".dll"}, filepath.Ext(file))
			})
			if len(files) > 0 {
				return filepath.Abs(slices.MaxFunc(files, func(a, b string) int { return slices.Compare(versionOf(a), versionOf(b)) }))
			}
		}
	}
	return "", fmt.Errorf("%w called %q in %s ('make setup' or 'make plugin' installs one)",
		ErrNoPlugin, plugin, strings.Join(folders, ", "))
}

// versionOf returns the numbers in the name of a plugin's file, such as 0, 83, 1.
func versionOf(file string) (version []int) {
	for _, digits := range strings.FieldsFunc(filepath.Base(file), func(r rune) bool { return r < '0' || r > '9' }) {
		n, _ := strconv.Atoi(digits) // digits alone; beyond an int they count as the largest
		version = append(version, n)
	}
	return version
}

// pluginFolders lists the folders to look for plugins in, in order.
func pluginFolders() []string {
	if list := os.Getenv("PJRT_PLUGIN_LIBRARY_PATH"); list != "" {
		return filepath.SplitList(list)
	}
	var folders []string
	if start, err := os.Getwd(); err == nil {
		folders = append(folders, repositoryFolders(start)...)
	}
	if program, err := os.Executable(); err == nil {
		folders = append(folders, repositoryFolders(filepath.Dir(program))...)
	}
	if home, err := os.UserHomeDir(); err == nil {
		folders = append(folders,
			filepath.Join(home, ".local/lib/go-xla"),
			filepath.Join(home, ".local/lib/go-xla/nvidia"),
			filepath.Join(home, "Library/Application Support/go-xla"))
	}
	return append(folders, "/usr/local/lib/go-xla", "/usr/local/lib/go-xla/nvidia")
}

// repositoryFolders returns where set-up puts plugins, if folder is inside this repository.
func repositoryFolders(folder string) []string {
	for {
		mod, err := os.ReadFile(filepath.Join(folder, "go.mod"))
		if err == nil && strings.HasPrefix(string(mod), "module icrl\n") {
			local := filepath.Join(folder, ".local")
			return []string{
				filepath.Join(local, "pjrt"),             // make setup
				filepath.Join(local, "go-xla"),           // make plugin
				filepath.Join(local, "go-xla", "nvidia"), // make plugin, on a machine with a GPU
			}
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return nil
		}
		folder = parent
	}
}

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
