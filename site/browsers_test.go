package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"icrl/internal/testkit"
	"icrl/policyattention/mdp"
	"icrl/wasm/engine"
)

// remote is a page in any browser, which asks for one script after another and sends what each gives.
type remote struct {
	testing.TB
	host    *httptest.Server
	scripts chan string // that the page is to run
	said    chan []byte // JSON: text, or error
	pages   int
}

// newRemote starts a browser on the page from a file, which goes on to the page that is served here.
func newRemote(t testing.TB, program string, args ...string) *remote {
	t.Helper()
	b := &remote{TB: t, scripts: make(chan string), said: make(chan []byte)}
	page := string(testkit.Must(os.ReadFile(filepath.Join(built, "index.html")))(t))
	asks := http.NewServeMux()
	asks.Handle("/", Handler(built))
	asks.HandleFunc("/asks", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, page, `<script async src="script"></script>`)
	})
	asks.HandleFunc("/script", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		w.Header().Set("Cache-Control", "no-store")
		select {
		case script := <-b.scripts:
			fmt.Fprint(w, script)
		case <-r.Context().Done():
		}
	})
	asks.HandleFunc("/said", func(_ http.ResponseWriter, r *http.Request) {
		var message json.RawMessage
		if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
			message = nil
		}
		b.said <- message
	})
	b.host = httptest.NewServer(asks)
	folder := testkit.Must(filepath.Abs(built))(t)
	for name, content := range map[string]string{
		"asks.html": page + `<script src="asks.js"></script>`,
		"asks.js":   ready + `.then(() => location.href = "` + b.host.URL + `/asks?0")`,
	} {
		testkit.Check(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	command := exec.Command(program, append(args, "file://"+folder+"/asks.html")...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	testkit.Check(t, command.Start())
	t.Cleanup(func() { // it, and all that it started
		syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		command.Wait()
		b.host.CloseClientConnections()
		b.host.Close()
	})
	return b
}

var ready = until(`document.body.dataset.ready`)

// send gives the page a script.
func (b *remote) send(script string) {
	b.Helper()
	select {
	case b.scripts <- script:
	case <-time.After(2 * time.Minute):
		b.Fatalf("the browser asks for no script: %.200s", script)
	}
}

// do stores the JavaScript value of an expression, which may be a promise, in v.
func (b *remote) do(expression string, v any) {
	b.Helper()
	b.send(fmt.Sprintf(`(async () => JSON.stringify(await (%s)))().then(text => ({ text }), e => ({ error: String(e) }))
		.then(said => fetch("said", { method: "POST", body: JSON.stringify(said) })).then(() => {
			const next = document.createElement("script");
			next.src = "script";
			document.head.append(next);
		});`, scoped(expression)))
	select {
	case said := <-b.said:
		var answer struct{ Text, Error string }
		err := json.Unmarshal(said, &answer)
		if answer.Error != "" {
			err = errors.New(answer.Error)
		}
		if err == nil {
			err = json.Unmarshal([]byte(answer.Text), v)
		}
		if err != nil {
			b.Fatalf("%.200s: %v", expression, err)
		}
	case <-time.After(3 * time.Minute):
		b.Fatalf("no answer to %.200s", expression)
	}
}

func (b *remote) wait(expression string) {
	b.Helper()
	var ok bool
	b.do(until(expression), &ok)
}

// open loads the page with a hash and waits until it is ready.
func (b *remote) open(hash string) {
	b.Helper()
	b.pages++
	b.send(fmt.Sprintf(`location.href = "asks?%d%s"`, b.pages, hash))
	b.wait(`document.body.dataset.ready`)
}

// TestBrowsers does in Firefox and in WebKit what the page is for: it loads, from a file and over http,
// plays, slides, shows the trained network, and gives a link that leads back to the same numbers; and these
// are the library's, bit by bit.
func TestBrowsers(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs the page in browsers")
	}
	t.Run("Firefox", func(t *testing.T) {
		path, err := findBrowser("Firefox", "firefox", "firefox-esr")
		if err != nil {
			t.Skip(err)
		}
		inBrowser(t, newRemote(t, path, "--headless", "--no-remote", "--profile", t.TempDir()))
	})
	t.Run("WebKit", func(t *testing.T) {
		path, err := findBrowser("WebKit", testkit.Must(filepath.Glob("/usr/lib/*/webkit2gtk-4.*/MiniBrowser"))(t)...)
		if err != nil {
			t.Skip(err)
		}
		program := []string{path}
		if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
			if _, err := exec.LookPath("xvfb-run"); err != nil {
				t.Skip("WebKitGTK needs a display, and there is no xvfb-run (sudo apt-get install xvfb)")
			}
			program = []string{"xvfb-run", "-a", path}
		}
		inBrowser(t, newRemote(t, program[0], append(program[1:], "--private")...))
	})
}

func inBrowser(t *testing.T, b *remote) {
	b.open("#preset=random&T=20")
	var took float64
	b.do(`Number(document.body.dataset.ready)`, &took)
	t.Logf("ready after %.0f ms", took)
	var ok bool
	b.do(`($("speed").value = "max", $("play").click(), true)`, &ok)
	b.wait(`pos.k === 20 && !playing`)
	sameAsLibrary(t, b.do, mdp.Problem{}, engine.Decoder, engine.Exact)
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
	b.open(hash)
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
