package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// built is where the tests build the page and leave their pictures.
const built = "../.local/site"

var (
	allocator context.Context // of the one Chromium
	noBrowser string          // why it is missing
	server    = new(httptest.Server)
)

func TestMain(m *testing.M) { os.Exit(setUp(m)) }

func setUp(m *testing.M) int {
	flag.Parse()
	if testing.Short() {
		return m.Run()
	}
	err := os.MkdirAll(filepath.Join(built, "screenshots"), 0o755)
	if err == nil {
		err = Build(built, false)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	server = httptest.NewServer(Handler(built))
	defer server.Close()
	path, err := findBrowser("Chromium", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
	if err != nil {
		noBrowser = err.Error()
		return m.Run()
	}
	profile, err := os.MkdirTemp("", "chromium")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(profile)
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.UserDataDir(profile), chromedp.WindowSize(1280, 900),
	}
	for _, f := range []string{"headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run",
		"disable-background-networking", "disable-component-update", "disable-sync", "hide-scrollbars"} {
		options = append(options, chromedp.Flag(f, true))
	}
	first, stop := chromedp.NewExecAllocator(context.Background(), options...)
	defer stop()
	ctx, quit := chromedp.NewContext(first, chromedp.WithErrorf(func(string, ...any) {}))
	defer quit()
	if err := chromedp.Run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "starting", path, err)
		return 1
	}
	allocator = ctx
	return m.Run()
}

// findBrowser returns the path of a browser that has one of the names, or that the
// variable with its own name says, and otherwise an error that says so.
func findBrowser(browser string, names ...string) (string, error) {
	variable := strings.ToUpper(browser)
	for _, name := range append([]string{os.Getenv(variable)}, names...) {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no %s was found, so the page is not tested in it; scripts/browser.sh says how to install "+
		"one, and %s names another one", browser, variable)
}

// tab is a fresh tab of the browser, and what went wrong in it.
type tab struct {
	testing.TB
	context.Context
	mu       sync.Mutex
	problems []string
	bytes    float64
	folder   string            // of downloads, each under its identifier
	begun    map[string]string // a download's identifier → the name that the page gave it
	finished chan string       // identifiers
}

func newTab(t testing.TB) *tab {
	t.Helper()
	if testing.Short() {
		t.Skip("it runs the page in a browser")
	}
	if noBrowser != "" {
		if os.Getenv("CI") != "" {
			t.Fatal(noBrowser)
		}
		t.Skip(noBrowser)
	}
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	ctx, stop := context.WithTimeout(ctx, 10*time.Minute)
	t.Cleanup(stop)
	b := &tab{TB: t, Context: ctx, folder: t.TempDir()}
	b.listen()
	b.run(browser.SetDownloadBehavior(browser.SetDownloadBehaviorBehaviorAllowAndName).
		WithDownloadPath(b.folder).WithEventsEnabled(true))
	return b
}

// listen notes downloads, and what goes wrong in the tab: in the end that fails the test.
func (b *tab) listen() {
	b.begun, b.finished = map[string]string{}, make(chan string, 8)
	chromedp.ListenTarget(b, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.APITypeError || e.Type == runtime.APITypeWarning {
				b.problems = append(b.problems, fmt.Sprintf("console: %s", e.Args[0].Value))
			}
		case *runtime.EventExceptionThrown:
			b.problems = append(b.problems, "exception: "+e.ExceptionDetails.Error())
		case *log.EventEntryAdded:
			if e.Entry.Level == log.LevelError || e.Entry.Level == log.LevelWarning {
				b.problems = append(b.problems, "log: "+e.Entry.Text)
			}
		case *network.EventLoadingFinished:
			b.bytes += e.EncodedDataLength
		case *browser.EventDownloadWillBegin:
			b.begun[e.GUID] = e.SuggestedFilename
		case *browser.EventDownloadProgress:
			if e.State != browser.DownloadProgressStateInProgress {
				b.finished <- e.GUID
			}
		}
	})
	b.run(network.Enable(), log.Enable(), runtime.Enable())
	b.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, p := range b.problems {
			b.Errorf("the browser complains: %s", p)
		}
	})
}

func (b *tab) run(actions ...chromedp.Action) {
	b.Helper()
	if err := chromedp.Run(b, actions...); err != nil {
		b.Fatal(err)
	}
}

// open loads the page with a hash and waits until it is ready.
func (b *tab) open(url string) {
	b.Helper()
	b.run(chromedp.Navigate("about:blank"), chromedp.Navigate(url))
	b.wait(`document.body.dataset.ready`)
}

// eval returns the JavaScript value of an expression, which may be a promise. In
// the page it sees what app/main.js exports, and the fields of app.
func eval[T any](b *tab, expression string) (v T) {
	b.Helper()
	b.read(expression, &v)
	return v
}

// read is eval into v.
func (b *tab) read(expression string, v any) {
	b.Helper()
	await := func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }
	b.run(chromedp.Evaluate(scoped(expression), v, await))
}

// do runs JavaScript, which may be a promise.
func (b *tab) do(format string, args ...any) {
	b.Helper()
	eval[int](b, `(async () => { await (`+formatted(format, args)+`); return 0 })()`)
}

// formatted fills in arguments, if there are any: JavaScript has percent signs of its own.
func formatted(format string, args []any) string {
	if len(args) == 0 {
		return format
	}
	return fmt.Sprintf(format, args...)
}

func scoped(expression string) string {
	return fmt.Sprintf(`(() => { with (self.page || {}) with (self.page?.app || {}) return %s })()`, expression)
}

// wait waits until an expression is true.
func (b *tab) wait(format string, args ...any) {
	b.Helper()
	eval[bool](b, until(formatted(format, args)))
}

// until is a promise that an expression becomes true, within a minute at least.
func until(expression string) string {
	return fmt.Sprintf(`(async () => {
		for (let i = 0; i < 6000; i++) {
			try { if (%s) return true } catch {}
			await new Promise(r => setTimeout(r, 10));
		}
		throw new Error("never: " + %q);
	})()`, expression, expression)
}

// settled waits until what was asked for before is done, as a person does who watches.
func (b *tab) settled() {
	b.Helper()
	b.wait(`!acting`)
}

func (b *tab) click(selector string) {
	b.Helper()
	b.settled()
	b.do(`document.querySelector(%q).click()`, selector)
}

// set gives a control a value as a person would, change event included.
func (b *tab) set(selector string, value any) {
	b.Helper()
	b.settled()
	b.do(`(() => {
		const x = document.querySelector(%q);
		if (x.type === "checkbox") x.checked = %[2]q === "true";
		else x.value = %[2]q;
		x.dispatchEvent(new Event("change", { bubbles: true }));
	})()`, selector, fmt.Sprint(value))
}

// slide moves a slider to a value and waits until the run has it.
func (b *tab) slide(key string, value float64) {
	b.Helper()
	b.settled()
	b.do(`slideTo(%q, %v)`, key, value)
	b.wait(`(%[1]q === "gamma" ? run.info : run.settings).%[1]s === %[2]v && !acting && !work`, key, value)
}

// edit changes a cell of the problem by its editor.
func (b *tab) edit(cell, value string) {
	b.Helper()
	b.do(`openEditor(%s), $("editor-value").value = %q, $("editor-set").click()`, cell, value)
}

// toEnd plays the run to its end as fast as it goes, all in one breath: the page may
// have begun to play by itself.
func (b *tab) toEnd() {
	b.Helper()
	b.settled()
	b.do(`stop(), $("speed").value = "max", $("play").click()`)
	b.wait(`pos.k === run.settings.T && !playing`)
}

// download presses something that exports and returns the file, once the browser
// says that all of it is there.
func (b *tab) download(selector, suffix string) []byte {
	b.Helper()
	b.click(selector)
	select {
	case id := <-b.finished:
		b.mu.Lock()
		name := b.begun[id]
		b.mu.Unlock()
		if !strings.HasSuffix(name, suffix) {
			b.Fatalf("%s exported %s, not a %s file", selector, name, suffix)
		}
		data, err := os.ReadFile(filepath.Join(b.folder, id))
		if err != nil {
			b.Fatal(err)
		}
		return data
	case <-b.Done():
		b.Fatalf("no %s file was exported by %s", suffix, selector)
		return nil
	}
}

// upload puts a file into an input.
func (b *tab) upload(selector, name string, data []byte) {
	b.Helper()
	path := filepath.Join(b.TempDir(), name)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		b.Fatal(err)
	}
	b.run(chromedp.SetUploadFiles(selector, []string{path}, chromedp.ByQuery))
}

func message(b *tab) string {
	return eval[string](b, `document.getElementById("message-text").textContent`)
}

// said waits for a message that contains want, then clears it.
func (b *tab) said(want string) {
	b.Helper()
	b.wait(`$("message-text").textContent`)
	if got := message(b); !strings.Contains(got, want) {
		b.Errorf("the page says %q, want something with %q", got, want)
	}
	b.do(`message("")`)
}

func fileURL(t testing.TB) string {
	path, err := filepath.Abs(filepath.Join(built, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	return "file://" + path
}

// reduced asks for less motion, in a scheme.
func (b *tab) reduced(scheme string) {
	b.Helper()
	b.run(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}))
}

// exported is the JSON of a trajectory.
type exported struct {
	Gap         float64
	Controllers map[string][]struct {
		Loss, Bound float64
		Pi, Q       [][]float64
		NextPi      [][]float64 `json:"next_pi"`
		NextQ       [][]float64 `json:"next_q"`
	}
}

func (b *tab) trajectory() exported {
	b.Helper()
	var x exported
	if err := json.Unmarshal(b.download(`[data-export=json]`, ".json"), &x); err != nil {
		b.Fatal(err)
	}
	return x
}

func sameBits(x, y exported) bool {
	a, _ := json.Marshal(x.Controllers)
	b, _ := json.Marshal(y.Controllers)
	return string(a) == string(b) && x.Gap == y.Gap && len(x.Controllers) > 0
}
