package experiment

import (
	"slices"
	"testing"

	"icrl/internal/testkit"
)

// TestLong asks an empty store which cells want more than a day: of the paper's runs
// Algorithm Distillation's at its full context and budget alone.
func TestLong(t *testing.T) {
	s := testkit.Must(Open(t.TempDir(), "paper", "go"))(t)
	large := []string{"first", "full", "full-tuned"}
	for _, cell := range s.Preset.Plan() {
		long, err := s.Long(cell)
		if want := cell.Method == Distillation && slices.Contains(large, cell.Recipe); err != nil || long != want {
			t.Errorf("%s: %t, want %t; %v", cell.Name(), long, want, err)
		}
	}
}
