//go:build js && wasm

package main

import (
	"fmt"
	"syscall/js"
	"unsafe"

	"gonum.org/v1/gonum/mat"
)

// function returns its result, or an error that the page gets as {error: message}.
type function = func(args []js.Value) (any, error)

// offer makes functions the methods of the global object engine, as the worker calls every program.
func offer(functions map[string]function) {
	api := js.Global().Get("Object").New()
	for name, f := range functions {
		api.Set(name, js.FuncOf(func(_ js.Value, args []js.Value) (result any) {
			defer func() {
				if r := recover(); r != nil {
					result = map[string]any{"error": fmt.Sprint("internal error: ", r)}
				}
			}()
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

func table(m *mat.Dense) js.Value { return array(flat(m)) }

func flat(m *mat.Dense) []float64 {
	rows, cols := m.Dims()
	x := make([]float64, 0, rows*cols)
	for i := range rows {
		x = append(x, m.RawRowView(i)...)
	}
	return x
}

// array copies x into a Float64Array; memory of WebAssembly is little-endian, as
// typed arrays are.
func array(x []float64) js.Value {
	out := js.Global().Get("Float64Array").New(len(x))
	if len(x) > 0 {
		view := js.Global().Get("Uint8Array").New(out.Get("buffer"))
		js.CopyBytesToJS(view, unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), 8*len(x)))
	}
	return out
}
