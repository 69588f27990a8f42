//go:build ignore

// Plugin runs GoMLX's own installer of PJRT plugins for this machine, NVIDIA's included
// where there is a GPU, into .local/go-xla. It downloads them; set-up never runs it.
package main

import (
	"log"

	"github.com/gomlx/go-xla/installer"
)

func main() {
	if err := installer.AutoInstall(".local", true, installer.Verbose); err != nil {
		log.Fatal("plugin: ", err)
	}
}
