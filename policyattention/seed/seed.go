// Package seed derives independent random streams from named seeds.
//
// Every random draw of the project comes from a stream that is a pure function of a root seed and a path of names, so
// that adding a stream never shifts another one and a fixture can be regenerated from its manifest alone.
package seed

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
)

// New returns the random stream named by root and path, for instance
//
//	seed.New(28100, "mdp", 3)
//
// The path's elements are printed by the verb %#v: strings in quotes, so 3 and "3" name different streams; but numbers
// without their types, so int64(3) and 3.0 name the stream of 3, and unsigned ones in hexadecimal, so uint64(3) names
// one of its own. Two paths of strings and ints name one stream only when they are equal. The key of the ChaCha8
// generator is the SHA-256 digest of the printed name.
func New(root uint64, path ...any) *rand.Rand {
	name := binary.LittleEndian.AppendUint64(nil, root)
	for _, p := range path {
		name = fmt.Appendf(name, "/%#v", p)
	}
	return rand.New(rand.NewChaCha8(Sum256(name)))
}

// Sum256 returns the SHA-256 digest (FIPS 180-4) of a message. crypto/sha256 would bring into the page's program the
// self-tests of all of Go's cryptography and, by interfaces, the encodings of matrices: a fifteenth of its size.
func Sum256(message []byte) [32]byte {
	h := [8]uint32{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}
	length := uint64(len(message)) * 8
	padded := append(message[:len(message):len(message)], 0x80)
	for len(padded)%64 != 56 {
		padded = append(padded, 0)
	}
	padded = binary.BigEndian.AppendUint64(padded, length)
	for ; len(padded) > 0; padded = padded[64:] {
		var w [64]uint32
		for t := range 16 {
			w[t] = binary.BigEndian.Uint32(padded[4*t:])
		}
		for t := 16; t < 64; t++ {
			x, y := w[t-15], w[t-2]
			w[t] = w[t-16] + w[t-7] + (rotate(x, 7) ^ rotate(x, 18) ^ x>>3) + (rotate(y, 17) ^ rotate(y, 19) ^ y>>10)
		}
		s := h
		for t := range 64 {
			a, e := s[0], s[4]
			t1 := s[7] + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + (e&s[5] ^ ^e&s[6]) + roundConstants[t] + w[t]
			t2 := (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + (a&s[1] ^ a&s[2] ^ s[1]&s[2])
			s = [8]uint32{t1 + t2, a, s[1], s[2], s[3] + t1, e, s[5], s[6]}
		}
		for i := range h {
			h[i] += s[i]
		}
	}
	var out [32]byte
	for i, x := range h {
		binary.BigEndian.PutUint32(out[4*i:], x)
	}
	return out
}

func rotate(x uint32, right int) uint32 { return bits.RotateLeft32(x, -right) }

// roundConstants are the first bits of the fractional parts of the cube roots of the first 64 primes.
var roundConstants = [64]uint32{
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
	0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
	0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
	0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
	0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
}
