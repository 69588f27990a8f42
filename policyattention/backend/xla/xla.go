//go:build cgo && ((linux && (amd64 || arm64)) || (darwin && arm64) || (windows && amd64))

package xla

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/gomlx/compute"
	"github.com/gomlx/go-xla/compute/xla"
	"github.com/gomlx/go-xla/pjrt"

	"icrl/policyattention/backend"
)

func init() {
	// go-xla would otherwise try a download whenever it is asked for a backend.
	xla.EnableAutoInstall(false)
	backend.XLA = driver{}
}

// driver is what backend.XLA is.
type driver struct{}

// New loads a plugin. It goes by the absolute path of the file, not by go-xla's own
// search, which opens every library it finds and panics at one that is no shared object.
func (driver) New(plugin, options string) (b compute.Backend, err error) {
	path := plugin
	if !filepath.IsAbs(path) {
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
	if b, err = xla.New(config); err != nil {
		return nil, fmt.Errorf("plugin %s cannot be used: %w", path, err)
	}
	return b, nil
}

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
