//go:build js && wasm

// Command wasm is the engine of the web page: it runs in a worker and offers the functions below to site/page/worker.js
// as methods of the global object engine. Each returns its result or throws no exception but {error: message}. Tables
// are Float64Arrays, row-major. Built with the tag full, as few need it, it reads problem files and runs the network.
package main

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"syscall/js"

	"gonum.org/v1/gonum/mat"

	"icrl/policyattention/decoder"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
	"icrl/wasm/engine"
)

var run *engine.Engine // what the page is looking at, nil before the first start

// The functions of the page, and those that need no run. The full program has more.
var (
	operations = map[string]func(args []js.Value) (any, error){
		"start": start, "round": round, "edit": edit, "attention": attention, "trace": trace,
		"matrix": matrix, "weight": weight, "digest": digest,
	}
	runless = map[string]bool{"start": true, "digest": true}
)

func main() {
	api := js.Global().Get("Object").New()
	for name, f := range operations {
		api.Set(name, js.FuncOf(func(_ js.Value, args []js.Value) (result any) {
			defer func() {
				if r := recover(); r != nil {
					result = map[string]any{"error": fmt.Sprint("internal error: ", r)}
				}
			}()
			if run == nil && !runless[name] {
				return map[string]any{"error": "there is no run yet"}
			}
			value, err := f(args)
			if err != nil {
				return map[string]any{"error": err.Error()}
			}
			return value
		}))
	}
	js.Global().Set("engine", api)
	select {} // the functions stay callable
}

// start(settings, problem?) starts a run. A problem has gamma, states, actions, p [S·A, S], r [S, A] and pi0 [S, A].
func start(args []js.Value) (_ any, err error) {
	s := args[0]
	number := func(name string) float64 { return s.Get(name).Float() }
	settings := engine.Settings{
		Preset: s.Get("preset").String(), States: s.Get("S").Int(), Actions: s.Get("A").Int(),
		Seed: uint64(s.Get("seed").Float()), Gamma: number("gamma"), Eta: number("eta"),
		Packets: s.Get("m").Int(), Expected: s.Get("expected").Bool(), Phi: number("phi"),
		Routing: number("tol"), Carrier: number("H"), Rounds: s.Get("T").Int(),
		RMax: number("rmax"), Kappa: number("kappa"), Tau1: number("tau1"), Tau2: number("tau2"),
	}
	var problem mdp.Problem
	if p := args[1]; p.Truthy() {
		states, actions := p.Get("states").Int(), p.Get("actions").Int()
		var tables []*mat.Dense
		for _, t := range []struct {
			name       string
			rows, cols int
		}{{"p", states * actions, states}, {"r", states, actions}, {"pi0", states, actions}} {
			data, err := decoded(p.Get(t.name), 8, func(b []byte) float64 {
				return math.Float64frombits(binary.LittleEndian.Uint64(b))
			})
			if err == nil && (len(data) != t.rows*t.cols || len(data) == 0) {
				err = fmt.Errorf("%d numbers, want %d", len(data), t.rows*t.cols)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t.name, err)
			}
			tables = append(tables, mat.NewDense(t.rows, t.cols, data))
		}
		if problem, err = mdp.NewProblem(p.Get("gamma").Float(), tables[0], tables[1], tables[2]); err != nil {
			return nil, err
		}
	}
	e, err := engine.New(settings, problem)
	if err != nil {
		return nil, err
	}
	run = e
	d := e.Decoder
	c := d.Certificate
	var legend strings.Builder
	for _, k := range d.Legend {
		fmt.Fprintf(&legend, "%s\t%s\t%s\t%v\t%d\t%d\t%d\t%d\n", k.Matrix, k.Symbol, k.Why, k.Value, k.To.Offset,
			k.To.Len, k.From.Offset, k.From.Len)
	}
	certificate := map[string]any{
		"B": c.B, "RMax": c.RMax, "kappa": c.Kappa, "nu": c.Nu, "tau1": c.Tau1, "tau2": c.Tau2, "m": c.Packets,
		"RAct": c.RAct, "R1": c.R1, "R2": c.R2, "lambda1": c.Lambda1, "lambda2": c.Lambda2, "visible": c.Visible,
		"zeta": c.Zeta, "deltaRoute": c.DeltaRoute, "deltaStat": c.DeltaStat, "alpha": c.Alpha, "routing": c.Routing,
		"roundoffZeta": c.RoundoffZeta, "roundoffDelta": c.RoundoffDelta,
	}
	if r := c.Returned; r != nil {
		certificate["theta"], certificate["transient"], certificate["neighbourhood"] = r.Theta, r.Transient,
			r.Neighbourhood
	}
	return map[string]any{
		"S": d.States, "A": d.Actions, "gamma": d.Gamma, "eta": e.Settings.Eta, "width": d.Layout.Width(),
		"headDim": d.Layout.HeadDim(),
		"token":   fields(d.Layout.Token), "slots": fields(d.Layout.Slots), "hidden": fields(decoder.Hidden),
		"fingerprint": e.Fingerprint(), "legend": legend.String(), "certificate": certificate, "phase": phaseOf(0),
	}, nil
}

// fields returns a line for each coordinate: its label, a tab, and what it is.
func fields(list []decoder.Field) string {
	var lines strings.Builder
	for _, f := range list {
		for i := range f.Len {
			fmt.Fprintf(&lines, "%s\t%s\n", f.Label(i), f.Note)
		}
	}
	return lines.String()
}

// phaseOf describes the i-th phase of the run.
func phaseOf(i int) any {
	p := run.Phases[i]
	var grid any
	if g := p.Grid; g != nil {
		grid = map[string]any{"width": g.Width, "height": g.Height, "tiles": g.Tiles, "entering": g.Entering}
	}
	return map[string]any{
		"grid": grid, "index": i, "start": p.From, "gap": p.Gap, "greedy": list(p.Optimum.Policy),
		"p": table(p.Problem.MDP.DenseP()), "r": table(p.Problem.MDP.R), "pi0": table(run.Phases[0].Problem.Pi0),
	}
}

// round(k, names) runs the named controllers through round k. The result names those that have it, and holds why others
// have none under errors. Its data are, for each of these in turn, fourteen numbers from ζ to the bound and the tables
// π, Q and those of the next round; for the decoder also exact policy mirror descent and the exact backup on the same
// context, and the packets: their number, and six for each.
func round(args []js.Value) (any, error) {
	k, failed := args[0].Int(), map[string]any{}
	var names []any
	var data []float64
	for i := range args[1].Length() {
		name := args[1].Index(i).String()
		r, err := run.Round(name, k)
		if err != nil {
			failed[name] = err.Error()
			continue
		}
		names = append(names, name)
		data = append(data, r.Zeta, r.ZetaBound, r.Delta, r.DeltaBound, r.Route, r.RouteBound, r.Sampling, r.Defect,
			r.Distance, r.Bound.Initial, r.Bound.Critic, r.Bound.Greedy, r.Bound.Last, r.Bound.Total())
		data = append(data, flat(r.Pi, r.Q, r.NextPi, r.NextQ)...)
		if name == engine.Decoder {
			step, err := pmd.Step(r.Pi, r.Q, run.Settings.Eta)
			if err != nil {
				return nil, err
			}
			data = append(data, flat(step, r.MDP.EvaluationBackup(r.NextPi, r.Q))...)
			data = append(data, float64(len(r.Packets)))
			for _, p := range r.Packets {
				data = append(data, float64(p.State), float64(p.Action), float64(p.NextState), float64(p.NextAction),
					p.Reward, p.LogWeight)
			}
		}
	}
	return map[string]any{"phase": run.PhaseAt(k), "names": names, "data": array(data), "errors": failed}, nil
}

// edit(k, {kind, s, a, t, value, tile}) changes the problem before round k and returns the new phase. The kind is
// "reward", "place", "transition", "tile" or "start", which changes π₀ and begins the run anew.
func edit(args []js.Value) (any, error) {
	x := args[1]
	change := engine.Edit{Kind: x.Get("kind").String(), S: x.Get("s").Int(), A: x.Get("a").Int(), T: x.Get("t").Int(),
		Value: x.Get("value").Float(), Tile: x.Get("tile").String()}
	if err := run.Apply(args[0].Int(), change); err != nil {
		return nil, err
	}
	return phaseOf(len(run.Phases) - 1), nil
}

// attention(k, s) returns the weights of state s's query in the decoder's actor call of round k: see its Attention.
func attention(args []js.Value) (any, error) {
	w, err := run.Attention(args[0].Int(), args[1].Int())
	return array(w), err
}

// trace(k, call) names the tokens of a call "actor", "critic" or "normed", and says which are read.
func trace(args []js.Value) (any, error) {
	c, err := run.Trace(args[0].Int(), args[1].String())
	if err != nil {
		return nil, err
	}
	return map[string]any{"names": list(c.Names), "reads": list(c.Reads)}, nil
}

// matrix(k, call, s, name, from, to) returns rows of a matrix of a call "actor", "critic" or "normed"; with the
// full program also of the trained actor's in state s, "learned".
func matrix(args []js.Value) (any, error) {
	c, err := run.Trace(args[0].Int(), args[1].String())
	if err != nil {
		return nil, err
	}
	rows, err := engine.Matrix(c, args[3].String(), args[4].Int(), args[5].Int())
	return shaped(rows), err
}

// shaped returns rows of one length as a table with its shape.
func shaped(rows [][]float64) any {
	data := slices.Concat(rows...)
	return map[string]any{"rows": len(rows), "cols": len(data) / max(1, len(rows)), "data": array(data)}
}

// weight(call, name) returns a weight matrix of the call's network.
func weight(args []js.Value) (any, error) {
	m, err := run.Weight(args[0].String(), args[1].String())
	if err != nil {
		return nil, err
	}
	return shaped(mdp.ToRows(m)), nil
}

// digest(bytes) returns the SHA-256 of a Uint8Array in hex, which browsers refuse a page over http from elsewhere.
func digest(args []js.Value) (any, error) {
	b := make([]byte, args[0].Length())
	js.CopyBytesToGo(b, args[0])
	return fmt.Sprintf("%x", seed.Sum256(b)), nil
}

// list returns x as js.ValueOf takes it.
func list[T any](x []T) []any {
	all := make([]any, len(x))
	for i, v := range x {
		all[i] = v
	}
	return all
}

func table(m *mat.Dense) js.Value { return array(flat(m)) }

// flat returns the entries of tables in a row.
func flat(tables ...*mat.Dense) (data []float64) {
	for _, m := range tables {
		data = append(data, slices.Concat(mdp.ToRows(m)...)...)
	}
	return data
}

// array copies x into a Float64Array, whose bytes are little-endian in every browser.
func array(x []float64) js.Value {
	out := js.Global().Get("Float64Array").New(len(x))
	bytes := make([]byte, 8*len(x))
	for i, v := range x {
		binary.LittleEndian.PutUint64(bytes[8*i:], math.Float64bits(v))
	}
	js.CopyBytesToJS(js.Global().Get("Uint8Array").New(out.Get("buffer")), bytes)
	return out
}

// decoded copies a typed array; it returns an error unless its numbers have size bytes each.
func decoded[T any](v js.Value, size int, number func([]byte) T) ([]T, error) {
	n := size * v.Length()
	if got := v.Get("byteLength"); got.Type() != js.TypeNumber || got.Int() != n {
		return nil, fmt.Errorf("want an array of numbers of %d bits", 8*size)
	}
	x, bytes := make([]T, v.Length()), make([]byte, n)
	js.CopyBytesToGo(bytes, js.Global().Get("Uint8Array").New(v.Get("buffer"), v.Get("byteOffset"), len(bytes)))
	for i := range x {
		x[i] = number(bytes[size*i:])
	}
	return x, nil
}
