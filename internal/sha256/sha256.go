//go:build !js

// Package sha256 is crypto/sha256 but in the page's program. There that package would bring
// the self-tests of all of Go's cryptography and, by the interfaces that they call, the
// encodings of matrices: a fifteenth of what is transferred.
package sha256

import "crypto/sha256"

// Sum256 returns the SHA-256 digest of a message.
func Sum256(message []byte) [32]byte { return sha256.Sum256(message) }
