package distill

import (
	"slices"
	"testing"

	"icrl/internal/testkit"
	"icrl/policyattention/baseline"
)

func TestRecipesByName(t *testing.T) {
	tuned := baseline.StepSizes{Alpha: 32, Beta: 0.2}
	seen := map[string]string{}
	names := append([]string{"full", "full-short", "full-tuned", "first", "cpu", "cpu-tuned-short", "cpu-source-9"}, Method.Recipes...)
	for _, name := range names {
		c := testkit.Must(recipe(name, 1, 8, tuned))(t)
		if err := c.Validate(); err != nil {
			t.Error(err)
		}
		// The paper's source rate is in the grid.
		if other, ok := seen[c.Hash()]; ok && !slices.Contains([]string{name, other}, "cpu-source-4") {
			t.Errorf("recipes %s and %s are the same", name, other)
		}
		seen[c.Hash()] = name
	}
	for _, name := range []string{"", "gpu", "cpu-fast", "cpu-source-x", "first-short", "cpu-source-4-tuned"} {
		if _, err := recipe(name, 1, 8, tuned); err == nil {
			t.Errorf("there is a recipe %q", name)
		}
	}
	full, err := recipe("full", 7, 16, tuned)
	if err != nil || full != Paper(7, 16) {
		t.Errorf("the full recipe is %+v: %v", full, err)
	}
}
