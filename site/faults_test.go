package main

import (
	"encoding/json"
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

	"icrl/policyattention/mdp"
)

// text returns what an element says.
func (b *tab) text(selector string) string {
	b.Helper()
	return eval[string](b, fmt.Sprintf(`document.querySelector(%q).textContent`, selector))
}

// reduced asks for less motion, in a scheme.
func (b *tab) reduced(scheme string) {
	b.Helper()
	b.run(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}))
}

// TestTrained runs the one trained network on problems of several shapes, looks at its
// attention in the panel and in the microscope, and opens a link to that.
func TestTrained(t *testing.T) {
	b := newTab(t)
	b.reduced("light")
	for _, hash := range []string{"#S=16&show=exact.learned&T=5", "#S=5&A=7&gamma=0.5&eta=3&show=learned&T=5", "#preset=maze&show=learned&T=5"} {
		b.open(server.URL + "/" + hash)
		b.toEnd()
		b.wait(`run.rounds.learned?.length === 5 && shown.has("learned")`)
		if got := message(b); got != "" {
			t.Errorf("%s: the page says %q", hash, got)
		}
		if got := eval[float64](b, `run.rounds.learned[4].loss / run.phases[0].gap`); got > 1 || got < 0 {
			t.Errorf("%s: the trained network has %v of the start's loss after 5 rounds", hash, got)
		}
	}
	b.open(server.URL + "/#preset=maze&k=3&stage=1&at=12.1")
	b.click("#net-learned")
	b.wait(`document.querySelectorAll(".trained .strip rect").length === 4 * 4 * 4 && document.querySelectorAll("#step-lines .ray").length === 16`)
	// The panel's shares are those of the actor, and each head's attention sums to one.
	if got := eval[float64](b, `(async () => {
		const policy = await engine.call("compare", 3), results = await engine.call("matrix", 3, "learned", 12, "results", 0, 9);
		return Math.max(...[0, 1, 2, 3].map(a => Math.abs(policy[12 * 4 + a] - results.data[4 * a + 3])));
	})()`); got != 0 {
		t.Errorf("the network's read-out and the actor differ by %v", got)
	}
	sums := eval[[]float64](b, `(async () => { const m = await engine.call("matrix", 3, "learned", 12, "block.2.weight", 0, 99); return Array.from({length: m.rows}, (_, i) => m.data.subarray(i * m.cols, (i + 1) * m.cols).reduce((x, y) => x + y)) })()`)
	for i, x := range sums {
		if x < 1-1e-12 || x > 1+1e-12 || len(sums) != 16 {
			t.Errorf("row %d of %d of attention sums to %v", i, len(sums), x)
		}
	}
	if got := eval[string](b, `document.querySelector(".trained .strip title").textContent`); !strings.Contains(got, "block 1, head 1") || !strings.Contains(got, "%") {
		t.Errorf("under the pointer stands %q", got)
	}
	b.click("#step-look")
	b.wait(`view.call === "learned" && view.station === "n0" && view.part === "weight" && !scope.busy && $("path").textContent.includes("Block 4")`)
	b.wait(`$("cell").textContent.includes("Score")`)
	b.wait(`location.hash.includes("net=learned") && location.hash.includes("view=learned")`)
	hash := eval[string](b, `location.hash`)
	other := newTab(t)
	other.open(server.URL + "/" + hash)
	other.wait(`view.net === "learned" && view.call === "learned" && document.querySelector(".trained .strip")`)
}

// TestLinks follows the links at the foot of the page, and finds the citation there.
func TestLinks(t *testing.T) {
	b := newTab(t)
	b.open(server.URL)
	want := []string{"package decoder", "\"cells\""}
	links := eval[[]string](b, `[...document.querySelectorAll("#links a")].map(x => x.href)`)
	if len(links) != len(want) {
		t.Fatalf("the foot links to %q", links)
	}
	for i, at := range links {
		r, err := http.Get(at)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || r.StatusCode != http.StatusOK || !strings.Contains(string(data), want[i]) {
			t.Errorf("%s: %s, %v, and nothing with %q", at, r.Status, err, want[i])
		}
	}
	if got := b.text("#links pre"); !strings.Contains(got, "@misc{") || !strings.HasSuffix(strings.TrimSpace(got), "}") {
		t.Errorf("the citation is %q", got)
	}
	foot, err := about(t.TempDir(), "..", true, Links{Paper: "https://example.org/?a&b"})
	if err != nil || strings.Count(foot, "<a ") != 1 || !strings.Contains(foot, "href=\"https://example.org/?a&amp;b\"") {
		t.Errorf("a page that is a whole has the foot %q, %v", foot, err)
	}
}

// TestMessages: an error goes with the next success, and can be closed.
func TestMessages(t *testing.T) {
	b := newTab(t)
	b.open(server.URL + "/#seed=2")
	b.set("#set-S", 99)
	b.wait(`document.getElementById("message-text").textContent.includes("States S")`)
	b.set("#set-seed", 5)
	b.wait(`run.settings.seed === 5 && document.getElementById("message").hidden`)
	b.set("#set-gamma", 2)
	b.said("Discount γ")
	b.set("#set-gamma", -1)
	b.wait(`!document.getElementById("message").hidden`)
	b.click("#message-close")
	b.wait(`document.getElementById("message").hidden`)
}

// TestOddProblems: one state, no discount, no digits left, edits that do not fit.
func TestOddProblems(t *testing.T) {
	b := newTab(t)
	b.open(server.URL + "/#T=3")
	b.upload("#load", "one.json", []byte(`{"gamma": 0.5, "P": [[[1],[1]]], "r": [[0.25, 1]]}`))
	b.wait(`run.settings.preset === "file" && run.info.S === 1 && decoderRound(0)`)
	b.toEnd()
	first := b.trajectory()
	b.wait(`location.hash.includes("k=3")`)
	hash := eval[string](b, `location.hash`)
	b.open(server.URL + "/" + hash)
	b.wait(`pos.k === 3`)
	if second := b.trajectory(); !sameBits(first, second) {
		t.Errorf("the link %s of a problem with one state gives other numbers", hash)
	}
	b.set("#set-gamma", 0.75) // γ of a loaded file
	b.wait(`run.info.gamma === 0.75 && decoderRound(0)`)

	b.open(server.URL + "/#gamma=0&T=1")
	b.toEnd()
	for _, place := range []string{"#readings", "#loss-now", "#figures"} {
		if got := b.text(place); strings.Contains(got, "not a number") || strings.Contains(got, "1 rounds") || strings.Contains(got, "NaN") {
			t.Errorf("%s says %q", place, got)
		}
	}
	for hash, want := range map[string]string{
		"#H=1e15&show=normalized&T=4": "rounding", "#preset=lock-up&edits=0:p:0:0:0:0.5": "one state", "#edits=0:p:9:0:0:0.5": "a change at", "#edits=0:t:1:w": "map",
		"#preset=maze&edits=0:t:1:x": "cannot be read", "#edits=3:i:0:0:0.5": "cannot be read", "#edits=0:i:0:0:2": "probability", "#edits=41:r:0:0:1": "round", "#edits=0:v:64:1": "state",
	} {
		b.open(server.URL + "/" + hash)
		b.wait(`!work`)
		got := message(b)
		if strings.Contains(hash, "normalized") {
			eval[bool](b, `(stop(), go(4, 0).then(() => true))`)
			b.wait(`$("show-normalized").parentElement.title.includes("Stopped")`)
			got = eval[string](b, `$("show-normalized").parentElement.title`)
		}
		if !strings.Contains(got, want) || strings.Contains(got, "internal") {
			t.Errorf("%s: the page says %q, want something with %q", hash, got, want)
		}
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
		eval[bool](b, fmt.Sprintf(`(async () => { await go(%d, 0); await change(%s); return true })()`, k, e))
	}
	list := func() string { return eval[string](b, `run.edits.map(e => e.k + e.kind + e.value).join(" ")`) }
	edit(10, `{kind: "reward", s: 2, a: 1, value: 0.5}`)
	edit(5, `{kind: "reward", s: 3, a: 0, value: -0.5}`)
	if got := list(); got != "5reward-0.5 10reward0.5" {
		t.Errorf("after changes at rounds 10 and 5 there are %q", got)
	}
	if got := eval[[]float64](b, `[phaseAt(4).r[9], phaseAt(5).r[9], phaseAt(9).r[7], phaseAt(10).r[7]]`); got[1] != -0.5 || got[3] != 0.5 || got[0] == -0.5 || got[2] == 0.5 {
		t.Errorf("rewards around the changes are %v", got)
	}
	for _, x := range []struct{ selector, wait string }{{"#set-eta", "run.settings.eta === 1"}, {"#set-seed", "run.settings.seed === 3"}} {
		b.set(x.selector, x.wait[len(x.wait)-1:])
		b.wait(x.wait + ` && run.edits.length === 2 && decoderRound(0)`)
		if got := list(); got != "5reward-0.5 10reward0.5" {
			t.Errorf("%s left %q", x.selector, got)
		}
	}
	b.set("#set-seed", 7)
	b.wait(`run.settings.seed === 7 && run.edits.length === 2`)
	eval[bool](b, `(async () => { await go(12, 0); return true })()`)
	b.wait(`heats.rewards.marks?.size === 2`)
	b.set("#set-S", 4)
	b.wait(`run.info.S === 4`)
	b.wait(`document.getElementById("message-text").textContent.includes("dropped with it")`)
	b.click("#undo")
	b.wait(`run.info.S === 8 && run.edits.length === 2`)
	b.wait(`!document.getElementById("reset-edits").disabled`) // it is drawn after the run has changed
	b.click("#reset-edits")
	b.wait(`run.edits.length === 0 && !document.getElementById("undo").disabled`)
	b.click("#undo")
	b.wait(`run.edits.length === 2`)

	edit(12, `{kind: "place", s: 1, value: 2.5}`)
	if got := eval[[]float64](b, `[run.info.certificate.RMax, phaseAt(12).r[3], phaseAt(12).r[5], run.edits.length]`); got[0] != 3 || got[1] != 2.5 || got[2] != 2.5 || got[3] != 3 {
		t.Errorf("after a reward of 2.5: cap, rewards and changes are %v", got)
	}
	b.said("certified")
	b.click("#reset-edits") // the decoder is that of before, too
	b.wait(`run.edits.length === 0 && run.info.certificate.RMax === 1`)
	b.click("#undo")
	b.wait(`run.edits.length === 3 && run.info.certificate.RMax === 3`)
	b.open(server.URL + "/" + eval[string](b, `address()`)) // a link knows it as well
	b.wait(`run.info.certificate.RMax === 3 && run.edits.length === 3 && !work && !$("reset-edits").disabled`)
	b.click("#reset-edits")
	b.wait(`run.edits.length === 0 && run.info.certificate.RMax === 1 && !$("undo").disabled`) // it is drawn after the run has changed
	b.click("#undo")
	b.wait(`run.edits.length === 3 && run.info.certificate.RMax === 3`)
	edit(0, `{kind: "start", s: 0, a: 0, value: 0.75}`)
	if got := eval[float64](b, `decoderRound(0).pi[0]`); got != 0.75 {
		t.Errorf("π₀ is %v", got)
	}
	b.toEnd()
	first := b.trajectory()
	b.wait(`location.hash.includes("k=20") && location.hash.includes("rmax")`)
	hash := eval[string](b, `location.hash`)
	b.open(server.URL + "/" + hash)
	b.wait(`pos.k === 20 && !work`)
	if second := b.trajectory(); !sameBits(first, second) {
		t.Errorf("the link %s gives other numbers", hash)
	}
}

// TestMap changes places of the maze as a visitor does.
func TestMap(t *testing.T) {
	b := newTab(t)
	b.reduced("light")
	b.open(server.URL)
	if got := eval[string](b, `run.settings.preset`); got != "maze" {
		t.Fatalf("the page starts with %s", got)
	}
	for _, preset := range []string{"lock-up", "maze"} { // a graph in the map's place, and back
		b.set("#set-preset", preset)
		b.wait(fmt.Sprintf(`run.settings.preset === %q && decoderRound(0) && !work`, preset))
	}
	b.wait(`document.querySelectorAll("#scene > g").length === 25`)
	b.open(server.URL)
	b.toEnd()
	before := eval[[]float64](b, `Array.from(decoderRound(39).nextPi)`)
	eval[bool](b, `(document.getElementById("scene").focus(), true)`)
	b.run(chromedp.KeyEvent(kb.ArrowDown))
	b.wait(`view.state === 17`)
	b.click(`#place-tiles [data-tile="#"]`)
	b.wait(`run.edits.length === 1 && run.rounds.decoder.length === 40 && !work`)
	after := eval[[]float64](b, `Array.from(decoderRound(39).nextPi)`)
	if before[12*4+1] < 0.2 || after[12*4+1] > 0.01 {
		t.Errorf("above the new wall the policy went down with probability %v, and now %v", before[12*4+1], after[12*4+1])
	}
	for i, place := range []int{17, 22, 21, 20} { // a drag from the new wall, which ends at 21
		at := eval[[]float64](b, fmt.Sprintf(`(async () => {
			for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame); // it is drawn
			const box = document.querySelectorAll("#scene > g")[%d].getBoundingClientRect();
			return [box.x + box.width / 2, box.y + box.height / 2];
		})()`, place))
		move := input.DispatchMouseEvent(input.MouseMoved, at[0], at[1])
		if i > 0 && i < 3 {
			move = move.WithButton(input.Left).WithButtons(1)
		}
		b.run(move)
		switch i {
		case 0:
			b.run(input.DispatchMouseEvent(input.MousePressed, at[0], at[1]).WithButton(input.Left).WithButtons(1).WithClickCount(1))
		case 2:
			b.run(input.DispatchMouseEvent(input.MouseReleased, at[0], at[1]).WithButton(input.Left).WithClickCount(1))
		}
	}
	b.wait(`run.edits.length === 2 && run.phases.at(-1).grid.tiles.slice(20, 24) === "H##." && !work && !acting`)
	b.click("#undo")
	b.wait(`run.edits.length === 1 && run.rounds.decoder.length === 40 && !work && !acting`)
	b.wait(`ghost && document.querySelector("#ghost-key").textContent.includes("before")`)
	b.set("#place-reward", "0.5")
	b.wait(`run.edits.length === 2 && phaseAt(0).r[17 * 4] === 0.5`)
}

// TestChart: lines break where the problem changes, a loss of zero has a place of its own, the
// bound has a key where it is drawn, and bounds are rounded up.
func TestChart(t *testing.T) {
	b := newTab(t)
	b.reduced("light")
	const broken = `[...document.querySelectorAll("#loss-chart path")].filter(x => x.getAttribute("d").match(/M/g).length === 2).length`
	b.open(server.URL + "/#preset=maze&m=16&k=40&edits=12:t:17:w")
	b.wait(`pos.k === 40 && !work`)
	b.wait(broken + ` === 2`) // the decoder's line and exact PMD's
	b.wait(strings.Replace(broken, "loss-chart", "residual-chart", 1) + ` === 6`)
	if !eval[bool](b, `$("bound-key").hidden`) {
		t.Error("a bound that is not drawn has a key")
	}
	b.open(server.URL + "/#preset=lock-up&eta=20&gamma=0.5&k=40")
	b.wait(`pos.k === 40 && !work && decoderRound(39).loss === 0 && !$("bound-key").hidden`)
	b.wait(`[...document.querySelectorAll("#loss-chart text")].some(x => x.textContent === "0" && x.getAttribute("text-anchor") === "end")`)
	for _, x := range []struct {
		bound  float64
		digits int
		want   string
	}{
		{2.7501e-4, 4, "2.76·10⁻⁴"}, {2.75e-4, 4, "2.75·10⁻⁴"}, {2.75e-4, 3, "2.8·10⁻⁴"}, {9.999e-4, 3, "0.001"},
		{12.25, 3, "12.3"}, {11.2, 3, "11.2"}, {99.96, 3, "100"}, {0, 3, "0"}, {1e-30, 3, "1.0·10⁻³⁰"},
	} {
		if got := eval[string](b, fmt.Sprintf(`atMost(%v, %d)`, x.bound, x.digits)); got != x.want {
			t.Errorf("a bound of %v is written %q to %d digits, want %q", x.bound, got, x.digits, x.want)
		}
	}
}

// TestStrip: the rays are the row of attention weights of the pass, and a small κ sends attention away.
func TestStrip(t *testing.T) {
	b := newTab(t)
	b.reduced("light")
	b.open(server.URL + "/#preset=maze&m=16&at=12.1&k=4&stage=1")
	drawn := `$("strip").dataset.drawn === [run.id, run.edits.length, 4, 12].join()`
	b.wait(`pos.k === 4 && pos.stage === 1 && !work && document.querySelector("#strip .ray") && $("home").textContent.startsWith("all but") && ` + drawn)
	off := `(async () => {
		const w = (await engine.call("matrix", 4, "actor", 0, "block.0.head.0.weight", 112, 113)).data,
			drawn = [...document.querySelectorAll("#strip .ray")].map(r => Number(r.getAttribute("stroke-width"))).sort((x, y) => y - x),
			want = [...w].filter(v => v >= 1e-4).map(v => Math.max(.6, 14 * v)).sort((x, y) => y - x);
		return drawn.length === want.length ? Math.max(...want.map((v, i) => Math.abs(v - drawn[i]))) : 1e9;
	})()`
	if got := eval[float64](b, off); got > 0.006 { // widths have two decimals
		t.Errorf("rays differ from the attention weights by %v", got)
	}
	eval[bool](b, `(() => { const s = $("kappa-slider"); s.value = 580; s.dispatchEvent(new Event("input")); s.dispatchEvent(new Event("change")); return true })()`)
	b.wait(`run.settings.kappa > 1 && run.settings.kappa < 10 && pos.k === 4 && !work && $("home").textContent.includes("leaks")`)
	b.wait(`document.querySelectorAll("#strip .ray").length > 20 && ` + drawn)
	if got := eval[float64](b, off); got > 0.006 {
		t.Errorf("with a small κ rays differ from the attention weights by %v", got)
	}
}

// TestWeights: the counts of the network, and a fingerprint that changes with γ alone.
func TestWeights(t *testing.T) {
	b := newTab(t)
	b.reduced("light")
	b.open(server.URL + "/#preset=maze&m=16")
	b.wait(`!work && $("network-title").textContent.includes("204 of its 97,008 weights")`)
	counted := `(async () => {
		let n = 0, all = 0; const values = new Set();
		for (const m of ["block.0.map.w1", "block.0.map.w2", ...[0, 1].flatMap(b => [0, 1].flatMap(h => ["q", "k", "v", "o"].map(x => "block." + b + ".head." + h + "." + x)))]) {
			const w = await engine.call("weight", m);
			all += w.data.length;
			for (const v of w.data) if (v) { n++; values.add(v); }
		}
		return [n, all, values.size].join();
	})()`
	if got := eval[string](b, counted); got != "204,97008,10" {
		t.Errorf("weights that are not zero, weights, values: %s, want 204,97008,10", got)
	}
	first := eval[string](b, `run.info.fingerprint`)
	eval[bool](b, `change({ kind: "tile", s: 17, tile: "#" }).then(() => true)`)
	b.wait(`!work && $("fingerprint").textContent.includes("unchanged through 2 problems")`)
	if eval[string](b, `run.info.fingerprint`) != first {
		t.Error("a wall changed the weights")
	}
	b.set("#set-gamma", 0.95)
	b.wait(`run.settings.gamma === .95 && !work && $("fingerprint").textContent.includes("γ is in W₁")`)
}

// TestByHand: the columns open one by one, and end at the network's row.
func TestByHand(t *testing.T) {
	b := newTab(t)
	b.reduced("light")
	b.open(server.URL + "/#preset=maze&m=16&at=12.1&k=4&stage=1")
	b.wait(`pos.k === 4 && !work`)
	b.click("#step-hand")
	b.wait(`document.querySelectorAll(".hand tbody td").length === 28`)
	for i := range 6 {
		if got := eval[int](b, `[...document.querySelectorAll(".hand tbody td")].filter(x => x.textContent === "?").length`); got != 4*(6-i) {
			t.Errorf("%d cells are closed, want %d", got, 4*(6-i))
		}
		b.click("#hand-next")
		b.wait(fmt.Sprintf(`[...document.querySelectorAll(".hand tbody td")].filter(x => x.textContent === "?").length === %d`, 4*(5-i)))
	}
	eval[bool](b, `([...document.querySelectorAll(".hand input")].forEach((x, a) => { x.value = 100 * decoderRound(4).nextPi[48 + a]; x.dispatchEvent(new Event("input")) }), true)`)
	b.wait(`$("hand-told").textContent.startsWith("Right")`)
}

// TestKeys: arrows step whatever button has the focus, scrolling keys scroll,
// and the menu closes.
func TestKeys(t *testing.T) {
	b := newTab(t)
	b.open(server.URL + "/#T=9")
	eval[bool](b, `($("share").focus(), true)`)
	b.run(chromedp.KeyEvent(kb.ArrowRight))
	b.wait(`pos.k === 0 && pos.stage === 1`)
	b.run(chromedp.KeyEvent(kb.ArrowRight, chromedp.KeyModifiers(input.ModifierShift)))
	b.wait(`pos.k === 1 && pos.stage === 0`)
	b.run(chromedp.KeyEvent(kb.ArrowLeft))
	b.wait(`pos.k === 0 && pos.stage === 3`)
	taken := eval[[]string](b, `(() => {
		document.activeElement.blur();
		return [" ", "Home", "ArrowDown", "ArrowUp", "PageDown"].filter(key => !document.body.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true})));
	})()`)
	if len(taken) != 0 {
		t.Errorf("the page takes %q from scrolling", taken)
	}
	open := `document.getElementById("export").open`
	b.click("#export summary")
	b.wait(open)
	eval[bool](b, `(document.querySelector("[data-export=csv]").focus(), true)`)
	b.run(chromedp.KeyEvent(kb.Escape))
	b.wait(`!` + open + ` && document.activeElement.tagName === "SUMMARY"`)
	b.click("#export summary")
	b.wait(open)
	b.click("h1")
	b.wait(`!` + open)
}

// TestReadings: own packets are no leakage, and rounding is no sampling error.
func TestReadings(t *testing.T) {
	b := newTab(t)
	b.open(server.URL + "/#m=16&k=2")
	b.wait(`pos.k === 2 && !work`)
	eval[bool](b, `(document.querySelector("[name=call][value=critic]").click(), true)`)
	b.wait(`$("path").textContent.includes("packet")`)
	got := b.text("#path")
	if !strings.Contains(got, "10 other packets of its own") {
		t.Errorf("the path says %q", got)
	}
	var own, other float64
	if _, err := fmt.Sscanf(got[strings.Index(got, "own ")+4:], "%g", &own); err != nil || own < 62 || own > 63 {
		t.Errorf("ten of sixteen packets have %v %% (%v): %s", own, err, got)
	}
	if _, err := fmt.Sscanf(got[strings.Index(got, "own together ")+13:], "%g", &other); err != nil || other > 0.1 && !strings.Contains(got, "·10⁻") {
		t.Errorf("other tokens have %v %%: %s", other, got)
	}
	b.open(server.URL + "/#expected=1&k=2")
	b.wait(`pos.k === 2 && !work`)
	if got := b.text("#readings"); !strings.Contains(got, "(rounding)") || strings.Contains(got, "almost all of it is sampling") {
		t.Errorf("with exact expectations the readings say %q", got)
	}
	// The attention of this view is on a scale from 0 to 1.
	if got := b.text("#ramp-low") + b.text("#ramp-high"); got != "01" && got != "" {
		t.Errorf("attention is shown on a scale of %q", got)
	}
}

// TestDefaultLink: the bare address shows the usual start again.
func TestDefaultLink(t *testing.T) {
	b := newTab(t)
	b.reduced("light")
	b.open(server.URL + "/#preset=ring&k=4&show=exact.idle&view=critic/1.0/weight/2")
	b.wait(`pos.k === 4`)
	eval[bool](b, `(location.hash = "", true)`)
	b.wait(`run.settings.preset === "maze" && pos.k === 0 && !shown.has("idle") && view.call === "actor" && view.station === "0.0"`)
	if got := eval[[]string](b, `[getComputedStyle($("set-S")).backgroundColor, getComputedStyle($("set-T")).backgroundColor]`); got[0] == got[1] || !eval[bool](b, `$("set-S").disabled`) {
		t.Errorf("a disabled field looks like an enabled one: %v", got)
	}
}

// TestLargeLinks: links to problems of 16 states and 16 actions are as short as
// their numbers allow and give the same bits.
func TestLargeLinks(t *testing.T) {
	drawn, err := mdp.Random.Draw(3, 16, 16, 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, limit := range map[string]int{"random": 43500, "rounded": 9000} {
		p := drawn[0]
		x := map[string]any{"gamma": 0.9}
		var P [][][]float64
		var r [][]float64
		for s := range 16 {
			P, r = append(P, nil), append(r, nil)
			for a := range 16 {
				row := append([]float64(nil), p.MDP.Next(s, a)...)
				reward := p.MDP.R.At(s, a)
				if name == "rounded" { // sixteenths, as in a problem that a person wrote
					for i := range row {
						row[i] = 0
					}
					row[(s+a)%16], row[(s+1)%16] = 0.75, row[(s+1)%16]+0.25
					if (s+a)%16 == (s+1)%16 {
						row[(s+1)%16] = 1
					}
					reward = float64(s-a) / 16
				}
				P[s] = append(P[s], row)
				r[s] = append(r[s], reward)
			}
		}
		x["P"], x["r"] = P, r
		data, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		b := newTab(t)
		b.open(server.URL + "/#T=2&m=1")
		b.upload("#load", "large.json", data)
		b.wait(`run.settings.preset === "file" && run.info.S === 16`)
		b.toEnd()
		first := b.trajectory()
		b.wait(`location.hash.includes("mdp=") && location.hash.includes("k=2")`)
		hash := eval[string](b, `location.hash`)
		t.Logf("%s: a link of %d characters", name, len(hash))
		if len(hash) > limit {
			t.Errorf("%s: the link has %d characters, want at most %d", name, len(hash), limit)
		}
		b.open(server.URL + "/" + hash)
		b.wait(`pos.k === 2 && !work`)
		if second := b.trajectory(); !sameBits(first, second) {
			t.Errorf("%s: the link gives other numbers", name)
		}
	}
}

// TestLongWork: results from the first round on, progress, and an end to it.
func TestLongWork(t *testing.T) {
	b := newTab(t)
	b.open(server.URL + "/#S=16&A=16&m=64&T=200&k=200")
	b.wait(`!document.getElementById("work").hidden && run.rounds.decoder.length > 1`)
	if got := eval[int](b, `document.querySelectorAll("#loss-chart path").length`); got < 2 {
		t.Errorf("there are %d lines while rounds are computed", got)
	}
	b.click("#work-cancel")
	b.wait(`!work && document.getElementById("work").hidden && pos.k > 0 && pos.k < 200`)
	b.said("Stopped after")
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
	b.wait(`!playing`)
	for _, id := range []string{"scene", "place", "loss-chart", "controllers", "step-table", "step-said"} {
		if bottom := eval[float64](b, fmt.Sprintf(`document.getElementById(%q).getBoundingClientRect().bottom`, id)); bottom > 800 || bottom < 100 {
			t.Errorf("#%s ends %v pixels from the top, want all of it on 800", id, bottom)
		}
	}
	if got := b.text("#step-said"); !strings.Contains(got, "differs from exact PMD by") {
		t.Errorf("the step says %q", got)
	}
	b.reduced("light")
	b.open(server.URL)
	if eval[bool](b, `!!playing`) {
		t.Error("the page plays by itself although less motion is asked for")
	}
	b.click("#lesson-start")
	for i := range eval[int](b, `lessonLength`) {
		b.wait(fmt.Sprintf(`$("lesson-count").textContent.startsWith("%d of") && document.querySelector(".pointed") && !work`, i+1))
		if got := message(b); got != "" && eval[string](b, `$("message").dataset.kind`) == "error" {
			t.Errorf("step %d of the lesson says %q", i+1, got)
		}
		shot(b, fmt.Sprintf("lesson-%d", i+1))
		if i < 7 {
			b.click("#lesson-next")
		}
	}
	b.click("#lesson-end")
	b.wait(`$("lesson").hidden && run.settings.preset === "maze" && pos.k === 0`)
	eval[bool](b, `(document.querySelector('.lead [data-term="eta"]').click(), true)`)
	b.wait(`!$("term").hidden && $("term").textContent.includes("step size")`)
	b.run(chromedp.KeyEvent(kb.Escape))
	b.wait(`$("term").hidden`)
}

// TestFaults: what visitors found broken, each as what they did and what must come of it.
func TestFaults(t *testing.T) {
	const load = `(async (r, pi0) => {
		const data = new DataTransfer();
		data.items.add(new File([JSON.stringify({gamma: .9, P: [[[.8, .2], [.1, .9]], [[.5, .5], [.3, .7]]], r, pi0})], "x.json"));
		document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
	})`
	// then runs to the end once something is so.
	const then = `, (async (ready) => { while (!ready()) await new Promise(r => setTimeout(r, 20)); await go(run.settings.T, 0) })`
	const small = `run.rounds.decoder?.length === 40 && run.rounds.decoder[39].loss < 1e-6 * run.phases[0].gap`
	const scroll = `$("microscope").getBoundingClientRect().top`
	for name, c := range map[string]struct{ hash, do, want string }{
		"a run that cannot end is refused": {"#S=64&A=16&expected=1&T=200", ``,
			`$("message-text").textContent.includes("would take about") && $("message-text").textContent.includes("1,048,576 packets") && run.settings.preset === "maze"`},
		"LayerNorm on the maze": {"#preset=maze&m=2&T=8", `$("show-normalized").click()` + then + `(() => run.settings.phi === .01 && !acting)`,
			`run.rounds.normalized.length === 8`},
		"Random during the run": {"#preset=maze&T=60", `(play(() => "10"), $("set-preset").value = "random", $("set-preset").dispatchEvent(new Event("change")))` + then + `(() => run.settings.preset === "random" && !acting)`,
			`run.rounds.decoder.length >= 40 && $("message").hidden`},
		"rewards of a million":   {"#expected=1", load + `([[1e6, 0], [0, 2e6]])` + then + `(() => run.settings.preset === "file" && !acting)`, small},
		"rewards of a millionth": {"#expected=1", load + `([[1e-6, 0], [0, 2e-6]])` + then + `(() => run.settings.preset === "file" && !acting)`, small},
		"a start without an action": {"", load + `([[1, 0], [0, .2]], [[0, 1], [.5, .5]])`,
			`$("message-text").textContent.includes("π₀ gives 1 action probability 0")`},
		"one step of η": {"#preset=maze", `$("set-eta").stepUp()`, `Number($("set-eta").value) === .9`},
		"one step of γ": {"#preset=maze", `$("set-gamma").stepDown()`, `Number($("set-gamma").value) === .89`},
		"2B is 20":      {"#preset=maze&k=20", ``, `$("readings").textContent.includes("2B = 20.") && atMost(10.000000000000002, 5) === "10"`},
		"a cap that is read is called so": {"", load + `([[1, 0], [0, 2]])`,
			`$("caps").textContent.includes("read from your file") && !$("evidence").textContent.includes("before any problem was seen")`},
		"a cell of another problem": {"#preset=maze&m=16&at=12.1&k=4&stage=1&view=actor/0.0/score/12", `(async () => {
				$("step-look").click();
				for (let i = 0; i < 500 && !$("cell").textContent.includes("s=12"); i++) await new Promise(r => setTimeout(r, 10));
				$("set-preset").value = "ring";
				$("set-preset").dispatchEvent(new Event("change"));
			})()`, `run.settings.preset === "ring" && $("cell").textContent === "No cell is picked yet."`},
		"matrices begin where something is": {"#preset=maze&m=16&at=12.1&k=4&stage=1", `$("step-look").click()`,
			`scope.rowFirst === 100 && [...scope.now.data.subarray(0, 4)].some(v => v)`},
		"a link to a matrix":   {"#preset=maze&k=4&view=critic/1.0/weight/2", ``, scroll + ` < 200 && ` + scroll + ` > -10`},
		"forty toggles":        {"#preset=maze", `(async () => { for (let i = 0; i < 40; i++) await change({kind: "tile", s: 17, tile: i % 2 ? "." : "#"}) })()`, `location.hash.includes("edits") && location.hash.split("~").length === 1`},
		"Back undoes":          {"#preset=maze", `(async () => { await new Promise(r => setTimeout(r, 600)); await change({kind: "tile", s: 17, tile: "#"}); await new Promise(r => setTimeout(r, 600)); window.history.back() })()`, `run.edits.length === 0 && !location.hash.includes("edits")`},
		"the lake's big map":   {"#preset=frozen-lake-8x8", ``, `[...document.querySelectorAll("#scene text")].every(x => x.textContent.length < 2)`},
		"a wall's policy":      {"#preset=maze&m=16&at=3.1&k=4&stage=1", ``, `$("step-said").textContent.includes("a wall")`},
		"a click on the chart": {"#preset=maze&k=20", `(() => { const b = $("loss-chart").getBoundingClientRect(), at = { clientX: b.x + b.width * .4, clientY: b.y + 50, bubbles: true }; $("loss-chart").dispatchEvent(new PointerEvent("pointermove", at)); $("loss-chart").dispatchEvent(new MouseEvent("click", at)) })()`, `pos.k === 15 && $("loss-now").textContent.startsWith("After 15 rounds")`},
	} {
		t.Run(name, func(t *testing.T) {
			b := newTab(t)
			b.reduced("light")
			b.run(emulation.SetDeviceMetricsOverride(1280, 800, 1, false))
			b.open(server.URL + "/" + c.hash)
			if c.do != "" {
				eval[int](b, `(async () => { await (`+c.do+`); return 0 })()`)
			}
			b.wait(c.want)
		})
	}
	for _, preset := range []string{"frozen-lake", "frozen-lake-8x8"} { // a link means what the menu does
		b := newTab(t)
		b.open(server.URL + "/#preset=" + preset)
		linked := eval[string](b, `JSON.stringify(run.settings)`)
		b.open(server.URL)
		b.set("#set-preset", preset)
		b.wait(fmt.Sprintf(`run.settings.preset === %q && !work`, preset))
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
	}{{1280, 800, 11, "#scene, #strip .ray, #loss-chart svg"}, {1920, 1080, 15, "#scene, #strip .ray, #loss-chart svg"}, {640, 400, 10, "#scene, #strip .ray"}, {390, 844, 11, "#scene"}} {
		b.run(emulation.SetDeviceMetricsOverride(c.width, c.height, 1, c.width < 500))
		b.open(server.URL + "/#preset=maze&m=16&at=12.1&k=8&stage=1")
		b.wait(`!work && document.querySelector("#strip .ray") || innerWidth < 500`)
		for i, y := range eval[[]float64](b, fmt.Sprintf(`[...document.querySelectorAll(%q)].map(x => x.getBoundingClientRect().top + (x.id ? 100 : 20))`, c.both)) {
			if y > float64(c.height) || y < 0 {
				t.Errorf("%d×%d: part %d of %s lies at %v", c.width, c.height, i, c.both, y)
			}
		}
		if got := eval[float64](b, `Math.min(...[...document.querySelectorAll("#scene text, #loss-chart text")].map(x => parseFloat(getComputedStyle(x).fontSize)))`); got < c.least {
			t.Errorf("%d×%d: the least text is %v pixels, want %v", c.width, c.height, got, c.least)
		}
	}
	eval[bool](b, `(showTab("step"), true)`) // on the phone
	b.wait(`document.querySelector("#strip .ray")?.getBoundingClientRect().width > 10`)
	b.click("#lesson-start")
	b.wait(`!$("lesson").hidden && !work && !acting && $("strip-box").getBoundingClientRect().top < $("lesson").getBoundingClientRect().top - 60`)
}

// TestCancel stops a round of a million packets within a second, where there is no run to go back to.
func TestCancel(t *testing.T) {
	b := newTab(t)
	b.run(chromedp.Navigate("about:blank"), chromedp.Navigate(server.URL+"/#S=64&A=16&expected=1&T=20"))
	b.wait(`!$("work").hidden && /about \d+ seconds? left/.test($("work-text").textContent)`)
	if took := eval[float64](b, `(async () => { const start = performance.now(); $("work-cancel").click(); while (work) await new Promise(r => setTimeout(r, 5)); return performance.now() - start })()`); took > 1000 {
		t.Errorf("Cancel took %v ms", took)
	}
	b.wait(`document.body.dataset.ready && run.settings.preset === "maze" && decoderRound(0)`)
}

// TestSights: the bound is followed to where it crosses 2B with the numbers of its formulas, and ρ is that of
// the tokens.
func TestSights(t *testing.T) {
	b := newTab(t)
	b.reduced("light")
	b.open(server.URL + "/?lesson=5")
	b.wait(`!$("lesson").hidden && !work && !acting && document.querySelectorAll("#bound-chart path").length === 5`)
	b.click("#lesson-ask")
	got := eval[[]float64](b, `(() => {
		const c = run.info.certificate, {S} = run.info, {eta} = run.settings, k = run.rounds.decoder.findIndex(r => r.bound <= 2 * c.B) + 1,
			R = (S - 1) * Math.exp(-c.kappa + 2 * eta * c.B) + S * Math.exp(-(c.kappa + c.nu) + eta * c.B);
		return [k, R / c.RAct - 1, 2 * R / (1 + R) / c.zeta - 1, Number($("lesson-answer").textContent.includes("round " + k + " on")), $("formulas").children.length];
	})()`)
	if got[0] < 2 || math.Abs(got[1]) > 1e-6 || math.Abs(got[2]) > 1e-6 || got[3] != 1 || got[4] != 5 {
		t.Errorf("crossing, R, ζ, answer and formulas: %v", got)
	}
	b.open(server.URL + "/#preset=maze&m=2&T=3&phi=0.01&show=normalized&k=2")
	b.wait(`pos.k === 2 && !work && document.querySelectorAll("#carrier-chart path").length === 2`)
	b.wait(`$("carrier-said").textContent.includes("H = 1.00·10⁶")`)
}
