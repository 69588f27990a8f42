//go:build !(amd64 && goexperiment.simd)

package native

import (
	"errors"

	"icrl/policyattention/transformer"
)

// Available says whether this processor and build have what a Pass needs.
const Available = false

var errUnavailable = errors.New("native: built without GOEXPERIMENT=simd")

// Saved is 0: this build has no kernels.
func (p Pass) Saved() int { return 0 }

// PreparedSize is 0: this build has no kernels.
func PreparedSize(transformer.Config) int { return 0 }

// Prepare returns an error: this build has no kernels.
func Prepare(c transformer.Config, params, into []float32) error { return errUnavailable }

// Forward returns an error: this build has no kernels.
func (p Pass) Forward(prepared, tokens, outputs, saved []float32) error {
	return errUnavailable
}

// Backward returns an error: this build has no kernels.
func (p Pass) Backward(prepared, saved, slope, gradient []float32) error {
	return errUnavailable
}

// FoldedSize is 0: this build has no kernels.
func FoldedSize(transformer.Config) int { return 0 }

// Fold returns an error: this build has no kernels.
func Fold(c transformer.Config, params, into []float32) error { return errUnavailable }

// Infer returns an error: this build has no kernels.
func (p Pass) Infer(folded, tokens, outputs []float32, workers int) error { return errUnavailable }
