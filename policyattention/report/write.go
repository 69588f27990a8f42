package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"

	"github.com/google/renameio/v2"

	"icrl/policyattention/experiment"
)

// Folder is where Write puts the report of a store.
func Folder(store *experiment.Store) string { return filepath.Join(store.Root(), "report") }

// Write writes all tables (tables.md, tables.html and one CSV each) and figures
// (SVG and PNG) of a store and returns their folder.
func Write(store *experiment.Store) (string, error) {
	files, err := render(store)
	if err != nil {
		return "", err
	}
	folder := Folder(store)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("report: %w", err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return "", fmt.Errorf("report: %w", err)
	}
	for _, e := range entries {
		if _, ok := files[e.Name()]; !ok { // of an earlier report
			if err := os.Remove(filepath.Join(folder, e.Name())); err != nil {
				return "", fmt.Errorf("report: %w", err)
			}
		}
	}
	for name, b := range files {
		if err := renameio.WriteFile(filepath.Join(folder, name), b, 0o644); err != nil {
			return "", fmt.Errorf("report: %w", err)
		}
	}
	return folder, nil
}

// render returns the files of the report by name.
func render(store *experiment.Store) (map[string][]byte, error) {
	files := map[string][]byte{}
	s := newSource(store)
	var markdown, page bytes.Buffer
	for _, name := range TableNames() {
		t, err := s.table(name)
		if err != nil {
			return nil, err
		}
		var csv bytes.Buffer
		for _, write := range []func() error{
			func() error { return t.Markdown(&markdown) },
			func() error { return t.HTML(&page) },
			func() error { return t.CSV(&csv) },
		} {
			if err := write(); err != nil {
				return nil, fmt.Errorf("report: table %s: %w", name, err)
			}
		}
		markdown.WriteByte('\n')
		files[name+".csv"] = csv.Bytes()
	}
	files["tables.md"], files["tables.html"] = markdown.Bytes(), page.Bytes()
	for _, name := range figureNames(store.Preset.Methods) {
		f, err := s.figure(name)
		if err != nil {
			return nil, err
		}
		if files[name+".svg"], err = f.SVG(); err != nil {
			return nil, fmt.Errorf("report: figure %s: %w", name, err)
		}
		if files[name+".png"], err = f.PNG(); err != nil {
			return nil, fmt.Errorf("report: figure %s: %w", name, err)
		}
	}
	return files, nil
}

// Check makes what was made from the artifacts again, estimates with their
// intervals (claims.json) and the report, and says in what the files differ.
// What has not been written differs in nothing.
func Check(store *experiment.Store) ([]experiment.Discrepancy, error) {
	claims, err := checkClaims(store)
	if err != nil {
		return nil, err
	}
	report, err := checkReport(store)
	return append(claims, report...), err
}

func checkClaims(store *experiment.Store) ([]experiment.Discrepancy, error) {
	path := filepath.Join(store.Root(), experiment.ClaimsFile)
	text, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		if store.Preset.Name == "paper" { // it alone says which results must be there
			return []experiment.Discrepancy{{File: path, What: "is missing (make claims writes it)"}}, nil
		}
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	want, err := BuildTable(store, "claims")
	if err != nil {
		return nil, err
	}
	return claimsDiffer(path, text, want)
}

// claimsDiffer says in what the text of the file at path is not the JSON of the claims.
func claimsDiffer(path string, text []byte, want Table) ([]experiment.Discrepancy, error) {
	var got Table
	if err := json.Unmarshal(text, &got); err != nil {
		return []experiment.Discrepancy{{File: path, What: err.Error()}}, nil
	}
	var found []experiment.Discrepancy
	add := func(row int, format string, args ...any) {
		found = append(found, experiment.Discrepancy{File: path, Row: row, What: fmt.Sprintf(format, args...)})
	}
	if len(got.Rows) != len(want.Rows) || len(got.Evidence) != len(want.Evidence) {
		add(0, "%d claims with %d estimates, want %d with %d", len(got.Rows), len(got.Evidence), len(want.Rows), len(want.Evidence))
		return found, nil
	}
	for _, folder := range slices.Sorted(maps.Keys(got.Results)) {
		if seal, ok := want.Results[folder]; !ok {
			add(0, "it was made with the result %s, which is missing", folder)
		} else if seal != got.Results[folder] {
			add(0, "it was made with another result %s", folder)
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(want.Results)) {
		if _, ok := got.Results[folder]; !ok {
			add(0, "it was made without the result %s", folder)
		}
	}
	texts := got.text()
	for i, row := range want.text() {
		if !slices.Equal(texts[i], row) {
			add(i+1, "the claim is %q, computed again %q", texts[i], row)
		}
	}
	for i, e := range want.Evidence {
		if !reflect.DeepEqual(got.Evidence[i], e) {
			add(0, "estimate %d is %+v, computed again %+v", i+1, got.Evidence[i], e)
		}
	}
	if len(found) > 0 {
		return found, nil
	}
	var written bytes.Buffer
	if err := json.NewEncoder(&written).Encode(want); err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	if !bytes.Equal(text, written.Bytes()) {
		add(0, "is not what the artifacts give")
	}
	return found, nil
}

func checkReport(store *experiment.Store) ([]experiment.Discrepancy, error) {
	folder := Folder(store)
	entries, err := os.ReadDir(folder)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	files, err := render(store)
	if err != nil {
		return nil, err
	}
	var found []experiment.Discrepancy
	add := func(name, what string) {
		found = append(found, experiment.Discrepancy{File: filepath.Join(folder, name), What: what})
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
		want, ok := files[e.Name()]
		if !ok {
			add(e.Name(), "is no file of the report")
			continue
		}
		got, err := os.ReadFile(filepath.Join(folder, e.Name()))
		if err != nil {
			return nil, fmt.Errorf("report: %w", err)
		}
		if !bytes.Equal(got, want) {
			add(e.Name(), "is not what the artifacts give ("+difference(got, want)+")")
		}
	}
	for name := range files {
		if !slices.Contains(names, name) {
			add(name, "is missing")
		}
	}
	slices.SortFunc(found, func(a, b experiment.Discrepancy) int { return bytes.Compare([]byte(a.File), []byte(b.File)) })
	return found, nil
}

// difference names the first line in which two texts differ.
func difference(got, want []byte) string {
	a, b := bytes.Split(got, []byte("\n")), bytes.Split(want, []byte("\n"))
	for i := range min(len(a), len(b)) {
		if !bytes.Equal(a[i], b[i]) {
			return fmt.Sprintf("line %d", i+1)
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(a), len(b))
}
