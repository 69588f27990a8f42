package results

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Number is a number as the paper prints it, with its interval where it gives one.
type Number struct {
	Value, Lo, Hi float64 // Lo = Hi = Value without an interval
	Text          string
}

func (n Number) String() string { return n.Text }

// Claim is a number or a statement of the paper that rows, or a test, are held against.
type Claim struct {
	Section  string // of the paper, such as "7" or "Table 3"
	Sentence string
	Printed  Number
	Query    string // see [Store.Ask]
	Rule     string // see [Store.Judge]
	Reason   string // why ours differs, or why nothing can be said
}

// Paper is the claims of the paper.
type Paper []Claim

// files are lines with fields between tabs: the claims, Tables 1, 2 and 4, the findings of documents, what stands above
// and below tables, and how they show methods.
//
//go:embed *.tsv
var files embed.FS

// content is that of a file of this package.
func content(file string) string {
	b, err := files.ReadFile(file)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// ThePaper are the claims of the paper, claims.tsv.
var ThePaper = func() Paper {
	p, err := ReadPaper(content("claims.tsv"))
	if err != nil {
		panic(err) // a file of this package
	}
	return p
}()

// ReadPaper reads lines of section, sentence, printed number, query, rule and reason, separated by
// tabs, below a line of headings. It returns an error if a line is malformed or asks a query again.
func ReadPaper(text string) (p Paper, err error) {
	for n, f := range fields(text) {
		if n == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		if len(f) != 6 {
			return nil, fmt.Errorf("results: claim in line %d has %d fields, want 6", n+1, len(f))
		}
		c := Claim{Section: f[0], Sentence: f[1], Query: f[3], Rule: f[4], Reason: f[5]}
		if c.Printed, err = parseNumber(f[2]); err != nil {
			return nil, fmt.Errorf("results: claim in line %d: %w", n+1, err)
		}
		if c.Query != "" && p.Printed(c.Query) != nil {
			return nil, fmt.Errorf("results: claim in line %d asks %q again", n+1, c.Query)
		}
		p = append(p, c)
	}
	return p, nil
}

// fields are those of lines of text, between tabs.
func fields(text string) (all [][]string) {
	for line := range strings.Lines(text) {
		all = append(all, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	return all
}

// here heads the column of what is found here.
const here = "here [95 % interval]"

// answered makes a table of a file, where questions stand in the column of what is found here.
func answered(file string) func(*Store) Table {
	return func(s *Store) (t Table) {
		all := fields(content(file))
		t.Columns = all[0]
		for _, f := range all[1:] {
			var row []any
			for k, v := range f {
				if t.Columns[k] == here {
					var err error
					v, err = s.answer(v)
					t.err = errors.Join(t.err, err)
				}
				row = append(row, v)
			}
			t.Add(row...)
		}
		return t
	}
}

// answer answers questions between semicolons. One is a query, after a label and a colon if it has one, or an entry of
// a table as in "table NAME|COLUMN|KEY|KEY", whose row begins with the keys.
func (s *Store) answer(questions string) (string, error) {
	var answers []string
	for _, q := range strings.Split(questions, "; ") {
		if of, ok := strings.CutPrefix(q, "table "); ok {
			entry, err := s.entry(strings.Split(of, "|"))
			if err != nil {
				return "", err
			}
			answers = append(answers, entry)
			continue
		}
		label, query, ok := strings.Cut(q, ": ")
		if !ok {
			label, query = "", q
		}
		c, err := s.Ask(query)
		if err != nil {
			return "", err
		}
		answers = append(answers, strings.TrimSpace(label+" "+c.String()))
	}
	return strings.Join(answers, "; "), nil
}

// entry is one of a table, by the table's name, the column and the first entries of its row.
func (s *Store) entry(of []string) (string, error) {
	t, err := s.Table(of[0])
	k := slices.Index(t.Columns, of[1])
	for _, row := range t.Text() {
		if k >= 0 && slices.Equal(row[:min(len(of)-2, len(row))], of[2:]) {
			return row[k], err
		}
	}
	return "", cmp.Or(err, fmt.Errorf("results: no entry %q", of))
}

// parseNumber reads ".0193" or "1.05 [1.02, 1.1]". Other text has no value.
func parseNumber(text string) (n Number, err error) {
	n.Text = text
	value, interval, spans := strings.Cut(text, " [")
	if n.Value, err = strconv.ParseFloat(value, 64); err != nil {
		return Number{Text: text}, nil
	}
	n.Lo, n.Hi = n.Value, n.Value
	if spans {
		if _, err = fmt.Sscanf(interval, "%g, %g]", &n.Lo, &n.Hi); err != nil {
			return n, fmt.Errorf("interval in %q: %w", text, err)
		}
	}
	return n, nil
}

// Printed returns what the paper prints for a query, or nil.
func (p Paper) Printed(query string) any {
	if c := p.about(query); c != nil {
		return c.Printed
	}
	return nil
}

// about returns the claim that rests on a query, or nil.
func (p Paper) about(query string) *Claim {
	if at := slices.IndexFunc(p, func(c Claim) bool { return c.Query == query }); at >= 0 && query != "" {
		return &p[at]
	}
	return nil
}
