package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/input"
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

// TestPlayback steps and plays. There are enough rounds for the fastest speed to be seen under way.
func TestPlayback(t *testing.T) {
	b := newTab(t)
	b.open(server.URL + "/#T=60")
	for _, step := range []struct{ press, want string }{
		{"#forth", "0.1"}, {"#forth", "0.2"}, {"#forth", "0.3"}, {"#forth", "1.0"}, {"#back", "0.3"},
		{"#round-on", "1.0"}, {"#first", "0.0"}, {"#back", "0.0"},
	} {
		b.click(step.press)
		b.wait("`${pos.k}.${pos.stage}` === %q", step.want)
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
	// Of two places that are asked for at once the later one is shown, and none after a stop.
	for code, want := range map[string]int{
		`[go(50, 0), go(2, 0)]`:           2,
		`[go(1, 0), go(55, 0)]`:           55,
		`[go(3, 0), go(60, 0), stop()]`:   0,
		`[go(60, 0), $("forth").click()]`: 0, // one stage on from the start
	} {
		got := eval[int](b, `(async () => { pos.k = pos.stage = 0; await Promise.all(`+code+`); return pos.k })()`)
		if got != want {
			t.Errorf("%s shows round %d, want %d", code, got, want)
		}
	}
}

// TestFrames holds the page to what a visitor feels: while m = 64 runs as fast as it goes, and while a slider
// is dragged, frames are at most 50 ms apart. Other programs of the machine hold up frames too: so the best of
// several seconds counts, and where processors do not rest before any of them, the gaps are printed only.
func TestFrames(t *testing.T) {
	const limit, runs = 50, 8
	b := newTab(t)
	for name, c := range map[string]struct{ hash, begin, each, end string }{
		"playing":  {"#m=64&T=200&seed=%d", `play(() => "max")`, ``, `stop()`},
		"dragging": {"#preset=maze&m=16&k=%d", `0`, `drag(n)`, `drag(0, "change")`},
	} {
		best, quiet := math.Inf(1), false
		for i := 1; i <= runs && best > limit; i++ {
			b.open(server.URL + "/" + fmt.Sprintf(c.hash, i))
			b.wait(`!work && !acting && !playing`)
			start, before := time.Now(), idle()
			time.Sleep(time.Second / 2)
			free := (idle() - before) / time.Since(start).Seconds() / float64(goruntime.NumCPU())
			quiet = quiet || !(free < 0.6) // NaN where the system does not tell
			gaps := eval[[]float64](b, `(async () => {
				const frame = () => new Promise(requestAnimationFrame), gaps = [], s = $("slide-gamma"),
					drag = (n, kind = "input") => { s.value = 300 + n; s.dispatchEvent(new Event(kind)) };
				`+c.begin+`;
				let last = await frame();
				for (let n = 0, end = last + 1000; last < end; n++) {
					`+c.each+`;
					const now = await frame();
					gaps.push(now - last);
					last = now;
				}
				`+c.end+`;
				return gaps.sort((x, y) => x - y);
			})()`)
			largest := gaps[len(gaps)-1]
			best = min(best, largest)
			t.Logf("%s: %d frames in a second, gaps median %.1f ms, largest %.1f ms; %.0f%% of the processors rested",
				name, len(gaps), gaps[len(gaps)/2], largest, 100*free)
		}
		switch {
		case best > limit && !quiet:
			t.Logf("other programs keep this machine busy, so the largest gap of %.1f ms says nothing", best)
		case best > limit:
			t.Errorf("%s: the largest gap between frames was never below %.1f ms, want %d", name, best, limit)
		}
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

// TestShare edits, copies the address, opens it elsewhere, and finds the same numbers.
func TestShare(t *testing.T) {
	b := newTab(t)
	b.open(server.URL + "/#seed=5&T=20")
	b.toEnd()
	b.do(`go(8, 0)`)
	b.edit(`{kind: "reward", s: 2, a: 1, t: 0}`, "0.9")
	b.wait(`run.edits.length === 1 && decoderRound(8)`)
	b.edit(`{kind: "transition", s: 0, a: 2, t: 3}`, "0.75")
	b.wait(`run.edits.length === 2 && decoderRound(8)`)
	if got := eval[[]float64](b, `[phaseAt(8).p[(0 * 3 + 2) * 8 + 3], phaseAt(7).r[2 * 3 + 1]]`); got[0] != 0.75 ||
		got[1] == 0.9 {
		t.Errorf("the edited probability and the reward before it was edited are %v", got)
	}
	b.toEnd()
	first := b.trajectory()
	b.wait(`location.hash.includes("edits") && location.hash.includes("k=20")`)
	b.again(newTab(t), fileURL(t), first)
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
	for _, preset := range []string{
		"ring", "file", "sparse-transitions", "sparse-rewards", "strong-mixing", "frozen-lake", "lock-up",
	} {
		if preset == "file" {
			b.do(`(() => {
				const dropped = new DataTransfer();
				dropped.items.add(new File([%q], "dropped.json"));
				const event = { dataTransfer: dropped, bubbles: true, cancelable: true };
				document.body.dispatchEvent(new DragEvent("drop", event));
			})()`, saved)
		} else {
			b.set("#set-preset", preset)
		}
		b.wait(`run.settings.preset === %q && decoderRound(0)`, preset)
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
	refused := func(name, want string) {
		t.Helper()
		b.said(want)
		if now := eval[string](b, state); now != was {
			t.Errorf("%.60s changed the state from %s to %s", name, was, now)
		}
	}
	for hash, want := range map[string]string{
		"S=1000000": "States S", "S=NaN": "States S", "eta=1e999": "Step η", "m=-3": "Packets m",
		"gamma=1": "Discount γ", "preset=<script>alert(1)</script>": "preset", "what=1": "unknown",
		"edits=0:r:99:0:1": "edit", "edits=0:r:1:1:NaN": "edit", "edits=0:r:7:2:1e9": "r_max",
		"edits=0:p:1:1:1:7": "probability", "k=1e9": "round", "show=__proto__": "controller",
		"view=actor/9.9/x/0": "matrix", "view=learned/0.0/score/0": "matrix", "net=other": "network",
		"preset=file&mdp=AAAA": "MDP", "preset=file&S=2&A=2&mdp=" + strings.Repeat("A", 176): "MDP",
		"T=0": "Rounds T", "seed=1e300": "Seed", "tol=" + strings.Repeat("9", 300000): "too long",
		"edits=0:p:9:0:0:0.5": "a change at", "edits=0:t:1:w": "map", "preset=maze&edits=0:t:1:x": "cannot be read",
		"edits=3:i:0:0:0.5": "cannot be read", "edits=0:i:0:0:2": "probability", "edits=41:r:0:0:1": "round",
		"edits=0:v:64:1": "state", "preset=lock-up&edits=0:p:0:0:0:0.5": "one state",
	} {
		b.do(`location.hash = %q`, hash)
		refused(hash, want)
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
	b.set("#set-S", "99")
	refused("99 states", "States S")
	b.set("#set-S", "99")
	b.wait(`!$("message").hidden`)
	b.click("#message-close")
	b.wait(`$("message").hidden`)
	b.set("#set-S", "99")
	b.wait(`!$("message").hidden`)
	b.set("#set-seed", 5) // an error goes with the next success
	b.wait(`run.settings.seed === 5 && $("message").hidden`)
}

// TestFormats: problems from files of every kind are, in the page, what the library reads; and their Q*, the
// step size that suits them and two rounds of exact PMD with it are the library's, which the command prints,
// to 1e-9 of the values' size (the solves add in another order). CASES names a folder of more files.
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
		// Two rounds of exact PMD, as policyattention solve runs them with --eta auto.
		eta := min(pmd.AutoStep(optimum), decoder.MaxLogit/want.MDP.Bound())
		pi, q := want.Pi0, testkit.Must(want.MDP.PolicyValue(want.Pi0))(t)
		for range 2 {
			pi = testkit.Must(pmd.Step(pi, q, eta))(t)
			q = want.MDP.EvaluationBackup(pi, q)
		}
		loss := mdp.MaxAbsDiff(optimum.Q, testkit.Must(want.MDP.PolicyValue(pi))(t))
		b.settled()
		b.do(`go(2, 0)`)
		for what, x := range map[string]struct {
			page string
			here []float64
		}{
			"Q*": {`phaseAt(0).qstar`, optimum.Q.RawMatrix().Data}, "π": {`last.nextPi`, pi.RawMatrix().Data},
			"Q": {`last.nextQ`, q.RawMatrix().Data}, "η": {`[run.settings.eta]`, []float64{eta}},
			"loss": {`[last.loss]`, []float64{loss}},
		} {
			got := eval[[]float64](b, `(() => {
				const last = run.rounds.exact[1];
				return [...`+x.page+`].map(v => v === -Infinity ? -Number.MAX_VALUE : v);
			})()`)
			scale := 1.0 // losses are differences of values
			for _, v := range optimum.V {
				scale = max(scale, math.Abs(v))
			}
			for i, v := range x.here {
				if v = max(v, -math.MaxFloat64); math.Abs(got[i]-v) > 1e-9*max(scale, math.Abs(v)) {
					t.Errorf("%s: %s[%d] is %v in the page, %v in the library", name, what, i, got[i], v)
					break
				}
			}
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
				say := t.Logf
				if v.Impact == "serious" || v.Impact == "critical" {
					say = t.Errorf
				}
				say("%s, %s, %s: axe: %s, %s (%s)", scheme, view.width+view.hash, view.open, v.Impact, v.ID, v.Nodes)
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

// TestMicroscope looks at every matrix of every call.
func TestMicroscope(t *testing.T) {
	b := newTab(t)
	b.open(server.URL + "/#k=5&stage=1&phi=0.01")
	b.wait(`pos.k === 5 && !work`)
	seen := eval[int](b, `(async () => {
		let seen = 0;
		for (const call of ["actor", "critic", "normed", "learned"]) {
			document.querySelector("[name=call][value=" + call + "]").click();
			for (let i = 0; i < 500 && view.call !== call; i++) await new Promise(r => setTimeout(r, 10));
			for (const [station] of stationsOf(call)) for (const [part] of partsOf(station)) {
				lookAt(station, part);
				await new Promise(requestAnimationFrame);
				for (let i = 0; i < 500 && (scope.busy || scope.again); i++) await new Promise(r => setTimeout(r, 4));
				const n = scope.now, name = [call, station, part].join(" ");
				if (view.part !== part || !n || n.rows * n.cols !== n.data.length || !n.data.length)
					throw new Error("no matrix " + name);
				await describe(Math.min(3, n.rows - 1), Math.min(2, n.cols - 1), false);
				if (!$("cell").querySelector("b")) throw new Error("no words for " + name);
				seen++;
			}
		}
		return seen;
	})()`)
	t.Logf("%d matrices", seen)
	// The library's attention sums to one, and LayerNorm changes π̂ by what H = 10⁶ allows.
	got := eval[[]float64](b, `(async () => {
		const row = (await engine.call("matrix", 5, "critic", 0, "block.1.head.0.weight", 190, 191)).data,
			[x, y] = await Promise.all(["actor", "normed"].map(c => engine.call("matrix", 5, c, 0, "results", 0, 9)));
		return [row.reduce((a, v) => a + v, 0), Math.max(...x.data.map((v, i) => Math.abs(v - y.data[i])))];
	})()`)
	if math.Abs(got[0]-1) > 1e-12 || got[1] == 0 || got[1] > 1e-6 {
		t.Errorf("a row of attention weights sums to %v; LayerNorm changes π̂ by %v", got[0], got[1])
	}
}

// TestScreenshots keeps pictures at several widths for a person to look at. The README's are among these;
// "make pictures" takes them over.
func TestScreenshots(t *testing.T) {
	const readme = "#preset=maze&m=16&at=12.1&k=8&stage=1&show=exact.learned"
	for _, shot := range []struct {
		name          string
		width, height int64 // height 0 for a whole page
		scheme, hash  string
	}{
		{"screenshot", 1280, 800, "light", readme},
		{"screenshot-dark", 1280, 800, "dark", readme + "&net=learned"},
		{"screenshot-phone", 390, 844, "light", readme},
		{"whole", 1280, 0, "light", "#preset=maze&m=16&at=12.1&k=4&stage=1"},
		{"phone-dark", 360, 0, "dark", "#preset=lock-up&k=3&stage=2&show=exact.idle&view=critic/1.0/weight/0"},
		{"normed", 1280, 0, "light", "#preset=maze&k=12&phi=0.01&show=exact.normalized&view=normed/0.0/score/12"},
		{"projector-dark", 1920, 0, "dark", "#preset=ring&S=16&A=16&m=3&k=5&view=actor/tokens/tokens/6"},
	} {
		b := newTab(t)
		b.reduced(shot.scheme)
		b.run(emulation.SetDeviceMetricsOverride(shot.width, cmp.Or(shot.height, 900), 1, shot.width < 500))
		b.open(server.URL + "/" + shot.hash)
		b.wait(`!work`)
		b.do(`lookAt(view.station, view.part), new Promise(requestAnimationFrame)`)
		b.wait(`$("path").children.length && !scope.busy`)
		if wide := eval[float64](b, `document.documentElement.scrollWidth - innerWidth`); wide > 0 {
			t.Errorf("%s: the page is %v pixels wider than the screen", shot.name, wide)
		}
		if shot.height > 0 {
			b.do(`go(40, 0).then(() => go(8, 1))`) // the whole curve
			b.wait(`!work && document.getAnimations().every(a => a.playState === "finished")`)
		}
		var png []byte
		b.run(chromedp.ActionFunc(func(ctx context.Context) (err error) {
			png, err = page.CaptureScreenshot().WithCaptureBeyondViewport(shot.height == 0).Do(ctx)
			return err
		}))
		if shot.height == 0 {
			b.run(chromedp.FullScreenshot(&png, 100))
		}
		if err := os.WriteFile(filepath.Join(built, "screenshots", shot.name+".png"), png, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
