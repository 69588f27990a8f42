//go:build !linux

package backend

import "os/exec"

// Share is empty where there is no interface to pin a process.
type Share struct{}

// Shares deals the processors that this process may use into n sets.
func Shares(n int) ([]Share, error) { return make([]Share, n), nil }

// Start starts the command.
func (Share) Start(cmd *exec.Cmd) error { return cmd.Start() }
