package results

import (
	"cmp"
	"slices"
)

// look is how tables and figures show a method, in the order of the paper's tables. Colours stay
// apart for colour-blind readers (Okabe and Ito).
type look struct{ name, label, colour string }

var looks = []look{
	{"policyattention", "PolicyAttention", "#0072b2"},
	{"pmd-target", "PMD-target", "#e69f00"},
	{"reward-only", "reward-only", "#d55e00"},
	{"policyattention-learned-critic", "PolicyAttention, learned critic", "#56b4e9"},
	{"policyattention-sample-mean", "PolicyAttention, mean of samples", "#a0a0a0"},
	{"policyattention-anchored-critic", "PolicyAttention, anchored critic", "#9467bd"},
	{"policyattention-mixture", "PolicyAttention, mixed with uniform", "#cc79a7"},
	{"liang-lai", "Liang–Lai", "#009e73"},
	{"algorithm-distillation", "Algorithm Distillation", "#d55e00"},
	{"actor-critic", "Actor–critic (source)", "#8c510a"},
	{"s5rl", "S5RL", "#787878"},
	{"exact-pmd", "exact PMD", "#000000"},
	{"sample-mean", "exact PMD, mean of samples", "#a0a0a0"},
	{"anchored-critic", "exact PMD, anchored critic", "#9467bd"},
	// Of the study with equal information alone:
	{"pmd", "PMD", "#555555"}, {"any", "actor for any MDP", "#56b4e9"}, {"decoder", "decoder", "#a0a0a0"},
	{"natural-gradient", "natural policy gradient", "#555555"}, {"value-iteration", "value iteration", "#555555"},
	{"policy-iteration", "policy iteration", "#555555"}, {"q-learning", "Q-learning", "#e69f00"},
	{"sarsa", "SARSA", "#8c510a"},
	{"certainty-equivalence", "certainty equivalence", "#cc79a7"},
	{"posterior-sampling", "posterior sampling", "#000000"},
}

// recipes in the order of tables.
var recipes = []string{
	"native", "harness", "plain", "prior", "paper-features", "paper", "paper-uniform", "tuned", "tuned-initial",
	"full", "full-short", "full-cleared", "full-tuned", "first", "cpu", "cpu-tuned", "cpu-tuned-short", "cpu-cleared",
	"source", "source-tuned",
}

// Label is a method as tables write it; one that is not known has its own name.
func Label(method string) string {
	if i := indexOf(method); i >= 0 {
		return looks[i].label
	}
	return method
}

// label is a method as its tables write it, by its own label where this package does not know it.
func (r Rows) label(method string) string {
	if indexOf(method) < 0 {
		return cmp.Or(r.labels[method], method)
	}
	return Label(method)
}

// Colour is a method's colour in figures, as #rrggbb.
func Colour(method string) string {
	if i := indexOf(method); i >= 0 {
		return looks[i].colour
	}
	return "#555555"
}

func indexOf(method string) int {
	return slices.IndexFunc(looks, func(l look) bool { return l.name == method })
}

// rank is the place of a method or recipe in tables. What is not known comes last.
func rank(name string) int {
	if i := indexOf(name); i >= 0 {
		return i
	}
	if i := slices.Index(recipes, name); i >= 0 {
		return i
	}
	return 1000
}
