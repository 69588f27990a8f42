package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"icrl/internal/testkit"
	"icrl/policyattention/decoder"
	"icrl/policyattention/mdpfile"
	"icrl/policyattention/pmd"
	"icrl/wasm/engine"
)

// firstView is the most that is transferred before the page is ready.
const firstView = 900_000 // bytes

// TestScripts checks the types of the page's scripts, and those of their functions that need no page.
func TestScripts(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("no Node.js was found, so the page's scripts are tested in browsers only (sudo apt-get install nodejs)")
	}
	for name, args := range map[string][]string{
		"types": {"../.local/typescript/lib/tsc.js", "-p", "page"},
		"units": {"--test", "page/test/"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := os.Stat(args[0]); name == "types" && err != nil {
				t.Skipf("%v; scripts/browser.sh fetches it", err)
			}
			if out, err := exec.Command(node, args...).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestFirstView loads the page over http and from a file, and says how fast, also on a slow line with a slow
// processor.
func TestFirstView(t *testing.T) {
	for _, place := range []string{server.URL, fileURL(t)} {
		b := newTab(t)
		b.run(network.SetCacheDisabled(true))
		var ready, run []float64
		for range 5 {
			b.mu.Lock()
			b.bytes = 0
			b.mu.Unlock()
			b.open(place)
			ready = append(ready, eval[float64](b, `Number(document.body.dataset.ready)`))
		}
		first := b.bytes
		for range 5 { // forty rounds of a fresh engine, every round drawn as it may be
			b.open(place + "#preset=maze&m=16")
			run = append(run, eval[float64](b, `(async () => {
				const start = performance.now();
				await go(40, 0);
				return performance.now() - start;
			})()`))
		}
		slices.Sort(ready)
		slices.Sort(run)
		t.Logf("%.20s: ready %.0f ms after navigation; T = 40 on the maze in %.0f ms", place, ready, run)
		others := `performance.getEntriesByType("resource").map(e => e.name).filter(n => !/^(blob|data):/.test(n) &&
			!/[/]engine[.](wasm[.]gz|js)$/.test(n))`
		if remote := eval[[]string](b, others); len(remote) != 0 {
			t.Errorf("%s: the page also asks for %v", place, remote)
		}
		if place != server.URL {
			continue
		}
		t.Logf("first view: %.0f bytes transferred", first)
		if first > firstView || first < 1e5 {
			t.Errorf("first view transfers %.0f bytes, want below %d", first, firstView)
		}
		b.run(network.EmulateNetworkConditions(false, 50, 1.6e6/8, 1.6e6/8), emulation.SetCPUThrottlingRate(4))
		b.open(place)
		t.Logf("at 1.6 Mbit/s with a processor four times slower: ready after %.0f ms",
			eval[float64](b, `Number(document.body.dataset.ready)`))
	}
}

// TestFrames holds the page to what a visitor feels: while m = 64 runs as fast as it goes, and while a slider
// is dragged, frames are at most 50 ms apart. Other programs of the machine hold up frames too: so the best of
// several seconds counts, and where even a page at rest never had its frames in time, the gaps are printed only.
func TestFrames(t *testing.T) {
	const limit, rest, runs = 50, 25, 8
	b := newTab(t)
	for name, c := range map[string]struct{ hash, begin, each, end string }{
		"playing":  {"#m=64&T=200&seed=%d", `play(() => "max")`, `0`, `stop()`},
		"dragging": {"#preset=maze&m=16&k=%d", `0`, `drag(n)`, `drag(0, "change")`},
	} {
		best, idle := math.Inf(1), math.Inf(1)
		for i := 1; i <= runs && best > limit; i++ {
			b.open(server.URL + "/" + fmt.Sprintf(c.hash, i))
			b.wait(`!work && !acting && !playing`)
			gaps := eval[[]float64](b, `(async () => {
				const frame = () => new Promise(requestAnimationFrame), s = $("slide-gamma"),
					drag = (n, kind = "input") => { s.value = 300 + n; s.dispatchEvent(new Event(kind)) },
					largest = async (each, ms) => {
						let last = await frame(), gap = 0;
						for (let n = 0, end = last + ms; last < end; n++) {
							each(n);
							const now = await frame();
							gap = Math.max(gap, now - last);
							last = now;
						}
						return gap;
					}, idle = await largest(() => 0, 500);
				`+c.begin+`;
				const busy = await largest(n => `+c.each+`, 1000);
				`+c.end+`;
				return [idle, busy];
			})()`)
			t.Logf("%s: the largest gap between frames is %.1f ms, at rest %.1f ms", name, gaps[1], gaps[0])
			best, idle = min(best, gaps[1]), min(idle, gaps[0])
		}
		if best > limit && idle <= rest {
			t.Errorf("%s: the largest gap between frames was never below %.1f ms, want %d", name, best, limit)
		}
	}
}

// TestLeak changes the problem two hundred times: neither the page's memory nor the engine's grows with that.
func TestLeak(t *testing.T) {
	b := newTab(t)
	b.reduced("light")
	b.open(server.URL + "/#preset=maze&m=2&T=4")
	used := func(changes int) (page, engine float64) {
		b.do(`(async () => {
			for (let i = 0; i < %d; i++) {
				if (i %% 2) slideTo("eta", 1 + (i %% 7) / 10);
				else await change({ kind: "tile", s: 17, tile: i %% 4 ? "#" : "." });
				while (acting || work) await new Promise(r => setTimeout(r, 1));
			}
		})()`, changes)
		b.run(heapprofiler.CollectGarbage(), chromedp.ActionFunc(func(ctx context.Context) (err error) {
			page, _, _, _, err = runtime.GetHeapUsage().Do(ctx)
			return err
		}))
		return page, eval[float64](b, `engine.bytes`)
	}
	page, engine := used(40)
	laterPage, laterEngine := used(200)
	t.Logf("page %.1f MB and engine %.1f MB after 40 changes, %.1f and %.1f after 240", page/1e6, engine/1e6,
		laterPage/1e6, laterEngine/1e6)
	if laterPage > page+4e6 || laterEngine > engine+16e6 {
		t.Errorf("200 changes cost the page %.0f bytes and the engine %.0f", laterPage-page, laterEngine-engine)
	}
}

// again opens this tab's link in another one and expects the same trajectory.
func (b *tab) again(other *tab, place string, first exported) {
	b.Helper()
	hash := eval[string](b, `location.hash`)
	other.open(place + hash)
	other.wait(`pos.k === %d && !work`, eval[int](b, `pos.k`))
	if second := other.trajectory(); !sameBits(first, second) {
		b.Errorf("the link %.200s gives other numbers", hash)
	}
}

// TestFiles exports everything, and loads and saves an MDP.
func TestFiles(t *testing.T) {
	b := newTab(t)
	b.open(fileURL(t))
	b.toEnd()
	for kind, begins := range map[string]string{
		"csv": "controller,round,zeta", "svg": "<svg", "png": "\x89PNG", "webm": "\x1aE\xdf\xa3",
	} {
		got := string(b.download("[data-export="+kind+"]", "."+kind))
		if !strings.HasPrefix(got, begins) || len(got) < 5000 || kind == "csv" && strings.Count(got, "\n") != 81 {
			t.Errorf("the %s has %d bytes and starts %.60q", kind, len(got), got)
		}
	}
	b.click("#embed")
	b.wait(`/HTML is copied|^<iframe /.test($("message-text").textContent)`)
	b.do(`message("")`)
	saved := b.download(`#save`, ".json")
	before := b.trajectory()
	b.upload("#load", "again.json", saved)
	b.wait(`run.settings.preset === "file"`)
	b.slide("eta", 0.8) // a file begins with the step that suits it
	b.toEnd()
	if after := b.trajectory(); !sameBits(before, after) {
		t.Error("a saved and loaded MDP gives other numbers")
	}
}

// TestHostileInput gives the page files and numbers that it must refuse and looks whether anything changed.
func TestHostileInput(t *testing.T) {
	b := newTab(t)
	b.open(server.URL + "/#seed=3")
	b.toEnd()
	before := b.trajectory()
	state := `JSON.stringify([run.settings, run.edits, pos.k])`
	was := eval[string](b, state)
	refused := func(name, want string) {
		t.Helper()
		b.said(want)
		if now := eval[string](b, state); now != was {
			t.Errorf("%.60s changed the state from %s to %s", name, was, now)
		}
	}
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
		refused(name, file.want)
	}
	for value, want := range map[string]string{"": "must be a number", "1e9": "r_max"} {
		b.edit(`{kind: "reward", s: 0, a: 0, t: 0}`, value)
		refused("reward "+value, want)
	}
	if after := b.trajectory(); !sameBits(before, after) {
		t.Error("refused input changed the numbers")
	}
}

// TestFormats: problems from files of every kind are, in the page, what the library reads; and the step size
// that suits them and two rounds of exact PMD with it are the library's, which the command prints. CASES names
// a folder of more files.
func TestFormats(t *testing.T) {
	b := newTab(t)
	b.reduced("light")
	b.open(server.URL + "/#T=2")
	folder := cmp.Or(os.Getenv("CASES"), "../policyattention/mdpfile/testdata")
	paths := testkit.Must(filepath.Glob(filepath.Join(folder, "*.[jn][sp][oz]*")))(t)
	read := 0
	for _, path := range paths {
		want, err := mdpfile.Read(path, mdpfile.Options{})
		if err != nil || want.MDP.Actions() < 2 || want.MDP.States() > 64 {
			continue // it needs another file, or a word about its axes
		}
		optimum, err := want.MDP.Optimal()
		if err != nil {
			continue
		}
		name := filepath.Base(path)
		b.do(`message(""), $("yours-said").textContent = ""`)
		b.upload("#load", name, testkit.Must(os.ReadFile(path))(t))
		b.wait(`$("yours-said").textContent || $("message-text").textContent`)
		if got := message(b); got != "" && eval[string](b, `$("message").dataset.kind`) == "error" {
			t.Errorf("%s: %s", name, got)
			continue
		}
		read++
		b.settled()
		b.do(`go(2, 0)`)
		sameAsLibrary(t, b.read, want, engine.Exact)
		eta := min(pmd.AutoStep(optimum), decoder.MaxLogit/want.MDP.Bound())
		if got := eval[float64](b, `run.settings.eta`); math.Abs(got-eta) > 1e-9*eta {
			t.Errorf("%s: η is %v in the page, %v in the library", name, got, eta)
		}
	}
	t.Logf("%d of %d files", read, len(paths))
	if read < 15 {
		t.Errorf("the page took %d files", read)
	}
}

// TestAccessibility runs axe on a desk and on a phone, in light and dark, with panels open and in every tab.
// Then it uses the keyboard alone.
func TestAccessibility(t *testing.T) {
	b := newTab(t)
	script, err := os.ReadFile("../.local/axe/axe.min.js")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skipf("axe-core is missing: %v; scripts/browser.sh fetches it", err)
	}
	const editor = `openEditor({kind: "reward", s: 0, a: 0, t: 0}), message("An example.")`
	const open = `document.querySelectorAll("details").forEach(d => d.open = true), ` + editor
	const everything = "#show=exact.idle.normalized&k=6&stage=3&view=critic/1.0/weight/2&phi=0.02"
	const network = "#preset=maze&k=6&stage=1&net=learned&view=learned/n1/weight/2"
	for _, scheme := range []string{"light", "dark"} {
		b.reduced(scheme)
		for _, view := range []struct{ width, hash, open string }{
			{"1280", "#preset=maze&k=6&stage=1", `0`},
			{"1280", everything, open},
			{"1280", network, `0`},
			{"1280", "#preset=maze", `$("lesson-start").click()`},
			{"360", "#preset=maze&k=6", `$("export").open = true`},
			{"360", "#k=6", `showTab("result")`},
			{"360", "#k=6&stage=3", `showTab("step"), document.querySelector("#step .term").click()`},
			{"360", "#preset=maze&k=6&stage=1&net=learned", `showTab("step")`},
			{"360", "#k=6", `showTab("evidence")`},
			{"360", "#k=6", `showTab("microscope")`},
			{"360", "#k=6", `showTab("setup"), ` + editor},
		} {
			phone := view.width == "360"
			b.run(emulation.SetDeviceMetricsOverride(map[bool]int64{true: 360, false: 1280}[phone], 800, 1, phone))
			b.open(server.URL + "/" + view.hash)
			b.wait(`!work`)
			b.do(`lookAt(view.station, view.part), ` + view.open + `, new Promise(requestAnimationFrame)`)
			b.wait(`$("path").children.length && scope.now && !scope.busy && !work`)
			b.run(chromedp.Evaluate(string(script), nil))
			found := eval[[]struct{ ID, Impact, Nodes string }](b, `axe.run(document).then(r => r.violations.map(v => ({
				ID: v.id, Impact: v.impact || "", Nodes: v.nodes.slice(0, 6).map(n => n.target.join(" ")).join(" | "),
			})))`)
			for _, v := range found {
				t.Errorf("%s, %s, %s: axe: %s, %s (%s)", scheme, view.width+view.hash, view.open, v.Impact, v.ID,
					v.Nodes)
			}
			if wide := eval[float64](b, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
				t.Errorf("%s: the page is %v pixels wider than the screen", view.width+view.hash, wide)
			}
		}
	}
	b.run(emulation.ClearDeviceMetricsOverride())
	b.open(server.URL)
	b.do(`stop(), $("speed").value = "max", $("play").focus()`)
	b.run(chromedp.KeyEvent(" "))
	b.wait(`pos.k === 40 && !playing`)
	b.do(`heats.rewards.canvas.focus()`)
	// Enter as the browser sends it when the page takes the key: without the
	// character that would follow otherwise.
	b.run(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowRight),
		input.DispatchKeyEvent(input.KeyRawDown).WithKey("Enter").WithCode("Enter"))
	b.wait(`!$("editor").hidden && document.activeElement === $("editor-value")`)
	b.run(chromedp.KeyEvent("0.25"), chromedp.KeyEvent(kb.Enter))
	b.wait(`run.edits.length === 1 && run.edits[0].value === 0.25 && !work`)
	b.do(`$("matrix").focus()`)
	b.wait(`scope.now && !scope.busy`)
	b.run(chromedp.KeyEvent(kb.ArrowDown))
	b.wait(`$("live").textContent && $("cell").textContent.includes("memory")`)
}

// TestScreenshots takes pictures of the page, to look at; "make pictures" takes the first over.
func TestScreenshots(t *testing.T) {
	const shown = "#preset=maze&m=16&at=12.1&k=8&stage=1&show=exact.learned"
	for _, shot := range []struct {
		name          string
		width, height int64
		scheme, hash  string
	}{
		{"screenshot", 1280, 800, "light", shown},
		{"screenshot-dark", 1280, 800, "dark", shown + "&net=learned"},
		{"screenshot-phone", 390, 844, "light", shown},
	} {
		b := newTab(t)
		b.reduced(shot.scheme)
		b.run(emulation.SetDeviceMetricsOverride(shot.width, shot.height, 1, shot.width < 500))
		b.open(server.URL + "/" + shot.hash)
		b.do(`go(40, 0).then(() => go(8, 1))`) // the whole curve
		b.wait(`!work && document.getAnimations().every(a => a.playState === "finished")`)
		var png []byte
		b.run(chromedp.CaptureScreenshot(&png))
		testkit.Check(t, os.WriteFile(filepath.Join(built, "screenshots", shot.name+".png"), png, 0o644))
	}
}
