package seed

import (
	"crypto/sha256"
	"math/rand/v2"
	"testing"
)

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
		if got, want := sum(whole[:n]), sha256.Sum256(whole[:n]); got != want {
			t.Errorf("%d bytes: %x, want %x", n, got, want)
		}
	}
	for n := range 300 {
		if got, want := sum(whole[n:2*n]), sha256.Sum256(whole[n:2*n]); got != want {
			t.Errorf("%d bytes: %x, want %x", n, got, want)
		}
	}
	if sha256.Sum256(whole) != before {
		t.Error("the message was changed")
	}
}
