// Package paper lists what the paper and this repository compare: methods, presets, which say what is
// run at which scale, studies besides the blocks of a preset, and systems that are no methods. Without its
// lines here a baseline's folder can be removed.
package paper

import (
	"embed"
	"fmt"
	"slices"

	"icrl/policyattention/baseline"
	"icrl/policyattention/baseline/distill"
	"icrl/policyattention/baseline/lianglai"
	"icrl/policyattention/experiment"
	"icrl/policyattention/field/s5rl"
	"icrl/policyattention/field/wang"
	"icrl/policyattention/field/xie"
	"icrl/policyattention/method"
)

// Methods are all methods, in the order of tables. One that deploys nothing is exact policy mirror descent.
var Methods = method.Registry(slices.Concat(
	proposed,
	[]method.Method{lianglai.Method},
	[]method.Method{distill.Method, distill.Source},
	[]method.Method{s5rl.Method},
	[]method.Method{{Name: "exact-pmd", Label: "exact PMD", Untrained: true}},
))

// Systems are those of the paper's Table 1 that evaluate policies and return none, so that they are not among the
// methods.
var Systems = map[string]baseline.Trainer{
	"wang": wang.System,
	"xie":  xie.System,
}

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
