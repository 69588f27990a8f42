package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"icrl/internal/safetensors"
	"icrl/internal/testkit"
	"icrl/policyattention/equal"
	"icrl/policyattention/experiment"
	"icrl/policyattention/mdp"
	"icrl/policyattention/pmd"
	"icrl/policyattention/seed"
)

// page is artifacts/FORMAT.md: what it says for those who read the artifacts without Go is
// held to the code and to the artifacts here. What it says of networks, scripts/verify.py
// and the tests of their packages hold to the code.
func page(t *testing.T) string {
	return string(testkit.Must(os.ReadFile("../../artifacts/FORMAT.md"))(t))
}

// says fails unless the page has a text.
func says(t *testing.T, page, text string) {
	t.Helper()
	if !strings.Contains(page, text) {
		t.Errorf("FORMAT.md lacks %q", text)
	}
}

// rowOf returns the cells of the page's table row that begins with a cell.
func rowOf(t *testing.T, page, first string) []string {
	t.Helper()
	for line := range strings.Lines(page) {
		if cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|"); strings.TrimSpace(cells[0]) == first && len(cells) > 1 {
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			return cells
		}
	}
	t.Fatalf("FORMAT.md has no table row %q", first)
	return nil
}

func TestFormatStreams(t *testing.T) {
	text := page(t)
	first := rowOf(t, text, "bytes hashed")[1]
	quoted := regexp.MustCompile("`([^`]*)`").FindAllStringSubmatch(first, -1)
	name := append(testkit.Must(hex.DecodeString(quoted[0][1]))(t), quoted[1][1]...)
	key := sha256.Sum256(name)
	if got := rowOf(t, text, "SHA-256, the key")[1]; got != fmt.Sprintf("`%x`", key) {
		t.Errorf("the key is %x, FORMAT.md has %s", key, got)
	}
	rng := seed.New(34100, "mdp", "random", 4, 3, 0)
	says(t, text, fmt.Sprintf("`%016x`, `%016x`", rng.Uint64(), rng.Uint64()))
	rng = seed.New(34100, "mdp", "random", 4, 3, 0)
	says(t, text, fmt.Sprintf("| as uniform numbers | %v, %v |", rng.Float64(), rng.Float64()))
}

func TestFormatProblems(t *testing.T) {
	text := page(t)
	for _, f := range append([]mdp.Family{mdp.Random}, mdp.Shifts...) {
		rowOf(t, text, "`"+string(f)+"`")
	}
	ring := testkit.Must(mdp.Ring.Draw(1, 4, 3, 1))(t)[0].MDP
	var rewards []any
	for s := range 4 {
		rewards = append(rewards, ring.R.At(s, 0))
	}
	says(t, strings.ReplaceAll(text, "−", "-"), fmt.Sprintf("%v, %v, %v and %v", rewards...))
	// scripts/verify.py compares the digests that come out with this logarithm.
	code := regexp.MustCompile("(?s)```python\n(.*?)```").FindStringSubmatch(text)[1]
	head, body, _ := strings.Cut(code, "\n")
	script := string(testkit.Must(os.ReadFile("../../scripts/verify.py"))(t))
	if _, after, ok := strings.Cut(script, head); !ok || !strings.Contains(strings.SplitN(after, "\ndef ", 2)[0], body) {
		t.Error("the logarithm of FORMAT.md is not that of scripts/verify.py")
	}
	protocol := experiment.PaperProtocol
	for states, s := range protocol.Sizes {
		if s.Evaluation == 0 {
			continue
		}
		row := rowOf(t, text, fmt.Sprint(states))
		for i, root := range []uint64{s.Evaluation, s.Oracle, s.HeldOut, s.Calibration, s.Qualification} {
			cell, _, _ := strings.Cut(row[i+1], " ")
			if root == 0 && cell != "" || root != 0 && cell != fmt.Sprint(root) {
				t.Errorf("S = %d: root %q in FORMAT.md, want %d", states, cell, root)
			}
		}
		if fresh := s.Fresh["s5rl"]; fresh != 0 && !strings.HasSuffix(row[5], fmt.Sprintf("(%d)", fresh)) {
			t.Errorf("S = %d: %q in FORMAT.md, want (%d)", states, row[5], fresh)
		}
	}
}

// The keys of all manifests are on the page, hashes and seals are what it says they are, and
// the results that stand in two blocks are the frontier's.
func TestFormatManifests(t *testing.T) {
	text := page(t)
	_, configurations, _ := strings.Cut(rowOf(t, text, "the configuration")[1], "in evaluations")
	paths := testkit.Must(filepath.Glob("../../artifacts/paper/*/*/manifest.json"))(t)
	blocks := map[string][]string{}
	count := map[string]int{}
	for _, path := range paths {
		raw := testkit.Must(os.ReadFile(path))(t)
		var compact bytes.Buffer
		testkit.Check(t, json.Compact(&compact, raw))
		var m map[string]json.RawMessage
		testkit.Check(t, json.Unmarshal(compact.Bytes(), &m))
		read := func(key string) (s string) {
			testkit.Check(t, json.Unmarshal(m[key], &s))
			return s
		}
		block := filepath.Base(filepath.Dir(filepath.Dir(path)))
		count[block]++
		hashed := 0
		for key, value := range m {
			if block != "any" || key != "training_cpu_seconds" && key != "evaluation_cpu_seconds" { // processor times
				says(t, text, "`"+key+"`")
			}
			if strings.Contains(configurations, "`"+key+"`") {
				hashed++
				if sum := sha256.Sum256(value); hex.EncodeToString(sum[:]) != read("hash") {
					t.Errorf("%s: the hash is not that of %s", path, key)
				}
			}
		}
		empty := bytes.Replace(compact.Bytes(), []byte(`"seal":"`+read("seal")+`"`), []byte(`"seal":""`), 1)
		if sum := sha256.Sum256(empty); hex.EncodeToString(sum[:]) != read("seal") || hashed != 1 {
			t.Errorf("%s: %d configurations, or the seal is not as FORMAT.md says", path, hashed)
		}
		blocks[read("hash")] = append(blocks[read("hash")], block)
	}
	twice := 0
	for _, in := range blocks {
		if len(in) > 1 {
			twice++
			if slices.Sort(in); len(in) != 2 || in[1] != "frontier" || in[0] != "benchmark" && in[0] != "confirmation" {
				t.Errorf("one evaluation stands in %q", in)
			}
		}
	}
	evidence := string(testkit.Must(os.ReadFile("../../docs/evidence.md"))(t))
	says(t, evidence, fmt.Sprintf("The frontier's %d points at the full budget", twice))
	// Block any is none of the preset's: it is trained and checked by itself.
	says(t, evidence, fmt.Sprintf("for %d training runs and %d evaluations", count["train"], len(paths)-count["train"]-count["any"]))
}

// The rules of judges are on the page, but for phrases that say themselves what must be true.
func TestFormatJudges(t *testing.T) {
	text := page(t)
	stored := testkit.Must(readClaims("../../artifacts/paper/claims.json"))(t)
	phrase := regexp.MustCompile("^(among|an update error|the median) ")
	for _, c := range stored.Claims {
		for _, k := range c.Checks {
			if k.Judged != "" && !phrase.MatchString(k.Judged) {
				says(t, text, "`"+k.Judged+"`")
			}
		}
	}
}

func TestFormatRulesAndTensors(t *testing.T) {
	text := page(t)
	for _, rule := range pmd.Rules {
		rowOf(t, text, "`"+string(rule)+"`")
	}
	for _, folder := range []string{"s5rl-S8-18100", "liang-lai-S8-18100", "algorithm-distillation-source4-context60-steps3000-S8-18100"} {
		paths := testkit.Must(filepath.Glob("../../artifacts/paper/train/" + folder + "-*/weights.safetensors"))(t)
		if len(paths) != 1 {
			t.Fatalf("%d weights of %s", len(paths), folder)
		}
		for _, x := range testkit.Must(safetensors.ReadFile(paths[0]))(t).Tensors {
			name := regexp.MustCompile(`^blocks\.\d+\.`).ReplaceAllString(x.Name, "")
			for _, of := range []string{".weight", ".bias", ".gain"} {
				name = strings.TrimSuffix(name, of)
			}
			if !regexp.MustCompile("`(blocks\\.i\\.)?" + regexp.QuoteMeta(name) + "(\\.\\w+)?`").MatchString(text) {
				t.Errorf("FORMAT.md has no tensor %q of %s", name, folder)
			}
			if x.Name == "s5.0" {
				const p, h = 32, 64 // 4S and the width
				if want := 3*p + 4*p*h + 2*h*h + 3*h; x.Shape[0] != want {
					t.Errorf("s5.0 has %d numbers, the parts in FORMAT.md %d", x.Shape[0], want)
				}
			}
		}
	}
}

// The table of values names the parameters of every method, in their order.
func TestFormatParameters(t *testing.T) {
	text := page(t)
	e := testkit.Must(equal.Read("../../artifacts/paper/equal"))(t)
	_, table, _ := strings.Cut(text, "| method | `model` |")
	table, _, _ = strings.Cut(table, "| all others |")
	informations := []equal.Information{equal.Model, equal.Generative, equal.Window}
	for _, row := range e.Rows {
		m := testkit.Must(equal.Find(row.Information, row.Method))(t)
		var names []string
		for _, p := range m.Parameters {
			names = append(names, p.Name)
		}
		want := strings.Join(names, ", ")
		got := ""
		for line := range strings.Lines(table) {
			if cells := strings.Split(line, "|"); len(cells) > 4 && strings.Contains(cells[1], "`"+row.Method+"`") {
				got = strings.TrimPrefix(strings.TrimSpace(cells[2+slices.Index(informations, row.Information)]), "none")
			}
		}
		if got != want || len(row.Values) != len(names) {
			t.Errorf("%s: FORMAT.md has the values %q, want %q; %d are stored", row.Name(), got, want, len(row.Values))
		}
	}
}
