package results

import (
	"fmt"
	"slices"
	"strings"

	"icrl/policyattention/report"
)

// builders are the tables in the order of commands and documents: the paper's by number, then the
// project's own. A new table is a new line here.
func builders() []builder {
	return []builder{
		{"1", (*Store).table1}, {"2", (*Store).table2}, {"3", (*Store).table3}, {"4", (*Store).table4},
		{"headline", (*Store).headline}, {"headline-actor", (*Store).headlineActor},
		{"attention", (*Store).attention},
		{"heads", (*Store).heads}, {"sizes", (*Store).sizes}, {"sharpness", (*Store).sharpness},
		{"oracle", (*Store).oracle}, {"confirmation", (*Store).confirmation}, {"shift", (*Store).shift},
		{"benchmark", (*Store).benchmark}, {"tails", (*Store).tails},
		{"mechanism", (*Store).mechanism}, {"frontier", (*Store).frontier}, {"audit", (*Store).audit},
		{"qualification", (*Store).qualification}, {"tuning", (*Store).tuning}, {"critics", (*Store).critics},
		{"equal", (*Store).equal}, {"equal-model", (*Store).equalModel}, {"greedy", (*Store).greedy},
		{"lead", (*Store).lead}, {"any", (*Store).any}, {"any-sets", (*Store).anySets}, {"cliffs", (*Store).cliffs},
		{"families", (*Store).families}, {"costs", (*Store).costs},
		{"claims", (*Store).claimsTable}, {"verdicts", (*Store).verdicts},
		{"all-findings", (*Store).allFindings}, {"findings", (*Store).findings},
		{"reproduced", (*Store).reproduced}, {"greedy-leads", (*Store).greedyLeads},
		{"critics-20", (*Store).critics20}, {"lead-20", (*Store).lead20}, {"qualified", (*Store).qualified},
		{"lead-sharpness", (*Store).leadSharpness},
	}
}

type builder struct {
	name  string
	build func(*Store) Table
}

// TableNames lists the tables.
func TableNames() (names []string) {
	for _, b := range builders() {
		names = append(names, b.name)
	}
	return names
}

// Table returns the table called name. It returns an error if there is no such table or if rows
// that it is made of are missing.
func (s *Store) Table(name string) (report.Table, error) {
	made, ok := s.tables[name]
	if !ok {
		return report.Table{}, fmt.Errorf("results: no table %q, want one of %q", name, TableNames())
	}
	t, err := made().Shown()
	t.Name = name
	if err != nil {
		err = fmt.Errorf("table %s: %w", name, err)
	}
	return t, err
}

// Horizons are the tables' horizons T.
var Horizons = []int{20, 40}

// exact selects exact PMD, which tables compare with.
func (s *Store) exact(block string) Rows { return s.Block(block).Where(Method.Is("exact-pmd")) }

// capability is a row of Table 1, with the test that shows each mark here.
var capability = [][]any{
	{"Wang et al. 2025", "emp.", "✓", "–", "✓", "–", "field/wang"},
	{"Xie et al. 2026", "✓", "✓", "–", "✓", "–", "field/xie"},
	{"Liang–Lai 2026", "linear", "✓", "✓", "✓", "–", "baseline/lianglai"},
	{"Algorithm Distillation", "✓", "implicit", "✓", "✓", "–", "baseline/distill"},
	{"PolicyAttention", "✓", "✓", "✓", "✓", "✓", "decoder, train, control"},
}

func (s *Store) table1() (t Table) {
	t.Columns = []string{"work", "softmax", "evaluation", "control", "learned", "bound on the returned policy",
		"package"}
	t.Rows = capability
	t.Title = "Table 1: capability map"
	t.Notes = []string{"Each package holds the system and the tests of its marks."}
	return t
}

func (s *Store) table2() Table { return s.answered("Table 2: claim-to-estimand map", table2) }

// ofTable3 are the rows of Table 3, by method and recipe. Liang–Lai and Algorithm Distillation have
// the paper's step sizes; the last has the paper's budget.
var ofTable3 = []string{
	"policyattention plain", "pmd-target plain", "policyattention-learned-critic plain", "liang-lai paper-features",
	"liang-lai paper", "algorithm-distillation full", "exact-pmd ",
}

func (s *Store) table3() Table {
	return s.Block("benchmark").At(Horizons...).By(Method, Recipe, S, T).keep(inTable3).Median().Wide(ThePaper, S, T).
		Titled("Table 3: median normalized returned-policy loss, lower is better",
			"Intervals are in table benchmark.")
}

func inTable3(l line) bool {
	return slices.Contains(ofTable3, l.group.key[Method]+" "+l.group.key[Recipe])
}

func (s *Store) oracle() Table {
	return s.Block("oracle").At(Horizons...).By(S, T).Median().Beside(ThePaper).WithInterval().Titled(
		"Exact PMD: median normalized returned-policy loss over 1,000 problems",
		"The paper's medians are over 64 problems. γ, A, the distribution of problems, π₀ and Q₀ were chosen so that "+
			"these medians come out.")
}

func (s *Store) benchmark() Table {
	return s.Block("benchmark").At(Horizons...).By(Method, Recipe, S, T).Median().Beside(ThePaper).WithInterval().
		Runs().Against(s.exact("benchmark").At(Horizons...).By(S)).Ratio().WithInterval().WithTail().
		RatioOfMeans().WithInterval().InterquartileMean().Improvement().
		Titled("Common harness: loss, and its ratio to exact PMD's", bootstrapNote, tailNote)
}

const (
	bootstrapNote = "Intervals: hierarchical bootstrap, runs first and shared problems second, 10,000 replicates. " +
		"With 64 problems they cover less than 95 % where losses have a tail: TestCoverage of package results."
	tailNote = "Excess: the loss less the reference's, problem by problem, over all problems of all runs; above " +
		".05: the share of problems whose excess is above .05."
)

func (s *Store) confirmation() (t Table) {
	rows := s.Block("confirmation").At(20)
	of := func(method string) Table { return rows.Where(Method.Is(method)).By() }
	exact, actor, critic := of("exact-pmd"), of("policyattention"), of("policyattention-learned-critic")
	line := func(quantity string, q Table) {
		q = q.Beside(ThePaper).WithInterval().WithTail()
		q.Columns = append([]string{"quantity", "paper", "here"}, q.Columns[2:]...)
		for i, l := range q.lines {
			q.lines[i].entries = slices.Insert(l.entries, 0, any(strings.ReplaceAll(quantity, "#", l.group.key[Seed])))
		}
		t = t.Then(q)
	}
	for _, seed := range rows.Where(Method.Is("policyattention")).Values(Seed) {
		line("ratio of run # to exact PMD",
			rows.Where(Method.Is("policyattention"), Seed.Is(seed)).By().Against(exact).Ratio())
	}
	line("ratio to exact PMD", actor.Against(exact).Ratio())
	line("minus exact PMD, of medians", actor.Against(exact).Minus())
	line("minus exact PMD, by problem", actor.Against(exact).Paired())
	line("learned critic: ratio to exact PMD", critic.Against(exact).Ratio())
	line("learned critic minus exact PMD", critic.Against(exact).Minus())
	line("reward-only minus actor", of("reward-only").Against(actor).Minus())
	line("reward-only minus learned critic", of("reward-only").Against(critic).Minus())
	line("mixture φ = .01 minus actor", of("policyattention-mixture").Against(actor).Minus())
	line("PMD-target minus actor", of("pmd-target").Against(actor).Minus())
	return t.Titled("Closed-loop reliability at S = 4, T = 20",
		"The registered criterion is a ratio of at most 1.5 for each of the five runs. The paper does not say whether "+
			"its differences are of medians or by problem.", tailNote)
}

func (s *Store) shift() Table {
	return s.Block("shift").At(20).Where(Method.Is("policyattention")).By(Family).
		Against(s.exact("shift").At(20).By(Family)).Ratio().Beside(ThePaper).WithInterval().ByRun().WithTail().
		Titled("Shifts without retraining at S = 4, T = 20: ratio to exact PMD",
			"The paper names the four families; their distributions are ours.", tailNote)
}

func (s *Store) tails() (t Table) {
	add := func(block, against string, horizons ...int) {
		rows := s.Block(block).Where(Method.Is("policyattention", "pmd-target", "reward-only",
			"policyattention-learned-critic", "policyattention-mixture")).At(horizons...)
		t = t.Then(rows.By(Method, Recipe, S, T).Against(s.exact(against).At(horizons...).By(S)).Ratio().WithInterval().
			Runs().WithTail().RatioOfMeans().WithInterval())
	}
	add("confirmation", "confirmation", Horizons...)
	add("prior", "benchmark", Horizons...)
	add("long", "long", 100, 400)
	return t.Titled("Learned actors against exact PMD: medians, and what they hide",
		"The recipe prior adds log π to the logits; the paper's benchmark has table benchmark.", tailNote)
}
