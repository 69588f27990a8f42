package results

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"icrl/internal/safetensors"
	"icrl/policyattention/report"
)

// builders are the tables in the order of commands and documents: the paper's by number, then the
// project's own. A new table is a new line here.
func builders() []builder {
	return []builder{
		{"1", answered("table1.tsv")}, {"2", answered("table2.tsv")}, {"3", (*Store).table3}, {"4", (*Store).table4},
		{"headline", (*Store).headline}, {"headline-actor", (*Store).headlineActor},
		{"headline-short", (*Store).headlineShort}, {"attention", (*Store).attention},
		{"heads", (*Store).heads}, {"sizes", (*Store).sizes}, {"sharpness", (*Store).sharpness},
		{"oracle", (*Store).oracle}, {"confirmation", (*Store).confirmation}, {"shift", (*Store).shift},
		{"benchmark", (*Store).benchmark}, {"tails", (*Store).tails}, {"mechanism", (*Store).mechanism},
		{"frontier", (*Store).frontier}, {"audit", (*Store).audit}, {"qualification", (*Store).qualification},
		{"tuning", (*Store).tuning}, {"critics", (*Store).critics}, {"equal", (*Store).equal},
		{"equal-model", (*Store).equalModel}, {"greedy", (*Store).greedy}, {"lead", (*Store).lead},
		{"any", (*Store).any}, {"any-sets", (*Store).anySets}, {"cliffs", (*Store).cliffs},
		{"any-attention", (*Store).anyAttention}, {"families", (*Store).families}, {"planners", (*Store).planners},
		{"family-methods", (*Store).familyMethods}, {"family-methods-40", (*Store).familyMethods40},
		{"costs", (*Store).costs}, {"claims", (*Store).claimsTable}, {"verdicts", (*Store).verdicts},
		{"all-findings", answered("all-findings.tsv")}, {"findings", answered("findings.tsv")},
		{"reproduced", (*Store).reproduced}, {"greedy-leads", (*Store).greedyLeads},
		{"headline-critics", (*Store).headlineCritics},
		{"lead-20", (*Store).lead20}, {"lead-sharpness", (*Store).leadSharpness}, {"switched", (*Store).switched},
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

// Tables of what runs and trainings cost.

// run is what runs.json says of an evaluation, or trainings.json of a training.
type run struct {
	Name, Hash            string // of a training
	Block, Method, Recipe string
	S                     int
	Weights               map[string]string
	Produced              struct{ Backend struct{ Name string } }
	Cost                  struct {
		CPU float64 `json:"cpu_seconds"`
	}
}

// list reads runs.json or trainings.json.
func (s *Store) list(file string) (all []run, err error) {
	text, err := os.ReadFile(filepath.Join(s.Folder, file))
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return nil, fmt.Errorf("results: %s: %w", file, err)
	}
	return all, nil
}

// parameters counts the numbers in the weights of a training.
func (s *Store) parameters(training run) (n int, err error) {
	folder := fmt.Sprintf("%s-%.12s", training.Name, training.Hash)
	f, err := safetensors.ReadFile(filepath.Join(s.Folder, "train", folder, "weights.safetensors"))
	if err != nil {
		return 0, fmt.Errorf("results: %w", err)
	}
	for _, t := range f.Tensors {
		if t.Name != "loss" { // of the training
			n += reflect.ValueOf(t.Data).Len()
		}
	}
	return n, nil
}

func (s *Store) table4() (t Table) {
	t.Columns = []string{"method", "training signal", "online access a round", "training data",
		"paper: parameters; cost", "parameters", "CPU-h"}
	runs, err := s.list("runs.json")
	trainings, missing := s.list("trainings.json")
	t.err = errors.Join(err, missing)
	for _, x := range fields(content("table4.tsv"))[1:] {
		at := slices.IndexFunc(runs, func(r run) bool {
			return r.Block == "benchmark" && r.Method == x[0] && r.Recipe == x[1] && r.S == 8
		})
		if at < 0 {
			continue
		}
		n, hours := 0, 0.0
		for _, training := range trainings {
			if _, used := runs[at].Weights[training.Name]; !used {
				continue
			}
			size, err := s.parameters(training)
			t.err = errors.Join(t.err, err)
			n, hours = n+size, hours+training.Cost.CPU/3600
		}
		t.Add(labelled(x[0], x[1]), x[2], x[3], x[4], x[5], n, hours)
	}
	return t
}

// labelled is a method with its recipe where it has several.
func labelled(method, recipe string) string {
	if recipe == "" || recipe == None || recipe == "plain" {
		return Label(method)
	}
	return fmt.Sprintf("%s (%s)", Label(method), recipe)
}

func (s *Store) costs() (t Table) {
	t.Columns = []string{"what", "runs", "CPU-h", "longest: CPU-h", "made on"}
	var order []string // of trainings and blocks
	made := map[string][]run{}
	for _, file := range []string{"trainings.json", "runs.json"} {
		all, err := s.list(file)
		t.err = errors.Join(t.err, err)
		for _, r := range all {
			what := "training " + ofOne.ReplaceAllString(r.Name, "")
			if r.Block != "" {
				what = "block " + r.Block
			}
			if r.Block != "" && r.Cost.CPU == 0 {
				continue
			}
			if made[what] == nil {
				order = append(order, what)
			}
			made[what] = append(made[what], r)
		}
	}
	for _, what := range order {
		hours, longest, on := 0.0, 0.0, []string(nil)
		for _, r := range made[what] {
			hours, longest = hours+r.Cost.CPU/3600, max(longest, r.Cost.CPU/3600)
			if name := r.Produced.Backend.Name; name != "" && !slices.Contains(on, name) {
				on = append(on, name)
			}
		}
		t.Add(what, len(made[what]), hours, longest, strings.Join(on, ", "))
	}
	return t
}

// ofOne is what of a training's name is its seed and the step size of a source.
var ofOne = regexp.MustCompile(`-source\d+|-\d+$`)

// Tables of documents, which have room for less.

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
func (s *Store) greedyLeads() Table {
	all := s.Block("headline-greedy").At(20).By(Method, Recipe, S, "alpha")
	t := all.keep(func(l line) bool { return !ofOurs(l) }).match(all.keep(ofOurs), same(S, "alpha")).
		estimate("over-all-runs", "").across()
	t.Columns = []string{"method", "recipe", "S", "greedy", "as returned"}
	return t.short("method", "recipe", "S", "as returned", "greedy")
}

// equalModel is what methods with the model and tuned step sizes are left with.
func (s *Store) equalModel() Table {
	shown := []any{Label("policyattention"), Label("exact-pmd"), Label("liang-lai"), Label("value-iteration")}
	return s.tables["equal"]().keep(func(l line) bool {
		return l.entries[0] == "model" && l.entries[3] == 20 && slices.Contains(shown, l.entries[1])
	}).short("method", "S", "mean loss")
}

// headlineCritics are the loops of critics that see samples, on thousands of problems.
func (s *Store) headlineCritics() Table {
	loops := s.Block("headline").Where(Method.Is("sample-mean", "anchored-critic", "policyattention-sample-mean",
		"policyattention-learned-critic")).At(20, 40, 100).By(Method, S, T)
	over := loops.match(loops, ofMean).estimate("over-problems", "").across()
	t := loops.keep(func(l line) bool { return l.group.key[T] == "20" }).Against(s.exact("headline").At(20).By(S)).
		estimate("over-problems", "means / exact PMD").WithTail()
	shown := []string{"method", "S", "means / exact PMD", "worst"}
	for k, horizon := range over.Columns[2:] {
		shown = append(shown, "over the mean, T = "+horizon)
		t = t.with(shown[len(shown)-1], func(l line) any { return over.row(l, 2)[2+k] })
	}
	return t.short(shown...)
}

func (s *Store) lead20() Table {
	return s.tables["lead"]().keep(func(l line) bool {
		return l.entries[2] == "20" && l.entries[0] != Label("q-learning") && l.entries[0] != Label("sarsa")
	}).short("method", "S", "lead", "= update rule", "+ information", "+ tuning")
}

// looks are how tables and figures show a method: its name, label and colour. They are in the order of the paper's
// tables, the last those of the study with equal information alone. Colours stay apart for colour-blind readers (Okabe
// and Ito).
var looks = fields(content("looks.tsv"))[1:]

// recipes are in the order of tables.
var recipes = strings.Fields(content("recipes.tsv"))

// look is one of these; a method that is not known has its own name as its label.
func look(method string) []string {
	if i := indexOf(method); i >= 0 {
		return looks[i]
	}
	return []string{method, method, "#555555"}
}

// Label is a method as tables write it.
func Label(method string) string { return look(method)[1] }

// label is a method as its tables write it, by its own label where this package does not know it.
func (r Rows) label(method string) string {
	if own := r.labels[method]; own != "" && indexOf(method) < 0 {
		return own
	}
	return Label(method)
}

// Colour is a method's colour in figures, as #rrggbb.
func Colour(method string) string { return look(method)[2] }

func indexOf(method string) int {
	return slices.IndexFunc(looks, func(l []string) bool { return l[0] == method })
}

// rank is the place of a method or recipe in tables. What is not known comes last.
func rank(name string) int {
	if i := max(indexOf(name), slices.Index(recipes, name)); i >= 0 {
		return i
	}
	return len(looks) + len(recipes)
}
