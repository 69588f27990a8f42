package results

import (
	_ "embed"
	"fmt"
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

// Paper holds the claims of the paper, and its numbers by query.
type Paper struct {
	Claims  []Claim
	byQuery map[string]Claim
}

//go:embed claims.tsv
var claims string

// ThePaper are the claims of the paper, claims.tsv.
var ThePaper = func() *Paper {
	p, err := ReadPaper(claims)
	if err != nil {
		panic(err) // a file of this package
	}
	return p
}()

// ReadPaper reads lines of section, sentence, printed number, query, rule and reason, separated by
// tabs, below a line of headings. It returns an error if a line is malformed or asks a query again.
func ReadPaper(text string) (*Paper, error) {
	p := &Paper{byQuery: map[string]Claim{}}
	for n, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		if n == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, "\t")
		if len(f) != 6 {
			return nil, fmt.Errorf("results: claim in line %d has %d fields, want 6", n+1, len(f))
		}
		c := Claim{Section: f[0], Sentence: f[1], Query: f[3], Rule: f[4], Reason: f[5]}
		var err error
		if c.Printed, err = parseNumber(f[2]); err != nil {
			return nil, fmt.Errorf("results: claim in line %d: %w", n+1, err)
		}
		if _, twice := p.byQuery[c.Query]; twice && c.Query != "" {
			return nil, fmt.Errorf("results: claim in line %d asks %q again", n+1, c.Query)
		}
		p.Claims = append(p.Claims, c)
		if c.Query != "" {
			p.byQuery[c.Query] = c
		}
	}
	return p, nil
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
func (p *Paper) Printed(query string) any {
	if c, ok := p.byQuery[query]; ok {
		return c.Printed
	}
	return nil
}

// Reason returns why ours differs from what the paper prints for a query.
func (p *Paper) Reason(query string) any {
	if c, ok := p.byQuery[query]; ok && c.Reason != "" {
		return c.Reason
	}
	return nil
}
