//go:build cgo && ((darwin && arm64) || (windows && amd64))

package xla

import (
	"github.com/gomlx/compute"

	"icrl/policyattention/backend"
)

// Cores implements backend.Driver. Threads are neither listed nor rested here, nor kept on a processor.
func (driver) Cores(b compute.Backend, _ int) ([]*backend.Core, error) {
	return []*backend.Core{{Backend: b}}, nil
}

func threads(string) ([]int, error) { return nil, nil }

func rest([]int) error { return nil }
