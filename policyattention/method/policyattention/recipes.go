package policyattention

import (
	"icrl/policyattention/control"
	"icrl/policyattention/train"
)

// recipes are the training recipes: "plain" stands for the paper, "prior" is
// reported beside it, and the others change plain in one respect.
var recipes = func() []train.Recipe {
	list := []train.Recipe{train.Plain(), train.Prior()}
	vary := func(name string, change func(*train.Recipe)) {
		r := train.Plain()
		r.Name = name
		change(&r)
		list = append(list, r)
	}
	// π enters as log π.
	vary("log-input", func(r *train.Recipe) { r.Policy = train.LogPolicy })
	// Contexts come from random policies, from the first rounds of a run only, or
	// from all rounds alike.
	vary("random-contexts", func(r *train.Recipe) { r.Contexts = train.RandomPolicies })
	vary("early-rounds", func(r *train.Recipe) { r.Rounds = r.Early })
	vary("uniform-rounds", func(r *train.Recipe) { r.Early = r.Rounds })
	// States and actions keep the names that the MDP has for them.
	vary("fixed-names", func(r *train.Recipe) { r.Relabel = false })
	// The weights after the last step are released, not their average.
	vary("last-weights", func(r *train.Recipe) { r.Average = false })
	// The step size is the deployed one throughout, or from nearly twice the range.
	vary("nominal-eta", func(r *train.Recipe) { r.EtaMin, r.EtaMax = control.NominalStep, control.NominalStep })
	vary("wide-eta", func(r *train.Recipe) { r.EtaMin, r.EtaMax = 0.1, 1.5 })
	return list
}()

// RecipeNames lists the training recipes, the plain one first.
func RecipeNames() []string {
	var names []string
	for _, r := range recipes {
		names = append(names, r.Name)
	}
	return names
}

// findRecipe returns the recipe called name.
func findRecipe(name string) (recipe train.Recipe, ok bool) {
	for _, r := range recipes {
		if r.Name == name {
			return r, true
		}
	}
	return recipe, false
}
