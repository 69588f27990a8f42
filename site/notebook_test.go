package main

import (
	"html"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNotebook opens the whole page as the notebook on the decoder does, from a server that gives files to a
// sandbox, as Jupyter's does: it runs, and says what a sandbox forbids.
func TestNotebook(t *testing.T) {
	b := newTab(t)
	folder := t.TempDir()
	if err := Build(filepath.Join(folder, "page"), true); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile("../notebooks/04-the-decoder.ipynb")
	if err != nil {
		t.Fatal(err)
	}
	_, address, found := strings.Cut(string(data), `src=\"page/index.html`)
	address, _, closed := strings.Cut(address, `\"`)
	if !found || !closed {
		t.Fatal("the notebook shows no page")
	}
	files := http.FileServer(http.Dir(folder))
	jupyter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "frame-ancestors 'self'; sandbox allow-scripts")
		files.ServeHTTP(w, r)
	}))
	defer jupyter.Close()
	b.open(jupyter.URL + "/page/" + html.UnescapeString(address))
	b.wait(`pos.stage === 1 && !work`)
	if got := eval[string](b, `[run.info.S, run.info.A, run.settings.m, view.part].join()`); got != "3,2,2,weight" {
		t.Errorf("the page shows %s", got)
	}
	if foot := eval[string](b, `document.getElementById("links").innerHTML`); strings.Contains(foot, "<a ") {
		t.Errorf("a page that is a whole has the foot %q", foot)
	}
	b.toEnd()
	b.edit(`{kind: "reward", s: 1, a: 1, t: 0}`, "0.5")
	b.wait(`run.edits.length === 1 && run.rounds.decoder.length === 40`)
	b.click("#show-learned")
	b.wait(`run.rounds.learned?.length`)
	b.click("#save")
	b.said("may not save files")
	b.click("#share")
	b.said("&show=exact.learned")
}
