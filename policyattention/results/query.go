package results

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Ask answers a query such as
//
//	ratio benchmark method=policyattention s=8 t=20 / method=exact-pmd
//
// a statistic, a block, and values of its columns; after the slash, in what the rows that it is
// compared with differ (block= for another block, a column without a value for all of its values).
// The statistics are median, mean, ratio, difference, paired, ratio-of-means, and with intervals over
// problems alone over-problems (a ratio of means), locked and improvement. The key of= names another
// column than the loss.
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
	if err = parse(keys, fields[2:]); err != nil {
		return "", x, y, err
	}
	if x, err = s.groupOf(keys); err != nil || !compared {
		return fields[0], x, y, err
	}
	if err = parse(keys, strings.Fields(reference)); err != nil {
		return "", x, y, err
	}
	y, err = s.groupOf(keys)
	return fields[0], x, y, err
}

// parse reads column=value into keys.
func parse(keys map[Column]string, fields []string) error {
	for _, f := range fields {
		name, value, ok := strings.Cut(f, "=")
		if !ok {
			return fmt.Errorf("%q is no column=value", f)
		}
		keys[Column(name)] = value
	}
	return nil
}

// rankOf puts the method first, of which an index is kept.
func rankOf(c Column) int {
	if c == Method {
		return 0
	}
	return 1
}

// groupOf returns the one group of rows with some keys.
func (s *Store) groupOf(keys map[Column]string) (group, error) {
	rows := s.Block(keys["block"])
	if of := keys["of"]; of != "" {
		rows = rows.Of(Column(of))
	}
	order := slices.Sorted(maps.Keys(keys))
	slices.SortStableFunc(order, func(a, b Column) int { return cmp.Compare(rankOf(a), rankOf(b)) })
	for _, c := range order {
		value := keys[c]
		switch {
		case value == "":
		case c == T:
			var t int
			if _, err := fmt.Sscan(value, &t); err != nil || t < 1 {
				return group{}, fmt.Errorf("horizon %q, want a number from 1", value)
			}
			rows = rows.At(t)
		case c != "block" && c != "of":
			rows = rows.Where(c.Is(value))
		}
	}
	all, err := rows.groups(nil)
	if err != nil {
		return group{}, err
	}
	if len(all) != 1 {
		return group{}, fmt.Errorf("%d groups of rows, want one", len(all))
	}
	return all[0], nil
}
