package results

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Tables of documents, which have room for less.

// findings are the findings of README, each with its number.
func (s *Store) findings() (t Table) {
	t.Title, t.Columns = "Findings", []string{"finding", "number", "here [95 % interval]"}
	headline, sharpness := s.tables["headline-20-40"](), s.tables["sharpness"]()
	t.err = cmp.Or(headline.err, sharpness.err)
	at := func(of Table, column string, keys ...any) any {
		k := slices.Index(of.Columns, column)
		for _, row := range of.Rows {
			if k >= 0 && fmt.Sprintln(row[:len(keys)]...) == fmt.Sprintln(keys...) {
				return row[k]
			}
		}
		t.err = cmp.Or(t.err, fmt.Errorf("results: findings: no %v with column %q", keys, column))
		return nil
	}
	t.Add("The learned actor follows exact PMD", "mean loss / exact PMD's, S = 8, T = 20, 2,048 fresh problems",
		at(headline, "means / reference", 8, 20))
	t.Add("On a few problems it locks up", "share more than .05 behind exact PMD, S = 4, T = 40, 4,096 fresh problems",
		at(headline, "locked", 4, 40))
	t.Add("The learned critic costs more than its samples do",
		"mean loss / that with the mean of the same samples, S = 4",
		s.say(&t, "", "ratio-of-means confirmation method=policyattention-learned-critic s=4 t=20 / block=critics "+
			"method=policyattention-sample-mean"))
	t.Add("The factor over Liang–Lai is there", "its median loss / PolicyAttention's, S = 16, T = 20",
		s.say(&t, "", "ratio benchmark method=liang-lai recipe=paper-features s=16 t=20 / "+
			"method=policyattention recipe=plain"))
	full := []any{Label("algorithm-distillation"), "full", "8"}
	t.Add("Most of such leads is sharpness",
		"Algorithm Distillation / PolicyAttention, means, S = 8, T = 20; both greedy",
		fmt.Sprintf("%v; %v", at(sharpness, "/ PA", full...),
			at(sharpness, "greedy / PA", full...)))
	return t
}

// reproduced are the claims of README, the largest difference first.
func (s *Store) reproduced() (t Table) {
	t.Title, t.Columns = "Does it reproduce?", []string{"item", "paper", "here [95 % interval]", "verdict", "why"}
	for _, prefix := range []string{
		"ratio benchmark method=policyattention recipe=plain s=8 t=40",
		"ratio benchmark method=policyattention recipe=plain s=16 t=40",
		"median benchmark method=algorithm-distillation recipe=full s=8 t=20",
		"ratio benchmark method=liang-lai recipe=paper-features s=16 t=20",
		"ratio confirmation method=policyattention-learned-critic t=20",
		"ratio confirmation method=policyattention seed=14101 t=20",
		"ratio shift method=policyattention family=sparse-transitions t=20",
		"difference confirmation method=policyattention-mixture t=20",
	} {
		at := slices.IndexFunc(ThePaper.Claims, func(c Claim) bool { return strings.HasPrefix(c.Query, prefix) })
		if at < 0 {
			t.err = fmt.Errorf("results: no claim about %q", prefix)
			return t
		}
		j, err := s.Judge(ThePaper.Claims[at])
		if err != nil {
			t.err = err
			return t
		}
		t.Add(j.Sentence, j.Printed.Text, said(j.Here), string(j.Verdict), j.Reason)
	}
	return t
}

func (s *Store) baselines() Table {
	rows := s.Block("benchmark").At(20)
	actor := rows.Where(Method.Is("policyattention")).By(S)
	others := rows.Where(Method.Is("liang-lai", "algorithm-distillation", "actor-critic", "s5rl")).By(Method, Recipe, S)
	return others.Median().Against(actor).Ratio().Runs().
		Titled("Sampled methods at T = 20, and their median loss over PolicyAttention's").
		short("method", "recipe", "S", "runs", "median", "ratio of medians")
}

func (s *Store) critics20() Table {
	return s.tables["critics"]().keep(func(l line) bool { return l.group.key[T] == "20" }).
		short("method", "S", "error of a backup", "means / exact PMD", "worst", "means / mean of samples")
}

func (s *Store) lead20() Table {
	t := s.tables["lead"]()
	t.Rows = slices.DeleteFunc(slices.Clone(t.Rows), func(row []any) bool { return row[2] != "20" })
	return t.short("method", "S", "lead", "= update rule", "+ information", "+ tuning")
}

func (s *Store) qualified() Table {
	t := s.tables["qualification"]()
	t.Rows = slices.DeleteFunc(slices.Clone(t.Rows),
		func(row []any) bool { return row[len(row)-1] == "no control" })
	return t.short("method", "recipe", "S", "round 1", "round 40", "runs", "minus its control [95 % interval]",
		"qualifies")
}
