// Package presets lists the presets of the paper's protocol, files of JSON beside this one, with
// all methods and studies. A row of theirs is a block, a method, a recipe, sizes and how many of
// the protocol's identities; the paper's are in the order of what is worth training first.
package presets

import (
	"embed"
	"encoding/json"
	"fmt"

	"icrl/policyattention/anymdp/trial"
	"icrl/policyattention/equal"
	"icrl/policyattention/experiment"
	"icrl/policyattention/lockup"
	"icrl/policyattention/method/all"
)

//go:embed *.json
var files embed.FS

// Names lists the presets by scale.
var Names = []string{"smoke", "quick", "paper"}

// Find returns the preset called name.
func Find(name string) (experiment.Preset, error) {
	text, err := files.ReadFile(name + ".json")
	if err != nil {
		return experiment.Preset{}, fmt.Errorf("presets: no preset %q, want one of %q", name, Names)
	}
	var p experiment.Preset
	if err := json.Unmarshal(text, &p); err != nil {
		return p, fmt.Errorf("presets: %s: %w", name, err)
	}
	if name != "paper" {
		return p.With(&experiment.PaperProtocol, all.Methods), nil
	}
	return p.With(&experiment.PaperProtocol, all.Methods, equal.Study{}, trial.Study{}, lockup.Paper()), nil
}

// Open returns the store of the preset of that name below the folder artifacts: see
// [experiment.Preset.Open].
func Open(artifacts, name, backend string) (*experiment.Store, error) {
	p, err := Find(name)
	if err != nil {
		return nil, err
	}
	return p.Open(artifacts, backend)
}
