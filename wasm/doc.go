//go:build !js

// Command wasm is the engine of the web page; build it with GOOS=js GOARCH=wasm.
package main

func main() { panic("build with GOOS=js GOARCH=wasm; see make site") }
