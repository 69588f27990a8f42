package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"

	"icrl/wasm/engine"
)

// firefox is a window of Firefox, driven by WebDriver BiDi
// (https://www.w3.org/TR/webdriver-bidi/), which it speaks without a driver.
type firefox struct {
	testing.TB
	connection net.Conn
	window     string
	id         int
	problems   []string
}

// newFirefox starts Firefox. It skips the test if Firefox is not installed.
func newFirefox(t testing.TB) *firefox {
	t.Helper()
	if testing.Short() {
		t.Skip("it runs the page in a browser")
	}
	if noFirefox != "" {
		t.Skip(noFirefox)
	}
	command := exec.Command(firefoxPath, "--headless", "--no-remote", "--remote-debugging-port=0", "--profile",
		t.TempDir())
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := command.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		command.Wait()
	})
	address := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if _, at, ok := strings.Cut(lines.Text(), "WebDriver BiDi listening on "); ok {
				address <- strings.TrimSpace(at)
			}
		}
		io.Copy(io.Discard, out)
	}()
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Minute)
	defer stop()
	f := &firefox{TB: t}
	select {
	case at := <-address:
		if f.connection, _, _, err = ws.Dial(ctx, at+"/session"); err != nil {
			t.Fatal(err)
		}
	case <-ctx.Done():
		t.Fatalf("%s does not say where it listens", firefoxPath)
	}
	t.Cleanup(func() { f.connection.Close() })
	var session struct {
		Capabilities struct{ BrowserName, BrowserVersion string }
	}
	f.call("session.new", map[string]any{"capabilities": map[string]any{}}, &session)
	t.Logf("%s %s", session.Capabilities.BrowserName, session.Capabilities.BrowserVersion)
	f.call("session.subscribe", map[string]any{"events": []string{"log.entryAdded"}}, nil)
	return f
}

func (f *firefox) call(method string, params map[string]any, result any) {
	f.Helper()
	if refused := f.send(method, params, result); refused != "" {
		f.Fatalf("%s: %s", method, refused)
	}
}

// send sends a command and waits for its result, or for why Firefox refuses it. What
// the page logs meanwhile as an error or a warning is kept.
func (f *firefox) send(method string, params map[string]any, result any) (refused string) {
	f.Helper()
	f.id++
	f.connection.SetDeadline(time.Now().Add(2 * time.Minute))
	message, err := json.Marshal(map[string]any{"id": f.id, "method": method, "params": params})
	if err != nil {
		f.Fatal(err)
	}
	if err := wsutil.WriteClientText(f.connection, message); err != nil {
		f.Fatal(err)
	}
	for {
		data, err := wsutil.ReadServerText(f.connection)
		if err != nil {
			f.Fatalf("%s: %v", method, err)
		}
		var answer struct {
			ID             int
			Type, Message  string
			Result, Params json.RawMessage
		}
		if err := json.Unmarshal(data, &answer); err != nil {
			f.Fatal(err)
		}
		switch {
		case answer.Type == "event":
			var entry struct{ Level, Text string }
			if err := json.Unmarshal(answer.Params, &entry); err == nil &&
				(entry.Level == "error" || entry.Level == "warn") {
				f.problems = append(f.problems, entry.Text)
			}
		case answer.ID != f.id:
		case answer.Type == "error":
			return answer.Message
		default:
			if result != nil {
				if err := json.Unmarshal(answer.Result, result); err != nil {
					f.Fatal(err)
				}
			}
			return ""
		}
	}
}

// open loads a page in a new tab and waits until it is ready. It asks the page itself:
// on a busy machine Firefox may never tell that a navigation is complete.
func (f *firefox) open(url string) {
	f.Helper()
	var tab struct{ Context string }
	f.call("browsingContext.create", map[string]any{"type": "tab"}, &tab)
	f.window = tab.Context
	f.call("browsingContext.navigate", map[string]any{"context": f.window, "url": url, "wait": "none"}, nil)
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		var answer struct{ Result struct{ Value bool } }
		f.send("script.evaluate", map[string]any{ // refused while one page gives way to another
			"expression": `!!document.body?.dataset.ready`, "target": map[string]any{"context": f.window}, "awaitPromise": false,
		}, &answer)
		if answer.Result.Value {
			return
		}
		if time.Now().After(end) {
			f.Fatalf("%.100s is not ready after two minutes", url)
		}
	}
}

// do stores the JavaScript value of an expression, which may be a promise, in v.
func (f *firefox) do(expression string, v any) {
	f.Helper()
	var answer struct {
		Result           struct{ Value string }
		ExceptionDetails struct{ Text string }
	}
	f.call("script.evaluate", map[string]any{
		"expression": fmt.Sprintf(`(async () => JSON.stringify(await (%s)))()`, scoped(expression)),
		"target":     map[string]any{"context": f.window}, "awaitPromise": true,
	}, &answer)
	if answer.ExceptionDetails.Text != "" {
		f.Fatalf("%.200s: %s", expression, answer.ExceptionDetails.Text)
	}
	if err := json.Unmarshal([]byte(answer.Result.Value), v); err != nil {
		f.Fatalf("%.200s gives %q: %v", expression, answer.Result.Value, err)
	}
}

func (f *firefox) wait(expression string) {
	f.Helper()
	var ok bool
	f.do(until(expression), &ok)
}

// TestFirefox does in Firefox what the page is for: it loads, over http and from a file,
// plays, compares the trained network, keeps what it certifies, and gives a link that
// leads back to the same numbers; and these are the library's, bit by bit where its
// solves are the browser's (see TestGolden).
func TestFirefox(t *testing.T) {
	f := newFirefox(t)
	for _, place := range []string{fileURL(t), server.URL + "/"} {
		f.open(place + "#preset=random&T=20")
		var ready float64
		f.do(`Number(document.body.dataset.ready)`, &ready)
		t.Logf("ready after %.0f ms", ready)
	}
	var ok bool
	f.do(`($("speed").value = "max", $("play").click(), true)`, &ok)
	f.wait(`pos.k === 20 && !playing`)
	f.do(`($("show-learned").click(), true)`, &ok)
	f.wait(`shown.has("learned") && run.rounds.learned?.length === 20`)
	f.do(`($("net-learned").click(), true)`, &ok)
	f.wait(`document.querySelector(".trained .strip title")`)
	type round struct {
		Zeta, ZetaBound, Delta, DeltaBound, Route, RouteBound, Loss, Bound float64
		NextPi                                                             []float64
	}
	rounds := func() (list []round) {
		t.Helper()
		f.do(`run.rounds.decoder.map(r => ({...r, nextPi: Array.from(r.nextPi), pi: 0, q: 0, nextQ: 0, exactPi: 0, exactQ: 0, packets: 0}))`, &list)
		return list
	}
	first := rounds()
	e, err := engine.New(engine.Settings{
		Preset: "random", States: 8, Actions: 3, Seed: 1, Gamma: 0.9, Eta: 0.8, Packets: 6, Routing: 1e-3, Carrier: 1e6, Rounds: 20,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for k, r := range first {
		if r.Zeta > r.ZetaBound || r.Route > r.RouteBound || r.Delta > r.DeltaBound || r.Loss > r.Bound {
			t.Errorf("round %d lies outside its certificate: %+v", k, r)
		}
		want, err := e.Round(engine.Decoder, k)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range r.NextPi {
			if d := math.Abs(v - want.NextPi.RawMatrix().Data[i]); d > 1e-9 || sameSolves && d != 0 {
				t.Fatalf("round %d: π̂ has %v in Firefox, %v in the library", k, v, want.NextPi.RawMatrix().Data[i])
			}
		}
	}
	if len(first) != 20 {
		t.Fatalf("%d rounds ran", len(first))
	}
	f.wait(`location.hash.includes("net=learned") && location.hash.includes("k=20")`)
	var hash string
	f.do(`location.hash`, &hash)
	f.open(server.URL + "/" + hash)
	f.wait(`pos.k === 20 && view.net === "learned" && shown.has("learned")`)
	for k, r := range rounds() {
		for i, v := range r.NextPi {
			if v != first[k].NextPi[i] {
				t.Fatalf("the link %s gives other numbers in round %d", hash, k)
			}
		}
	}
	for _, p := range f.problems {
		t.Errorf("the browser complains: %s", p)
	}
}
