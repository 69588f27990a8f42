package results

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Tables of documents, which have room for less.

// findings are those of README, the first six of RESULTS'.
func (s *Store) findings() Table {
	t := s.tables["all-findings"]()
	t.lines = t.lines[:min(6, len(t.lines))]
	return t.short(t.Columns[:3]...)
}

// reproduced are the claims of README, the largest difference first.
func (s *Store) reproduced() (t Table) {
	t.Columns = []string{"item", "paper", here, "verdict", "why"}
	for _, prefix := range []string{
		"ratio benchmark method=policyattention recipe=plain s=8 t=40",
		"ratio benchmark method=policyattention recipe=plain s=16 t=40",
		"median benchmark method=algorithm-distillation recipe=full s=8 t=20",
		"ratio benchmark method=liang-lai recipe=paper-features s=16 t=20",
		"ratio confirmation method=policyattention-learned-critic t=20",
		"difference confirmation method=policyattention-mixture t=20",
	} {
		at := slices.IndexFunc(ThePaper, func(c Claim) bool { return strings.HasPrefix(c.Query, prefix) })
		if at < 0 {
			return Table{err: fmt.Errorf("results: no claim about %q", prefix)}
		}
		j, err := s.Judge(ThePaper[at])
		t.err = errors.Join(t.err, err)
		t.Add(j.Sentence, j.Printed.Text, said(j.Here), string(j.Verdict), j.Reason)
	}
	return t
}

// greedyLeads is how the ratios to PolicyAttention's mean loss change when all policies are made greedy.
func (s *Store) greedyLeads() (t Table) {
	t.Columns = []string{"method", "recipe", "S = 8: as returned", "greedy", "S = 16: as returned", "greedy"}
	others := s.Block("sharpened").At(20).Where(S.Is(8), Column("alpha").Is(0),
		Method.Not("policyattention", "pmd-target")).By(Method, Recipe)
	t.err = others.err
	for _, l := range others.lines {
		row := []any{l.entries[0], l.entries[1]}
		for _, states := range []string{"8", "16"} {
			for _, temperature := range []float64{1, 0} { // as returned, greedy
				_, ratio, err := s.sharpened(l.group.key[Method], l.group.key[Recipe], states,
					[2]float64{temperature, temperature})
				t.err, row = cmp.Or(t.err, err), append(row, ratio)
			}
		}
		t.Add(row...)
	}
	return t
}

// equalModel is what methods with the model and tuned step sizes are left with.
func (s *Store) equalModel() Table {
	shown := []any{Label("policyattention"), Label("exact-pmd"), Label("liang-lai"), Label("value-iteration")}
	return s.tables["equal"]().keep(func(l line) bool {
		return l.entries[0] == "model" && l.entries[3] == 20 && slices.Contains(shown, l.entries[1])
	}).short("method", "S", "mean loss")
}

func (s *Store) critics20() Table {
	return s.tables["critics"]().keep(func(l line) bool { return l.group.key[T] == "20" }).
		short("method", "S", "error of a backup", "means / exact PMD", "worst", "means / mean of samples")
}

func (s *Store) lead20() Table {
	return s.tables["lead"]().keep(func(l line) bool {
		method := l.entries[0]
		return l.entries[2] == "20" && method != Label("q-learning") && method != Label("sarsa")
	}).short("method", "S", "lead", "= update rule", "+ information", "+ tuning")
}

func (s *Store) qualified() Table {
	learns := func(l line) bool { return l.entries[1] == learner(fmt.Sprint(l.entries[1])) } // it is no control itself
	return s.tables["qualification"]().keep(learns).
		short("method", "recipe", "S", "round 1", "round 40", "runs", "minus its control [95 % interval]", "qualifies")
}
