package simd

import "sync"

// A Function computes the outputs of a function of a graph from its inputs, all of them
// float32 in row-major order, in at most so many goroutines. Outputs hold anything before.
type Function func(inputs, outputs [][]float32, workers int) error

// standIn is a function that stands in for those of a name.
type standIn struct {
	f Function
	// inPlace says that the only output takes the place of the last input, and holds at
	// first what that held.
	inPlace bool
}

// functions are those that stand in, by name.
var functions sync.Map

// StandIn has f compute the calls of all functions of a graph called name, or name followed
// by "#" and anything, on GoMLX's pure-Go backend, where kernels are in place. Elsewhere the
// function's own graph does. A call with an input or output that is not of float32 fails.
func StandIn(name string, f Function) { functions.Store(name, standIn{f, false}) }

// StandInPlace is StandIn for a function of one output that has the shape of the last input
// and takes its place: f finds there what that input holds.
func StandInPlace(name string, f Function) { functions.Store(name, standIn{f, true}) }
