package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/DataDog/zstd"
	"github.com/andybalholm/brotli"
	"github.com/evanw/esbuild/pkg/api"
	"github.com/google/renameio/v2"

	"icrl/internal/safetensors"
	"icrl/policyattention/anymdp"
)

// learned describes the trained weights that the page can load.
type learned struct {
	File    string `json:"file"`
	SHA256  string `json:"sha256"`            // of the .safetensors file, in hex
	Weights string `json:"weights,omitempty"` // that file in base64, where the page holds it
}

// Build writes the page into the folder out: index.html, which works over http
// and from a file alike. The weights are a file of an actor of package anymdp, by
// default the released one; it becomes a script beside the page that is loaded when
// asked for or, if whole is set, a part of the page. Build must run inside the
// repository.
func Build(out, weights string, whole bool, links Links) error {
	root, err := output("go", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("site: %w", err)
	}
	if weights == "" {
		weights = filepath.Join(root, "policyattention", "anymdp", "weights.safetensors")
	}
	actor, err := pack(out, weights, whole)
	if err != nil {
		return err
	}
	parts, err := sources(root)
	if err != nil {
		return err
	}
	parts["learned"] = actor
	formats, err := compile(root, "./wasm/formats")
	if err != nil {
		return err
	}
	if err := renameio.WriteFile(filepath.Join(out, "formats.js"), fmt.Appendf(nil, "self.policyAttentionFormats(%q);\n", formats), 0o644); err != nil {
		return fmt.Errorf("site: %w", err)
	}
	if parts["links"], err = about(out, root, whole, links); err != nil {
		return err
	}
	for name, content := range parts {
		if name != "page" && strings.Contains(content, "</script") {
			return fmt.Errorf("site: %s contains the end of a script element", name)
		}
	}
	// Scripts and styles are inline and named by their hashes. 'self' is for the
	// weights, blob: for the worker, whose text lies in the page; both reach no
	// other host, and nothing else is allowed.
	parts["csp"] = strings.Join([]string{
		"default-src 'none'",
		"script-src " + hash(parts["app"]) + " 'self' file: blob: 'wasm-unsafe-eval'",
		"style-src " + hash(parts["style"]),
		"worker-src blob:", "img-src data: blob:", "base-uri 'none'", "form-action 'none'",
	}, "; ")
	var pairs []string
	for name, content := range parts {
		if name != "page" {
			pairs = append(pairs, "{{"+name+"}}", content)
		}
	}
	return write(out, []byte(strings.NewReplacer(pairs...).Replace(parts["page"])))
}

// sources returns the parts of the page that are made of the repository's files,
// and the page with places for them, by name. The engine is compressed here, for
// browsers undo gzip at best, which leaves it a third larger; as text it can lie in
// the page, and the page be opened from a file, from which it may fetch nothing.
func sources(root string) (map[string]string, error) {
	goroot, err := output("go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	parts, page := map[string]string{}, filepath.Join(root, "site", "page")
	for name, path := range map[string]string{
		"page": filepath.Join(page, "index.html"), "style": filepath.Join(page, "style.css"),
		"runtime": filepath.Join(goroot, "lib", "wasm", "wasm_exec.js"),
	} {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("site: %w", err)
		}
		parts[name] = string(b)
	}
	for name, entry := range map[string]string{"app": filepath.Join(page, "app", "main.js"), "worker": filepath.Join(page, "worker.js")} {
		if parts[name], err = bundle(entry); err != nil {
			return nil, err
		}
	}
	parts["wasm"], err = compile(root, "./wasm")
	return parts, err
}

// bundle returns the modules that the entry point imports as one script: a page
// opened from a file may not load modules. Its exports are the global object page.
func bundle(entry string) (string, error) {
	result := api.Build(api.BuildOptions{
		EntryPoints: []string{entry}, Bundle: true, Format: api.FormatIIFE, GlobalName: "page", Target: api.ES2022,
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true, Charset: api.CharsetUTF8, LogLevel: api.LogLevelSilent,
	})
	var all []error
	for _, m := range append(result.Errors, result.Warnings...) {
		where := entry
		if m.Location != nil {
			where = fmt.Sprintf("%s:%d", m.Location.File, m.Location.Line)
		}
		all = append(all, fmt.Errorf("site: %s: %s", where, m.Text))
	}
	if len(all) > 0 {
		return "", errors.Join(all...)
	}
	if len(result.OutputFiles) != 1 {
		return "", fmt.Errorf("site: the bundle of %s is %d files, want 1", entry, len(result.OutputFiles))
	}
	return string(result.OutputFiles[0].Contents), nil
}

// write stores the page, and takes away what was compressed of another one.
func write(out string, page []byte) error {
	path := filepath.Join(out, "index.html")
	if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, page) {
		return nil
	}
	for _, stale := range []string{path + ".br", path + ".gz"} {
		if err := os.Remove(stale); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("site: %w", err)
		}
	}
	if err := renameio.WriteFile(path, page, 0o644); err != nil {
		return fmt.Errorf("site: %w", err)
	}
	return nil
}

// Compress writes index.html.gz and .br beside the page in the folder out, for a
// server. It takes seconds, and is done once for a page.
func Compress(out string) error {
	path := filepath.Join(out, "index.html")
	if _, err := os.Stat(path + ".br"); err == nil {
		return nil
	}
	page, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("site: %w", err)
	}
	var gz, br bytes.Buffer
	z, err := gzip.NewWriterLevel(&gz, gzip.BestCompression)
	if err != nil {
		return fmt.Errorf("site: %w", err)
	}
	b := brotli.NewWriterOptions(&br, brotli.WriterOptions{Quality: brotli.BestCompression, LGWin: 24})
	for _, form := range []struct {
		io.WriteCloser
		suffix string
		buffer *bytes.Buffer
	}{{z, ".gz", &gz}, {b, ".br", &br}} {
		if _, err := form.Write(page); err != nil {
			return fmt.Errorf("site: %w", err)
		}
		if err := form.Close(); err != nil {
			return fmt.Errorf("site: %w", err)
		}
		if err := renameio.WriteFile(path+form.suffix, form.buffer.Bytes(), 0o644); err != nil {
			return fmt.Errorf("site: %w", err)
		}
	}
	return nil
}

// compile returns a program of the page, compressed, in base64. Outside this module functions are not
// inlined, which makes the page 6 % smaller to transfer; the loops that take the
// time are this module's.
func compile(root, program string) (string, error) {
	dir, err := os.MkdirTemp("", "site")
	if err != nil {
		return "", fmt.Errorf("site: %w", err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "engine.wasm")
	command := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-gcflags=all=-l", "-gcflags=icrl/...=", "-o", path, program)
	command.Dir = root
	command.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("site: compiling %s: %w\n%s", program, err, out)
	}
	wasm, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("site: %w", err)
	}
	small, err := zstd.CompressLevel(nil, wasm, zstd.BestCompression)
	if err != nil {
		return "", fmt.Errorf("site: compressing %s: %w", program, err)
	}
	return base64.StdEncoding.EncodeToString(small), nil
}

func hash(script string) string {
	sum := sha256.Sum256([]byte(script))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// pack makes a weights file ready for the page: it returns what the page knows of
// it, in JSON, and unless the page is to hold the weights writes their script.
func pack(out, path string, whole bool) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("site: %w", err)
	}
	f, err := safetensors.Unmarshal(b)
	if err != nil {
		return "", fmt.Errorf("site: %s: %w", path, err)
	}
	if _, err := anymdp.Plain(f); err != nil {
		return "", fmt.Errorf("site: %s does not hold an actor for any MDP: %w", path, err)
	}
	l := learned{File: "learned.js", SHA256: fmt.Sprintf("%x", sha256.Sum256(b))}
	content := base64.StdEncoding.EncodeToString(b)
	if whole {
		l.Weights = content
	} else if err := renameio.WriteFile(filepath.Join(out, l.File), fmt.Appendf(nil, "self.policyAttentionWeights(%q);\n", content), 0o644); err != nil {
		return "", fmt.Errorf("site: %w", err)
	}
	known, err := json.Marshal(l)
	if err != nil {
		return "", fmt.Errorf("site: %w", err)
	}
	return string(known), nil
}

func output(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return "", fmt.Errorf("site: %s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}
