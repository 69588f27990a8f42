package report

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"icrl/internal/testkit"
	"icrl/policyattention/experiment"
)

// documents are those whose tables come from the artifacts.
var documents = []string{"../../README.md", "../../RESULTS.md", "../../docs/equal-information.md", "../../docs/critics.md", "../../docs/speed.md", "../../artifacts/MODELS.md", "../anymdp/critic/MODEL.md"}

// The tables and figures of README and RESULTS are what the artifacts give; `make
// claims` writes them again. Their other text has no number of a result.
func TestDocuments(t *testing.T) {
	stored := stored(t)
	for _, name := range documents {
		text := testkit.Must(os.ReadFile(name))(t)
		want := testkit.Must(stored.fill(string(text)))(t)
		if want != string(text) {
			t.Errorf("%s is stale (%s): run make claims", name, difference(text, []byte(want)))
		}
		if name == documents[0] {
			if n := len(strings.Fields(want)); n > 1200 {
				t.Errorf("%s has %d words, want at most 1200", name, n)
			}
		}
	}
	drawn, err := filepath.Glob("../../docs/figures/*.svg")
	if err != nil || len(drawn) == 0 {
		t.Fatalf("%d figures, %v", len(drawn), err)
	}
	for _, path := range drawn {
		figure := testkit.Must(stored.figure(strings.TrimSuffix(filepath.Base(path), ".svg")))(t)
		want := testkit.Must(figure.SVG())(t)
		got := testkit.Must(os.ReadFile(path))(t)
		if !bytes.Equal(got, want) {
			t.Errorf("%s is stale (%s): run make claims", path, difference(got, want))
		}
	}
}

// Every image of a document has an alternative text, more than its file's name, and is there.
func TestImagesHaveText(t *testing.T) {
	image := regexp.MustCompile(`!\[([^\]]*)\]\(([^)\s]*)[^)]*\)`)
	count := 0
	for _, pattern := range []string{"*.md", "docs/*.md", "artifacts/*.md", "policyattention/*/*/*.md"} {
		files, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), "<img") {
				t.Errorf("%s has an image in HTML, which this test does not read", file)
			}
			for _, m := range image.FindAllStringSubmatch(string(text), -1) {
				count++
				if len(strings.Fields(m[1])) < 3 {
					t.Errorf("%s: the alternative text of %s is %q", file, m[2], m[1])
				}
				if _, err := os.Stat(filepath.Join(filepath.Dir(file), m[2])); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if count < 5 {
		t.Errorf("found %d images, want those of README.md and RESULTS.md", count)
	}
}

func TestFill(t *testing.T) {
	store := testkit.Must(experiment.Open(t.TempDir(), "paper", "go"))(t)
	for _, wrong := range []string{"<!-- table: none -->\n<!-- end -->", "<!-- table: oracle -->\nnot closed", "<!-- table: oracle",
		"<!-- value: oracle; S=8; paper --><!-- end -->", "<!-- value: oracle; S=9; T=20; paper --><!-- end -->", "<!-- value: oracle; S=8; T=20; none --><!-- end -->", "<!-- value: oracle; s=8; T=20; paper --><!-- end -->"} {
		if got, err := Fill(store, wrong); err == nil {
			t.Errorf("%q became %q", wrong, got)
		}
	}
	for marker, want := range map[string]string{
		"oracle; S=8; T=20; paper": "0.0148", "losses; controller=PolicyAttention; S=8; T=20; paper's ratio": "1.31",
	} {
		got, err := Fill(store, "It is <!-- value: "+marker+" -->old<!-- end -->.")
		if err != nil || got != "It is <!-- value: "+marker+" -->"+want+"<!-- end -->." {
			t.Errorf("%q became %q, %v", marker, got, err)
		}
	}
	got := testkit.Must(Fill(store, "before\n<!-- table: oracle -->\nold\n<!-- end -->\nafter\n"))(t)
	if !strings.HasPrefix(got, "before\n<!-- table: oracle -->\n| S | T | paper | here | 95% interval |\n") || !strings.HasSuffix(got, "|\n<!-- end -->\nafter\n") || strings.Contains(got, "old") {
		t.Errorf("filled: %s", got)
	}
}
