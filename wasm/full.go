//go:build js && wasm && full

package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"syscall/js"

	"icrl/policyattention/anymdp"
	"icrl/policyattention/mdpfile"
	network "icrl/policyattention/transformer/engine"
	"icrl/wasm/engine"
)

var learned *network.Network[float64] // kept over restarts; nil before it is loaded

func init() {
	operations["learn"], operations["compare"], operations["decode"] = learn, compare, decode
	runless["learn"], runless["decode"] = true, true
	operations["start"] = func(args []js.Value) (any, error) {
		before := run
		info, err := start(args)
		if err != nil || learned == nil {
			return info, err
		}
		if err := run.SetLearned(learned); err != nil {
			run = before
			return nil, err
		}
		return info, nil
	}
	operations["matrix"] = func(args []js.Value) (any, error) {
		if args[1].String() != engine.Learned {
			return matrix(args)
		}
		t, err := run.Look(args[0].Int(), args[2].Int())
		if err != nil {
			return nil, err
		}
		rows, err := engine.LearnedMatrix(t, args[3].String(), args[4].Int(), args[5].Int())
		return shaped(rows), err
	}
}

// decode(name, bytes, layout) reads a problem from a file of any format of package mdpfile.
func decode(args []js.Value) (any, error) {
	data := make([]byte, args[1].Length())
	js.CopyBytesToGo(data, args[1])
	p, err := mdpfile.Decode(args[0].String(), data, mdpfile.Options{Layout: args[2].String()})
	if err != nil {
		return nil, err
	}
	s, a := p.MDP.States(), p.MDP.Actions()
	if s > engine.MaxStates || a > engine.MaxActions {
		return nil, fmt.Errorf("the problem has %d states and %d actions, the page takes at most %d and %d; the "+
			"command solves it: policyattention solve --mdp %s", s, a, engine.MaxStates, engine.MaxActions,
			args[0].String())
	}
	return map[string]any{"states": s, "actions": a, "gamma": p.MDP.Gamma, "p": table(p.MDP.DenseP()),
		"r": table(p.MDP.R), "pi0": table(p.Pi0), "notes": list(p.MDP.Warnings)}, nil
}

// learn(tensors) takes the trained actor: tensors maps names to Float32Arrays.
func learn(args []js.Value) (any, error) {
	n, err := anymdp.NewNetwork(anymdp.Shape(), func(name string) ([]float32, error) {
		v := args[0].Get(name)
		if v.Type() != js.TypeObject {
			return nil, fmt.Errorf("there is no tensor %q", name)
		}
		return decoded(v, 4, func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) })
	})
	if err != nil {
		return nil, err
	}
	learned = n
	if run == nil {
		return true, nil
	}
	return true, run.SetLearned(n)
}

// compare(k) applies the trained actor to the decoder's context of round k and returns its policy.
func compare(args []js.Value) (any, error) {
	next, err := run.Compare(args[0].Int())
	if err != nil {
		return nil, err
	}
	return table(next), nil
}
