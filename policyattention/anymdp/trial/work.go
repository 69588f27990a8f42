package trial

import (
	"bytes"
	"crypto/sha256"
	"encoding/gob"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// Part is what is known of a row before all rows are: an evaluation takes hours, and goes on
// from there when it was interrupted.
type Part struct {
	Losses  []Losses
	Seconds float64 // of processor time
}

// partFile is the file of a row's part in the folder of work of an identity. Its name tells
// rows apart that differ in anything but their numbers of problems.
func (r Row) partFile(work string) string {
	r.Problems, r.Network, r.Mixed = 0, 0, 0
	sum := sha256.Sum256(fmt.Appendf(nil, "%+v %d %v", r, Root, Horizons))
	return filepath.Join(work, fmt.Sprintf("row-%.6x.gob", sum))
}

// Complete says whether all rows have as many problems as they want.
func Complete(losses map[string][]Losses) bool {
	for _, row := range Rows {
		if got := losses[row.Name]; len(got) != row.Problems || len(row.known(got)) != len(got) {
			return false
		}
	}
	return len(losses) == len(Rows)
}

// known returns the first losses that the row wants, up to one that lacks a read-out, and
// without read-outs that the row does not want.
func (r Row) known(losses []Losses) (all []Losses) {
	for i, l := range losses[:min(len(losses), r.Problems)] {
		for _, of := range []struct {
			values *[]float64
			n      int
		}{{&l.Network, r.Network}, {&l.Mixed, r.Mixed}} {
			if i >= of.n {
				*of.values = missing(Horizons)
			} else if math.IsNaN((*of.values)[0]) {
				return all
			}
		}
		all = append(all, l)
	}
	return all
}

// ReadPart reads what is known of a row in the folder of work of an identity, which may be
// nothing.
func (r Row) ReadPart(work string) (Part, error) {
	text, err := os.ReadFile(r.partFile(work))
	if errors.Is(err, fs.ErrNotExist) {
		return Part{}, nil
	}
	var p Part
	if err == nil {
		err = gob.NewDecoder(bytes.NewReader(text)).Decode(&p)
	}
	if err != nil {
		return Part{}, fmt.Errorf("trial: %s: %w", r.Name, err)
	}
	p.Losses = r.known(p.Losses)
	return p, nil
}

// WritePart writes what is known of a row.
func (r Row) WritePart(work string, p Part) error {
	var b bytes.Buffer
	err := gob.NewEncoder(&b).Encode(p)
	if err == nil {
		err = os.MkdirAll(work, 0o755)
	}
	if err == nil {
		err = renameio.WriteFile(r.partFile(work), b.Bytes(), 0o644)
	}
	if err != nil {
		return fmt.Errorf("trial: %s: %w", r.Name, err)
	}
	return nil
}
