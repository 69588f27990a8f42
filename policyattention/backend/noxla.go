//go:build !(cgo && !noxla && ((linux && (amd64 || arm64)) || (darwin && arm64) || (windows && amd64)))

package backend

import (
	"fmt"
	"runtime"

	"github.com/gomlx/compute"
)

// newXLA fails: go-xla does not support this platform, or cgo is off.
func newXLA(plugin, _ string) (compute.Backend, error) {
	return nil, fmt.Errorf("%w for %s/%s, asked for %q", ErrNoPlugin, runtime.GOOS, runtime.GOARCH, plugin)
}

func describeXLA(compute.Backend, *Description) {}

func another(compute.Backend) (compute.Backend, error) { return newXLA("cpu", "") }
