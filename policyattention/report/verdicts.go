package report

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"icrl/policyattention/experiment"
)

// readClaims returns the claims of a file that 'make claims' writes.
func readClaims(path string) (Claims, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Claims{}, fmt.Errorf("report: %w", err)
	}
	var table struct{ Values Claims }
	if err := json.Unmarshal(text, &table); err != nil {
		return Claims{}, fmt.Errorf("report: %s: %w", path, err)
	}
	return table.Values, nil
}

// VerdictsBeside returns the checks of a store's claims whose verdict is another than in the file
// of claims at path, which 'make claims' writes of another preset. Checks that the store's preset
// does not run are left out.
func VerdictsBeside(store *experiment.Store, path string) (Table, error) {
	t := Table{Name: "verdicts", Title: "Verdicts that are not those of preset " + filepath.Base(filepath.Dir(path))}
	other, err := readClaims(path)
	if err != nil {
		return t, err
	}
	claims, err := BuildTable(store, "claims")
	if err != nil {
		return t, err
	}
	type key struct{ section, says, at, variant string }
	there := map[key]Outcome{}
	for _, c := range other.Claims {
		for _, k := range c.Checks {
			there[key{c.Section, c.Says, k.At, k.Variant}] = k
		}
	}
	type row struct {
		Claim       Claim
		Here, There Outcome
	}
	var rows []row
	both := 0
	for _, c := range claims.Values.(Claims).Claims {
		for _, k := range c.Checks {
			o, ok := there[key{c.Section, c.Says, k.At, k.Variant}]
			if !ok || k.Verdict == "" || k.Verdict == Missing {
				continue
			}
			if both++; k.Verdict != o.Verdict {
				rows = append(rows, row{c, k, o})
			}
		}
	}
	said := func(o Outcome) Cell { return Cell{string(o.Verdict), ": ", o.Here, " ", o.Tail} }
	fill(&t, rows,
		column[row]{"section", func(r row) any { return r.Claim.Section }},
		column[row]{"claim", func(r row) any { return r.Claim.Says }},
		column[row]{"at", func(r row) any { return r.Here.At + " " + r.Here.Variant }},
		column[row]{"paper", func(r row) any { return r.Here.Paper }},
		column[row]{"preset " + store.Preset.Name, func(r row) any { return said(r.Here) }},
		column[row]{"preset " + filepath.Base(filepath.Dir(path)), func(r row) any { return said(r.There) }},
	)
	t.Notes = []string{fmt.Sprintf("%d of %d checks that both have come out alike.", both-len(rows), both)}
	return t, nil
}
