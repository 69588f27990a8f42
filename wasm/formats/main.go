//go:build js && wasm

// Command formats is the page's reader of problem files: the function decode of the global object
// engine takes any file that package mdpfile reads and returns the problem as dense tables. It is a
// program of its own because its readers are as large as the engine; the page fetches it when a file
// that is not the page's own JSON is opened.
package main

import (
	"fmt"
	"syscall/js"
	"unsafe"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/mdp"
	"icrl/policyattention/mdpfile"
	"icrl/wasm/engine"
)

func main() {
	api := js.Global().Get("Object").New()
	api.Set("decode", js.FuncOf(func(_ js.Value, args []js.Value) (result any) {
		defer func() {
			if r := recover(); r != nil {
				result = map[string]any{"error": fmt.Sprint("internal error: ", r)}
			}
		}()
		data := make([]byte, args[1].Length())
		js.CopyBytesToGo(data, args[1])
		problem, err := mdpfile.Decode(args[0].String(), data, mdpfile.Options{Layout: args[2].String()})
		if err != nil {
			return map[string]any{"error": err.Error()}
		}
		if s, a := problem.MDP.States(), problem.MDP.Actions(); s > engine.MaxStates || a > engine.MaxActions {
			return map[string]any{"error": fmt.Sprintf("the problem has %d states and %d actions, the page takes "+
				"at most %d and %d; "+
				"the command solves it: policyattention solve --mdp %s", s, a, engine.MaxStates, engine.MaxActions,
				args[0].String())}
		}
		return tables(problem)
	}))
	js.Global().Set("engine", api) // as the worker calls every program
	select {}                      // decode stays callable
}

// tables returns {states, actions, gamma, p, r, pi0, notes}: P [S·A, S], r and π₀ [S, A], row-major.
func tables(p mdp.Problem) map[string]any {
	var notes []any
	for _, w := range p.MDP.Warnings {
		notes = append(notes, w)
	}
	return map[string]any{
		"states": p.MDP.States(), "actions": p.MDP.Actions(), "gamma": p.MDP.Gamma,
		"p": array(p.MDP.DenseP()), "r": array(p.MDP.R), "pi0": array(p.Pi0), "notes": notes,
	}
}

// array copies a matrix into a Float64Array.
func array(m *mat.Dense) js.Value {
	x := m.RawMatrix().Data // as it was made, without gaps between rows
	out := js.Global().Get("Float64Array").New(len(x))
	view := js.Global().Get("Uint8Array").New(out.Get("buffer"))
	js.CopyBytesToJS(view, unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 8*len(x)))
	return out
}
