package results

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"icrl/internal/testkit"
)

var update = flag.Bool("update", false, "write the tables of documents again")

const root = "../../"

// documents lists all Markdown files.
func documents(t *testing.T) (files []string) {
	t.Helper()
	for _, pattern := range []string{"*.md", "docs/*.md", "artifacts/*.md", "notebooks/*.md", "policyattention/*/*.md",
		"policyattention/*/*/*.md"} {
		files = append(files, testkit.Must(filepath.Glob(root+pattern))(t)...)
	}
	return files
}

// filled is what stands between the markers of a table.
var filled = regexp.MustCompile(`(?s)<!-- table: ([a-z0-9-]+) -->\n.*?<!-- end -->`)

// fill writes the tables between the markers of a document again, each above its name.
func fill(t *testing.T, text string) string {
	t.Helper()
	if n := len(filled.FindAllString(text, -1)); n != strings.Count(text, "<!-- table: ") {
		t.Errorf("%d tables between markers, others have no end", n)
	}
	return filled.ReplaceAllStringFunc(text, func(old string) string {
		name := filled.FindStringSubmatch(old)[1]
		var b strings.Builder
		testkit.Check(t, testkit.Must(stored.Table(name))(t).Write(&b, "md"))
		_, body, _ := strings.Cut(b.String(), "\n\n") // without the title
		return "<!-- table: " + name + " -->\n\n" + body + "`table " + name + "`\n\n<!-- end -->"
	})
}

// The tables of documents are what their queries give.
func TestDocuments(t *testing.T) {
	for _, file := range documents(t) {
		if strings.HasSuffix(file, "speed.md") {
			continue // its table is that of scripts/race.py
		}
		text := read(t, file)
		if want := fill(t, text); *update && want != text {
			testkit.Check(t, os.WriteFile(file, []byte(want), 0o644))
		} else if want != text {
			t.Errorf("%s: its tables are stale: make claims", file)
		}
	}
}

// The figures of documents are what rows give.
func TestDocumentedFigures(t *testing.T) {
	for _, file := range testkit.Must(filepath.Glob(root + "docs/figures/figure-*.svg"))(t) {
		name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "figure-"), ".svg")
		want := testkit.Must(testkit.Must(stored.Figure(name))(t).SVG())(t)
		if read(t, file) != string(want) {
			t.Errorf("%s is stale: make claims", file)
		}
	}
}

var (
	link = regexp.MustCompile(`\]\(([^)#\s]*)(#[^)\s]*)?\)`)
	path = regexp.MustCompile("(?:^|[\\s`\"'(=])(?:\\./)?((?:policyattention|scripts|notebooks|docs|site|wasm|" +
		"artifacts|\\.binder)/[A-Za-z0-9_./-]*[A-Za-z0-9])")
	table  = regexp.MustCompile("(?:policyattention|paper|json|policyattention`) (table|figure) ([a-z0-9-]+)")
	target = regexp.MustCompile("(?m)(?:^|`)make ([a-z-]+)")
	test   = regexp.MustCompile("`?(?:([a-z]+)\\.)?((?:Test|Example)[A-Z][A-Za-z_]+)`?")
	symbol = regexp.MustCompile("`([a-z]+)\\.((?:[A-Z][A-Za-z]*\\.)?[A-Z][A-Za-z]*)`")
	tables = regexp.MustCompile(`(?s)<!-- table.*?<!-- end -->`)
	dashes = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// Links, anchors and paths of documents lead somewhere, in code too, and tables, figures, targets of make, tests
// and names of Go are those that there are.
func TestLinks(t *testing.T) {
	makefile := read(t, root+"Makefile")
	var tests string
	sources := map[string]string{} // by package
	testkit.Check(t, filepath.WalkDir(root+"policyattention", func(name string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(name, "_test.go") {
			tests += read(t, name)
		} else if strings.HasSuffix(name, ".go") {
			sources[filepath.Base(filepath.Dir(name))] += read(t, name)
		}
		return err
	}))
	for _, file := range documents(t) {
		text := read(t, file)
		exists := func(name string) {
			if _, err := os.Stat(name); err != nil {
				t.Errorf("%s names %s: %v", file, name, err)
			}
		}
		declared := func(where, pattern, name string) {
			if !regexp.MustCompile(pattern).MatchString(where) {
				t.Errorf("%s names %s, which is not there", file, name)
			}
		}
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			to := filepath.Join(filepath.Dir(file), m[1])
			if m[1] == "" {
				to = file
			}
			if exists(to); m[2] != "" {
				at := slices.IndexFunc(strings.Split(read(t, to), "\n"), func(line string) bool {
					heading := strings.ToLower(strings.TrimLeft(line, "# "))
					return strings.HasPrefix(line, "#") &&
						"#"+strings.ReplaceAll(dashes.ReplaceAllString(heading, ""), " ", "-") == m[2]
				})
				if at < 0 {
					t.Errorf("%s: %s has no heading %s", file, to, m[2])
				}
			}
		}
		for _, m := range path.FindAllStringSubmatch(text, -1) {
			exists(root + m[1])
		}
		for _, m := range table.FindAllStringSubmatch(text, -1) {
			known := map[string][]string{"table": TableNames(), "figure": FigureNames()}[m[1]]
			if !slices.Contains(known, m[2]) {
				t.Errorf("%s: no %s %q", file, m[1], m[2])
			}
		}
		for _, m := range target.FindAllStringSubmatch(text, -1) {
			declared(makefile, `(?m)^(`+m[1]+`:|.PHONY:.*\b`+m[1]+`\b)`, "make "+m[1])
		}
		for _, m := range test.FindAllStringSubmatch(text, -1) {
			declared(tests, `(?m)^func `+m[2]+`\(`, m[2])
		}
		for _, m := range symbol.FindAllStringSubmatch(text, -1) {
			name := m[2][strings.LastIndex(m[2], ".")+1:]
			if strings.HasPrefix(name, "Test") {
				continue
			}
			declared(sources[m[1]], `(?m)^(func (\([^)]*\) )?|type |\t|var |const )`+name+`\b`, m[1]+"."+m[2])
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	return string(testkit.Must(os.ReadFile(file))(t))
}

var (
	unread = regexp.MustCompile("(?s)<!-- table.*?<!-- end -->|```.*?```|`[^`]*`|\\]\\([^)]*\\)")
	// What a sentence may say without a query: sizes and settings, counts of what was drawn, the level of intervals,
	// versions, dates and sections, and the ends of a scale.
	given = regexp.MustCompile(`[STγη] (=|is) [\d.]+((, | and )\d+)*|\d[\d,]*((, | and )\d[\d,]*)* ([a-z]+ )?` +
		`(problems|transitions|states|steps|backups)|95 % intervals|(Go|Table|Figure|Section) [\d.]+|Apache-2\.0|` +
		`S5RL|\b20\d\d\b|\b[01]\b`)
	measured = regexp.MustCompile(`.*(\d|\b(half|twice|tenths?|(two|three|four|five|six|seven) times)\b).*`)
)

// Documents of results have no measured number outside of what queries fill.
func TestNumbersInProse(t *testing.T) {
	bare := func(text string) string {
		return measured.FindString(given.ReplaceAllString(unread.ReplaceAllString(text, ""), ""))
	}
	for _, bad := range []string{"82 % of draws", "a loss of .0108", "nine tenths of it", "at T = 40 it is 1.3 times"} {
		if bare(bad) == "" {
			t.Errorf("%q passes", bad)
		}
	}
	for _, file := range []string{"README.md", "RESULTS.md", "docs/learned.md"} {
		if found := bare(read(t, root+file)); found != "" {
			t.Errorf("%s has a number that no query fills: %s", file, found)
		}
	}
}

// Documents are short.
func TestWords(t *testing.T) {
	most := map[string]int{"README.md": 800, "RESULTS.md": 4000, "CLAIMS.md": 4000, "CONTRIBUTING.md": 800,
		"CHANGELOG.md": 800}
	for _, file := range documents(t) {
		limit, ok := most[filepath.Base(file)]
		switch {
		case ok:
		case strings.Contains(file, "docs/"), strings.HasSuffix(file, "FORMAT.md"):
			limit = 800
		default: // model cards
			limit = 700
		}
		text := read(t, file)
		if !ok && strings.Contains(file, "docs/") { // tables there are those of queries
			text = tables.ReplaceAllString(text, "")
		}
		if n := len(strings.Fields(text)); n > limit {
			t.Errorf("%s has %d words, want at most %d", file, n, limit)
		}
	}
}
