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
		{"1", answered("table1.tsv")}, {"2", answered("table2.tsv")}, {"3", (*Store).table3}, {"4", (*Store).table4},
		{"headline", (*Store).headline}, {"headline-actor", (*Store).headlineActor},
		{"attention", (*Store).attention},
		{"heads", (*Store).heads}, {"sizes", (*Store).sizes}, {"sharpness", (*Store).sharpness},
		{"oracle", (*Store).oracle}, {"confirmation", (*Store).confirmation}, {"shift", (*Store).shift},
		{"benchmark", (*Store).benchmark}, {"tails", (*Store).tails},
		{"mechanism", (*Store).mechanism}, {"frontier", (*Store).frontier}, {"audit", (*Store).audit},
		{"qualification", (*Store).qualification}, {"tuning", (*Store).tuning}, {"critics", (*Store).critics},
		{"equal", (*Store).equal}, {"equal-model", (*Store).equalModel}, {"greedy", (*Store).greedy},
		{"lead", (*Store).lead}, {"any", (*Store).any}, {"any-sets", (*Store).anySets}, {"cliffs", (*Store).cliffs},
		{"any-attention", (*Store).anyAttention},
		{"families", (*Store).families}, {"costs", (*Store).costs},
		{"claims", (*Store).claimsTable}, {"verdicts", (*Store).verdicts},
		{"all-findings", answered("findings.tsv")}, {"findings", (*Store).findings},
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
	if caption := captions[name]; caption != nil {
		t.Title, t.Notes = caption[0], slices.Concat(caption[1:], t.Notes)
	}
	if err != nil {
		err = fmt.Errorf("table %s: %w", name, err)
	}
	return t, err
}

// captions are the titles and notes of tables, by name. A note that several have stands once, by a name that begins
// with a colon.
var captions = func() map[string][]string {
	all := map[string][]string{}
	for _, f := range fields(content("captions.tsv"))[1:] {
		for k, note := range f[1:] {
			if common := all[note]; common != nil {
				f[k+1] = common[0]
			}
		}
		for name := range strings.FieldsSeq(f[0]) {
			all[name] = f[1:]
		}
	}
	return all
}()

// Horizons are the tables' horizons T.
var Horizons = []int{20, 40}

// exact selects exact PMD, which tables compare with.
func (s *Store) exact(block string) Rows { return s.Block(block).Where(Method.Is("exact-pmd")) }

// ofTable3 are the rows of Table 3, by method and recipe. Liang–Lai and Algorithm Distillation have
// the paper's step sizes; the last has the paper's budget.
var ofTable3 = []string{
	"policyattention plain", "pmd-target plain", "policyattention-learned-critic plain", "liang-lai paper-features",
	"liang-lai paper", "algorithm-distillation full", "exact-pmd ",
}

func (s *Store) table3() Table {
	return s.Block("benchmark").At(Horizons...).By(Method, Recipe, S, T).keep(inTable3).Median().Wide(ThePaper, S, T)
}

func inTable3(l line) bool {
	return slices.Contains(ofTable3, l.group.key[Method]+" "+l.group.key[Recipe])
}

func (s *Store) oracle() Table {
	return s.Block("oracle").At(Horizons...).By(S, T).Median().Beside(ThePaper).WithInterval()
}

func (s *Store) benchmark() Table {
	return s.Block("benchmark").At(Horizons...).By(Method, Recipe, S, T).Median().Beside(ThePaper).WithInterval().
		Runs().Against(s.exact("benchmark").At(Horizons...).By(S)).Ratio().WithInterval().WithTail().
		RatioOfMeans().WithInterval().InterquartileMean().estimate("improvement", "P(below reference)")
}

func (s *Store) confirmation() (t Table) {
	rows := s.Block("confirmation").At(20)
	of := func(method string) Table { return rows.Where(Method.Is(method)).By() }
	exact, actor, critic := of("exact-pmd"), of("policyattention"), of("policyattention-learned-critic")
	line := func(quantity string, q Table) {
		q = q.Beside(ThePaper).WithInterval().WithTail()
		by := len(q.by)
		q.Columns = append([]string{"quantity", "paper", "here"}, q.Columns[by+2:]...)
		for i, l := range q.lines {
			name := strings.ReplaceAll(quantity, "#", l.group.key[Seed])
			q.lines[i].entries = append([]any{name}, l.entries[by:]...)
		}
		t = t.Then(q)
	}
	line("ratio of run # to exact PMD", rows.Where(Method.Is("policyattention")).By(Seed).Against(exact).Ratio())
	line("ratio to exact PMD", actor.Against(exact).Ratio())
	line("minus exact PMD, of medians", actor.Against(exact).Minus())
	line("minus exact PMD, by problem", actor.Against(exact).Paired())
	line("learned critic: ratio to exact PMD", critic.Against(exact).Ratio())
	line("learned critic minus exact PMD", critic.Against(exact).Minus())
	line("reward-only minus actor", of("reward-only").Against(actor).Minus())
	line("reward-only minus learned critic", of("reward-only").Against(critic).Minus())
	line("mixture φ = .01 minus actor", of("policyattention-mixture").Against(actor).Minus())
	line("PMD-target minus actor", of("pmd-target").Against(actor).Minus())
	return t
}

func (s *Store) shift() Table {
	return s.Block("shift").At(20).Where(Method.Is("policyattention")).By(Family).
		Against(s.exact("shift").At(20).By(Family)).Ratio().Beside(ThePaper).WithInterval().ByRun().WithTail()
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
	return t
}
