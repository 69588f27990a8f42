package artifact

import (
	"bytes"
	"compress/gzip"
	"testing"
)

func FuzzParseManifest(f *testing.F) {
	m := Manifest{Name: "oracle/exact-pmd-S4", Hash: "00", Of: []Member{{"training", []byte("{}")}}}
	dir := f.TempDir()
	if err := m.Write(dir); err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(`{"name": "x", "files": {"../x": "00"}}`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := parseManifest(text)
		if err != nil {
			return
		}
		// What is accepted is sealed: any change of it must be refused.
		m.Hash += "0"
		if digest, err := Digest(m); err == nil && digest == m.Seal {
			t.Error("a changed manifest keeps its seal")
		}
	})
}

func FuzzParseTable(f *testing.F) {
	for _, text := range []string{"step,loss\n1,0.5\n2,\n", "step,loss\n", "step\n", "step,loss\n1,+Inf\n", "step,loss\nx,1\n"} {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write([]byte(text)) //nolint:errcheck // memory takes every write
		z.Close()             //nolint:errcheck // the same
		f.Add(b.Bytes())
	}
	columns := []string{"step", "loss"}
	f.Fuzz(func(t *testing.T, b []byte) {
		lines, err := parseLines(b, columns)
		if err != nil {
			return
		}
		rows, err := parseTable(columns, lines)
		if err != nil {
			return
		}
		for _, row := range rows {
			if len(row) != len(columns) {
				t.Errorf("a row of %d fields", len(row))
			}
		}
	})
}
