package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"icrl/wasm/engine"
)

// webdriver is a browser that takes the commands of WebDriver (https://www.w3.org/TR/webdriver2/):
// Firefox itself, in the words of its Marionette, and WebKitGTK through its driver, over HTTP.
type webdriver struct {
	testing.TB
	command func(name string, params, result any) error
}

// started runs a program that ends, with all that it started, when the test does.
func started(t testing.TB, program string, args ...string) {
	t.Helper()
	command := exec.Command(program, args...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		command.Wait()
	})
}

// patiently calls f until it gives no error, for two minutes at most.
func patiently(t testing.TB, f func() error) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

func newFirefox(t testing.TB) *webdriver {
	path, err := findBrowser("Firefox", "firefox", "firefox-esr")
	if err != nil {
		t.Skip(err)
	}
	profile := t.TempDir()
	anyPort := []byte(`user_pref("marionette.port", 0);`)
	if err := os.WriteFile(filepath.Join(profile, "user.js"), anyPort, 0o600); err != nil {
		t.Fatal(err)
	}
	started(t, path, "--headless", "--no-remote", "--marionette", "--profile", profile)
	var connection net.Conn
	patiently(t, func() error {
		port, err := os.ReadFile(filepath.Join(profile, "MarionetteActivePort"))
		if err == nil {
			connection, err = net.Dial("tcp", "localhost:"+strings.TrimSpace(string(port)))
		}
		return err
	})
	t.Cleanup(func() { connection.Close() })
	// A message is its length in decimal, a colon, and JSON.
	in, n := bufio.NewReader(connection), 0
	receive := func(v any) error {
		connection.SetDeadline(time.Now().Add(3 * time.Minute))
		length, err := in.ReadString(':')
		if err != nil {
			return err
		}
		size, err := strconv.Atoi(strings.TrimSuffix(length, ":"))
		if err != nil {
			return err
		}
		return json.NewDecoder(io.LimitReader(in, int64(size))).Decode(v)
	}
	var greeting json.RawMessage
	if err := receive(&greeting); err != nil {
		t.Fatal(err)
	}
	b := &webdriver{TB: t, command: func(name string, params, result any) error {
		n++
		message, err := json.Marshal([]any{0, n, "WebDriver:" + name, params})
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(connection, "%d:%s", len(message), message); err != nil {
			return err
		}
		var answer [4]json.RawMessage // 1, n, error, result
		if err := receive(&answer); err != nil {
			return err
		}
		if refused := string(answer[2]); refused != "null" {
			return errors.New(refused)
		}
		return json.Unmarshal(answer[3], result)
	}}
	return b.begin()
}

func newWebKit(t testing.TB) *webdriver {
	program, args := "WebKitWebDriver", []string{}
	if _, err := exec.LookPath(program); err != nil {
		t.Skip("no WebKitWebDriver was found, so the page is not tested in WebKit (see scripts/browser.sh)")
	}
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close()
	_, port, _ := net.SplitHostPort(address)
	if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		if _, err := exec.LookPath("xvfb-run"); err != nil {
			t.Skip("WebKitGTK needs a display, and there is no xvfb-run (sudo apt-get install xvfb)")
		}
		program, args = "xvfb-run", []string{"-a", program}
	}
	started(t, program, append(args, "--port="+port)...)
	paths := map[string]string{
		"NewSession": "", "SetTimeouts": "/timeouts", "Navigate": "/url", "ExecuteAsyncScript": "/execute/async",
	}
	session := "http://" + address + "/session"
	b := &webdriver{TB: t, command: func(name string, params, result any) error {
		message, err := json.Marshal(params)
		if err != nil {
			return err
		}
		answer, err := http.Post(session+paths[name], "application/json", bytes.NewReader(message))
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		data, err := io.ReadAll(answer.Body)
		if answer.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s %s", name, answer.Status, data)
		}
		if err != nil {
			return err
		}
		var opened struct{ Value struct{ SessionID string } }
		if name == "NewSession" && json.Unmarshal(data, &opened) == nil {
			session += "/" + opened.Value.SessionID
			t.Cleanup(func() {
				if r, err := http.NewRequest(http.MethodDelete, session, nil); err == nil {
					http.DefaultClient.Do(r)
				}
			})
		}
		return json.Unmarshal(data, result)
	}}
	return b.begin()
}

// begin opens a session.
func (b *webdriver) begin() *webdriver {
	b.Helper()
	var session json.RawMessage
	patiently(b, func() error {
		return b.command("NewSession", map[string]any{"capabilities": map[string]any{
			"alwaysMatch": map[string]any{"pageLoadStrategy": "none"},
		}}, &session)
	})
	b.Logf("%.200s", session)
	if err := b.command("SetTimeouts", map[string]int{"script": 120_000}, &session); err != nil {
		b.Fatal(err)
	}
	return b
}

// try stores the JavaScript value of an expression, which may be a promise, in v.
func (b *webdriver) try(expression string, v any) error {
	var answer struct{ Value struct{ Text, Error string } }
	err := b.command("ExecuteAsyncScript", map[string]any{"args": []any{}, "script": fmt.Sprintf(`
		const done = arguments[arguments.length - 1];
		(async () => JSON.stringify(await (%s)))().then((text) => done({ text }), (e) => done({ error: String(e) }));`,
		scoped(expression))}, &answer)
	if err == nil && answer.Value.Error != "" {
		err = errors.New(answer.Value.Error)
	}
	if err == nil {
		err = json.Unmarshal([]byte(answer.Value.Text), v)
	}
	if err != nil {
		return fmt.Errorf("%.200s: %w", expression, err)
	}
	return nil
}

func (b *webdriver) do(expression string, v any) {
	b.Helper()
	if err := b.try(expression, v); err != nil {
		b.Fatal(err)
	}
}

func (b *webdriver) wait(expression string) {
	b.Helper()
	var ok bool
	b.do(until(expression), &ok)
}

// open loads a page and asks the page itself whether it is ready.
func (b *webdriver) open(url string) {
	b.Helper()
	var nothing json.RawMessage
	for _, at := range []string{"about:blank", url} {
		if err := b.command("Navigate", map[string]string{"url": at}, &nothing); err != nil {
			b.Fatal(err)
		}
		patiently(b, func() error { // refused while one page gives way to another
			var ready bool
			err := b.try(fmt.Sprintf(`location.href.startsWith(%q) && (%t || !!document.body?.dataset.ready)`,
				strings.SplitN(at, "#", 2)[0], at != url), &ready)
			if err == nil && !ready {
				err = fmt.Errorf("%.100s is not ready", at)
			}
			return err
		})
	}
}

// TestBrowsers does in Firefox and in WebKit what the page is for: it loads, over http and from a file,
// plays, slides, shows the trained network, and gives a link that leads back to the same numbers; and these
// are the library's, bit by bit where its solves are the browser's (see TestGolden).
func TestBrowsers(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs the page in browsers")
	}
	for name, launch := range map[string]func(testing.TB) *webdriver{"Firefox": newFirefox, "WebKit": newWebKit} {
		t.Run(name, func(t *testing.T) { inBrowser(t, launch(t)) })
	}
}

func inBrowser(t *testing.T, b *webdriver) {
	for _, place := range []string{fileURL(t), server.URL + "/"} {
		b.open(place + "#preset=random&T=20")
		var ready float64
		b.do(`Number(document.body.dataset.ready)`, &ready)
		t.Logf("ready after %.0f ms", ready)
	}
	var ok bool
	b.do(`($("speed").value = "max", $("play").click(), true)`, &ok)
	b.wait(`pos.k === 20 && !playing`)
	sameAsLibrary(t, b.do, nil, engine.Decoder, engine.Exact)
	policies := func() (all []float64) {
		b.do(`run.rounds.decoder.flatMap(r => [...r.nextPi])`, &all)
		return all
	}
	first := policies()
	b.do(`($("show-learned").click(), true)`, &ok)
	b.wait(`shown.has("learned") && run.rounds.learned?.length === 20`)
	b.do(`($("net-learned").click(), true)`, &ok)
	b.wait(`document.querySelector(".trained .strip title")`)
	b.wait(`location.hash.includes("net=learned") && location.hash.includes("k=20")`)
	var hash string
	b.do(`location.hash`, &hash)
	b.open(server.URL + "/" + hash)
	b.wait(`pos.k === 20 && view.net === "learned" && shown.has("learned")`)
	if !slices.Equal(first, policies()) {
		t.Errorf("the link %s gives other numbers", hash)
	}
	b.do(`(slideTo("eta", 2), true)`, &ok)
	b.wait(`run.settings.eta === 2 && run.rounds.decoder.length === 20 && !work && !acting`)
	if b.do(`$("message").hidden`, &ok); !ok {
		t.Error("the page shows a message")
	}
}
