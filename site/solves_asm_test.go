//go:build !noasm && amd64

package main

const sameSolves = false
