package paper

import (
	"embed"
	"fmt"

	"icrl/policyattention/experiment"
)

// Presets are files of JSON beside this one. A row of theirs is a block, a method, a recipe, sizes and how
// many of the protocol's identities; the paper's are in the order of what is worth training first.
//
//go:embed smoke.json quick.json paper.json
var files embed.FS

// Presets are the names of the presets, by scale.
var Presets = []string{"smoke", "quick", "paper"}

// FindPreset returns the preset called name.
func FindPreset(name string) (experiment.Preset, error) {
	text, err := files.ReadFile(name + ".json")
	if err != nil {
		return experiment.Preset{}, fmt.Errorf("paper: no preset %q, want one of %q", name, Presets)
	}
	p := experiment.Embedded[experiment.Preset](text)
	if name != "paper" {
		return p.With(&experiment.PaperProtocol, Methods), nil
	}
	return p.With(&experiment.PaperProtocol, Methods, Equal, Any, Families), nil
}
