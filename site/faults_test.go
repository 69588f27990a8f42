package main

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestTrained runs the one trained network on problems of several shapes, looks at its
// attention in the panel and in the microscope, and opens a link to that.
func TestTrained(t *testing.T) {
	b := newTab(t)
	b.reduced("light")
	for _, hash := range []string{"S=16&show=exact.learned&T=5", "S=5&A=7&gamma=0.5&eta=3&show=learned&T=5",
		"preset=maze&show=learned&T=5"} {
		b.open(server.URL + "/#" + hash)
		b.toEnd()
		b.wait(`run.rounds.learned?.length === 5 && shown.has("learned") && $("message").hidden`)
		if got := eval[float64](b, `run.rounds.learned[4].loss / run.phases[0].gap`); got > 1 || got < 0 {
			t.Errorf("%s: the trained network has %v of the start's loss after 5 rounds", hash, got)
		}
	}
	b.open(server.URL + "/#preset=maze&k=3&stage=1&at=12.1")
	b.click("#net-learned")
	b.wait(`document.querySelectorAll(".trained .strip rect").length === 4 * 4 * 4 &&
		document.querySelectorAll("#step-lines .ray").length === 16`)
	// The panel's shares are those of the actor, and each head's attention sums to one.
	got := eval[[]float64](b, `(async () => {
		const policy = await engine.call("compare", 3),
			m = await engine.call("matrix", 3, "learned", 12, "block.2.weight", 0, 99),
			results = (await engine.call("matrix", 3, "learned", 12, "results", 0, 9)).data,
			row = i => m.data.subarray(i * m.cols, (i + 1) * m.cols),
			sums = Array.from({ length: m.rows }, (_, i) => row(i).reduce((x, y) => x + y));
		return [Math.max(...[0, 1, 2, 3].map(a => Math.abs(policy[48 + a] - results[4 * a + 3]))),
			Math.max(...sums.map(x => Math.abs(x - 1))), sums.length];
	})()`)
	if got[0] != 0 || got[1] > 1e-12 || got[2] != 16 {
		t.Errorf("read-out less actor, rows of attention less one, rows: %v", got)
	}
	title := b.text(".trained .strip title")
	if !strings.Contains(title, "block 1, head 1") || !strings.Contains(title, "%") {
		t.Errorf("under the pointer stands %q", title)
	}
	b.click("#step-look")
	b.wait(`view.call === "learned" && view.station === "n0" && view.part === "weight" && !scope.busy &&
		$("path").textContent.includes("Block 4") && $("cell").textContent.includes("Score")`)
	b.wait(`location.hash.includes("net=learned") && location.hash.includes("view=learned")`)
	other := newTab(t)
	other.open(server.URL + "/" + eval[string](b, `location.hash`))
	other.wait(`view.net === "learned" && view.call === "learned" && document.querySelector(".trained .strip")`)
}

// TestLinks follows the links at the foot of the page, and finds the citation there.
func TestLinks(t *testing.T) {
	b := newTab(t)
	b.open(server.URL)
	links := eval[[]string](b, `[...document.querySelectorAll("#links a")].map(x => x.href)`)
	if len(links) != 1 {
		t.Fatalf("the foot links to %q", links)
	}
	r, err := http.Get(links[0])
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if data, err := io.ReadAll(r.Body); err != nil || !strings.Contains(string(data), `"cells"`) {
		t.Errorf("%s: %s, %v, and no notebook", links[0], r.Status, err)
	}
	got := strings.TrimSpace(b.text("#links pre"))
	if !strings.Contains(got, "@misc{") || !strings.HasSuffix(got, "}") {
		t.Errorf("the citation is %q", got)
	}
	foot, err := about(t.TempDir(), "..", true, Links{Paper: "https://example.org/?a&b"})
	const link = `<a href="https://example.org/?a&amp;b"`
	if err != nil || strings.Count(foot, "<a ") != 1 || !strings.Contains(foot, link) {
		t.Errorf("a page that is a whole has the foot %q, %v", foot, err)
	}
}

// TestOddProblems: one state, no discount, a link to a problem of sixteen states and actions.
func TestOddProblems(t *testing.T) {
	b := newTab(t)
	b.open(server.URL + "/#gamma=0&T=1")
	b.toEnd()
	for _, place := range []string{"#readings", "#loss-now", "#figures"} {
		got := b.text(place)
		if strings.Contains(got, "not a number") || strings.Contains(got, "1 rounds") || strings.Contains(got, "NaN") {
			t.Errorf("%s says %q", place, got)
		}
	}
	for _, file := range []struct {
		states, actions, link int // the most characters of its link
		json                  string
	}{
		{1, 2, 300, `{gamma: .5, P: [[[1], [1]]], r: [[.25, 1]]}`},
		{16, 16, 9000, `{gamma: .9,
			P: all(s => all(a => all(t => t === (s + a) % 16 ? .75 : t === (s + a + 1) % 16 ? .25 : 0))),
			r: all(s => all(a => (s - a) / 16))}`},
		{16, 16, 43500, `{gamma: .9, P: all(s => all(a => (w => w.map(v => v / w.reduce((x, y) => x + y)))(
			all(t => 2 + Math.sin(1 + s + 17 * a + 331 * t))))), r: all(s => all(a => Math.sin(s + 17 * a)))}`},
	} {
		b.open(server.URL + "/#T=3&m=1")
		b.upload("#load", "odd.json", []byte(eval[string](b, `(() => {
			const all = f => Array.from({ length: 16 }, (_, i) => f(i));
			return JSON.stringify(`+file.json+`);
		})()`)))
		b.wait(`run.settings.preset === "file" && run.info.S === %d && run.info.A === %d && decoderRound(0)`,
			file.states, file.actions)
		b.toEnd()
		first := b.trajectory()
		b.wait(`location.hash.includes("mdp=") && location.hash.includes("k=3")`)
		if n := eval[int](b, `location.hash.length`); n > file.link {
			t.Errorf("the link of %d states has %d characters, want at most %d", file.states, n, file.link)
		}
		b.again(b, server.URL+"/", first)
		b.slide("gamma", 0.75)
	}
}

// TestEdits: changes survive changes of earlier rounds and of settings, or it is
// said that they go; they can be undone and taken back; cells are marked; a
// reward beyond the cap makes another decoder.
func TestEdits(t *testing.T) {
	b := newTab(t)
	b.open(server.URL + "/#T=20")
	edit := func(k int, e string) {
		t.Helper()
		b.do(`go(%d, 0).then(() => change(%s))`, k, e)
	}
	edit(10, `{kind: "reward", s: 2, a: 1, value: 0.5}`)
	edit(5, `{kind: "reward", s: 3, a: 0, value: -0.5}`)
	both := `run.edits.map(e => e.k + e.kind + e.value).join(" ") === "5reward-0.5 10reward0.5"`
	b.wait(both)
	got := eval[[]float64](b, `[phaseAt(4).r[9], phaseAt(5).r[9], phaseAt(9).r[7], phaseAt(10).r[7]]`)
	if got[1] != -0.5 || got[3] != 0.5 || got[0] == -0.5 || got[2] == 0.5 {
		t.Errorf("rewards around the changes are %v", got)
	}
	b.slide("eta", 1)
	b.wait(both)
	b.set("#set-seed", 7)
	b.wait(`run.settings.seed === 7 && ` + both)
	b.do(`go(12, 0)`)
	b.wait(`heats.rewards.marks?.size === 2`)
	b.set("#set-S", 4)
	b.wait(`run.info.S === 4 && $("message-text").textContent.includes("dropped with it")`)
	b.click("#undo")
	b.wait(`run.info.S === 8 && run.edits.length === 2 && !$("reset-edits").disabled`)
	b.click("#reset-edits")
	b.wait(`run.edits.length === 0 && !$("undo").disabled`)
	b.click("#undo")
	b.wait(`run.edits.length === 2`)

	edit(12, `{kind: "place", s: 1, value: 2.5}`)
	raised := `run.edits.length === 3 && run.info.certificate.RMax === 3 && !work && !$("reset-edits").disabled`
	b.wait(raised + ` && phaseAt(12).r[3] === 2.5 && phaseAt(12).r[5] === 2.5`)
	b.said("certified")
	for range 2 { // the decoder is that of before, too, and a link knows it as well
		b.click("#reset-edits")
		b.wait(`run.edits.length === 0 && run.info.certificate.RMax === 1 && !$("undo").disabled`)
		b.click("#undo")
		b.wait(raised)
		b.open(server.URL + "/" + eval[string](b, `address()`))
		b.wait(raised)
	}
	edit(0, `{kind: "start", s: 0, a: 0, value: 0.75}`)
	b.wait(`decoderRound(0).pi[0] === 0.75`)
	b.toEnd()
	first := b.trajectory()
	b.wait(`location.hash.includes("k=20") && location.hash.includes("rmax")`)
	b.again(b, server.URL+"/", first)
}

// TestMap changes places of the maze as a visitor does.
func TestMap(t *testing.T) {
	b := newTab(t)
	b.reduced("light")
	b.open(server.URL)
	for _, preset := range []string{"lock-up", "maze"} { // a graph in the map's place, and back
		b.set("#set-preset", preset)
		b.wait(`run.settings.preset === %q && decoderRound(0) && !work`, preset)
	}
	b.wait(`document.querySelectorAll("#scene > g").length === 25`)
	b.open(server.URL)
	b.toEnd()
	before := eval[float64](b, `decoderRound(39).nextPi[12 * 4 + 1]`)
	b.do(`$("scene").focus()`)
	b.run(chromedp.KeyEvent(kb.ArrowDown))
	b.wait(`view.state === 17`)
	b.click(`#place-tiles [data-tile="#"]`)
	b.wait(`run.edits.length === 1 && run.rounds.decoder.length === 40 && !work`)
	if after := eval[float64](b, `decoderRound(39).nextPi[12 * 4 + 1]`); before < 0.2 || after > 0.01 {
		t.Errorf("above the new wall the policy went down with probability %v, and now %v", before, after)
	}
	for i, place := range []int{17, 22, 21, 20} { // a drag from the new wall, which ends at 21
		at := eval[[]float64](b, fmt.Sprintf(`(async () => {
			for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame); // it is drawn
			const box = document.querySelectorAll("#scene > g")[%d].getBoundingClientRect();
			return [box.x + box.width / 2, box.y + box.height / 2];
		})()`, place))
		moved, pressed, released := input.MouseMoved, input.MousePressed, input.MouseReleased
		move := input.DispatchMouseEvent(moved, at[0], at[1])
		press := input.DispatchMouseEvent([]input.MouseType{pressed, moved, released, moved}[i], at[0], at[1])
		if i == 1 || i == 2 {
			move = move.WithButton(input.Left).WithButtons(1)
		}
		if i == 0 || i == 2 {
			press = press.WithButton(input.Left).WithClickCount(1).WithButtons(int64(1 - i/2))
			b.run(move, press)
		} else {
			b.run(move)
		}
	}
	b.wait(`run.edits.length === 2 && run.phases.at(-1).grid.tiles.slice(20, 24) === "H##." && !work && !acting`)
	b.click("#undo")
	b.wait(`run.edits.length === 1 && run.rounds.decoder.length === 40 && !work && !acting`)
	b.wait(`ghost && $("ghost-key").textContent.includes("before")`)
	b.set("#place-reward", "0.5")
	b.wait(`run.edits.length === 2 && phaseAt(0).r[17 * 4] === 0.5`)
}

// TestStrip: the rays are the row of attention weights of the pass, and a small κ sends attention away.
func TestStrip(t *testing.T) {
	b := newTab(t)
	b.reduced("light")
	b.open(server.URL + "/#preset=maze&m=16&at=12.1&k=4&stage=1")
	drawn := `pos.k === 4 && pos.stage === 1 && !work &&
		$("strip").dataset.drawn === [run.id, run.edits.length, 4, 12].join()`
	rays := func(want string) {
		t.Helper()
		b.wait(want + ` && ` + drawn)
		off := eval[float64](b, `(async () => {
			const w = (await engine.call("matrix", 4, "actor", 0, "block.0.head.0.weight", 112, 113)).data,
				drawn = [...document.querySelectorAll("#strip .ray")].map(r => Number(r.getAttribute("stroke-width"))),
				want = [...w].filter(v => v >= 1e-4).map(v => Math.max(.6, 14 * v)).sort((x, y) => y - x);
			drawn.sort((x, y) => y - x);
			return drawn.length === want.length ? Math.max(...want.map((v, i) => Math.abs(v - drawn[i]))) : 1e9;
		})()`)
		if off > 0.006 { // widths have two decimals
			t.Errorf("%s: rays differ from the attention weights by %v", want, off)
		}
	}
	rays(`document.querySelector("#strip .ray") && $("home").textContent.startsWith("all but")`)
	b.do(`(() => {
		const s = $("kappa-slider");
		s.value = 580;
		for (const kind of ["input", "change"]) s.dispatchEvent(new Event(kind));
	})()`)
	rays(`run.settings.kappa > 1 && run.settings.kappa < 10 && $("home").textContent.includes("leaks") &&
		document.querySelectorAll("#strip .ray").length > 20`)
}

// TestWeights: the counts of the network, and a fingerprint that changes with γ alone.
func TestWeights(t *testing.T) {
	b := newTab(t)
	b.reduced("light")
	b.open(server.URL + "/#preset=maze&m=16")
	b.wait(`!work && $("network-title").textContent.includes("204 of its 97,008 weights")`)
	counted := `(async () => {
		const all = [], names = ["0.map.w1", "0.map.w2"];
		for (const head of ["0.head.0.", "0.head.1.", "1.head.0.", "1.head.1."])
			for (const x of "qkvo") names.push(head + x);
		for (const name of names) all.push(...(await engine.call("weight", "actor", "block." + name)).data);
		const set = all.filter(v => v);
		return [set.length, all.length, new Set(set).size].join();
	})()`
	if got := eval[string](b, counted); got != "204,97008,10" {
		t.Errorf("weights that are not zero, weights, values: %s, want 204,97008,10", got)
	}
	first := eval[string](b, `run.info.fingerprint`)
	b.do(`change({ kind: "tile", s: 17, tile: "#" })`)
	b.wait(`!work && $("fingerprint").textContent.includes("unchanged through 2 problems")`)
	if eval[string](b, `run.info.fingerprint`) != first {
		t.Error("a wall changed the weights")
	}
	b.slide("gamma", 0.95)
	b.wait(`$("fingerprint").textContent.includes("γ is in W₁")`)
}

// TestByHand: the columns open one by one, and end at the network's row.
func TestByHand(t *testing.T) {
	b := newTab(t)
	b.reduced("light")
	b.open(server.URL + "/#preset=maze&m=16&at=12.1&k=4&stage=1")
	b.wait(`pos.k === 4 && !work`)
	b.click("#step-hand")
	for closed := 24; ; closed -= 4 {
		b.wait(`document.querySelectorAll(".hand tbody td").length === 28 &&
			[...document.querySelectorAll(".hand tbody td")].filter(x => x.textContent === "?").length === %d`, closed)
		if closed == 0 {
			break
		}
		b.click("#hand-next")
	}
	b.do(`[...document.querySelectorAll(".hand input")].forEach((x, a) => {
		x.value = 100 * decoderRound(4).nextPi[48 + a];
		x.dispatchEvent(new Event("input"));
	})`)
	b.wait(`$("hand-told").textContent.startsWith("Right")`)
}

// TestKeys: arrows step whatever button has the focus, scrolling keys scroll,
// and the menu closes.
func TestKeys(t *testing.T) {
	b := newTab(t)
	b.open(server.URL + "/#T=9")
	b.do(`$("share").focus()`)
	b.run(chromedp.KeyEvent(kb.ArrowRight))
	b.wait(`pos.k === 0 && pos.stage === 1`)
	b.run(chromedp.KeyEvent(kb.ArrowRight, chromedp.KeyModifiers(input.ModifierShift)))
	b.wait(`pos.k === 1 && pos.stage === 0`)
	b.run(chromedp.KeyEvent(kb.ArrowLeft))
	b.wait(`pos.k === 0 && pos.stage === 3`)
	taken := eval[[]string](b, `(() => {
		document.activeElement.blur();
		const event = key => new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }),
			stays = key => document.body.dispatchEvent(event(key));
		return [" ", "Home", "ArrowDown", "ArrowUp", "PageDown"].filter(key => !stays(key));
	})()`)
	if len(taken) != 0 {
		t.Errorf("the page takes %q from scrolling", taken)
	}
	b.click("#export summary")
	b.wait(`$("export").open`)
	b.do(`document.querySelector("[data-export=csv]").focus()`)
	b.run(chromedp.KeyEvent(kb.Escape))
	b.wait(`!$("export").open && document.activeElement.tagName === "SUMMARY"`)
	b.click("#export summary")
	b.wait(`$("export").open`)
	b.click("h1")
	b.wait(`!$("export").open`)
	b.do(`document.querySelector('.lead [data-term="eta"]').click()`)
	b.wait(`!$("term").hidden && $("term").textContent.includes("step size")`)
	b.run(chromedp.KeyEvent(kb.Escape))
	b.wait(`$("term").hidden`)
}

// TestReadings: own packets are no leakage.
func TestReadings(t *testing.T) {
	b := newTab(t)
	b.open(server.URL + "/#m=16&k=2")
	b.wait(`pos.k === 2 && !work`)
	b.do(`document.querySelector("[name=call][value=critic]").click()`)
	b.wait(`$("path").textContent.includes("10 other packets of its own")`)
	got := b.text("#path")
	var own, other float64
	if _, err := fmt.Sscanf(got[strings.Index(got, "own ")+4:], "%g", &own); err != nil || own < 62 || own > 63 {
		t.Errorf("ten of sixteen packets have %v %% (%v): %s", own, err, got)
	}
	_, err := fmt.Sscanf(got[strings.Index(got, "own together ")+13:], "%g", &other)
	if err != nil || other > 0.1 && !strings.Contains(got, "·10⁻") {
		t.Errorf("other tokens have %v %%: %s", other, got)
	}
}

// TestFirstSight: the three answers fit on a laptop's screen, the page plays
// once by itself unless less motion is asked for, and the lesson works.
func TestFirstSight(t *testing.T) {
	b := newTab(t)
	b.run(emulation.SetDeviceMetricsOverride(1280, 800, 1, false))
	b.open(server.URL)
	b.wait(`playing && pos.stage > 0`)
	b.wait(`pos.k > 1`)
	b.click("#play")
	b.wait(`!playing && $("step-said").textContent.includes("differs from exact PMD by")`)
	for _, id := range []string{"scene", "place", "loss-chart", "controllers", "step-table", "step-said"} {
		bottom := eval[float64](b, fmt.Sprintf(`document.getElementById(%q).getBoundingClientRect().bottom`, id))
		if bottom > 800 || bottom < 100 {
			t.Errorf("#%s ends %v pixels from the top, want all of it on 800", id, bottom)
		}
	}
	b.reduced("light")
	b.open(server.URL)
	if eval[bool](b, `!!playing`) {
		t.Error("the page plays by itself although less motion is asked for")
	}
	b.click("#lesson-start")
	scenes := eval[int](b, `lessonLength`)
	for i := range scenes {
		b.wait(`$("lesson-count").textContent.startsWith("%d of") && document.querySelector(".pointed") && !work`, i+1)
		if got := message(b); got != "" && eval[string](b, `$("message").dataset.kind`) == "error" {
			t.Errorf("step %d of the lesson says %q", i+1, got)
		}
		shot(b, fmt.Sprintf("lesson-%d", i+1))
		if i < scenes-1 {
			b.click("#lesson-next")
		}
	}
	b.do(`[...$("lesson-buttons").children].at(-1).click()`)
	b.wait(`view.call === "normed" && $("path").textContent.includes("s=12")`)
	b.click("#lesson-end")
	b.wait(`$("lesson").hidden && run.settings.preset === "maze" && pos.k === 0`)
}

// TestFaults: what visitors found broken, each as what they did and what must come of it.
func TestFaults(t *testing.T) {
	// then runs to the end once something is so.
	const prelude = `const load = (r, pi0) => {
		const data = new DataTransfer(), P = [[[.8, .2], [.1, .9]], [[.5, .5], [.3, .7]]];
		data.items.add(new File([JSON.stringify({ gamma: .9, P, r, pi0 })], "x.json"));
		document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
	}, then = async (ready) => {
		while (!ready() || acting) await new Promise(r => setTimeout(r, 20));
		await go(run.settings.T, 0);
	}, set = (id, value) => {
		$(id).value = value;
		$(id).dispatchEvent(new Event("change"));
	}, pause = ms => new Promise(r => setTimeout(r, ms)),
	says = (id, ...words) => words.every(w => $(id).textContent.includes(w)),
	wall = (tile = "#") => change({ kind: "tile", s: 17, tile }),
	lines = id => [...document.querySelectorAll(id + " path")].map(x => x.getAttribute("d")),
	broken = id => lines(id).filter(d => d.match(/M/g).length === 2).length,
	there = k => pos.k === k && !work;`
	const small = `run.rounds.decoder?.length === 40 && run.rounds.decoder[39].loss < 1e-6 * run.phases[0].gap`
	const file = `then(() => run.settings.preset === "file")`
	const place = "preset=maze&m=16&at=12.1&k=4&stage=1"
	const scroll = `$("microscope").getBoundingClientRect().top`
	for _, c := range []struct{ name, hash, do, want string }{
		{"a run that cannot end is refused", "S=64&A=16&expected=1&T=200", `0`,
			`says("message-text", "would take about", "1,048,576 packets") && run.settings.preset === "maze"`},
		{"LayerNorm on the maze", "preset=maze&m=2&T=8",
			`$("show-normalized").click(), then(() => run.settings.phi === .01)`, `run.rounds.normalized.length === 8`},
		{"Random during the run", "preset=maze&T=60",
			`play(() => "10"), set("set-preset", "random"), then(() => run.settings.preset === "random")`,
			`run.rounds.decoder.length >= 40 && $("message").hidden`},
		{"rewards of a million", "expected=1", `load([[1e6, 0], [0, 2e6]]), ` + file, small},
		{"rewards of a millionth", "expected=1", `load([[1e-6, 0], [0, 2e-6]]), ` + file, small},
		{"a start without an action", "", `load([[1, 0], [0, .2]], [[0, 1], [.5, .5]])`,
			`says("message-text", "π₀ gives 1 action probability 0")`},
		{"one key on γ", "preset=maze",
			`$("slide-gamma").stepDown(), $("slide-gamma").dispatchEvent(new Event("change"))`,
			`run.info.gamma < .91 && run.info.gamma > .88`},
		{"2B is 20", "preset=maze&k=20", `0`, `says("readings", "2B = 20.")`},
		{"a cap that is read is called so", "", `load([[1, 0], [0, 2]])`,
			`says("caps", "read from your file") && !says("evidence", "before any problem was seen")`},
		{"a cell of another problem", place + "&view=actor/0.0/score/12", `(async () => {
				$("step-look").click();
				for (let i = 0; i < 500 && !says("cell", "s=12"); i++) await pause(10);
				set("set-preset", "ring");
			})()`, `run.settings.preset === "ring" && $("cell").textContent === "No cell is picked yet."`},
		{"matrices begin where something is", place, `$("step-look").click()`,
			`scope.rowFirst === 100 && [...scope.now.data.subarray(0, 4)].some(v => v)`},
		{"a link to a matrix", "preset=maze&k=4&view=critic/1.0/weight/2", `0`,
			scroll + ` < 200 && ` + scroll + ` > -10`},
		{"forty toggles", "preset=maze",
			`(async () => { for (let i = 0; i < 40; i++) await wall(i % 2 ? "." : "#") })()`,
			`location.hash.includes("edits") && location.hash.split("~").length === 1`},
		{"Back undoes", "preset=maze", `(async () => {
				await pause(1000); // the address is written
				await wall();
				while (!location.hash.includes("edits")) await pause(20);
				window.history.back();
			})()`,
			`run.edits.length === 0 && !location.hash.includes("edits")`},
		{"the lake's big map", "preset=frozen-lake-8x8", `0`,
			`[...document.querySelectorAll("#scene text")].every(x => x.textContent.length < 2)`},
		{"a wall's policy", "preset=maze&m=16&at=3.1&k=4&stage=1", `0`, `says("step-said", "a wall")`},
		{"a click on the chart", "preset=maze&k=20", `(() => {
				const b = $("loss-chart").getBoundingClientRect(),
					at = { clientX: b.x + b.width * .4, clientY: b.y + 50, bubbles: true };
				$("loss-chart").dispatchEvent(new PointerEvent("pointermove", at));
				$("loss-chart").dispatchEvent(new MouseEvent("click", at));
			})()`, `pos.k === 15 && $("loss-now").textContent.startsWith("After 15 rounds")`},
		{"a probability of zero", "preset=maze&m=16&at=12.1&eta=5&gamma=0.99&k=12&stage=1", `0`,
			`there(12) && says("step-table", "−∞") && location.hash.includes("k=12")`},
		{"lines break where the problem changes", "preset=maze&m=16&k=40&edits=12:t:17:w", `0`,
			`there(40) && broken("#loss-chart") === 2 && broken("#residual-chart") === 6 && $("bound-key").hidden`},
		{"zero has a place of its own", "preset=lock-up&eta=20&gamma=0.5&k=40", `0`,
			`there(40) && decoderRound(39).loss === 0 && !$("bound-key").hidden &&
				[...document.querySelectorAll("#loss-chart text")].some(x =>
					x.textContent === "0" && x.getAttribute("text-anchor") === "end")`},
		{"rounding is no sampling error", "expected=1&k=2", `0`,
			`there(2) && says("readings", "(rounding)") && !says("readings", "almost all of it is sampling")`},
		{"the bare address is the usual start", "preset=ring&k=4&show=exact.idle&view=critic/1.0/weight/2",
			`then(() => pos.k === 4).then(() => { location.hash = "" })`,
			`run.settings.preset === "maze" && pos.k === 0 && !shown.has("idle") && view.call === "actor" &&
				$("set-S").disabled`},
		{"no digits left", "H=1e15&show=normalized&T=4", `stop(), go(4, 0)`,
			`$("show-normalized").parentElement.title.includes("Stopped")`},
		{"long work ends when asked", "S=16&A=16&m=64&T=200&k=200", `(async () => {
				while ($("work").hidden || document.querySelectorAll("#loss-chart path").length < 2) await pause(5);
				$("work-cancel").click();
			})()`, `!work && $("work").hidden && pos.k > 0 && pos.k < 200 && says("message-text", "Stopped after")`},
		{"the bound is followed to 2B", "preset=random&expected=1&tol=1e-9&T=100&eta=4&k=100", `0`, `(() => {
				const c = run.info.certificate, { eta } = run.settings, { S } = run.info,
					near = (x, y) => Math.abs(x / y - 1) < 1e-6,
					R = (S - 1) * Math.exp(-c.kappa + 2 * eta * c.B) + S * Math.exp(-(c.kappa + c.nu) + eta * c.B);
				return there(100) && near(R, c.RAct) && near(2 * R / (1 + R), c.zeta) &&
					$("formulas").children.length === 5 && lines("#bound-chart").length === 5;
			})()`},
		{"ρ is that of the tokens", "preset=maze&m=2&T=3&phi=0.01&show=normalized&k=2", `0`,
			`there(2) && lines("#carrier-chart").length === 2 && says("carrier-said", "H = 1.00·10⁶")`},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newTab(t)
			b.reduced("light")
			b.run(emulation.SetDeviceMetricsOverride(1280, 800, 1, false))
			b.open(server.URL + "/#" + c.hash)
			eval[int](b, `(async () => { `+prelude+` await (`+c.do+`); return 0 })()`)
			b.wait(`(() => { ` + prelude + ` return ` + c.want + ` })()`)
		})
	}
	for _, preset := range []string{"frozen-lake", "frozen-lake-8x8"} { // a link means what the menu does
		b := newTab(t)
		b.open(server.URL + "/#preset=" + preset)
		linked := eval[string](b, `JSON.stringify(run.settings)`)
		b.open(server.URL)
		b.set("#set-preset", preset)
		b.wait(`run.settings.preset === %q && !work`, preset)
		if got := eval[string](b, `JSON.stringify(run.settings)`); got != linked {
			t.Errorf("the menu starts %s, a link %s", got, linked)
		}
	}
}

// TestSizes: text grows with the screen, the map and its attention are seen together on a laptop at 200 %,
// and a phone shows the rays.
func TestSizes(t *testing.T) {
	b := newTab(t)
	b.reduced("light")
	for _, c := range []struct {
		width, height int64
		least         float64 // size of the text of map and chart
		both          string  // what is seen without scrolling
	}{
		{1280, 800, 11, "#scene, #strip .ray, #loss-chart svg"},
		{1920, 1080, 15, "#scene, #strip .ray, #loss-chart svg"},
		{640, 400, 10, "#scene, #strip .ray"}, {390, 844, 11, "#scene"},
	} {
		b.run(emulation.SetDeviceMetricsOverride(c.width, c.height, 1, c.width < 500))
		b.open(server.URL + "/#preset=maze&m=16&at=12.1&k=8&stage=1")
		b.wait(`!work && document.querySelector("#strip .ray") || innerWidth < 500`)
		places := fmt.Sprintf(`[...document.querySelectorAll(%q)]
			.map(x => x.getBoundingClientRect().top + (x.id ? 100 : 20))`, c.both)
		for i, y := range eval[[]float64](b, places) {
			if y > float64(c.height) || y < 0 {
				t.Errorf("%d×%d: part %d of %s lies at %v", c.width, c.height, i, c.both, y)
			}
		}
		least := eval[float64](b, `Math.min(...[...document.querySelectorAll("#scene text, #loss-chart text")]
			.map(x => parseFloat(getComputedStyle(x).fontSize)))`)
		if least < c.least {
			t.Errorf("%d×%d: the least text is %v pixels, want %v", c.width, c.height, least, c.least)
		}
	}
	b.do(`showTab("step")`) // on the phone
	b.wait(`document.querySelector("#strip .ray")?.getBoundingClientRect().width > 10`)
	b.click("#lesson-start")
	b.wait(`!$("lesson").hidden && !work && !acting &&
		$("strip-box").getBoundingClientRect().top < $("lesson").getBoundingClientRect().top - 60`)
}

// TestCancel stops a round of a million packets within a second, where there is no run to go back to.
func TestCancel(t *testing.T) {
	b := newTab(t)
	b.run(chromedp.Navigate("about:blank"), chromedp.Navigate(server.URL+"/#S=64&A=16&expected=1&T=20"))
	b.wait(`!$("work").hidden && /about \d+ seconds? left/.test($("work-text").textContent)`)
	took := eval[float64](b, `(async () => {
		const start = performance.now();
		$("work-cancel").click();
		while (work) await new Promise(r => setTimeout(r, 5));
		return performance.now() - start;
	})()`)
	if took > 1000 || math.IsNaN(took) {
		t.Errorf("Cancel took %v ms", took)
	}
	b.wait(`document.body.dataset.ready && run.settings.preset === "maze" && decoderRound(0)`)
}
