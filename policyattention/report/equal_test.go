package report

import (
	"encoding/json"
	"strings"
	"testing"

	"icrl/internal/testkit"
	"icrl/policyattention/equal"
	"icrl/policyattention/experiment"
)

// The tables and figures of the stored evidence are complete; without evidence they say that it
// is missing.
func TestEqual(t *testing.T) {
	e := testkit.Must(equal.Read(equal.Folder("../../artifacts")))(t)
	sentences := testkit.Must(SentenceTable(e))(t)
	if len(sentences.Rows) != 4 || !strings.Contains(sentences.text()[0][2], "Of the lead over Liang–Lai as published") {
		t.Errorf("sentences: %q", sentences.Rows)
	}
	compared := testkit.Must(ComparisonTable(e, func(c equal.Condition) bool { return c.Information == equal.Model }))(t)
	if len(compared.Rows) != len(equal.Methods(equal.Model)) || !strings.HasPrefix(compared.text()[1][2], "loss ") {
		t.Errorf("with the model: %q", compared.Rows)
	}
	if _, err := json.Marshal([]Table{sentences, compared}); err != nil {
		t.Errorf("as JSON: %v", err)
	}
	store := testkit.Must(experiment.Open("../../artifacts", "paper", ""))(t)
	missing := testkit.Must(experiment.Open(t.TempDir(), "smoke", ""))(t)
	for _, name := range []string{"equal-transitions", "equal-operations"} {
		f := testkit.Must(BuildFigure(store, name))(t)
		if len(f.Panels) != 4 || strings.Contains(f.Panels[0].Title.Text, NotRun) {
			t.Errorf("%s has %d panels, the first is called %q", name, len(f.Panels), f.Panels[0].Title.Text)
		}
		if top := f.Panels[0].Y.Max; top > 1 || len(f.Panels[0].Ends) > 1 || len(f.Panels[1].Ends) < 4 {
			t.Errorf("%s: the axis of losses, which are at most 1, ends at %g, or the names are not right of the row", name, top)
		}
		if f = testkit.Must(BuildFigure(missing, name))(t); !strings.Contains(f.Panels[0].Title.Text, NotRun) {
			t.Errorf("%s is drawn without evidence", name)
		}
	}
	if filled, err := Fill(missing, opening+"equal-lead -->\n"+closing); err != nil || !strings.Contains(filled, NotRun) {
		t.Errorf("a document without evidence: %q, %v", filled, err)
	}
}
