package notebooks

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"icrl/policyattention/experiment"
	"icrl/policyattention/nb"
	"icrl/policyattention/report"
)

// notebook is what the tests read of a notebook.
type notebook struct {
	Cells []struct {
		Type     string   `json:"cell_type"`
		Source   []string `json:"source"`
		Metadata struct {
			Tags []string `json:"tags"`
		} `json:"metadata"`
		Outputs []struct {
			Type     string                          `json:"output_type"`
			Data     map[string]json.RawMessage      `json:"data"`
			Metadata map[string]struct{ Alt string } `json:"metadata"`
			Text     []string                        `json:"text"`
		} `json:"outputs"`
	} `json:"cells"`
	Metadata struct {
		Outputs struct {
			Of string `json:"of"`
		} `json:"outputs"`
	} `json:"metadata"`
}

// all returns the notebooks by file.
func all(t *testing.T) map[string]notebook {
	t.Helper()
	files, err := filepath.Glob("*.ipynb")
	if err != nil || len(files) == 0 {
		t.Fatalf("no notebooks: %v", err)
	}
	list := map[string]notebook{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var n notebook
		if err := json.Unmarshal(data, &n); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		list[file] = n
	}
	return list
}

// data returns an output's data of a MIME type, a text or a list of lines.
func data(output map[string]json.RawMessage, mime string) string {
	var lines []string
	if json.Unmarshal(output[mime], &lines) == nil {
		return strings.Join(lines, "")
	}
	var text string
	json.Unmarshal(output[mime], &text)
	return text
}

var (
	caption = regexp.MustCompile(`<(?:figcaption|summary)[^>]*>(.*?)(?: \(\d+ rows\))?</`)
	row     = regexp.MustCompile(`<tr>(<td.*?)</tr>`)
	entry   = regexp.MustCompile(`<td[^>]*>(.*?)</td>`)
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

// TestNotebooksAreFresh holds the tables of the report that notebooks show against those
// that the artifacts give now, and the outputs of all of them against the code they came from.
// The execution of the notebooks, which make test does, compares what is computed in them.
func TestNotebooksAreFresh(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads all committed results")
	}
	store, err := experiment.Open("../artifacts", "paper", "go")
	if err != nil {
		t.Fatal(err)
	}
	now := map[string][]string{} // by caption
	for _, name := range report.TableNames() {
		table, err := report.BuildTable(store, name)
		if err != nil {
			t.Fatal(err)
		}
		shown := nb.Report(table).HTML()
		now[caption.FindStringSubmatch(shown)[1]] = rows(shown)
	}
	for file, n := range all(t) {
		var sources []string
		for _, cell := range n.Cells {
			if cell.Type == "code" {
				sources = append(sources, strings.Join(cell.Source, ""))
			}
		}
		digest := sha256.Sum256([]byte(strings.Join(sources, "\x00")))
		if of := fmt.Sprintf("%x", digest[:8]); n.Metadata.Outputs.Of != of {
			t.Errorf("%s: the outputs are those of other cells: make notebooks PRESET=paper", file)
		}
		for i, cell := range n.Cells {
			for _, o := range cell.Outputs {
				shown := data(o.Data, "text/html")
				title := caption.FindStringSubmatch(shown)
				if title == nil {
					continue
				}
				want, ok := now[title[1]]
				if !ok {
					continue // a table of the notebook's own
				}
				got := rows(shown)
				if !strings.Contains(strings.Join(cell.Source, ""), "nb.Rows(") && len(got) != len(want) {
					t.Errorf("%s: cell %d: %q has %d rows, now %d: make notebooks PRESET=paper", file, i, title[1], len(got), len(want))
				}
				for _, r := range got {
					if !slices.Contains(want, r) {
						t.Errorf("%s: cell %d: %q is stale: make notebooks PRESET=paper: %s", file, i, title[1], r)
						break
					}
				}
			}
		}
	}
}
