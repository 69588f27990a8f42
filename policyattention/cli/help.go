package cli

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"icrl/policyattention/experiment"
	"icrl/policyattention/paper"
	"icrl/policyattention/pmd"
	"icrl/policyattention/results"
)

//go:embed help.json
var helpJSON []byte

// help returns texts that do not fit where they belong: those of help.json, and lists of what there is.
func help(own []experiment.Preset) kong.Vars {
	texts := experiment.Embedded[kong.Vars](helpJSON)
	names := paper.Presets
	for _, p := range own {
		names = append(names[:len(names):len(names)], p.Name)
	}
	list := func(names []string) string { return strings.Join(names, ", ") }
	texts["tables"], texts["figures"] = list(results.TableNames()), list(results.FigureNames())
	texts["preset"] = "Scale: " + list(names) + ", or a JSON file of one's own. Without it paper to read, quick to run."
	texts["set"] = "What changes of the recipe, as in width=32,layers=2,lr=1e-3: " + list(paper.Settings()) + "."
	texts["eta"] = fmt.Sprintf(`Step size, or "auto": %v/(the least gap between an optimal action and the next), `+
		"which grows tenfold a round for exact PMD.", pmd.SuggestedSpan)
	return texts
}
