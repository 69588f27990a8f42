//go:build !js

package seed

import "crypto/sha256"

// Sum256 returns the SHA-256 digest of a message. In the page's program it is the project's
// own: there crypto/sha256 would bring the self-tests of all of Go's cryptography and, by the
// interfaces that they call, the encodings of matrices: a fifteenth of what is transferred.
func Sum256(message []byte) [32]byte { return sha256.Sum256(message) }
