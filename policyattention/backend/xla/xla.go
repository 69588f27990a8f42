//go:build cgo && ((linux && (amd64 || arm64)) || (darwin && arm64) || (windows && amd64))

package xla

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/go-xla/compute/xla"
	"github.com/gomlx/go-xla/pjrt"

	"icrl/policyattention/backend"
)

func init() {
	// go-xla would otherwise try a download whenever it is asked for a backend.
	xla.EnableAutoInstall(false)
	backend.Register(driver{})
}

// driver implements backend.Driver.
type driver struct{}

// New loads a plugin. It goes by the absolute path of the file, not by go-xla's own
// search, which opens every library it finds and panics at one that is no shared object.
func (driver) New(plugin, options string) (compute.Backend, error) {
	path := plugin
	if !filepath.IsAbs(path) {
		var err error
		if path, err = findPlugin(plugin, pluginFolders()); err != nil {
			return nil, err
		}
	}
	// go-xla reads the kind of device from the path, and options from after its first comma.
	folder := strings.ToLower(filepath.Dir(path))
	cuda := pjrt.IsCUDAName(filepath.Base(path))
	if strings.Contains(folder, ",") || cuda && strings.Contains(folder, "cpu") || !cuda && pjrt.IsCUDAName(folder) {
		return nil, fmt.Errorf("plugin folder %s: a comma, or the name of another device, in the path misleads "+
			"go-xla: put the plugin elsewhere", folder)
	}
	config := path
	if options != "" {
		config += "," + options
	}
	if cuda {
		return client(config)
	}
	if err := setFlags(); err != nil {
		return nil, err
	}
	return start(config, runtime.GOMAXPROCS(0)-1)
}

func client(config string) (compute.Backend, error) {
	b, err := xla.New(config)
	if err != nil {
		path, _, _ := strings.Cut(config, ",")
		return nil, fmt.Errorf("plugin %s cannot be used: %w", path, err)
	}
	return b, nil
}

// worker is what the worker threads of XLA's CPU clients are called.
const worker = "tf_XLAEigen"

// start starts a CPU client that has no more than n workers: one for each processor
// of this process but that of the thread that waits for them, which works as well. The
// plugin starts four or more, whatever the machine has and taskset allows; on fewer
// cores they spend a third of a small network's training step on taking work from each
// other and on waking up. On a single core all of them rest: they run while that thread
// waits and give way once it can go on.
func start(config string, n int) (compute.Backend, error) {
	before, err := threads(worker) // of other clients
	if err != nil {
		return nil, err
	}
	b, err := client(config)
	if err != nil {
		return nil, err
	}
	after, err := threads(worker)
	if err != nil {
		return nil, err
	}
	started := slices.DeleteFunc(after, func(id int) bool { return slices.Contains(before, id) })
	if err := rest(started[min(n, len(started)):]); err != nil {
		return nil, err
	}
	return b, nil
}

// setFlags gives XLA's compiler for the CPU two options; a user's own choice of them
// stands. They stay in the environment, so a process that uses both should open xla:cuda first.
// Optimization barriers reach fusion, which would otherwise be removed just
// before it: package transformer says with them what is to be computed once. And
// generated code has the widest vectors that the processor knows.
func setFlags() error {
	const name = "XLA_FLAGS"
	flags := os.Getenv(name)
	for _, f := range []struct{ option, value string }{
		{"--xla_disable_hlo_passes=", "cse_barrier_expander"},
		{"--xla_cpu_prefer_vector_width=", "512"},
	} {
		if !strings.Contains(flags, f.option) {
			flags = strings.TrimSpace(flags + " " + f.option + f.value)
		}
	}
	return os.Setenv(name, flags)
}

// Describe implements backend.Driver.
func (driver) Describe(b compute.Backend) (d backend.Description, ok bool) {
	x, ok := b.(*xla.Backend)
	if !ok {
		return d, false
	}
	switch {
	case x.IsCUDA():
		d.Name = "xla:cuda"
		if !x.DotGeneralUseTF32 {
			d.Name += ",tf32=false"
		}
	case x.IsCPU():
		d.Name = "xla:cpu"
	}
	// The plugin is loaded already, this finds it by its path.
	if plugin, err := pjrt.GetPlugin(x.PluginName()); err == nil {
		major, minor := plugin.Version()
		d.Plugin = fmt.Sprintf("PJRT %d.%d", major, minor)
	}
	return d, true
}
