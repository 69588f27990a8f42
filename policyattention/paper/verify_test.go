package paper

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"icrl/internal/testkit"
	"icrl/policyattention/experiment"
	"icrl/policyattention/rows"
)

// few are units of the studies that are computed in no time. Where they are wrong, they fail on the last fourth of
// their problems.
func few(s *experiment.Store, wrong bool) (units []experiment.Unit, err error) {
	for _, study := range []experiment.Study{Equal, Families, Any} {
		all, err := study(s)
		if err != nil {
			return nil, err
		}
		units = append(units, slices.DeleteFunc(all, func(u experiment.Unit) bool {
			return !slices.Contains([]string{
				"equal/S8/generative-20/certainty-equivalence", "equal/S8/window-20/pmd-td",
				"equal-sharpness/S8/window-20/certainty-equivalence-1",
				"families/chain/exact-pmd", "any/31002/lock-up, S = 4"}, u.Path())
		})...)
	}
	for i := range units {
		u, compute := &units[i], units[i].Compute
		u.OneIn = 0
		u.Compute = func(ctx context.Context, s *experiment.Store, places []int32, stored *rows.Tables) (
			*rows.Tables, error) {
			if last := slices.Max(places); wrong && int(last) >= u.Problems*3/4 {
				return nil, errors.New("another result")
			}
			return compute(ctx, s, places, stored)
		}
	}
	return units, nil
}

// A seed chooses the problems of the studies that are computed again, and they are then those of the whole study:
// none differs, and what differs on later problems is found with some seed, and not with every.
func TestVerifyChoosesProblems(t *testing.T) {
	preset := testkit.Must(FindPreset("paper"))(t)
	preset.Rows = nil
	found := map[string]int{}
	const tries = 8
	for _, wrong := range []bool{false, true} {
		preset.Studies = []experiment.Study{func(s *experiment.Store) ([]experiment.Unit, error) {
			return few(s, wrong)
		}}
		s := testkit.Must(preset.Open("../../artifacts", "go"))(t)
		for seed := range uint64(tries) {
			v := testkit.Must(s.Verify(t.Context(), false, seed))(t)
			if v.Units != 5 || v.Missing > 0 {
				t.Fatalf("%v", v)
			}
			units := map[string]bool{}
			for _, d := range v.Discrepancies {
				if strings.Contains(d.What, "computed again") {
					units[d.File] = true
				}
			}
			if !wrong && len(units) > 0 {
				t.Fatalf("seed %d: %v", seed, v.Discrepancies)
			}
			for name := range units {
				found[name]++
			}
		}
	}
	if len(found) != 5 {
		t.Errorf("found in %v, want all five units", found)
	}
	for name, n := range found {
		if n == tries {
			t.Errorf("%s: found with every seed", name)
		}
	}
}
