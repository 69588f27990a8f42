package main

import (
	"strings"
	"testing"

	"icrl/internal/testkit"
)

// A closed loop is served: its numbers first, then the time of as many steps as are asked for.
func TestServe(t *testing.T) {
	var out strings.Builder
	w := testkit.Must(works())(t)[5]
	once := testkit.Must(w.start(nil))(t)
	testkit.Check(t, serve(once, w.Parity, strings.NewReader("1\n"), &out))
	if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); len(lines) != 2 ||
		!strings.Contains(lines[0], `"losses":[`) || !strings.Contains(lines[1], `"steps":1`) {
		t.Fatalf("answers %q", lines)
	}
}
