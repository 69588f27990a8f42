// Package xla gives a program that imports it XLA as a backend, see package backend. It needs cgo, and Linux, macOS on
// arm64 or Windows on amd64; elsewhere it has no effect. XLA reads its own flags from XLA_FLAGS.
//
// Plugins are files pjrt_c_api_<plugin>_plugin.so. If PJRT_PLUGIN_LIBRARY_PATH is set, they are looked for in the
// folders it lists and nowhere else; otherwise in the .local folder of this repository (found from the working
// directory or the executable, upwards), where set-up puts them, and then where GoMLX's installer puts them for a user
// or a system. Nothing is ever downloaded from here.
package xla

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"icrl/policyattention/backend"
)

// findPlugin returns the path of the file of a plugin in the first folder that has it: the one
// without a version in its name, else the one of the latest version.
func findPlugin(plugin string, folders []string) (string, error) {
	for _, folder := range folders {
		// GoMLX's installer puts a version into the name: pjrt_c_api_cpu_v0.83.1_plugin.so.
		for _, pattern := range []string{"pjrt_c_api_%s_plugin.*", "pjrt_c_api_%s_v*_plugin.*"} {
			files, err := filepath.Glob(filepath.Join(folder, fmt.Sprintf(pattern, plugin)))
			if err != nil {
				return "", fmt.Errorf("plugin name %q: %w", plugin, err)
			}
			files = slices.DeleteFunc(files, func(file string) bool {
				return !slices.Contains([]string{".so", ".dylib", ".dll"}, filepath.Ext(file))
			})
			if len(files) > 0 {
				return filepath.Abs(slices.MaxFunc(files, func(a, b string) int {
					return slices.Compare(versionOf(a), versionOf(b))
				}))
			}
		}
	}
	return "", fmt.Errorf("%w called %q in %s ('make setup' or 'make plugin' installs one)",
		backend.ErrNoPlugin, plugin, strings.Join(folders, ", "))
}

// versionOf returns the numbers in the name of a plugin's file, such as 0, 83, 1.
func versionOf(file string) (version []int) {
	for _, digits := range strings.FieldsFunc(filepath.Base(file), func(r rune) bool { return r < '0' || r > '9' }) {
		n, _ := strconv.Atoi(digits) // digits alone; beyond an int they count as the largest
		version = append(version, n)
	}
	return version
}

// pluginFolders lists the folders to look for plugins in, in order.
func pluginFolders() []string {
	if list := os.Getenv("PJRT_PLUGIN_LIBRARY_PATH"); list != "" {
		return filepath.SplitList(list)
	}
	start, _ := os.Getwd() // what is not known is "", and leads nowhere else
	program, _ := os.Executable()
	folders := append(repositoryFolders(start), repositoryFolders(filepath.Dir(program))...)
	if home, err := os.UserHomeDir(); err == nil {
		own := filepath.Join(home, ".local/lib/go-xla")
		folders = append(folders, own, filepath.Join(own, "nvidia"),
			filepath.Join(home, "Library/Application Support/go-xla"))
	}
	return append(folders, "/usr/local/lib/go-xla", "/usr/local/lib/go-xla/nvidia")
}

// repositoryFolders returns where set-up puts plugins, if folder is inside this repository.
func repositoryFolders(folder string) []string {
	for {
		mod, err := os.ReadFile(filepath.Join(folder, "go.mod"))
		if err == nil && strings.HasPrefix(string(mod), "module icrl\n") {
			local := filepath.Join(folder, ".local")
			plugin := filepath.Join(local, "go-xla") // where 'make plugin' puts them, and 'make setup' into pjrt
			return []string{filepath.Join(local, "pjrt"), plugin, filepath.Join(plugin, "nvidia")}
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return nil
		}
		folder = parent
	}
}
