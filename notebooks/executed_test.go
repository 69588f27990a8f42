package notebooks

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Notebooks are kept executed and small: each cell that runs has an output, and none an error.
func TestNotebooksAreExecuted(t *testing.T) {
	files, err := filepath.Glob("*.ipynb")
	if err != nil || len(files) == 0 {
		t.Fatalf("no notebooks: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > 500_000 {
			t.Errorf("%s has %d bytes, want at most 500,000", file, len(data))
		}
		var contents struct {
			Cells []struct {
				Type    string   `json:"cell_type"`
				Source  []string `json:"source"`
				Outputs []struct {
					Type string `json:"output_type"`
				} `json:"outputs"`
			} `json:"cells"`
		}
		if err := json.Unmarshal(data, &contents); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for i, cell := range contents.Cells {
			runs := false
			for _, line := range cell.Source {
				runs = runs || strings.HasPrefix(line, "%%")
			}
			if cell.Type == "code" && runs && len(cell.Outputs) == 0 {
				t.Errorf("%s: cell %d has no output", file, i)
			}
			for _, o := range cell.Outputs {
				if o.Type == "error" {
					t.Errorf("%s: cell %d holds an error", file, i)
				}
			}
		}
	}
}
