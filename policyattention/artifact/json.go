package artifact

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// WriteJSON stores v as JSON with that indentation and a line's end: the file appears
// complete, or not at all, in a folder that is made if it does not exist.
func WriteJSON(path string, v any, indent string) error {
	text, err := json.MarshalIndent(v, "", indent)
	if err == nil && indent == "" {
		text, err = json.Marshal(v)
	}
	if err != nil {
		return fmt.Errorf("artifact: %w", err)
	}
	return WriteFile(path, append(text, '\n'))
}

// WriteFile stores a file, which appears complete or not at all, in a folder that is made if it
// does not exist.
func WriteFile(path string, b []byte) error {
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if err == nil {
		err = renameio.WriteFile(path, b, 0o644)
	}
	if err != nil {
		return fmt.Errorf("artifact: %w", err)
	}
	return nil
}

// ReadJSON reads a file of JSON into v, a pointer.
func ReadJSON(path string, v any) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("artifact: %w", err)
	}
	if err := json.Unmarshal(text, v); err != nil {
		return fmt.Errorf("artifact: %s: %w", path, err)
	}
	return nil
}

// CopyFile copies a file.
func CopyFile(to, from string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("artifact: %w", err)
	}
	return WriteFile(to, b)
}

// Digests are SHA-256 in hexadecimal.

// Digest returns that of a value's JSON.
func Digest(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("artifact: %w", err)
	}
	return digest(b), nil
}

// FileDigest returns that of a file.
func FileDigest(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("artifact: %w", err)
	}
	return digest(b), nil
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
