package nb_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"icrl/policyattention/results"
)

// Notebooks are kept executed and small: each cell that runs has an output, in a form that
// terminals show too, figures are also PNGs with an alternative text, and none is an error.
func TestNotebooksAreExecuted(t *testing.T) {
	for file, n := range all(t) {
		if info, err := os.Stat(folder + file); err != nil || info.Size() > 900_000 {
			t.Errorf("%s has %d bytes, want at most 900,000: %v", file, info.Size(), err)
		}
		for i, cell := range n.Cells {
			runs := slices.ContainsFunc(cell.Source, func(line string) bool { return strings.HasPrefix(line, "%%") })
			if cell.Type == "code" && runs && len(cell.Outputs) == 0 {
				t.Errorf("%s: cell %d has no output", file, i)
			}
			for _, o := range cell.Outputs {
				if o.Type == "error" {
					t.Errorf("%s: cell %d holds an error", file, i)
				}
				if o.Type == "display_data" && data(o.Data, "text/plain") == "" {
					t.Errorf("%s: cell %d shows something without text", file, i)
				}
				picture := o.Data["image/svg+xml"] != nil ||
					strings.Contains(data(o.Data, "text/html"), "data:image/png")
				if o.Data["image/png"] != nil && o.Metadata["image/png"].Alt == "" {
					t.Errorf("%s: cell %d shows a figure without an alternative text", file, i)
				}
				if picture && o.Data["image/png"] == nil && !strings.Contains(data(o.Data, "text/html"), "The page:") {
					t.Errorf("%s: cell %d shows a figure without PNG", file, i)
				}
			}
		}
	}
}

// Visual Studio Code and GitHub take a dollar for the beginning of a formula only if no letter
// or digit stands before it, and for its end only if none follows; JupyterLab is less strict.
var (
	code    = regexp.MustCompile("(?s)```.*?```|`[^`]*`")
	formula = regexp.MustCompile(`[^$]?\$[^$]+\$[^$]?`)
	glued   = regexp.MustCompile(`^[\pL\pN]\$|\$[\pL\pN]$|^.?\$\s|\s\$.?$`)
)

func TestFormulas(t *testing.T) {
	for _, bad := range []string{"from Dir$(1)$, x", "$x$s", "a $ x$ b"} {
		if !slices.ContainsFunc(formula.FindAllString(bad, -1), glued.MatchString) {
			t.Errorf("%q passes", bad)
		}
	}
	for file, n := range all(t) {
		for i, cell := range n.Cells {
			if cell.Type != "markdown" {
				continue
			}
			text := strings.ReplaceAll(code.ReplaceAllString(strings.Join(cell.Source, ""), ""), "$$", "\n")
			for _, f := range formula.FindAllString(text, -1) {
				if glued.MatchString(f) {
					t.Errorf("%s: cell %d: %q is no formula for every reader", file, i, f)
				}
			}
		}
	}
}

// Every notebook has three exercises, graded and with a hint, whose checks refuse the text as it stands, and for
// each a folded solution that the same check accepts.
func TestExercises(t *testing.T) {
	check := regexp.MustCompile(`nb\.Check\(.*\)`)
	for file, n := range all(t) {
		exercises, solutions := map[string]bool{}, map[string]bool{}
		asked, ahead := "", "" // the last text, and those of the exercises
		for i, cell := range n.Cells {
			if cell.Type == "markdown" {
				asked = strings.Join(cell.Source, "")
			}
			shown := ""
			for _, o := range cell.Outputs {
				shown += data(o.Data, "text/plain")
			}
			call := check.FindString(strings.Join(cell.Source, ""))
			switch {
			case slices.Contains(cell.Metadata.Tags, "exercise"):
				exercises[call] = true
				ahead += asked
				if !strings.Contains(asked, "<summary>Hint</summary>") {
					t.Errorf("%s: the exercise of cell %d has no hint", file, i)
				}
				if !strings.Contains(shown, "✗ not yet") {
					t.Errorf("%s: the exercise of cell %d shows %q", file, i, shown)
				}
			case slices.Contains(cell.Metadata.Tags, "solution"):
				solutions[call] = true
				if !strings.Contains(shown, "✓ solved") {
					t.Errorf("%s: the solution of cell %d shows %q", file, i, shown)
				}
			}
		}
		for k, grade := range []string{"★", "★★", "★★★"} {
			if want := fmt.Sprintf("**Exercise %d** %s ", k+1, grade); !strings.Contains(ahead, want) {
				t.Errorf("%s has no %q", file, want)
			}
		}
		if len(exercises) != 3 {
			t.Errorf("%s has %d exercises, want 3", file, len(exercises))
		}
		for call := range exercises {
			if !solutions[call] {
				t.Errorf("%s: %s has no solution", file, call)
			}
		}
	}
}

// seen returns the lines of code that a reader sees: not those of collapsed cells, blank ones and comments.
func (c cell) seen() (lines []string) {
	if c.Type == "markdown" || c.Metadata.Jupyter.SourceHidden {
		return nil
	}
	for _, line := range c.Source {
		if line = strings.TrimSpace(line); line != "" && line != "%%" && !strings.HasPrefix(line, "//") {
			lines = append(lines, line)
		}
	}
	return lines
}

// plumbing are lines that choose, format or show, and compute nothing.
var plumbing = regexp.MustCompile(`\bt = nb|nb\.(New|Say|Show|Of|Figure|HTML)|\bt\.(Add|Note|Show)|` +
	`\.(Line|Dashed|Dots|LogX|LogY|Show|Say|Write)\(|fmt\.|Glob\(|strings\.`)

// The notebooks are short, say what for, ask before they show, and say what would prove them wrong.
func TestNotebooksAreShort(t *testing.T) {
	words, lines, plumbed := 0, 0, 0
	for file, n := range all(t) {
		text := ""
		for _, cell := range n.Cells {
			if cell.Type == "markdown" {
				text += strings.Join(cell.Source, "") + "\n"
			}
			for _, line := range cell.seen() {
				if lines++; plumbing.MatchString(line) {
					plumbed++
				}
			}
		}
		words += len(strings.Fields(text))
		for _, part := range []string{"By the end you can", "**Predict", "**What would falsify this notebook:**"} {
			if !strings.Contains(text, part) {
				t.Errorf("%s has no %q", file, part)
			}
		}
	}
	t.Logf("%d words, %d lines, of which %d are plumbing", words, lines, plumbed)
	if words > 9000 || lines > 900 || 4*plumbed > lines {
		t.Errorf("the notebooks have %d words, %d lines and %d of plumbing, want at most 9,000, 900 and a quarter",
			words, lines, plumbed)
	}
}

// The network of notebook 2, from the tokens to the curve of its loss, is fewer than 100 lines of
// code that a reader sees, but for exercises.
func TestModelInView(t *testing.T) {
	lines, heading := 0, ""
	for _, cell := range all(t)["02-what-the-actor-learns.ipynb"].Cells {
		if cell.Type == "markdown" {
			for _, line := range cell.Source {
				if strings.HasPrefix(line, "## ") {
					heading = strings.TrimSpace(line[3:])
				}
			}
			continue
		}
		if !slices.Contains(cell.Metadata.Tags, "exercise") &&
			slices.Contains([]string{"Tokens", "One block", "The network and its loss", "Training"}, heading) {
			lines += len(cell.seen())
		}
	}
	if lines < 50 || lines >= 100 {
		t.Errorf("notebook 2 shows the network in %d lines, want at least 50 and fewer than 100", lines)
	}
}

// The index at the head of notebook 1 names every table and figure of the paper, and the notebook
// that it names says "This is Figure 2" under the heading that it names.
func TestIndex(t *testing.T) {
	list := all(t)
	head := strings.Join(list["01-pmd-and-the-oracle.ipynb"].Cells[0].Source, "")
	line := regexp.MustCompile(`(?m)^\| ((?:Figure|Table) \d).*\| \[.*?\]\((.*?)\), "(.*?)" \|$`)
	found := map[string]bool{}
	for _, m := range line.FindAllStringSubmatch(head, -1) {
		found[m[1]] = true
		says := func(text string) bool {
			return strings.Contains(text, "This is "+m[1]) || strings.Contains(text, "below it "+m[1])
		}
		under := false
		for _, cell := range list[m[2]].Cells {
			text := strings.Join(cell.Source, "")
			under = under || cell.Type == "markdown" && strings.Contains(text, "## "+m[3]) && says(text)
		}
		if !under {
			t.Errorf("%s has no heading %q under which it says \"This is %s\"", m[2], m[3], m[1])
		}
	}
	if len(found) != 9 { // Tables 1 to 4, Figures 1 to 5
		t.Errorf("the index has %d entries, want 9", len(found))
	}
}

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
