package results

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Ask answers a query such as
//
//	ratio benchmark method=policyattention s=8 t=20 / method=exact-pmd
//
// a statistic, a block, and values of its columns; after the slash, in what the rows that it is compared with differ
// (block= for another block, a column without a value for all of its values). The statistics are median, mean,
// mean-over-problems, ratio, difference, paired, ratio-of-means, and with intervals over problems alone over-problems
// (a ratio of means), locked and improvement. The key of= names another column than the loss.
func (s *Store) Ask(question string) (Cell, error) {
	statistic, x, y, err := s.asked(question)
	if err != nil {
		return Cell{}, fmt.Errorf("results: query %q: %w", question, err)
	}
	return estimate(statistic, x, y)
}

// asked returns what a query names.
func (s *Store) asked(question string) (statistic string, x, y group, err error) {
	of, reference, compared := strings.Cut(question, " /")
	fields := strings.Fields(of)
	if len(fields) < 2 {
		return "", x, y, errors.New("want a statistic and a block")
	}
	keys := map[Column]string{"block": fields[1]}
	if x, err = s.groupOf(keys, fields[2:]); err == nil && compared {
		y, err = s.groupOf(keys, strings.Fields(reference))
	}
	return fields[0], x, y, err
}

// groupOf returns the one group of rows with some keys, which fields, as column=value, change.
func (s *Store) groupOf(keys map[Column]string, fields []string) (g group, err error) {
	for _, f := range fields {
		name, value, ok := strings.Cut(f, "=")
		if !ok {
			return g, fmt.Errorf("%q is no column=value", f)
		}
		keys[Column(name)] = value
	}
	rows := s.Block(keys["block"])
	for _, c := range slices.Sorted(maps.Keys(keys)) {
		switch value := keys[c]; {
		case value == "" || c == "block":
		case c == "of":
			rows = rows.Of(Column(value))
		case c == T:
			t, err := strconv.Atoi(value)
			if err != nil || t < 1 {
				return g, fmt.Errorf("horizon %q, want a number from 1", value)
			}
			rows = rows.At(t)
		default:
			rows = rows.Where(c.Is(value))
		}
	}
	return rows.one()
}

// one returns the one group of rows.
func (r Rows) one() (g group, err error) {
	all, err := r.groups(nil)
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("%d groups of rows, want one", len(all))
	}
	if err != nil {
		return g, err
	}
	return all[0], nil
}

// query writes what asks for a statistic of a group again.
func query(statistic string, g, reference group) string {
	text := statistic + " " + g.block + keys(g, nil)
	if reference.sample == nil || slices.Contains(alone, statistic) {
		return text
	}
	text += " /"
	if reference.block != g.block {
		text += " block=" + reference.block
	}
	return text + keys(reference, &g)
}

// keys writes a group's keys in one order, or those in which it differs from another's.
func keys(g group, from *group) (text string) {
	order := []Column{Method, Recipe, S, Family, Seed, Step, T}
	for _, c := range slices.Sorted(maps.Keys(g.key)) {
		if !slices.Contains(order, c) {
			order = append(order, c)
		}
	}
	for _, c := range order {
		if v := g.key[c]; from == nil && v != "" || from != nil && v != from.key[c] {
			text += fmt.Sprintf(" %s=%s", c, v)
		}
	}
	if g.of != "loss" && from == nil {
		text += " of=" + string(g.of)
	}
	return text
}
