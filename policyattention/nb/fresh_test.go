package nb_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"icrl/policyattention/results"
)

// notebook is what the tests read of a notebook.
type notebook struct {
	Cells    []cell
	Metadata struct{ Outputs struct{ Of string } }
}

type cell struct {
	Type     string `json:"cell_type"`
	Source   []string
	Metadata struct {
		Tags    []string
		Jupyter struct {
			SourceHidden bool `json:"source_hidden"`
		}
	}
	Outputs []struct {
		Type     string `json:"output_type"`
		Data     map[string]json.RawMessage
		Metadata map[string]struct{ Alt string }
	}
}

// folder is that of the notebooks.
const folder = "../../notebooks/"

// all returns the notebooks by file.
func all(t *testing.T) map[string]notebook {
	t.Helper()
	files, err := filepath.Glob(folder + "*.ipynb")
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
		list[filepath.Base(file)] = n
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

// TestOutputsAreOfTheirCells holds the outputs of notebooks against the code they came from.
// The execution of the notebooks, which make test does, compares what is computed in them.
func TestOutputsAreOfTheirCells(t *testing.T) {
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
	}
}

var named = regexp.MustCompile(`(?m)^nb\.(?:Show\(store\.Table\("(.*?)"\)\)|` +
	`Of\(store\.Table\("(.*?)"\)\)\.Fold\(\)\.Show\(\))$`)

// Tables that cells show by name are what the rows give.
func TestStoredTables(t *testing.T) {
	store := results.Open("../../artifacts/paper")
	for file, n := range all(t) {
		for i, cell := range n.Cells {
			shown := ""
			for _, o := range cell.Outputs {
				shown += data(o.Data, "text/plain") + "\n"
			}
			for _, m := range named.FindAllStringSubmatch(strings.Join(cell.Source, ""), -1) {
				table, err := store.Table(m[1] + m[2])
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(shown, table.Plain()) {
					t.Errorf("%s: the table of cell %d is stale: make notebooks PRESET=paper", file, i)
				}
			}
		}
	}
}
