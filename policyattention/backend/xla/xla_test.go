//go:build cgo && ((linux && (amd64 || arm64)) || (darwin && arm64) || (windows && amd64))

package xla

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gomlx/compute"

	"icrl/internal/testkit"
	"icrl/policyattention/backend"
)

const pluginPath = "PJRT_PLUGIN_LIBRARY_PATH"

func TestXLA(t *testing.T) {
	if _, err := findPlugin("cpu", pluginFolders()); err != nil {
		t.Skip(err)
	}
	for _, name := range []string{"xla", "xla:cpu", "xla:cpu,shared_buffers=false"} {
		t.Run(name, func(t *testing.T) {
			b := testkit.Must(backend.New(name))(t)
			defer b.Finalize()
			testkit.SumOfSquares(t, b)
			d := backend.Describe(b)
			if d.Name != "xla:cpu" || !strings.HasPrefix(d.Plugin, "PJRT ") || len(d.Devices) == 0 {
				t.Errorf("Describe = %+v", d)
			}
		})
	}
}

// Without a name the backend is the one in pure Go.
func TestDefault(t *testing.T) {
	t.Setenv(compute.ConfigEnvVar, "")
	b := testkit.Must(backend.New(""))(t)
	defer b.Finalize()
	if d := backend.Describe(b); d.Name != "go" {
		t.Errorf("backend %q, want go", d.Name)
	}
}

// What was asked for by name, in the argument or in GOMLX_BACKEND, is had or is an error.
func TestErrors(t *testing.T) {
	broken := t.TempDir()
	notALibrary := filepath.Join(broken, "pjrt_c_api_cpu_plugin.so")
	testkit.Check(t, os.WriteFile(notALibrary, []byte("not a shared object"), 0o644))
	misleading := filepath.Join(t.TempDir(), "cuda")
	testkit.Check(t, os.Mkdir(misleading, 0o755))
	testkit.Check(t, os.Link(notALibrary, filepath.Join(misleading, "pjrt_c_api_cpu_plugin.so")))

	for _, c := range []struct {
		what, name, env, folder string
		want                    string // part of the error
	}{
		{what: "missing folder", name: "xla:cpu", folder: filepath.Join(broken, "nowhere"),
			want: "no PJRT plugin called"},
		{what: "empty folder", env: "xla:cpu", folder: t.TempDir(), want: "no PJRT plugin called"},
		{what: "missing CUDA plugin", name: "xla:cuda", folder: broken, want: `no PJRT plugin called "cuda"`},
		{what: "not a shared object", name: "xla:cpu", folder: broken, want: notALibrary},
		{what: "not a shared object, by GOMLX_BACKEND", env: "xla", folder: broken, want: notALibrary},
		{what: "not a shared object, by path", name: "xla:" + notALibrary, want: notALibrary},
		{what: "folder named after another device", name: "xla:cpu", folder: misleading, want: "misleads"},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Setenv(compute.ConfigEnvVar, c.env)
			t.Setenv(pluginPath, c.folder)
			b, err := backend.New(c.name)
			if err == nil {
				b.Finalize()
				t.Fatal("no error")
			}
			if !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q, want it to hold %q", err, c.want)
			}
			if c.want == "no PJRT plugin called" && !errors.Is(err, backend.ErrNoPlugin) {
				t.Errorf("error %q is not ErrNoPlugin", err)
			}
		})
	}
}

func TestFindPlugin(t *testing.T) {
	first, second := t.TempDir(), t.TempDir()
	for _, file := range []string{
		filepath.Join(first, "pjrt_c_api_cpu_plugin.txt"),
		filepath.Join(first, "pjrt_c_api_cuda_plugin.so"),
		filepath.Join(second, "pjrt_c_api_cpu_v0.9.0_plugin.so"),
		filepath.Join(second, "pjrt_c_api_cpu_v0.83.1_plugin.so"),
		filepath.Join(second, "pjrt_c_api_cpu_v0.83.1-rc_plugin.txt"),
		filepath.Join(second, "pjrt_c_api_cuda_plugin.so"),
		filepath.Join(second, "pjrt_c_api_rocm_plugin.so"),
		filepath.Join(second, "pjrt_c_api_rocm_v1.0.0_plugin.so"),
	} {
		testkit.Check(t, os.WriteFile(file, nil, 0o644))
	}
	for plugin, want := range map[string]string{
		"cpu":  filepath.Join(second, "pjrt_c_api_cpu_v0.83.1_plugin.so"),
		"cuda": filepath.Join(first, "pjrt_c_api_cuda_plugin.so"),
		"rocm": filepath.Join(second, "pjrt_c_api_rocm_plugin.so"),
	} {
		if got, err := findPlugin(plugin, []string{first, second}); err != nil || got != want {
			t.Errorf("findPlugin(%q) = %q, %v; want %q", plugin, got, err, want)
		}
	}
	if _, err := findPlugin("tpu", []string{first, second}); !errors.Is(err, backend.ErrNoPlugin) {
		t.Errorf("findPlugin(tpu): %v, want ErrNoPlugin", err)
	}
}

// A folder inside the repository leads to its .local; one outside leads nowhere.
func TestRepositoryFolders(t *testing.T) {
	root := t.TempDir()
	deep := filepath.Join(root, "a", "b")
	testkit.Check(t, os.MkdirAll(deep, 0o755))
	if got := repositoryFolders(deep); got != nil {
		t.Errorf("outside: %q", got)
	}
	testkit.Check(t, os.WriteFile(filepath.Join(root, "go.mod"), []byte("module icrl\n"), 0o644))
	if got, want := repositoryFolders(deep), filepath.Join(root, ".local", "pjrt"); len(got) == 0 || got[0] != want {
		t.Errorf("inside: %q, want %q first", got, want)
	}
}
