package nb

import (
	"fmt"
	"html"

	"github.com/janpfeifer/gonb/gonbui/protocol"
)

// What a solved and an unsolved exercise shows first.
const (
	solved   = "✓ solved"
	unsolved = "✗ not yet"
)

// Check says whether an exercise is solved, and if not, what is missing: the error of a
// check of package exercise. An exercise that is not solved does not fail its cell, so
// that the cells below it run.
func Check(err error) {
	text, colour := solved, "#00684a"
	if err != nil {
		text, colour = fmt.Sprintf("%s: %v", unsolved, err), "#a33c00"
	}
	bundle{
		protocol.MIMETextHTML: fmt.Sprintf(`<p style="font-weight:bold;color:%s">%s</p>`, colour,
			html.EscapeString(text)),
		protocol.MIMETextPlain: text,
	}.show("")
}
