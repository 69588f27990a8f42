package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

const jupyter = "../.local/python/bin/jupyter"

// lab starts JupyterLab on a folder and returns its address and its environment.
func lab(t *testing.T, folder string) (address string, environment []string) {
	t.Helper()
	program, err := filepath.Abs(jupyter)
	if err == nil {
		_, err = os.Stat(program)
	}
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatal(err)
		}
		t.Skipf("there is no JupyterLab: %v; make setup installs it", err)
	}
	kernels, err := filepath.Abs("../.local/jupyter")
	if err != nil {
		t.Fatal(err)
	}
	// What Jupyter keeps, trust in notebooks above all, is the test's own.
	private := t.TempDir()
	environment = append(os.Environ(), "JUPYTER_PATH="+kernels, "JUPYTER_DATA_DIR="+private,
		"JUPYTER_CONFIG_DIR="+private, "JUPYTER_RUNTIME_DIR="+private, "HOME="+private)
	settings := filepath.Join(private, "lab", "user-settings", "@jupyterlab", "notebook-extension",
		"tracker.jupyterlab-settings")
	if err := os.MkdirAll(filepath.Dir(settings), 0o755); err != nil {
		t.Fatal(err)
	}
	// Cells out of sight are there too.
	if err := os.WriteFile(settings, []byte(`{"windowingMode": "none"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, "lab", "--no-browser", "--allow-root", "--ServerApp.port=0",
		"--IdentityProvider.token=secret", "--notebook-dir="+folder)
	command.Env = environment
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Kernels lead sessions of their own; the server ends them.
		if kernels, err := http.Get(address + "api/kernels?token=secret"); err == nil {
			var list []struct{ ID string }
			json.NewDecoder(kernels.Body).Decode(&list)
			kernels.Body.Close()
			for _, k := range list {
				request, _ := http.NewRequest(http.MethodDelete, address+"api/kernels/"+k.ID+"?token=secret", nil)
				if r, err := http.DefaultClient.Do(request); err == nil {
					r.Body.Close()
				}
			}
		}
		syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		command.Wait()
	})
	for range 600 {
		time.Sleep(100 * time.Millisecond)
		files, _ := filepath.Glob(filepath.Join(private, "jpserver-*.json"))
		if len(files) == 0 {
			continue
		}
		var s struct{ URL string }
		if data, err := os.ReadFile(files[0]); err != nil || json.Unmarshal(data, &s) != nil || s.URL == "" {
			continue
		}
		if r, err := http.Get(s.URL + "api/status?token=secret"); err == nil {
			r.Body.Close()
			return s.URL, environment
		}
	}
	t.Fatal("JupyterLab did not start within a minute")
	return "", nil
}

// TestNotebook opens the committed notebook on the decoder in a real JupyterLab:
// as it comes it shows a picture, and once it is trusted the page runs in it.
func TestNotebook(t *testing.T) {
	if testing.Short() || noBrowser != "" {
		newTab(t)
	}
	folder := t.TempDir()
	notebook := filepath.Join(folder, "04-the-decoder.ipynb")
	data, err := os.ReadFile("../notebooks/04-the-decoder.ipynb")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(notebook, data, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Build(filepath.Join(folder, "page"), "", true, Links{}); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	address, environment := lab(t, folder)
	t.Logf("JupyterLab answers after %v", time.Since(start).Round(time.Millisecond))
	if r, err := http.Get(address + "files/page/index.html?token=secret"); err == nil {
		io.Copy(io.Discard, r.Body)
		t.Logf("Jupyter serves the page with the policy %q", r.Header.Get("Content-Security-Policy"))
		r.Body.Close()
	}
	const picture = `.jp-OutputArea-output img[alt^="The page:"]`
	// look scrolls to the cell, until the cells above it have their final heights.
	look := func(b *tab) {
		b.wait(fmt.Sprintf(`(() => { const x = document.querySelector(%q), before = x.getBoundingClientRect().top; x.scrollIntoView(); return Math.abs(x.getBoundingClientRect().top - before) < 1 })()`, picture))
	}
	open := func() *tab {
		b := newTab(t)
		b.foreign = true
		b.run(emulation.SetDeviceMetricsOverride(1280, 1000, 1, false),
			chromedp.Navigate(address+"lab/tree/04-the-decoder.ipynb?token=secret"),
			chromedp.WaitReady(picture, chromedp.ByQuery))
		look(b)
		return b
	}
	shoot := func(b *tab, name string) {
		look(b)
		shot(b, name)
	}
	b := open()
	b.wait(fmt.Sprintf(`document.querySelector(%q).naturalWidth > 0`, picture))
	if n := eval[int](b, `document.querySelectorAll(".jp-OutputArea-output iframe").length`); n != 0 {
		t.Errorf("a notebook that is not trusted shows %d frames", n)
	}
	shoot(b, "notebook-untrusted")

	trust := exec.Command(jupyter, "trust", notebook)
	trust.Env = environment
	if out, err := trust.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b = open() // the frame draws nothing while it is out of sight
	f := frame(b, "/files/page/index.html")
	f.wait(`document.body.dataset.ready && pos.stage === 1 && !work`)
	if got := eval[string](f, `[run.info.S, run.info.A, run.settings.m, pos.stage, view.call, view.part].join()`); got != "3,2,2,1,actor,weight" {
		t.Errorf("the frame shows %s", got)
	}
	shoot(b, "notebook")
	f.toEnd()
	eval[bool](f, `(openEditor({kind: "reward", s: 1, a: 1, t: 0}), $("editor-value").value = "0.5", $("editor-set").click(), true)`)
	f.wait(`run.edits.length === 1 && run.rounds.decoder.length === 40`)
	f.set("#set-S", 8)
	f.wait(`run.info.S === 8 && decoderRound(0)`)
	f.set("#set-A", 3)
	f.wait(`run.info.A === 3 && decoderRound(0)`)
	f.click("#show-learned")
	f.wait(`run.rounds.learned?.length`)
	f.click("#first") // it plays on
	f.wait(`pos.k === 0 && !work`)
	f.click("#save")
	f.said("may not save files")
	f.click("#share")
	f.said("/page/index.html#m=2&seed=4&show=exact.learned")
	f.click("#play")
	f.wait(`pos.k > 3`)
	shoot(b, "notebook-playing")
}

// frame returns the frame of a tab that shows a page from path.
func frame(b *tab, path string) *tab {
	b.Helper()
	for range 300 {
		targets, err := chromedp.Targets(b)
		if err != nil {
			b.Fatal(err)
		}
		for _, x := range targets {
			if x.Type == "iframe" && strings.Contains(x.URL, path) {
				ctx, cancel := chromedp.NewContext(b, chromedp.WithTargetID(x.TargetID))
				b.Cleanup(cancel)
				f := &tab{TB: b.TB, Context: ctx}
				f.listen()
				return f
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	b.Fatalf("no frame shows %s", path)
	return nil
}

func shot(b *tab, name string) {
	b.Helper()
	var png []byte
	b.run(chromedp.ActionFunc(func(ctx context.Context) (err error) {
		png, err = page.CaptureScreenshot().Do(ctx)
		return err
	}))
	if err := os.WriteFile(filepath.Join(built, "screenshots", name+".png"), png, 0o644); err != nil {
		b.Fatal(err)
	}
}
