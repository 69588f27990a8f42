// Package field sets PolicyAttention beside the systems that its paper names: what each can
// do, as a table in which every tick is opened by evidence.
//
// The systems of policy evaluation are below this folder, each a room of its own: package wang
// (arXiv 2405.13861) and package xie (arXiv 2605.07333), on the Markov reward processes of
// package mrp and by the small trainer of package fit. Package s5 is the layer and package s5rl the
// agent of Lu et al. (arXiv 2303.03982). Liang–Lai and Algorithm Distillation are in package
// baseline.
//
// Wang et al. and Xie et al. are not in the registry of methods. A method of it makes controllers,
// which are scored by the policies they return; these two estimate values of Markov reward
// processes, which have no actions. What is measured of them is stored and verified as package
// evidence says, by "verify" with the preset paper too.
package field

import (
	"path/filepath"

	"icrl/policyattention/capability"
	"icrl/policyattention/field/wang"
	"icrl/policyattention/field/xie"
	"icrl/policyattention/method/all"
)

// Systems are the rows of the capability map: those of policy evaluation and the registry's, of
// which the ones that the paper compares itself with come first.
func Systems() []capability.System {
	list, own := []capability.System{wang.System, xie.System}, []capability.System(nil)
	for _, m := range all.Methods {
		switch {
		case m.System == nil:
		case m.Sampled:
			list = append(list, *m.System)
		default:
			own = append(own, *m.System)
		}
	}
	return append(list, own...)
}

// Map opens every tick in the repository at root.
func Map(root string) ([]capability.Cell, error) { return capability.Map(root, Systems()) }

// Folder is where the weights and the evidence of a method are below artifacts.
func Folder(artifacts, method string) string { return filepath.Join(artifacts, "field", method) }
