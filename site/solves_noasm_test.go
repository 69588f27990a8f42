//go:build noasm || !amd64

package main

// sameSolves: gonum's solves run the same Go code here as in the browser.
const sameSolves = true
