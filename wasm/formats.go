//go:build js && wasm && formats

// With the tag formats, the command is the page's reader of problem files: the function decode takes any
// file that package mdpfile reads and returns the problem as dense tables. It is a program of its own
// because its readers are as large as the engine; the page fetches it when a file that is not the page's
// own JSON is opened.
package main

import (
	"fmt"
	"syscall/js"

	"icrl/policyattention/mdpfile"
	"icrl/wasm/engine"
)

func main() { offer(map[string]function{"decode": decode}) }

// decode(name, bytes, layout) returns {states, actions, gamma, p, r, pi0, notes}: P [S·A, S], r and π₀
// [S, A], row-major.
func decode(args []js.Value) (any, error) {
	data := make([]byte, args[1].Length())
	js.CopyBytesToGo(data, args[1])
	problem, err := mdpfile.Decode(args[0].String(), data, mdpfile.Options{Layout: args[2].String()})
	if err != nil {
		return nil, err
	}
	m := problem.MDP
	if m.States() > engine.MaxStates || m.Actions() > engine.MaxActions {
		return nil, fmt.Errorf("the problem has %d states and %d actions, the page takes at most %d and %d; "+
			"the command solves it: policyattention solve --mdp %s", m.States(), m.Actions(), engine.MaxStates,
			engine.MaxActions, args[0].String())
	}
	var notes []any
	for _, w := range m.Warnings {
		notes = append(notes, w)
	}
	return map[string]any{
		"states": m.States(), "actions": m.Actions(), "gamma": m.Gamma,
		"p": table(m.DenseP()), "r": table(m.R), "pi0": table(problem.Pi0), "notes": notes,
	}, nil
}
