package report

import (
	"encoding/json"
	"strings"
	"testing"

	"icrl/policyattention/equal"
	"icrl/policyattention/experiment"
)

// The tables and figures of the stored evidence are complete; without evidence they say that it
// is missing.
func TestEqual(t *testing.T) {
	e, err := equal.Read(equal.Folder("../../artifacts"))
	if err != nil {
		t.Fatal(err)
	}
	sentences, err := SentenceTable(e)
	if err != nil {
		t.Fatal(err)
	}
	if len(sentences.Rows) != 4 || !strings.Contains(sentences.Rows[0][2], "Of the lead over Liang–Lai as published") {
		t.Errorf("sentences: %q", sentences.Rows)
	}
	compared, err := ComparisonTable(e, func(c equal.Condition) bool { return c.Information == equal.Model })
	if err != nil {
		t.Fatal(err)
	}
	if len(compared.Rows) != len(equal.Methods(equal.Model)) || !strings.HasPrefix(compared.Rows[1][2], "loss ") {
		t.Errorf("with the model: %q", compared.Rows)
	}
	if _, err := json.Marshal([]Table{sentences, compared}); err != nil {
		t.Errorf("as JSON: %v", err)
	}
	store, err := experiment.Open("../../artifacts", "paper", "")
	if err != nil {
		t.Fatal(err)
	}
	missing, err := experiment.Open(t.TempDir(), "smoke", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"equal-transitions", "equal-operations"} {
		f, err := BuildFigure(store, name)
		if err != nil {
			t.Fatal(err)
		}
		if len(f.panels) != 4 || strings.Contains(f.panels[0].Title.Text, NotRun) {
			t.Errorf("%s has %d panels, the first is called %q", name, len(f.panels), f.panels[0].Title.Text)
		}
		if top := f.panels[0].Y.Max; top > 1 || f.panels[0].Legend.XOffs != 0 || f.panels[1].Legend.XOffs == 0 {
			t.Errorf("%s: the axis of losses, which are at most 1, ends at %g, or the legend is not right of the row", name, top)
		}
		if f, err = BuildFigure(missing, name); err != nil || !strings.Contains(f.panels[0].Title.Text, NotRun) {
			t.Errorf("%s without evidence: %v", name, err)
		}
	}
	if filled, err := Fill(missing, opening+"equal-lead -->\n"+closing); err != nil || !strings.Contains(filled, NotRun) {
		t.Errorf("a document without evidence: %q, %v", filled, err)
	}
}
