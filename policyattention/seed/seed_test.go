package seed

import "testing"

func TestStreamsAreNamed(t *testing.T) {
	first := New(1, "mdp", 3).Uint64()
	if again := New(1, "mdp", 3).Uint64(); again != first {
		t.Errorf("the same name gave %d, then %d", first, again)
	}
	for _, other := range []struct {
		root uint64
		path []any
	}{
		{2, []any{"mdp", 3}},
		{1, []any{"mdp", 4}},
		{1, []any{"mdp", "3"}},
		{1, []any{"policy", 3}},
		{1, []any{"mdp", 3, 0}},
		{1, []any{"mdp/3"}},
		{1, nil},
	} {
		if got := New(other.root, other.path...).Uint64(); got == first {
			t.Errorf("%v and (1, mdp, 3) name the same stream", other)
		}
	}
}

// TestPinned guards the committed fixtures: a change of this mapping would change
// every MDP of the evidence.
func TestPinned(t *testing.T) {
	if got, want := New(28100, "mdp", 3).Uint64(), uint64(11417644737541059801); got != want {
		t.Errorf("seed.New(28100, mdp, 3) starts with %d, want %d", got, want)
	}
}
