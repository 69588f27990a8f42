package main

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"icrl/internal/testkit"
)

// TestLinks follows the links at the foot of the page, and finds the citation there.
func TestLinks(t *testing.T) {
	b := newTab(t)
	b.open(server.URL)
	links := eval[[]string](b, `[...document.querySelectorAll("#links a")].map(x => x.href)`)
	if len(links) != 1 {
		t.Fatalf("the foot links to %q", links)
	}
	r := testkit.Must(http.Get(links[0]))(t)
	defer r.Body.Close()
	if data, err := io.ReadAll(r.Body); err != nil || !strings.Contains(string(data), `"cells"`) {
		t.Errorf("%s: %s, %v, and no notebook", links[0], r.Status, err)
	}
	got := eval[string](b, `document.querySelector("#links pre").textContent.trim()`)
	if !strings.Contains(got, "@misc{") || !strings.HasSuffix(got, "}") {
		t.Errorf("the citation is %q", got)
	}
}

// TestEdits: changes of earlier rounds go between, a reward beyond the cap makes another decoder, and a link
// holds all of them.
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
	edit(15, `{kind: "transition", s: 0, a: 2, t: 3, value: 0.75}`)
	b.wait(`phaseAt(15).p[(0 * 3 + 2) * 8 + 3] === 0.75 && phaseAt(14).p[(0 * 3 + 2) * 8 + 3] !== 0.75`)
	b.toEnd()
	first := b.trajectory()
	b.wait(`location.hash.includes("k=20") && location.hash.includes("rmax")`)
	b.again(newTab(t), fileURL(t), first)
}

// TestMap changes places of the maze as a visitor does.
func TestMap(t *testing.T) {
	b := newTab(t)
	b.reduced("light")
	b.open(server.URL + "/#preset=maze&m=16&k=40&at=12.1")
	b.wait(`pos.k === 40 && !work`)
	b.do(`$("scene").focus()`)
	b.run(chromedp.KeyEvent(kb.ArrowDown))
	b.wait(`view.state === 17`)
	b.click(`#place-tiles [data-tile="#"]`)
	b.wait(`run.edits.length === 1 && run.rounds.decoder.length === 40 && !work && !acting`)
	held := func(p *input.DispatchMouseEventParams) *input.DispatchMouseEventParams {
		return p.WithButton(input.Left).WithButtons(1)
	}
	mouse := func(event input.MouseType, place int, options ...chromedp.MouseOption) {
		at := eval[[]float64](b, fmt.Sprintf(`(async () => {
			for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame); // it is drawn
			const box = document.querySelectorAll("#scene > g")[%d].getBoundingClientRect();
			return [box.x + box.width / 2, box.y + box.height / 2];
		})()`, place))
		b.run(chromedp.MouseEvent(event, at[0], at[1], options...))
	}
	mouse(input.MousePressed, 17, held, chromedp.ClickCount(1)) // a drag from the new wall, which ends at 21
	mouse(input.MouseMoved, 22, held)
	mouse(input.MouseMoved, 21, held)
	mouse(input.MouseReleased, 21, chromedp.ButtonLeft)
	mouse(input.MouseMoved, 20)
	b.wait(`run.edits.length === 2 && run.phases.at(-1).grid.tiles.slice(20, 24) === "H##." && !work && !acting`)
	b.click("#undo")
	b.wait(`run.edits.length === 1 && run.rounds.decoder.length === 40 && !work && !acting`)
	b.wait(`ghost && $("ghost-key").textContent.includes("before")`)
	b.set("#place-reward", "0.5")
	b.wait(`run.edits.length === 2 && phaseAt(0).r[17 * 4] === 0.5`)
}

// TestFirstSight: the three answers fit on a laptop's screen, the page plays
// once by itself unless less motion is asked for.
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
}

// TestVisits: what visitors do, and what must come of it.
func TestVisits(t *testing.T) {
	script := fmt.Sprintf("(%s)", testkit.Must(os.ReadFile("testdata/visits.js"))(t))
	start := newTab(t)
	start.open(server.URL)
	list := eval[[]struct{ Name, Hash string }](start, script+`.map(({ name, hash }) => ({ name, hash }))`)
	for i, v := range list {
		t.Run(v.Name, func(t *testing.T) {
			b := newTab(t)
			b.reduced("light")
			b.run(emulation.SetDeviceMetricsOverride(1280, 800, 1, false))
			b.open(server.URL + "/#" + v.Hash)
			b.do(`(self.visit = %s[%d]).act()`, script, i)
			b.wait(`await visit.holds()`)
		})
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
	for _, look := range []string{`0`, `$("step-hand").click()`, `$("net-learned").click()`, `go(8, 3)`} {
		b.do(`(async () => { await ` + look + ` })()`)
		b.wait(`!acting && !work && $("step-table").firstElementChild &&
			$("step-body").scrollWidth <= $("step-body").clientWidth`)
	}
}

// TestLesson gives the lesson by arrow keys. On a desk every scene is seen whole, its answer too, in text of 20
// pixels and more; nowhere is anything cut off or under the lesson's card.
func TestLesson(t *testing.T) {
	b := newTab(t)
	b.reduced("light")
	type screen struct{ width, height int64 }
	desks := []screen{{1280, 800}, {1920, 1080}}
	resize := func(s screen) {
		b.run(emulation.SetDeviceMetricsOverride(s.width, s.height, 1, s.width < 500))
		b.do(`(scrollTo(0, 0), new Promise(r => setTimeout(r, 200)))`)
		b.wait(`!work && !acting`)
	}
	b.open(server.URL + "/?lesson=1")
	for i := range eval[int](b, `lessonLength`) {
		b.wait(`$("lesson-count").textContent[0] === "%d" && all(".pointed").length && !work && !acting`, i+1)
		b.click("#lesson-ask")
		for _, size := range append(desks, screen{640, 400}, screen{390, 844}) {
			resize(size)
			for _, fault := range eval[[]string](b, `(() => {
				const desk = innerWidth > 1000, { documentElement: d } = document,
					card = $("lesson").getBoundingClientRect(),
					text = all("#lesson :is(h2, p, button):not(.why)").filter(x => x.offsetParent),
					subject = document.querySelector(".pointed").getBoundingClientRect(),
					cut = x => x.offsetParent && x.clientWidth && x.scrollWidth > x.clientWidth + 1;
				return [
					[d.scrollWidth > innerWidth, "is wider than the screen"],
					[desk && d.scrollHeight > innerHeight, "scrolls: " + d.scrollHeight],
					[desk && $("lesson").scrollHeight > innerHeight, "has a card that scrolls"],
					[desk && text.some(x => parseFloat(getComputedStyle(x).fontSize) < 20), "has text below 20 pixels"],
					[text.length < 6 || text.some(x => !x.textContent), "lacks words"],
					[subject.right > card.left && subject.top > card.top - 60, "hides its subject"],
					[!$("message").hidden, $("message-text").textContent],
					...all(".staged :is(p, td, th, dd, figure, button, .card, #step-body)").filter(cut)
						.map(x => [true, "cuts off " + x.textContent.slice(0, 40)]),
				].filter(x => x[0]).map(x => x[1]);
			})()`) {
				t.Errorf("%v: scene %d %s", size, i+1, fault)
			}
			if i == 2 {
				b.weights(size.width > 1000)
			}
		}
		if i == 3 {
			resize(desks[0])
			b.do(`$("lesson-buttons").firstChild.click()`)
			b.wait(`run.settings.m === 1 && pos.k === 40 && !work && !acting`)
			b.wait(`document.documentElement.scrollHeight <= innerHeight`)
		}
		b.run(chromedp.KeyEvent(kb.ArrowRight))
	}
	b.wait(`$("lesson").hidden && run.settings.preset === "maze" && pos.k === 0`)
	for _, size := range desks {
		resize(size)
		b.do(`$("network").scrollIntoView()`)
		if got := eval[int64](b, `Math.ceil($("network").getBoundingClientRect().bottom)`); got > size.height {
			t.Errorf("%v: the weights end at %v", size, got)
		}
		if eval[bool](b, `all(".card").some(x => x.scrollWidth > x.clientWidth)`) {
			t.Errorf("%v: a card is cut off", size)
		}
	}
	b.open(server.URL + "/?lesson=8")
	b.wait(`all(".pointed").length && !work && !acting`)
	b.do(`[...$("lesson-buttons").children].at(-1).click()`)
	b.wait(`view.call === "normed" && $("path").textContent.includes("s=12") && $("microscope").offsetParent`)
}

// weights looks at all of them: each is on the screen where whole is true, and leads to an arrow on the map.
func (b *tab) weights(whole bool) {
	b.Helper()
	seen := eval[int](b, `all(".weight").filter(x => {
		const r = x.getBoundingClientRect();
		return r.top >= 0 && r.bottom <= innerHeight && r.width > 20;
	}).reduce((n, x) => n + Number(x.querySelector("small")?.textContent.slice(1) || 1), 0)`)
	if whole && seen != 204 {
		b.Errorf("%d weights are on the screen", seen)
	}
	b.do(`document.querySelector(".weight").dispatchEvent(new PointerEvent("pointerenter"))`)
	b.wait(`$("route").textContent.startsWith("κ") && all("#scene .led").length === 1 &&
		all(".weight.lit").map(x => x.textContent).join() === "κ×25,1×25,1×4,1/A×4,1×4"`)
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
