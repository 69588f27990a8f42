package evidence

import (
	"strings"
	"testing"

	"icrl/policyattention/experiment"
	"icrl/policyattention/results"
)

// The tables of the paper have its rows and columns, and its numbers: those of Table 3 are
// copied here from the paper.
func TestPaperTables(t *testing.T) {
	if testing.Short() {
		t.Skip("it reads all committed results")
	}
	store, err := experiment.Open("../../../artifacts", "paper", "go")
	if err != nil {
		t.Fatal(err)
	}
	s := results.New(store)
	three, err := table3(s)
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{
		{"0.0193", "0.0108", "0.0273", "0.0224"},
		{"0.0189", "0.0106", "0.0232", "0.0144"},
		{"0.0225", "0.0121", "–", "–"},
		{"0.453", "0.281", "0.482", "0.331"},
		{"0.544", "0.395", "0.572", "0.373"},
		{"0.0148", "0.0026", "0.0167", "0.0046"},
	}
	rows := three.Entries()
	if len(rows) != len(want) || len(rows[0]) != 5 {
		t.Fatalf("Table 3 has %d rows: %q", len(rows), rows)
	}
	if n := strings.Count(three.HTML(), "<table"); n != 1 {
		t.Errorf("Table 3 is wider than a page: it has %d parts", n)
	}
	for i, row := range rows {
		for j, entry := range row[1:] {
			paper, here, found := strings.Cut(entry, "\nhere ")
			if paper != "paper "+want[i][j] || !found {
				t.Errorf("%s: %q does not begin with the paper's %s", row[0], entry, want[i][j])
			}
			if here != "–" && !strings.Contains(here, "[") {
				t.Errorf("%s: %q has no interval", row[0], here)
			}
		}
	}
	two, err := table2(s)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(two.Entries()); n != 7 {
		t.Errorf("Table 2 has %d rows, want 7", n)
	}
	for _, row := range two.Entries() {
		if row[3] == "–" {
			t.Errorf("%s: nothing is stored", row[0])
		}
	}
}
