package seed

// Sum256 returns the SHA-256 digest of a message.
func Sum256(message []byte) [32]byte { return sum(message) }
