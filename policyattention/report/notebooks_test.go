package report_test

import (
	"encoding/json"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"icrl/internal/testkit"
	"icrl/policyattention/nb/evidence"
	"icrl/policyattention/report"
)

var (
	caption = regexp.MustCompile(`<(?:figcaption|summary)[^>]*>(.*?)(?: \(\d+ rows\))?</`)
	row     = regexp.MustCompile(`<tr>(<td.*?)</tr>`)
	entry   = regexp.MustCompile(`<td[^>]*>(.*?)</td>`)
	named   = regexp.MustCompile(`(?:\.Table|\.Fold|Rows|BuildTable)\((?:[\w.]+, )?"([\w-]+)"`)
	code    = strings.NewReplacer("<code>", "", "</code>", "", "`", "")
)

// rows returns the rows of a table in HTML, their entries separated by bars.
func rows(table string) (list []string) {
	for _, r := range row.FindAllStringSubmatch(table, -1) {
		var entries []string
		for _, e := range entry.FindAllStringSubmatch(r[1], -1) {
			entries = append(entries, html.UnescapeString(code.Replace(e[1])))
		}
		list = append(list, strings.Join(entries, " | "))
	}
	return list
}

// entries returns the entries of rows.
func entries(rows []string) (list []string) {
	for _, r := range rows {
		list = append(list, strings.Split(r, " | ")...)
	}
	return list
}

// The tables of the report that notebooks show are those that the artifacts give now. What
// else notebooks show is compared where they are executed.
func TestNotebooksAreFresh(t *testing.T) {
	now, captions := map[string][]string{}, map[string]string{} // by caption, by name
	for _, name := range report.TableNames() {
		shown := evidence.Report(report.Stored(t, name)).HTML()
		captions[name] = caption.FindStringSubmatch(shown)[1]
		now[captions[name]] = rows(shown)
	}
	files, err := filepath.Glob("../../notebooks/*.ipynb")
	if err != nil {
		t.Fatal(err)
	}
	held := 0
	for _, file := range files {
		var n struct {
			Cells []struct {
				Source  []string `json:"source"`
				Outputs []struct {
					Data struct {
						HTML []string `json:"text/html"`
					} `json:"data"`
				} `json:"outputs"`
			} `json:"cells"`
		}
		testkit.Check(t, json.Unmarshal(testkit.Must(os.ReadFile(file))(t), &n))
		for i, cell := range n.Cells {
			source, titles := strings.Join(cell.Source, ""), map[string]bool{}
			for _, o := range cell.Outputs {
				shown := strings.Join(o.Data.HTML, "")
				title := caption.FindStringSubmatch(shown)
				if title == nil || now[title[1]] == nil {
					continue // a table of the notebook's own
				}
				held++
				titles[title[1]] = true
				got, want := rows(shown), now[title[1]]
				if strings.Contains(source, ".Only(") { // some columns: each entry is one of the table's
					got, want = entries(got), entries(want)
				} else if !strings.Contains(source, "evidence.Rows(") && len(got) != len(want) {
					t.Errorf("%s: cell %d: %q has %d rows, now %d: make notebooks PRESET=paper", file, i, title[1], len(got), len(want))
				}
				for _, r := range got {
					if !slices.Contains(want, r) {
						t.Errorf("%s: cell %d: %q is stale: make notebooks PRESET=paper: %s", file, i, title[1], r)
						break
					}
				}
			}
			for _, asked := range named.FindAllStringSubmatch(source, -1) {
				if want := captions[asked[1]]; !titles[want] {
					t.Errorf("%s: cell %d: no table %q, as %s is called now: make notebooks PRESET=paper", file, i, want, asked[1])
				}
			}
		}
	}
	if held < 10 {
		t.Errorf("%d tables of the report were found in notebooks", held)
	}
}
