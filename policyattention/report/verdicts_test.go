package report

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"icrl/internal/testkit"
)

// Beside its own claims a store has no other verdict; beside claims with another verdict for one
// check, that one.
func TestVerdictsBeside(t *testing.T) {
	store := open(t)
	own := testkit.Must(json.Marshal(testkit.Must(BuildTable(store, "claims"))(t)))(t)
	path := filepath.Join(t.TempDir(), "claims.json")
	testkit.Check(t, os.WriteFile(path, own, 0o644))
	beside := testkit.Must(VerdictsBeside(store, path))(t)
	if len(beside.Rows) != 0 || strings.HasPrefix(beside.Notes[0], "0 of 0") {
		t.Errorf("beside itself: %v, %v", beside.Rows, beside.Notes)
	}
	other := testkit.Must(readClaims(path))(t)
	for i, c := range other.Claims {
		if k := c.Checks[0]; k.Verdict != Missing && k.Verdict != "" {
			other.Claims[i].Checks[0].Verdict = Missing
			testkit.Check(t, os.WriteFile(path, testkit.Must(json.Marshal(Table{Values: other}))(t), 0o644))
			beside = testkit.Must(VerdictsBeside(store, path))(t)
			if len(beside.Rows) != 1 || beside.Rows[0][1].String() != c.Says {
				t.Errorf("with another verdict on %q: %v", c.Says, beside.Rows)
			}
			break
		}
	}
	testkit.Check(t, os.WriteFile(path, bytes.TrimSuffix(own, []byte("}")), 0o644))
	if _, err := VerdictsBeside(store, path); err == nil {
		t.Error("a file that is cut off: no error")
	}
}
