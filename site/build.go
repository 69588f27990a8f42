package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
	"github.com/google/renameio/v2"
)

// Build writes the page into the folder out: index.html, which works over http and from a file alike, and
// what it loads: engine.wasm.gz over http and engine.js, which holds the same bytes, from a file; full.js, an
// engine that reads files of all formats and runs the trained network, and learned.js, its weights, when they
// are asked for. If whole is set the full engine and the weights are parts of index.html.
// The weights are those of package anymdp's released actor. Build must run inside the repository.
func Build(out string, whole bool) error {
	root, err := output("go", "list", "-m", "-f", "{{.Dir}}")
	if err != nil {
		return err
	}
	parts, err := sources(root)
	if err != nil {
		return err
	}
	files := map[string][]byte{}
	weights := filepath.Join(root, "policyattention", "anymdp", "weights.safetensors")
	if parts["learned"], err = pack(files, weights, whole); err != nil {
		return err
	}
	full, err := compile(root, "full")
	if err != nil {
		return err
	}
	if parts["wasm"] = ""; whole {
		parts["wasm"] = base64.StdEncoding.EncodeToString(full)
	} else {
		small, err := compile(root, "")
		if err != nil {
			return err
		}
		files["engine.wasm.gz"], files["engine.js"] = small, script("policyAttentionEngine", small)
		files["full.js"] = script("policyAttentionFull", full)
	}
	if err := about(parts, files, root, whole); err != nil {
		return err
	}
	for name, content := range parts {
		if name != "page" && strings.Contains(content, "</script") {
			return fmt.Errorf("%s contains the end of a script element", name)
		}
	}
	// Scripts and styles are inline and named by their hashes. 'self' is for engine and weights, blob: for the worker,
	// whose text lies in the page; both reach no other host, and nothing else is allowed.
	parts["csp"] = strings.Join([]string{
		"default-src 'none'",
		"script-src " + hash(parts["app"]) + " 'self' file: blob: 'wasm-unsafe-eval'",
		"style-src " + hash(parts["style"]), "connect-src 'self'",
		"worker-src blob:", "img-src data: blob:", "base-uri 'none'", "form-action 'none'",
	}, "; ")
	var pairs []string
	for name, content := range parts {
		if name != "page" {
			pairs = append(pairs, "{{"+name+"}}", content)
		}
	}
	files["index.html"] = []byte(strings.NewReplacer(pairs...).Replace(parts["page"]))
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	for name, content := range files {
		if err := renameio.WriteFile(filepath.Join(out, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// script returns a script that hands bytes, in base64, to a function of the page.
func script(taker string, content []byte) []byte {
	return fmt.Appendf(nil, "self.%s(%q);\n", taker, base64.StdEncoding.EncodeToString(content))
}

// sources returns the parts of the page that are made of the repository's files,
// and the page with places for them, by name.
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
			return nil, err
		}
		parts[name] = string(b)
	}
	// Go's runtime support is a script, which sets what it is for on the global object.
	small := api.Transform(parts["runtime"], api.TransformOptions{MinifyWhitespace: true, MinifySyntax: true})
	if len(small.Errors) > 0 {
		return nil, fmt.Errorf("wasm_exec.js: %s", small.Errors[0].Text)
	}
	parts["runtime"] = string(small.Code)
	for name, entry := range map[string]string{"app": filepath.Join(page, "app", "main.js"),
		"worker": filepath.Join(page, "worker.js")} {
		if parts[name], err = bundle(entry); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// bundle returns the modules that the entry point imports as one script: a page
// opened from a file may not load modules. Its exports are the global object page.
func bundle(entry string) (string, error) {
	result := api.Build(api.BuildOptions{
		EntryPoints: []string{entry}, Bundle: true, Format: api.FormatIIFE, GlobalName: "page", Target: api.ES2022,
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true, Charset: api.CharsetUTF8,
		LogLevel: api.LogLevelSilent,
	})
	if wrong := append(result.Errors, result.Warnings...); len(wrong) > 0 {
		return "", errors.New(strings.Join(api.FormatMessages(wrong, api.FormatMessagesOptions{}), ""))
	}
	return string(result.OutputFiles[0].Contents), nil
}

// compile returns the engine, built with a tag, compressed. Functions are inlined in package numeric only, which most
// is called, and the runtime is built without its garbage collector and allocator of many special
// cases: together that is a tenth of what is transferred, and costs no time that can be measured.
func compile(root, tag string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "site")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "engine.wasm")
	command := exec.Command("go", "build", "-trimpath", "-tags="+tag, "-ldflags=-s -w", "-gcflags=all=-l",
		"-gcflags=icrl/internal/numeric=", "-o", path, "./wasm")
	command.Dir = root
	command.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0",
		"GOEXPERIMENT=nogreenteagc,nosizespecializedmalloc")
	if out, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compiling the engine: %w\n%s", err, out)
	}
	wasm, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if wasm, err = shrink(wasm); err != nil {
		return nil, err
	}
	var small bytes.Buffer
	z, err := gzip.NewWriterLevel(&small, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = z.Write(wasm)
	err = errors.Join(err, z.Close())
	return small.Bytes(), err
}

func hash(script string) string {
	sum := sha256.Sum256([]byte(script))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

// pack makes a weights file ready for the page: it returns what the page knows of it, in JSON, with its bytes in
// base64 if the page is to hold them, and else their script is a file.
func pack(files map[string][]byte, path string, whole bool) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	learned := map[string]string{"file": "learned.js", "sha256": fmt.Sprintf("%x", sha256.Sum256(b))}
	if whole {
		learned["weights"] = base64.StdEncoding.EncodeToString(b)
	} else {
		files[learned["file"]] = script("policyAttentionWeights", b)
	}
	known, err := json.Marshal(learned)
	return string(known), err
}

func output(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).Output()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out)), nil
}

// notebook is the one on the decoder.
const notebook = "04-the-decoder.ipynb"

// about makes what the foot of the page says that other files say: the paper's citation, and the notebook. Unless the
// page is a whole by itself a copy of the notebook is a file beside it, to which it links.
func about(parts map[string]string, files map[string][]byte, root string, whole bool) error {
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		return err
	}
	_, citation, found := strings.Cut(string(readme), "```bibtex\n")
	citation, _, closed := strings.Cut(citation, "```")
	if !found || !closed {
		return errors.New("README.md holds no citation")
	}
	parts["citation"], parts["notebook"] = html.EscapeString(citation), "Notebook: "+notebook
	if whole {
		return nil
	}
	parts["notebook"] = fmt.Sprintf(`<a href="%s" rel="noopener">%s</a>`, notebook, parts["notebook"])
	for name, path := range map[string]string{
		"preview.png": "site/screenshot.png", // what a link to the page is shown with
		notebook:      "notebooks/" + notebook,
	} {
		if files[name], err = os.ReadFile(filepath.Join(root, filepath.FromSlash(path))); err != nil {
			return err
		}
	}
	return nil
}
