package report

import (
	"testing"

	"icrl/internal/testkit"
)

// Stored returns a table of the committed results.
func Stored(t *testing.T, name string) Table { return testkit.Must(stored(t).table(name))(t) }
