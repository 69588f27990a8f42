package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"icrl/internal/testkit"
	"icrl/policyattention/decoder"
	"icrl/policyattention/mdp"
	"icrl/policyattention/mdpfile"
	"icrl/policyattention/pmd"
)

// Where the tests build the page and leave their pictures.
const (
	built = "../.local/site"
	axe   = "../.local/axe/axe.min.js"
)

var (
	allocator   context.Context // of the one Chromium
	noBrowser   string          // why it is missing
	firefoxPath string
	noFirefox   string // why it is missing
	server      *httptest.Server
)

func TestMain(m *testing.M) { os.Exit(setUp(m)) }

func setUp(m *testing.M) int {
	flag.Parse()
	if testing.Short() {
		return m.Run()
	}
	path, err := findBrowser("Chromium", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
	if err != nil {
		noBrowser = err.Error()
	}
	if firefoxPath, err = findBrowser("Firefox", "firefox", "firefox-esr"); err != nil {
		noFirefox = err.Error()
	}
	if path == "" && firefoxPath == "" {
		return m.Run()
	}
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	server = httptest.NewServer(Handler(built))
	defer server.Close()
	if path == "" {
		return m.Run()
	}
	profile, err := os.MkdirTemp("", "chromium")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(profile)
	options := []chromedp.ExecAllocatorOption{chromedp.ExecPath(path), chromedp.UserDataDir(profile), chromedp.WindowSize(1280, 900)}
	for _, f := range []string{"headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking", "disable-component-update", "disable-sync", "hide-scrollbars"} {
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

// prepare builds the page.
func prepare() error {
	if err := os.MkdirAll(filepath.Join(built, "screenshots"), 0o755); err != nil {
		return err
	}
	return Build(built, "", false, Links{})
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
	return "", fmt.Errorf("no %s was found, so the page is not tested in it; scripts/browser.sh says how to install one, and %s names another one", browser, variable)
}

// tab is a fresh tab of the browser, and what went wrong in it.
type tab struct {
	testing.TB
	context.Context
	mu       sync.Mutex
	problems []string
	foreign  bool // shows a page of others, whose warnings are not ours
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
	b.run(browser.SetDownloadBehavior(browser.SetDownloadBehaviorBehaviorAllowAndName).WithDownloadPath(b.folder).WithEventsEnabled(true))
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
			if b.foreign {
				continue
			}
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
func eval[T any](b *tab, expression string) T {
	b.Helper()
	var v T
	b.run(chromedp.Evaluate(scoped(expression), &v, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	return v
}

func scoped(expression string) string {
	return fmt.Sprintf(`(() => { with (self.page || {}) with (self.page?.app || {}) return %s })()`, expression)
}

func (b *tab) wait(expression string) {
	b.Helper()
	eval[bool](b, until(expression))
}

// until is a promise that an expression becomes true, within a minute at least.
func until(expression string) string {
	return fmt.Sprintf(`(async () => { for (let i = 0; i < 6000; i++) { try { if (%s) return true } catch {} await new Promise(r => setTimeout(r, 10)) } throw new Error("never: " + %q) })()`, expression, expression)
}

// settled waits until what was asked for before is done, as a person does who watches.
func (b *tab) settled() {
	b.Helper()
	b.wait(`!acting`)
}

func (b *tab) click(selector string) {
	b.Helper()
	b.settled()
	eval[bool](b, fmt.Sprintf(`(document.querySelector(%q).click(), true)`, selector))
}

// set gives a control a value as a person would, change event included.
func (b *tab) set(selector string, value any) {
	b.Helper()
	b.settled()
	eval[bool](b, fmt.Sprintf(`(() => { const x = document.querySelector(%q); if (x.type === "checkbox") x.checked = %[2]q === "true"; else x.value = %[2]q; x.dispatchEvent(new Event("change", {bubbles: true})); return true })()`, selector, fmt.Sprint(value)))
}

// toEnd plays the run to its end as fast as it goes, all in one breath: the page may
// have begun to play by itself.
func (b *tab) toEnd() {
	b.Helper()
	b.settled()
	eval[bool](b, `(stop(), $("speed").value = "max", $("play").click(), true)`)
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
	b.run(chromedp.ActionFunc(func(ctx context.Context) error {
		root, err := dom.GetDocument().Do(ctx)
		if err != nil {
			return err
		}
		id, err := dom.QuerySelector(root.NodeID, selector).Do(ctx)
		if err != nil {
			return err
		}
		return dom.SetFileInputFiles([]string{path}).WithNodeID(id).Do(ctx)
	}))
}

func message(b *tab) string {
	return eval[string](b, `document.getElementById("message-text").textContent`)
}

// said waits for a message that contains want, then clears it.
func (b *tab) said(want string) {
	b.Helper()
	b.wait(`document.getElementById("message-text").textContent`)
	if got := message(b); !strings.Contains(got, want) {
		b.Errorf("the page says %q, want something with %q", got, want)
	}
	eval[bool](b, `(message(""), true)`)
}

func fileURL(t testing.TB) string {
	path, err := filepath.Abs(filepath.Join(built, "index.html"))
	if err != nil {
		t.Fatal(err)
	}
	return "file://" + path
}

// TestFirstView loads the page over http and from a file, five times, and says how fast.
func TestFirstView(t *testing.T) {
	for _, place := range []string{"http", "file"} {
		b := newTab(t)
		url := server.URL
		if place == "file" {
			url = fileURL(t)
		}
		b.run(network.SetCacheDisabled(true))
		b.open(url)
		ready := []float64{eval[float64](b, `Number(document.body.dataset.ready)`)}
		first := b.bytes
		var run []float64 // forty rounds of a fresh engine, every round drawn as it may be
		for range 4 {
			b.open(url)
			ready = append(ready, eval[float64](b, `Number(document.body.dataset.ready)`))
		}
		for range 5 {
			b.open(url + "#preset=random")
			run = append(run, eval[float64](b, `(async () => { const start = performance.now(); await go(40, 0); return performance.now() - start })()`))
		}
		slices.Sort(ready)
		slices.Sort(run)
		t.Logf("%s: ready %.0f ms after navigation, median %.0f; T = 40 at S = 8 in %.0f ms, median %.0f", place, ready, ready[2], run, run[2])
		if place == "http" {
			t.Logf("first view: %.0f bytes transferred", first)
			if first > 1.02e6 || first < 1e5 {
				t.Errorf("first view transfers %.0f bytes, want below 1,020,000", first)
			}
		}
		if remote := eval[[]string](b, `performance.getEntriesByType("resource").map(e => e.name).filter(n => !n.startsWith("blob:") && !n.startsWith("data:") && !/[/]engine[.](wasm[.]gz|js)$/.test(n))`); len(remote) != 0 {
			t.Errorf("%s: the page also asks for %v", place, remote)
		}
		b.toEnd()
		t.Logf("%s: %s", place, eval[string](b, `document.getElementById("figures").textContent`))
	}
}

// TestPlayback steps and plays. There are enough rounds for the fastest speed to be seen under way.
func TestPlayback(t *testing.T) {
	b := newTab(t)
	b.open(server.URL + "/#T=60")
	for _, step := range []struct{ press, want string }{
		{"#forth", "0.1"}, {"#forth", "0.2"}, {"#forth", "0.3"}, {"#forth", "1.0"}, {"#back", "0.3"}, {"#round-on", "1.0"}, {"#first", "0.0"}, {"#back", "0.0"},
	} {
		b.click(step.press)
		b.wait(fmt.Sprintf("`${pos.k}.${pos.stage}` === %q", step.want))
	}
	for _, speed := range []string{"stage", "2", "5", "10", "max"} {
		b.set("#speed", speed)
		b.click("#play")
		b.wait(`playing && $("play").textContent === "Stop" && (pos.k > 0 || pos.stage > 0)`)
		b.click("#play")
		b.wait(`!playing && $("play").textContent.startsWith("Play")`)
	}
	b.toEnd()
	b.set("#speed", "10")
	b.click("#play") // from the end it starts again
	b.wait(`pos.k > 0 && pos.k < 60`)
	b.wait(`pos.k === 60 && !playing`)
}

// TestFrames holds the page to what a visitor feels: while m = 64 runs as fast
// as it goes, frames are at most 50 ms apart, and Stop stops. Other programs of
// the machine hold up frames too. So the best of several seconds counts, each on
// a problem of its own, for rounds are computed once; and where others keep the
// processors from resting before each of them, the gaps are printed only.
func TestFrames(t *testing.T) {
	const limit, runs = 50, 8
	b := newTab(t)
	b.open(server.URL + "/#m=64&T=200")
	best, quiet := math.Inf(1), false
	for i := 1; i <= runs && best > limit; i++ {
		b.set("#set-seed", fmt.Sprint(100+i))
		b.set("#speed", "max")
		b.wait(fmt.Sprintf(`run.settings.seed === %d && decoderRound(0)`, 100+i))
		// second notes the gaps between frames, in ms, for a second or as long as something goes on.
		const second = `const frame = () => new Promise(requestAnimationFrame), second = async (going) => {
			const gaps = [];
			let last = await frame();
			for (const end = last + 1000; last < end && going();) { const now = await frame(); gaps.push(now - last); last = now }
			return gaps.sort((x, y) => x - y);
		};`
		start, before := time.Now(), idle()
		rest := eval[[]float64](b, `(() => { `+second+` return second(() => true) })()`)
		free := (idle() - before) / time.Since(start).Seconds() / float64(goruntime.NumCPU())
		calm := !(free < 0.6) // NaN where the system does not tell
		quiet = quiet || calm
		x := eval[struct {
			Busy    []float64
			At, Now int
			Stop    float64
		}](b, `(async () => { `+second+`
			$("play").click();
			const busy = await second(() => playing && pos.k < 150), at = pos.k, t = performance.now(); // Stop has something to stop
			$("play").click();
			const stop = performance.now() - t;
			await new Promise(r => setTimeout(r, 150));
			return {Busy: busy, At: at, Now: pos.k, Stop: stop};
		})()`)
		largest := x.Busy[len(x.Busy)-1]
		best = min(best, largest)
		t.Logf("m = 64: %d rounds and %d frames in at most a second, gaps median %.1f ms, largest %.1f ms (at rest %.1f and %.1f ms, %.0f%% of the processors free); Stop took %.2f ms",
			x.At, len(x.Busy), x.Busy[len(x.Busy)/2], largest, rest[len(rest)/2], rest[len(rest)-1], 100*free, x.Stop)
		if x.At < 1 || calm && x.At < 5 || x.At == 200 || x.Now != x.At {
			t.Errorf("%d rounds ran, and %d after Stop", x.At, x.Now-x.At)
		}
	}
	switch {
	case best > limit && !quiet:
		t.Logf("other programs keep this machine busy, so the largest gap of %.1f ms says nothing", best)
	case best > limit:
		t.Errorf("in %d runs the largest gap between frames was never below %.1f ms, want %d", runs, best, limit)
	}
}

// idle returns the seconds that the processors have rested, all together, NaN where the
// system does not tell.
func idle() float64 {
	text, err := os.ReadFile("/proc/stat")
	var user, nice, system, idle float64
	if _, scan := fmt.Sscanf(string(text), "cpu %f %f %f %f", &user, &nice, &system, &idle); err != nil || scan != nil {
		return math.NaN()
	}
	return idle / 100 // ticks of Linux
}

// exported is the JSON of a trajectory.
type exported struct {
	Problem     json.RawMessage
	E0, Gap     float64
	Controllers map[string][]exportedRound
}

type exportedRound struct {
	Zeta, Delta, Route, Sampling, Defect, Loss, Bound float64
	Pi, Q                                             [][]float64
	NextPi                                            [][]float64 `json:"next_pi"`
	NextQ                                             [][]float64 `json:"next_q"`
}

func (b *tab) trajectory() exported {
	b.Helper()
	var x exported
	if err := json.Unmarshal(b.download(`[data-export=json]`, ".json"), &x); err != nil {
		b.Fatal(err)
	}
	return x
}

// TestLastWins: of two places that are asked for at once the later one is shown, and
// none after a stop, however long the earlier one takes.
func TestLastWins(t *testing.T) {
	b := newTab(t)
	b.open(server.URL + "/#T=60")
	for code, want := range map[string]int{
		`[go(50, 0), go(2, 0)]`:           2,
		`[go(1, 0), go(55, 0)]`:           55,
		`[go(3, 0), go(60, 0), stop()]`:   0,
		`[go(60, 0), $("forth").click()]`: 0, // one stage on from the start
	} {
		if got := eval[int](b, `(async () => { pos.k = pos.stage = 0; await Promise.all(`+code+`); return pos.k })()`); got != want {
			t.Errorf("%s shows round %d, want %d", code, got, want)
		}
	}
}

// TestShare edits, copies the address, opens it elsewhere, and finds the same numbers.
func TestShare(t *testing.T) {
	b := newTab(t)
	b.open(server.URL + "/#seed=5&T=20")
	b.set("#speed", "max")
	b.click("#play")
	b.wait(`pos.k === 20 && !playing`)
	eval[bool](b, `(go(8, 0), true)`)
	b.wait(`pos.k === 8`)
	eval[bool](b, `(openEditor({kind: "reward", s: 2, a: 1, t: 0}), $("editor-value").value = "0.9", $("editor-set").click(), true)`)
	b.wait(`run.edits.length === 1 && decoderRound(8)`)
	eval[bool](b, `(openEditor({kind: "transition", s: 0, a: 2, t: 3}), $("editor-value").value = "0.75", $("editor-set").click(), true)`)
	b.wait(`run.edits.length === 2 && decoderRound(8)`)
	if got := eval[float64](b, `phaseAt(8).p[(0 * 3 + 2) * 8 + 3]`); got != 0.75 {
		t.Errorf("the edited probability is %v", got)
	}
	if got := eval[float64](b, `phaseAt(7).r[2 * 3 + 1]`); got == 0.9 {
		t.Error("the edit reached into the past")
	}
	b.toEnd()
	first := b.trajectory()
	b.wait(`location.hash.includes("edits") && location.hash.includes("k=20")`)
	hash := eval[string](b, `location.hash`)
	other := newTab(t)
	other.open(fileURL(t) + hash)
	other.wait(`pos.k === 20`)
	if second := other.trajectory(); !sameBits(first, second) {
		t.Error("the shared link gives other numbers")
	}
	t.Logf("address: %s", hash)
}

func sameBits(x, y exported) bool {
	a, _ := json.Marshal(x.Controllers)
	b, _ := json.Marshal(y.Controllers)
	return string(a) == string(b) && x.Gap == y.Gap && len(x.Controllers) > 0
}

// TestFiles exports everything, and loads and saves an MDP.
func TestFiles(t *testing.T) {
	b := newTab(t)
	b.open(fileURL(t))
	b.toEnd()
	csv := string(b.download(`[data-export=csv]`, ".csv"))
	if lines := strings.Split(strings.TrimSpace(csv), "\n"); len(lines) != 81 || !strings.HasPrefix(lines[0], "controller,round,zeta") {
		t.Errorf("the CSV has %d lines and starts %.60q", len(lines), csv)
	}
	if svg := string(b.download(`[data-export=svg]`, ".svg")); !strings.HasPrefix(svg, "<svg") || !strings.Contains(svg, "http://www.w3.org/2000/svg") {
		t.Errorf("the SVG starts %.60q", svg)
	}
	png := b.download(`[data-export=png]`, ".png")
	if !strings.HasPrefix(string(png), "\x89PNG") {
		t.Errorf("the PNG starts %.8q", png)
	}
	if err := os.WriteFile(filepath.Join(built, "screenshots", "export.png"), png, 0o644); err != nil {
		t.Fatal(err)
	}
	if got := string(b.download(`[data-export=webm]`, ".webm")); !strings.HasPrefix(got, "\x1aE\xdf\xa3") || len(got) < 20000 {
		t.Errorf("the film has %d bytes and starts %.8q", len(got), got)
	}
	b.click("#embed")
	b.wait(`/HTML is copied|^<iframe /.test($("message-text").textContent)`)
	eval[bool](b, `(message(""), true)`)
	saved := b.download(`#save`, ".json")
	before := b.trajectory()
	b.upload("#load", "again.json", saved)
	b.wait(`run.settings.preset === "file"`)
	b.set("#set-eta", 0.8) // a file begins with the step that suits it
	b.wait(`run.settings.eta === .8`)
	b.toEnd()
	if after := b.trajectory(); !sameBits(before, after) {
		t.Error("a saved and loaded MDP gives other numbers")
	}
	b.set("#set-preset", "ring")
	b.wait(`run.settings.preset === "ring" && decoderRound(0)`)
	eval[bool](b, fmt.Sprintf(`(() => {
		const dropped = new DataTransfer();
		dropped.items.add(new File([%q], "dropped.json"));
		return document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: dropped, bubbles: true, cancelable: true }));
	})()`, saved))
	b.wait(`run.settings.preset === "file"`)
	for _, preset := range []string{"sparse-transitions", "sparse-rewards", "ring", "strong-mixing", "frozen-lake", "lock-up"} {
		b.set("#set-preset", preset)
		b.wait(fmt.Sprintf(`run.settings.preset === %q && decoderRound(0)`, preset))
		b.toEnd()
		if got := message(b); got != "" {
			t.Errorf("%s: the page says %q", preset, got)
		}
	}
}

// TestHostileInput gives the page what it must refuse and looks whether anything changed.
func TestHostileInput(t *testing.T) {
	b := newTab(t)
	b.open(server.URL + "/#seed=3")
	b.toEnd()
	before := b.trajectory()
	state := `JSON.stringify([run.settings, run.edits, pos.k])`
	was := eval[string](b, state)
	for hash, want := range map[string]string{
		"#S=1000000": "States S", "#S=NaN": "States S", "#eta=1e999": "Step η", "#m=-3": "Packets m", "#gamma=1": "Discount γ",
		"#preset=<script>alert(1)</script>": "preset", "#what=1": "unknown", "#edits=0:r:99:0:1": "edit", "#edits=0:r:1:1:NaN": "edit",
		"#edits=0:r:7:2:1e9": "r_max", "#edits=0:p:1:1:1:7": "probability", "#k=1e9": "round", "#show=__proto__": "controller", "#view=actor/9.9/x/0": "matrix", "#view=learned/0.0/score/0": "matrix", "#net=other": "network",
		"#preset=file&mdp=AAAA": "MDP", "#preset=file&S=2&A=2&mdp=" + strings.Repeat("A", 176): "MDP", "#T=0": "Rounds T", "#seed=1e300": "Seed",
		"#tol=" + strings.Repeat("9", 300000): "too long",
	} {
		eval[bool](b, fmt.Sprintf(`(message(""), location.hash = %q, true)`, hash))
		b.wait(`document.getElementById("message-text").textContent`)
		if got := message(b); !strings.Contains(got, want) {
			t.Errorf("%.60s: the page says %q, want something with %q", hash, got, want)
		}
		if now := eval[string](b, state); now != was {
			t.Errorf("%.60s changed the state from %s to %s", hash, was, now)
		}
	}
	eval[bool](b, `(message(""), true)`)
	for name, file := range map[string]struct{ data, want string }{
		"empty.json":   {"", "JSON"},
		"script.json":  {"<script>alert(1)</script>", "JSON"},
		"huge.json":    {strings.Repeat(" ", 100<<20), "MB"},
		"nan.json":     {`{"gamma": 0.9, "P": [[[1],[1]]], "r": [["1", 1]]}`, "number"},
		"sum.json":     {`{"gamma": 0.9, "P": [[[0.5],[1]]], "r": [[0, 1]]}`, "sums to 0.5"},
		"gamma.json":   {`{"gamma": 1, "P": [[[1],[1]]], "r": [[0, 1]]}`, "gamma"},
		"large.json":   {`{"gamma": 0.9, "P": [], "r": [` + strings.Repeat("[0,0],", 99) + `[0,0]]}`, "[S][A][S]"},
		"unknown.json": {`{"gamma": 0.9, "P": [[[1],[1]]], "r": [[0, 1]], "x": 1}`, "unknown name"},
		"deep.json":    {strings.Repeat("[", 100000) + strings.Repeat("]", 100000), "object"},
	} {
		b.upload("#load", name, []byte(file.data))
		b.said(file.want)
		if now := eval[string](b, state); now != was {
			t.Errorf("%s changed the state from %s to %s", name, was, now)
		}
	}
	for _, edit := range []struct{ value, want string }{{"", "must be a number"}, {"1e9", "r_max"}} {
		eval[bool](b, fmt.Sprintf(`(openEditor({kind: "reward", s: 0, a: 0, t: 0}), $("editor-value").value = %q, $("editor-set").click(), true)`, edit.value))
		b.said(edit.want)
	}
	if after := b.trajectory(); !sameBits(before, after) {
		t.Error("refused input changed the numbers")
	}
	b.set("#set-S", "99")
	b.said("States S")
	b.set("#set-gamma", "-1")
	b.said("Discount")
	if now := eval[string](b, state); now != was {
		t.Errorf("refused settings changed the state from %s to %s", was, now)
	}
}

// TestFormats: problems from files of every kind are, in the page, what the library reads; and their Q*, the
// step size that suits them and two rounds of exact PMD with it are the library's, which the command prints,
// to 1e-9 of the values' size (the solves add in another order).
func TestFormats(t *testing.T) {
	b := newTab(t)
	b.reduced("light")
	b.open(server.URL + "/#T=2")
	read := 0
	for _, name := range []string{
		"aima4x3.json", "aima4x3.npz", "cancer.json", "cancer.npz", "deepsea5.npz", "forest3.json", "forest3.npz", "inventory-mask-100.json",
		"masked.npz", "riverswim.json", "riverswim.npz", "shuttle95.json", "small-issue39.json", "small-issue39.npz", "triplets.npz", "two-state-infeasible-inf.json", "whole.npz",
	} {
		path := "../policyattention/mdpfile/testdata/" + name
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want, err := mdpfile.Read(path, mdpfile.Options{})
		if err != nil {
			t.Fatal(name, err)
		}
		optimum, err := want.MDP.Optimal()
		if err != nil {
			t.Fatal(name, err)
		}
		eval[bool](b, `(message(""), $("yours-said").textContent = "", true)`)
		b.upload("#load", name, data)
		b.wait(`$("yours-said").textContent || $("message-text").textContent`)
		if got := message(b); got != "" && eval[string](b, `$("message").dataset.kind`) == "error" {
			t.Errorf("%s: %s", name, got)
			continue
		}
		read++
		// Two rounds of exact PMD, as policyattention solve runs them with --eta auto.
		eta := min(pmd.AutoStep(optimum), decoder.MaxLogit/want.MDP.Bound())
		pi, q := want.Pi0, testkit.Must(want.MDP.PolicyValue(want.Pi0))(t)
		for range 2 {
			pi = testkit.Must(pmd.Step(pi, q, eta))(t)
			q = want.MDP.EvaluationBackup(pi, q)
		}
		loss := mdp.MaxAbsDiff(optimum.Q, testkit.Must(want.MDP.PolicyValue(pi))(t))
		b.settled()
		eval[bool](b, `go(2, 0).then(() => true)`)
		for what, x := range map[string]struct {
			page string
			here []float64
		}{
			"Q*": {`phaseAt(0).qstar`, optimum.Q.RawMatrix().Data}, "π": {`run.rounds.exact[1].nextPi`, pi.RawMatrix().Data},
			"Q": {`run.rounds.exact[1].nextQ`, q.RawMatrix().Data}, "η": {`[run.settings.eta]`, []float64{eta}},
			"loss": {`[run.rounds.exact[1].loss]`, []float64{loss}},
		} {
			got := eval[[]float64](b, `[...`+x.page+`].map(v => v === -Infinity ? -1e300 : v)`)
			scale := 1.0 // losses are differences of values
			for _, v := range optimum.V {
				scale = max(scale, math.Abs(v))
			}
			for i, v := range x.here {
				if v = max(v, -1e300); math.Abs(got[i]-v) > 1e-9*max(scale, math.Abs(v)) {
					t.Errorf("%s: %s[%d] is %v in the page, %v in the library", name, what, i, got[i], v)
					break
				}
			}
		}
	}
	if read < 15 {
		t.Errorf("the page took %d files", read)
	}
}

// TestAccessibility runs axe on a desk and on a phone, in light and dark, with
// panels open and in every tab; no contrast may stay undecided. Then it uses the
// keyboard alone.
func TestAccessibility(t *testing.T) {
	b := newTab(t)
	script, err := os.ReadFile(axe)
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skipf("axe-core is missing: %v; set-up fetches it", err)
	}
	// What decides in axe's place knows grey on grey, #777 on #bbb: 2.33.
	b.open(server.URL + "/#T=2")
	grey := eval[float64](b, `(() => {
		const make = (name, a, ...c) => { const x = document.createElementNS("http://www.w3.org/2000/svg", name); for (const k in a) x.setAttribute(k, a[k]); x.append(...c); return x };
		const text = make("text", {x: 20, y: 30, fill: "#777"}, "words"), svg = make("svg", {width: 90, height: 40}, make("rect", {width: 90, height: 40, fill: "#bbb"}), text);
		document.body.prepend(svg);
		const ratio = (`+contrast+`)(text);
		svg.remove();
		return ratio;
	})()`)
	if math.Abs(grey-2.33) > 0.01 {
		t.Errorf("grey on grey has a contrast of %v, want 2.33", grey)
	}
	const editor = `openEditor({kind: "reward", s: 0, a: 0, t: 0}), message("An example.")`
	for _, scheme := range []string{"light", "dark"} {
		b.reduced(scheme)
		for _, view := range []struct {
			name   string
			width  int64
			height int64
			hash   string
			open   string // JavaScript that opens something
		}{
			{"desk", 1280, 800, "#preset=maze&k=6&stage=1", `0`},
			{"desk, panels", 1280, 800, "#show=exact.idle.normalized&k=6&stage=3&view=critic/1.0/weight/2&phi=0.02", `document.querySelectorAll("details").forEach(d => d.open = true), ` + editor},
			{"desk, trained", 1280, 800, "#preset=maze&k=6&stage=1&net=learned&view=learned/n1/weight/2", `document.querySelector("#links details").open = true`},
			{"desk, lesson", 1280, 800, "#preset=maze", `$("lesson-start").click()`},
			{"phone, problem", 360, 780, "#preset=maze&k=6", `$("export").open = true`},
			{"phone, result", 360, 780, "#k=6", `showTab("result")`},
			{"phone, attention", 360, 780, "#k=6&stage=3", `showTab("step"), document.querySelector("#step .term").click()`},
			{"phone, trained", 360, 780, "#preset=maze&k=6&stage=1&net=learned", `showTab("step")`},
			{"phone, evidence", 360, 780, "#k=6", `showTab("evidence")`},
			{"phone, matrices", 360, 780, "#k=6", `showTab("microscope")`},
			{"phone, settings", 360, 780, "#k=6", `showTab("setup"), ` + editor},
		} {
			b.run(emulation.SetDeviceMetricsOverride(view.width, view.height, 1, view.width < 500))
			b.open(server.URL + "/" + view.hash)
			b.wait(`!work`)
			eval[bool](b, `(lookAt(view.station, view.part), `+view.open+`, new Promise(r => requestAnimationFrame(() => r(true))))`)
			b.wait(`$("path").children.length && scope.now && !scope.busy && !work`)
			axeFinds(b, scheme+", "+view.name, string(script))
		}
	}
	b.run(emulation.ClearDeviceMetricsOverride())
	b.open(server.URL)
	eval[bool](b, `(stop(), $("speed").value = "max", $("play").focus(), true)`)
	b.run(chromedp.KeyEvent(" "))
	b.wait(`pos.k === 40 && !playing`)
	eval[bool](b, `(heats.rewards.canvas.focus(), true)`)
	// Enter as the browser sends it when the page takes the key: without the
	// character that would follow otherwise.
	b.run(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowRight), input.DispatchKeyEvent(input.KeyRawDown).WithKey("Enter").WithCode("Enter"))
	b.wait(`!$("editor").hidden && document.activeElement === $("editor-value")`)
	b.run(chromedp.KeyEvent("0.25"), chromedp.KeyEvent(kb.Enter))
	b.wait(`run.edits.length === 1 && run.edits[0].value === 0.25`)
	b.wait(`!work`)
	eval[bool](b, `($("matrix").focus(), true)`)
	b.wait(`scope.now && !scope.busy`)
	b.run(chromedp.KeyEvent(kb.ArrowDown))
	b.wait(`$("live").textContent && $("cell").textContent.includes("memory")`)
}

// contrast is JavaScript that decides what axe leaves open: text in an SVG, of
// one letter, or partly under another element. It returns the ratio of a node's
// colour to what lies under it, composited down to the first opaque layer.
const contrast = `(node) => {
	const rgba = (c) => { const x = c.match(/[\d.]+/g)?.map(Number); return x && c !== "none" ? [x[0], x[1], x[2], x[3] ?? 1] : [0, 0, 0, 0] };
	const lum = (c) => { const [r, g, b] = c.slice(0, 3).map(v => v / 255 <= .04045 ? v / 255 / 12.92 : ((v / 255 + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b };
	const svg = node.ownerSVGElement, layers = [];
	if (svg) {
		node.scrollIntoView({block: "center", inline: "center"});
		const box = node.getBoundingClientRect();
		for (const x of document.elementsFromPoint(box.x + box.width / 2, box.y + box.height / 2)) {
			if (!svg.contains(x) || x === svg || x.localName === "text" || x.localName === "tspan") continue;
			const style = getComputedStyle(x), c = rgba(style.fill);
			layers.push([...c.slice(0, 3), c[3] * Number(style.fillOpacity)]);
		}
	}
	for (let x = svg || node; x; x = x.parentElement) layers.push(rgba(getComputedStyle(x).backgroundColor));
	let under = [0, 0, 0], left = 1;
	for (const l of layers.concat([[255, 255, 255, 1]])) {
		under = under.map((v, i) => v + left * l[3] * l[i]);
		left *= 1 - l[3];
		if (left < .001) break;
	}
	const style = getComputedStyle(node), ink = rgba(svg ? style.fill : style.color), [x, y] = [lum(ink), lum(under)].sort((p, q) => q - p);
	return (x + .05) / (y + .05);
}`

// axeFinds fails the test for what axe calls serious or critical, and for text
// whose contrast axe does not decide and that is below 4.5.
func axeFinds(b *tab, name, script string) {
	b.Helper()
	b.run(chromedp.Evaluate(script, nil))
	type violation struct {
		ID, Impact, Help, Nodes string
		Undecided, Low          int
	}
	found := eval[[]violation](b, `axe.run(document, {resultTypes: ["violations", "incomplete"]}).then(r => {
		const contrast = `+contrast+`, names = (list) => list.slice(0, 6).map(n => n.target.join(" ") + ": " + ((n.any[0] || n.all[0] || n.none[0])?.message || "")).join(" | ");
		const open = r.incomplete.filter(v => v.id === "color-contrast").flatMap(v => v.nodes);
		const low = open.filter(n => !(contrast(document.querySelector(n.target[0])) >= 4.5));
		return r.violations.map(v => ({ID: v.id, Impact: v.impact || "", Help: v.help, Nodes: names(v.nodes)}))
			.concat([{ID: "contrast", Impact: low.length ? "serious" : "", Help: "text that axe leaves open", Nodes: names(low), Undecided: open.length, Low: low.length}]);
	})`)
	for _, v := range found {
		switch {
		case v.Impact == "serious" || v.Impact == "critical":
			b.Errorf("%s: axe: %s, %s: %s (%s)", name, v.Impact, v.ID, v.Help, v.Nodes)
		case v.ID == "contrast":
			b.Logf("%s: no contrast is too low, %d decided here", name, v.Undecided)
		default:
			b.Logf("%s: axe: %s, %s: %s (%s)", name, v.Impact, v.ID, v.Help, v.Nodes)
		}
	}
}

// A probability that rounds to zero is drawn, here at a large step, and the address follows.
func TestNoMass(t *testing.T) {
	b := newTab(t)
	b.open(server.URL + "/#preset=maze&m=16&at=12.1&eta=5&gamma=0.99&k=12&stage=1")
	b.wait(`pos.k === 12 && !work && $("step-table").textContent.includes("−∞")`)
	b.wait(`location.hash.includes("k=12") && $("scrub-out").textContent.startsWith("12")`)
}

// TestMicroscope looks at every matrix of both calls.
func TestMicroscope(t *testing.T) {
	b := newTab(t)
	b.open(server.URL + "/#k=5&stage=1")
	b.wait(`pos.k === 5 && !work`)
	seen := eval[[]string](b, `(async () => {
		const seen = [];
		for (const call of ["actor", "critic", "learned"]) {
			document.querySelector("[name=call][value=" + call + "]").click();
			for (let i = 0; i < 500 && view.call !== call; i++) await new Promise(r => setTimeout(r, 10));
			for (const [station] of stationsOf(call)) for (const [part] of partsOf(station)) {
				lookAt(station, part);
				await new Promise(requestAnimationFrame);
				for (let i = 0; i < 500 && (scope.busy || scope.again); i++) await new Promise(r => setTimeout(r, 4));
				const n = scope.now;
				if (view.part !== part || !n || n.rows * n.cols !== n.data.length || !n.data.length) throw new Error("no matrix " + station + " " + part);
				await describe(Math.min(3, n.rows - 1), Math.min(2, n.cols - 1), false);
				if (!$("cell").querySelector("b")) throw new Error("no words for " + station + " " + part);
				seen.push(call + " " + station + " " + part);
			}
		}
		return seen;
	})()`)
	t.Logf("%d matrices", len(seen))
	// The attention rows of the library sum to one.
	sum := eval[float64](b, `(async () => { const m = await engine.call("matrix", 5, "critic", 0, "block.1.head.0.weight", 190, 191); return m.data.reduce((a, v) => a + v, 0) })()`)
	if math.Abs(sum-1) > 1e-12 {
		t.Errorf("a row of attention weights sums to %v", sum)
	}
}

// TestScreenshots keeps pictures at several widths for a person to look at: whole pages, and what
// is first seen of some. The README's are among these; "make pictures" takes them over.
func TestScreenshots(t *testing.T) {
	const readme = "#preset=maze&m=16&at=12.1&k=8&stage=1&show=exact.learned"
	for _, shot := range []struct {
		name   string
		width  int64
		scale  float64
		scheme string
		hash   string
		height int64 // of what is first seen; 0 for a whole page
	}{
		{"screenshot", 1280, 1, "light", readme, 800},
		{"screenshot-dark", 1280, 1, "dark", readme + "&net=learned", 800},
		{"screenshot-phone", 390, 1, "light", readme, 844},
		{"first", 1280, 1, "light", "#preset=maze&m=16&at=12.1&k=4&stage=1", 0},
		{"first-dark", 1280, 1, "dark", "#preset=maze&m=16&at=12.1&k=40", 0},
		{"phone", 360, 2, "light", "#preset=maze&k=12&stage=1", 0},
		{"phone-dark", 360, 2, "dark", "#preset=lock-up&k=3&stage=2&show=exact.idle&view=critic/1.0/weight/0", 0},
		{"laptop", 1024, 1, "light", "#k=12&stage=3&view=critic/1.0/weight/4", 0},
		{"desk-dark", 1280, 1, "dark", "#preset=frozen-lake&m=12&k=25&stage=1&view=actor/0.0/score/6", 0},
		{"desk", 1280, 1, "light", "#preset=ring&S=16&A=16&m=3&k=5&view=actor/tokens/tokens/6", 0},
		{"projector", 1920, 1, "light", "#k=40&show=exact.normalized.idle&phi=0.01&view=actor/0.0/weight/3", 0},
		{"projector-dark", 1920, 1, "dark", "#k=12&stage=2&view=critic/tokens/tokens/0", 0},
	} {
		b := newTab(t)
		b.run(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: shot.scheme}}),
			emulation.SetDeviceMetricsOverride(shot.width, cmp.Or(shot.height, 900), shot.scale, shot.width < 500))
		b.open(server.URL + "/" + shot.hash)
		b.wait(`!work`)
		eval[bool](b, `(lookAt(view.station, view.part), new Promise(r => requestAnimationFrame(() => r(true))))`)
		b.wait(`$("path").children.length && !scope.busy`)
		if wide := eval[float64](b, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
			t.Errorf("%s: the page is %v pixels wider than the screen", shot.name, wide)
		}
		var png []byte
		if shot.height > 0 {
			eval[bool](b, `go(40, 0).then(() => go(8, 1))`) // the whole curve
			b.wait(`document.getAnimations().every(a => a.playState === "finished")`)
			b.run(chromedp.CaptureScreenshot(&png))
		} else {
			b.run(chromedp.ActionFunc(func(ctx context.Context) (err error) {
				png, err = page.CaptureScreenshot().WithCaptureBeyondViewport(true).Do(ctx)
				return err
			}), chromedp.FullScreenshot(&png, 100))
		}
		if err := os.WriteFile(filepath.Join(built, "screenshots", shot.name+".png"), png, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("pictures are in %s", filepath.Join(built, "screenshots"))
}
