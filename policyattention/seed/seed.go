// Package seed derives independent random streams from named seeds.
//
// Every random draw of the project comes from a stream that is a pure function
// of a root seed and a path of names, so that adding a stream never shifts
// another one and a fixture can be regenerated from its manifest alone.
package seed

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// New returns the random stream named by root and path, for instance
//
//	seed.New(28100, "mdp", 3)
//
// The path's elements are printed by the verb %#v: strings in quotes, so 3 and
// "3" name different streams; but numbers without their types, so int64(3) and
// 3.0 name the stream of 3, and unsigned ones in hexadecimal, so uint64(3) names
// one of its own. Two paths of strings and ints name one stream only
// when they are equal. The key of the ChaCha8 generator is the SHA-256 digest of
// the printed name.
func New(root uint64, path ...any) *rand.Rand {
	name := binary.LittleEndian.AppendUint64(nil, root)
	for _, p := range path {
		name = fmt.Appendf(name, "/%#v", p)
	}
	return rand.New(rand.NewChaCha8(Sum256(name)))
}
