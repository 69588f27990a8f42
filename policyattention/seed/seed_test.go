package seed

import (
	"crypto/sha256"
	"math/rand/v2"
	"testing"
)

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

// The digests are crypto/sha256's, at every length about the ends of blocks and at some far
// beyond; and the message is left as it was, past its end too.
func TestSum(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	whole := make([]byte, 100_000)
	for i := range whole {
		whole[i] = byte(rng.Uint32())
	}
	before := sha256.Sum256(whole)
	for _, n := range []int{0, 1, 2, 3, 54, 55, 56, 57, 63, 64, 65, 118, 119, 120, 127, 128, 129, 1000, 99_999} {
		if got, want := Sum256(whole[:n]), sha256.Sum256(whole[:n]); got != want {
			t.Errorf("%d bytes: %x, want %x", n, got, want)
		}
	}
	for n := range 300 {
		if got, want := Sum256(whole[n:2*n]), sha256.Sum256(whole[n:2*n]); got != want {
			t.Errorf("%d bytes: %x, want %x", n, got, want)
		}
	}
	if sha256.Sum256(whole) != before {
		t.Error("the message was changed")
	}
}
