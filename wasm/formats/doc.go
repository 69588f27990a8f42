//go:build !js

// Command formats reads problem files for the web page; build it with GOOS=js GOARCH=wasm.
package main

func main() { panic("build with GOOS=js GOARCH=wasm; see make site") }
