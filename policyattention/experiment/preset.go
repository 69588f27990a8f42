package experiment

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"path"
	"slices"

	"icrl/policyattention/baseline"
	"icrl/policyattention/mdp"
	"icrl/policyattention/method"
	"icrl/policyattention/rows"
)

// Preset is a scale at which the experiments are run. Presets differ in sizes and counts, of identities and methods
// too, and not in what a cell means. A file of one's own is its JSON: see ReadPreset.
type Preset struct {
	Name        string              `json:"name"`
	Steps       int                 `json:"steps"`                // optimizer steps of an actor or a critic
	Snapshots   []int               `json:"snapshots,omitempty"`  // steps before the last at which weights are kept
	Problems    int                 `json:"problems"`             // evaluation problems a size
	Headline    map[int]int         `json:"headline,omitempty"`   // those of the headline block, by number of states
	Oracle      int                 `json:"oracle"`               // those of the oracle block
	HeldOut     int                 `json:"held_out"`             // one-step inputs of the mechanism block
	Calibrating int                 `json:"calibrating"`          // problems of the tuning block
	Qualifying  map[method.Name]int `json:"qualifying,omitempty"` // those of qualification, where more than Problems
	// Limits bound the numbers of a method's recipes.
	Limits map[method.Name]method.Limits `json:"limits,omitempty"`
	// LeftOut are patterns as in [path.Match] of weights that the repository has not, run/file. Others must be there.
	LeftOut  []string        `json:"left_out,omitempty"`
	Rows     []Row           `json:"rows"`
	Protocol *Protocol       `json:"-"`
	Methods  method.Registry `json:"-"` // in the order of tables
	Studies  []Study         `json:"-"`
}

// Row lists cells of one block and method: each size with each of the protocol's first Runs identities, or one without
// an identity where Runs is 0. A recipe may be followed by what changes of it, as in "plain,width=32".
type Row struct {
	Block  Block       `json:"block"`
	Method method.Name `json:"method"`
	Recipe string      `json:"recipe,omitempty"`
	Sizes  []int       `json:"sizes"`
	Runs   int         `json:"runs,omitempty"`
}

// With returns the preset with a protocol, methods and studies; rows of methods that are not there are left out.
func (p Preset) With(protocol *Protocol, methods method.Registry, studies ...Study) Preset {
	p.Protocol, p.Methods, p.Studies = protocol, methods, studies
	p.Rows = slices.DeleteFunc(slices.Clone(p.Rows), func(r Row) bool { return !methods.Has(r.Method) })
	return p
}

// ReadPreset reads a preset from a file of JSON, whose members are those of base where it has none.
func ReadPreset(file string, base Preset) (Preset, error) {
	p := base
	p.Name, p.Rows, p.Studies, p.LeftOut = "", nil, nil, nil
	if err := readJSON(file, &p); err != nil {
		return Preset{}, err
	}
	return p, p.Check()
}

// leavesOut reports whether the repository has not the weights run/file.
func (p Preset) leavesOut(file string) bool {
	return slices.ContainsFunc(p.LeftOut, func(pattern string) bool {
		ok, _ := path.Match(pattern, file) // Check has refused others
		return ok
	})
}

// Check returns an error if the preset makes no sense.
func (p Preset) Check() error {
	if p.Name == "" || p.Name != fileName(p.Name) || p.Protocol == nil || min(p.Problems, p.Steps) < 1 {
		return fmt.Errorf("experiment: preset %q, want a name for a folder, a protocol, and at least one problem and "+
			"optimizer step", p.Name)
	}
	for _, pattern := range p.LeftOut {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("experiment: preset %s leaves out %q: %w", p.Name, pattern, err)
		}
	}
	for _, row := range p.Rows {
		if len(row.Sizes) == 0 {
			return fmt.Errorf("experiment: preset %s: %s in block %s has no sizes", p.Name, row.Method, row.Block)
		}
		if rounds := slices.Max(baseline.Horizons); blocks[row.Block].Policies != nil && p.Protocol.Rounds < rounds {
			return fmt.Errorf("experiment: preset %s: %d rounds, block %s keeps round %d", p.Name, p.Protocol.Rounds,
				row.Block, rounds)
		}
		for _, states := range row.Sizes {
			if n := len(p.Protocol.Sizes[states].Runs); row.Runs > n {
				return fmt.Errorf("experiment: preset %s: %d runs of %s in block %s at S=%d, the protocol has %d",
					p.Name, row.Runs, row.Method, row.Block, states, n)
			}
		}
	}
	units, err := p.Cells()
	if err != nil {
		return fmt.Errorf("experiment: preset %s: %w", p.Name, err)
	}
	names := map[string]string{}
	for _, u := range units {
		for _, w := range u.Weights {
			t := w.Training
			if hash, ok := names[t.Name()]; ok && hash != method.Hash(t) {
				return fmt.Errorf("experiment: preset %s has two training runs of the name %s", p.Name, t.Name())
			}
			names[t.Name()] = method.Hash(t)
		}
		if names[u.Path()] != "" {
			return fmt.Errorf("experiment: preset %s has %s twice", p.Name, u.Path())
		}
		names[u.Path()] = "there"
	}
	return nil
}

// Cells lists the units of the preset's rows in the order in which they are worth running.
func (p Preset) Cells() (units []Unit, err error) {
	for _, row := range p.Rows {
		for _, s := range row.Sizes {
			for _, key := range p.expand(row, s) {
				u, err := p.Unit(row.Block, key)
				if err != nil {
					return nil, err
				}
				units = append(units, u)
			}
		}
	}
	return units, nil
}

// expand lists the cells of a row at one size.
func (p Preset) expand(row Row, states int) (cells []rows.Key) {
	families, steps := []mdp.Family{mdp.Random}, []int{0}
	if b := blocks[row.Block]; b.Families != nil {
		families = b.Families
	}
	if row.Block == Frontier {
		steps = append(slices.Clone(p.Snapshots), p.Steps)
	}
	runs := []method.Identity{{}}
	if row.Runs > 0 {
		runs = p.Protocol.Sizes[states].Runs[:row.Runs]
	}
	for _, run := range runs {
		for _, family := range families {
			for _, step := range steps {
				cells = append(cells, rows.Key{Method: row.Method, Recipe: row.Recipe, S: int32(states),
					Seed: int64(run.Model), Step: int32(step), Family: string(family)})
			}
		}
	}
	return cells
}

// Trainings lists the distinct training runs that units need, in their order.
func Trainings(units []Unit) (all []Unit) {
	seen := map[string]bool{}
	for _, u := range units {
		for _, w := range u.Weights {
			if hash := method.Hash(w.Training); !seen[hash] {
				seen[hash] = true
				all = append(all, training(w.Training))
			}
		}
	}
	return all
}

//go:embed protocol.json
var protocolJSON []byte

// PaperProtocol is the paper's: protocol.json in this package is the one place of every seed, root, horizon and margin.
var PaperProtocol = Embedded[Protocol](protocolJSON)

// Embedded returns the value of JSON that is part of the program. It panics if it is none.
func Embedded[T any](text []byte) (v T) {
	if err := json.Unmarshal(text, &v); err != nil {
		panic(fmt.Sprintf("experiment: %.40s…: %v", text, err))
	}
	return v
}

// Protocol is what is fixed before any evaluation.
type Protocol struct {
	Actions       int       `json:"actions"`
	Eta           float64   `json:"eta"`     // step size at deployment
	Rounds        int       `json:"rounds"`  // T of every trajectory
	Long          []int     `json:"long"`    // further horizons, the last the T of their trajectories
	Mixture       float64   `json:"mixture"` // φ
	HeldOutRounds int       `json:"held_out_rounds"`
	SuppliedEta   []float64 `json:"supplied_eta"`
	Fit           struct {  // grid of the refitted step size
		Lo float64 `json:"lo"`
		Hi float64 `json:"hi"`
		By float64 `json:"by"`
	} `json:"fit"`
	Sizes map[int]Size `json:"sizes"` // by number of states
}

// Size is what the protocol fixes for one number of states.
type Size struct {
	Runs       []method.Identity `json:"runs"`       // the paper's number of identities
	Evaluation uint64            `json:"evaluation"` // root of the evaluation problems
	Headline   uint64            `json:"headline"`   // root of the headline block's problems, which nothing else has
	Oracle     uint64            `json:"oracle"`     // root of the oracle block's problems, 0 where there are none
	HeldOut    uint64            `json:"held_out"`   // root of the one-step inputs, likewise
	// Of the sampled methods.
	Calibration   uint64 `json:"calibration"`   // root of the tuning block's problems
	Qualification uint64 `json:"qualification"` // root of the qualification block's
	// Fresh are roots of the qualification block's problems for methods whose recipe was
	// changed after problems of the common root had been looked at.
	Fresh map[method.Name]uint64 `json:"fresh,omitempty"`
	// Tuned are step sizes that the tuning block chose, or that a source states, by what they are of.
	Tuned map[string]baseline.StepSizes `json:"tuned"`
}
