package results

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"icrl/policyattention/report"
)

var update = flag.Bool("update", false, "write the tables of documents again")

const root = "../../"

// documents lists all Markdown files.
func documents(t *testing.T) (files []string) {
	t.Helper()
	for _, pattern := range []string{"*.md", "docs/*.md", "artifacts/*.md", "policyattention/*/*.md",
		"policyattention/*/*/*.md"} {
		found, err := filepath.Glob(root + pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	return files
}

// The tables of documents are what their queries give.
func TestDocuments(t *testing.T) {
	s := paperRows(t)
	for _, file := range documents(t) {
		if strings.HasSuffix(file, "speed.md") {
			continue // its tables are package bench's
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want, err := report.Fill(string(text), s.Table)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if *update && want != string(text) {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		} else if want != string(text) {
			t.Errorf("%s: its tables are stale: go test ./policyattention/results -run TestDocuments -update", file)
		}
	}
}

// The figures of documents are what rows give.
func TestDocumentedFigures(t *testing.T) {
	files, err := filepath.Glob(root + "docs/figures/figure-*.svg")
	if err != nil {
		t.Fatal(err)
	}
	s := paperRows(t)
	for _, file := range files {
		f, err := s.Figure(strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "figure-"), ".svg"))
		if err != nil {
			t.Fatal(err)
		}
		want, err := f.SVG()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(file); err != nil || string(got) != string(want) {
			t.Errorf("%s is stale (%v): make claims", file, err)
		}
	}
}

var (
	link  = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)\s]*)?\)`)
	path  = regexp.MustCompile("`((?:policyattention|scripts|notebooks|docs|site|wasm|artifacts)/[A-Za-z0-9_./-]+)`")
	table = regexp.MustCompile("policyattention (table|figure) ([a-z0-9-]+)")
)

// Links and paths of documents lead somewhere, and commands name what there is.
func TestLinks(t *testing.T) {
	for _, file := range documents(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		exists := func(name string) {
			if _, err := os.Stat(name); err != nil {
				t.Errorf("%s names %s: %v", file, name, err)
			}
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(m[1], "://") {
				exists(filepath.Join(filepath.Dir(file), m[1]))
			}
		}
		for _, m := range path.FindAllStringSubmatch(string(text), -1) {
			exists(root + m[1])
		}
		for _, m := range table.FindAllStringSubmatch(string(text), -1) {
			known := map[string][]string{"table": TableNames(), "figure": FigureNames()}[m[1]]
			if !slices.Contains(known, m[2]) {
				t.Errorf("%s: no %s %q", file, m[1], m[2])
			}
		}
	}
}

// Documents are short.
func TestWords(t *testing.T) {
	for file, most := range map[string]int{"README.md": 800, "RESULTS.md": 4000, "CLAIMS.md": 4000} {
		text, err := os.ReadFile(root + file)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(strings.Fields(string(text))); n > most {
			t.Errorf("%s has %d words, want at most %d", file, n, most)
		}
	}
}
