//go:build notebooks

package notebooks

// Cells may use what go.mod lists and nothing else; these are used by cells only.
import (
	_ "github.com/janpfeifer/gonb/gonbui"
	_ "github.com/janpfeifer/gonb/gonbui/dom"
)
