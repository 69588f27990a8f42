// Command site builds the web page around the decoder and serves it:
//
//	go run ./site                          site/dist/index.html
//	go run ./site --serve localhost:8080   and serve it there
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
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/evanw/esbuild/pkg/api"
	"github.com/google/renameio/v2"
	"github.com/klauspost/compress/gzhttp"
)

var arguments struct {
	Out   string `default:"site/dist" help:"Folder to write the page to."`
	Whole bool   `help:"Put the weights into the page, for places that serve one file, instead of beside it."`
	Serve string `help:"Address to serve the page at, for instance localhost:8080." placeholder:"HOST:PORT"`
}

func main() {
	kong.Parse(&arguments, kong.Description("Builds the web page around the decoder."))
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	if err := Build(arguments.Out, arguments.Whole); err != nil {
		return fmt.Errorf("site: %w", err)
	}
	path, err := filepath.Abs(filepath.Join(arguments.Out, "index.html"))
	if err != nil {
		return err
	}
	fmt.Printf("built file://%s\n", path)
	if arguments.Serve == "" {
		return nil
	}
	listener, err := net.Listen("tcp", arguments.Serve)
	if err != nil {
		return fmt.Errorf("site: %w; make site SITE=localhost:8081 takes another address", err)
	}
	fmt.Printf("serving http://%s/\n", listener.Addr())
	return http.Serve(listener, Handler(arguments.Out))
}

// Handler serves the folder that Build wrote, compressed where the browser takes it.
func Handler(dir string) http.Handler {
	files := gzhttp.GzipHandler(http.FileServer(http.Dir(dir)))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-cache")
		files.ServeHTTP(w, r)
	})
}

const notebook = "04-the-decoder.ipynb" // which the page links to

// Build writes the page into the folder out: index.html, which works over http and from a file alike, and what it
// loads: engine.wasm.gz over http and engine.js, which holds the same bytes, from a file; full.js, an engine that reads
// files of all formats and runs the trained network, and learned.js, its weights, when they are asked for; and what the
// foot links to. If whole is set there is index.html alone, with the full engine and the weights. The weights are those
// of package anymdp's released actor. Build must run inside the repository.
func Build(out string, whole bool) error {
	env, err := exec.Command("go", "env", "GOROOT", "GOMOD").Output()
	if err != nil {
		return fmt.Errorf("go env: %w", err)
	}
	goroot, module, _ := strings.Cut(strings.TrimSpace(string(env)), "\n")
	root := filepath.Dir(module)
	read := map[string][]byte{}
	for name, path := range map[string]string{
		"page": "site/page/index.html", "style": "site/page/style.css", "citation": "site/page/citation.bib",
		"weights": "policyattention/anymdp/weights.safetensors", "notebook": "notebooks/" + notebook,
		"preview": "site/screenshot.png", // what a link to the page is shown with
	} {
		if read[name], err = os.ReadFile(filepath.Join(root, path)); err != nil {
			return err
		}
	}
	parts := map[string]string{"style": string(read["style"]), "wasm": "", "notebook": "Notebook: " + notebook}
	if parts["runtime"], err = support(goroot); err != nil {
		return err
	}
	for name, entry := range map[string]string{"app": "app/main.js", "worker": "worker.js"} {
		if parts[name], err = bundle(filepath.Join(root, "site", "page", entry)); err != nil {
			return err
		}
	}
	parts["citation"] = html.EscapeString(string(read["citation"]))
	full, err := compile(root, "full")
	if err != nil {
		return err
	}
	files := map[string][]byte{}
	learned := map[string]string{"file": "learned.js", "sha256": fmt.Sprintf("%x", sha256.Sum256(read["weights"]))}
	if whole {
		parts["wasm"] = base64.StdEncoding.EncodeToString(full)
		learned["weights"] = base64.StdEncoding.EncodeToString(read["weights"])
	} else {
		small, err := compile(root, "")
		if err != nil {
			return err
		}
		files = map[string][]byte{
			"engine.wasm.gz": small, "engine.js": script("policyAttentionEngine", small),
			"full.js": script("policyAttentionFull", full), "preview.png": read["preview"],
			"learned.js": script("policyAttentionWeights", read["weights"]), notebook: read["notebook"],
		}
		parts["notebook"] = fmt.Sprintf(`<a href="%s" rel="noopener">%s</a>`, notebook, parts["notebook"])
	}
	known, err := json.Marshal(learned)
	if err != nil {
		return err
	}
	parts["learned"] = string(known)
	if files["index.html"], err = fill(string(read["page"]), parts); err != nil {
		return err
	}
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

// fill puts the parts of the page in their places, and its policy.
func fill(page string, parts map[string]string) ([]byte, error) {
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
		if strings.Contains(content, "</script") {
			return nil, fmt.Errorf("%s contains the end of a script element", name)
		}
		pairs = append(pairs, "{{"+name+"}}", content)
	}
	return []byte(strings.NewReplacer(pairs...).Replace(page)), nil
}

// script returns a script that hands bytes, in base64, to a function of the page.
func script(taker string, content []byte) []byte {
	return fmt.Appendf(nil, "self.%s(%q);\n", taker, base64.StdEncoding.EncodeToString(content))
}

// support returns Go's runtime support, a script which sets what it is for on the global object.
func support(goroot string) (string, error) {
	text, err := os.ReadFile(filepath.Join(goroot, "lib", "wasm", "wasm_exec.js"))
	if err != nil {
		return "", err
	}
	small := api.Transform(string(text), api.TransformOptions{MinifyWhitespace: true, MinifySyntax: true})
	if len(small.Errors) > 0 {
		return "", fmt.Errorf("wasm_exec.js: %s", small.Errors[0].Text)
	}
	return string(small.Code), nil
}

// bundle makes modules one script, as a page from a file may load none. Its exports are the global object page.
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
	if err == nil {
		wasm, err = shrink(wasm)
	}
	if err != nil {
		return nil, err
	}
	var small bytes.Buffer
	z, err := gzip.NewWriterLevel(&small, gzip.BestCompression)
	if err == nil {
		_, err = z.Write(wasm)
		err = errors.Join(err, z.Close())
	}
	return small.Bytes(), err
}

func hash(script string) string {
	sum := sha256.Sum256([]byte(script))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
