package notebooks

import (
	"encoding/json"
	"html"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"icrl/policyattention/experiment"
	"icrl/policyattention/report"
)

// row is a table's row in HTML.
var row = regexp.MustCompile(`<tr>(<td>.*?)</tr>`)

// TestNotebooksAreFresh holds the tables in the notebooks that read the stored evidence
// against those that the artifacts give now.
func TestNotebooksAreFresh(t *testing.T) {
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
		var b strings.Builder
		if err := table.HTML(&b); err != nil {
			t.Fatal(err)
		}
		for _, m := range row.FindAllStringSubmatch(b.String(), -1) {
			now[table.Title] = append(now[table.Title], m[1])
		}
	}
	for _, file := range []string{"05-closed-loop-confirmation.ipynb", "06-scaling-and-frontier.ipynb", "07-qualifying-the-baselines.ipynb", "08-the-benchmark.ipynb"} {
		compared := 0
		for _, shown := range tables(t, file) {
			caption, _, _ := strings.Cut(shown, "</caption>")
			_, caption, _ = strings.Cut(caption, "<caption>")
			caption = html.UnescapeString(caption)
			want, ok := now[caption]
			if !ok {
				continue // a table of the notebook's own
			}
			rows := row.FindAllStringSubmatch(strings.ReplaceAll(shown, ` style="text-align:left"`, ""), -1)
			if strings.Contains(shown, ">preset</th>") && len(rows) != len(want) { // else it is part of the table
				t.Errorf("%s: %q has %d rows, now %d: make notebooks PRESET=paper", file, caption, len(rows), len(want))
			}
			for _, m := range rows {
				compared++
				if got := strings.TrimSuffix(m[1], "<td>paper</td>"); !slices.Contains(want, got) {
					t.Errorf("%s: %q is stale: make notebooks PRESET=paper: %s", file, caption, got)
					break
				}
			}
		}
		if compared == 0 {
			t.Errorf("%s shows no table of the report", file)
		}
	}
}

// tables returns the outputs of a notebook that hold a table.
func tables(t *testing.T, file string) (found []string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var notebook struct {
		Cells []struct {
			Outputs []struct {
				Data struct {
					HTML []string `json:"text/html"`
				} `json:"data"`
			} `json:"outputs"`
		} `json:"cells"`
	}
	if err := json.Unmarshal(data, &notebook); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	for _, cell := range notebook.Cells {
		for _, o := range cell.Outputs {
			if text := strings.Join(o.Data.HTML, ""); strings.Contains(text, "<caption>") {
				found = append(found, text)
			}
		}
	}
	return found
}
