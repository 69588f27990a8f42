package artifact

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// WriteJSON stores v as JSON with that indentation and a line's end: the file appears
// complete, or not at all, in a folder that is made if it does not exist.
func WriteJSON(path string, v any, indent string) error {
	text, err := jsonText(v, indent)
	if err != nil {
		return err
	}
	if err = os.MkdirAll(filepath.Dir(path), 0o755); err == nil {
		err = renameio.WriteFile(path, text, 0o644)
	}
	if err != nil {
		return fmt.Errorf("artifact: %w", err)
	}
	return nil
}

// jsonText is JSON as it stands in a file: on one line without an indentation.
func jsonText(v any, indent string) ([]byte, error) {
	text, err := json.Marshal(v)
	var b bytes.Buffer
	if err == nil && indent != "" {
		err = json.Indent(&b, text, "", indent)
		text = b.Bytes()
	}
	if err != nil {
		return nil, fmt.Errorf("artifact: %w", err)
	}
	return append(text, '\n'), nil
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

// JoinObjects returns a JSON object with the members of several, in their order.
func JoinObjects(parts ...any) ([]byte, error) {
	joined := []byte("{")
	for _, part := range parts {
		b, err := json.Marshal(part)
		if err != nil {
			return nil, err
		}
		if b = bytes.TrimSpace(b); len(b) < 2 || b[0] != '{' {
			return nil, fmt.Errorf("artifact: a %T is no object in JSON", part)
		}
		if b = b[1 : len(b)-1]; len(joined) > 1 && len(b) > 0 {
			joined = append(joined, ',')
		}
		joined = append(joined, b...)
	}
	return append(joined, '}'), nil
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

// Seal sets the seal of a manifest, a member of *m, to the digest of m with an empty seal.
func Seal(m any, seal *string) (err error) {
	*seal = ""
	*seal, err = Digest(m)
	return err
}

// CheckSeal returns an error if the seal of a manifest, a member of *m, is another one than
// Seal sets.
func CheckSeal(m any, seal *string) error {
	stored := *seal
	err := Seal(m, seal)
	if err == nil && *seal != stored {
		err = errors.New("it has been changed: its seal is not its digest")
	}
	*seal = stored
	return err
}

// FileDigest returns that of a file.
func FileDigest(path string) (string, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("artifact: %w", err)
	}
	return digest(b), nil
}

// CheckFile returns an error if a file has another digest than its manifest or evidence says.
func CheckFile(path, want string) error {
	got, err := FileDigest(path)
	if err == nil && got != want {
		err = fmt.Errorf("artifact: %s has been changed: its SHA-256 is %.12s…, not %.12s…", path, got, want)
	}
	return err
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
