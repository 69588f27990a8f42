package mdpfile

import (
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// prism is an explicit model of PRISM (https://www.prismmodelchecker.org/manual/Appendices/ExplicitModelFiles).
type prism struct {
	*draft
	open   opener
	name   string               // the file's, without .tra
	n      int                  // states
	mdp    bool                 // it has choices
	labels map[[2]int32]string  // of (state, choice)
	state  []float64            // rewards of states
	reward map[[3]int32]float64 // of (state, choice, next)
}

// readPRISM reads what prism -exportmodel NAME.all writes of an MDP or a DTMC: transitions from NAME.tra and, beside
// it, rewards of states from NAME.srew, of transitions from NAME.trew (or NAME1.srew, NAME1.trew of the first
// structure; or NAME.rew, of either kind), the initial states from NAME.lab and the names of states from NAME.sta.
// Choices are actions: by name where each has a name of its own in its state, and else by number. A state without
// choices is terminal.
func readPRISM(d *draft, name string, data []byte, open opener) error {
	base := filepath.Base(trimGzip(name))
	p := &prism{draft: d, open: open, name: strings.TrimSuffix(base, filepath.Ext(base)),
		labels: map[[2]int32]string{}, reward: map[[3]int32]float64{}}
	if err := p.transitions(data); err != nil {
		return err
	}
	p.state = make([]float64, p.n)
	for _, file := range []struct {
		read func(data []byte) error
		ends []string
	}{{p.rewards, []string{".srew", "1.srew"}}, {p.rewards, []string{".trew", "1.trew"}},
		{p.rewards, []string{".rew", "1.rew"}}, {p.initial, []string{".lab"}}, {p.names, []string{".sta"}}} {
		if err := p.beside(file.read, file.ends...); err != nil {
			return err
		}
	}
	if !p.priced {
		return fmt.Errorf("there are no rewards: put %[1]s.srew or %[1]s.trew beside it, as prism -exportmodel "+
			"%[1]s.all does", p.name)
	}
	return p.finish()
}

// beside reads the first of the files of the same name with other ends that is there.
func (p *prism) beside(read func(data []byte) error, ends ...string) error {
	for _, end := range ends {
		for _, name := range []string{p.name + end, p.name + end + ".gz"} {
			data, err := p.open(name)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err == nil {
				err = read(data)
			}
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		}
	}
	return nil
}

// fields returns the numbers of lines and their words, without comments and empty lines.
func fields(data []byte) iter.Seq2[int, []string] {
	return func(yield func(int, []string) bool) {
		number := 0
		for line := range strings.Lines(string(data)) {
			number++
			if words := strings.Fields(line); len(words) > 0 && words[0][0] != '#' && !yield(number, words) {
				return
			}
		}
	}
}

// transitions reads a .tra file: lines "state choice next probability [action]", or of a DTMC "state next probability".
func (p *prism) transitions(data []byte) error {
	want := 0
	for line, words := range fields(data) {
		if p.n == 0 {
			n, err := strconv.Atoi(words[0])
			m, err2 := strconv.Atoi(words[len(words)-1])
			if errors.Join(err, err2) != nil || len(words) < 2 || len(words) > 3 || n < 1 || n > MaxTransitions {
				return fmt.Errorf("line %d: %v, want the numbers of states, choices (of an MDP) and transitions", line,
					words)
			}
			p.mdp, p.n, want = len(words) == 3, n, m
		} else if err := p.edge(words); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
	if p.n == 0 || len(p.list) != want || p.n > 4*len(p.list)+1<<10 {
		return fmt.Errorf("%d transitions of %d states, but the first line says %d", len(p.list), p.n, want)
	}
	return nil
}

func (p *prism) edge(words []string) error {
	if !p.mdp {
		words = slices.Insert(words, 1, "0")
	}
	if len(words) != 4 && len(words) != 5 {
		return errors.New("want state, choice (of an MDP), next state, probability and perhaps an action")
	}
	s, err := p.index(words[0])
	c, err2 := strconv.ParseUint(words[1], 10, 31)
	t, err3 := p.index(words[2])
	v, err4 := number(words[3])
	if err := errors.Join(err, err2, err3, err4); err != nil {
		return err
	}
	pair, label := [2]int32{s, int32(c)}, strings.Join(words[4:], "")
	if old, ok := p.labels[pair]; ok && old != label {
		return fmt.Errorf("choice %d of state %d is both %q and %q", c, s, old, label)
	}
	p.labels[pair] = label
	p.list = append(p.list, arrow{s: s, a: int32(c), t: t, p: v}) // finish knows the action
	return nil
}

func (p *prism) index(word string) (int32, error) {
	i, err := strconv.Atoi(word)
	if err != nil || i < 0 || i >= p.n {
		return 0, fmt.Errorf("%q, want one of the states 0 … %d", word, p.n-1)
	}
	return int32(i), nil
}

// rewards reads lines "state reward", "state next reward" of a DTMC, or "state choice next reward".
func (p *prism) rewards(data []byte) error {
	head := true
	p.priced = true
	for line, words := range fields(data) {
		s, err := p.index(words[0])
		if head {
			if head = false; words[0] != strconv.Itoa(p.n) {
				return fmt.Errorf("line %d: %q states, want %d as in the transitions", line, words[0], p.n)
			}
			continue
		}
		v, err2 := number(words[len(words)-1])
		key := [3]int32{s, 0, 0}
		switch middle := words[1 : max(len(words), 2)-1]; len(middle) {
		case 0:
			p.state[max(s, 0)] += v
		case 2:
			c, err3 := strconv.ParseInt(middle[0], 10, 32)
			key[1], err = int32(c), errors.Join(err, err3)
			fallthrough
		case 1:
			t, err3 := p.index(middle[len(middle)-1])
			key[2], err = t, errors.Join(err, err3)
			p.reward[key] += v
		default:
			err = errors.New("want state and reward, or state, choice, next state and reward")
		}
		if err := errors.Join(err, err2); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
	}
	return nil
}

// initial reads the states with the label "init".
func (p *prism) initial(data []byte) error {
	number := ""
	var states []int32
	for _, words := range fields(data) {
		if number == "" {
			for _, word := range words {
				if n, ok := strings.CutSuffix(word, `="init"`); ok {
					number = n
				}
			}
			continue
		}
		if slices.Contains(words[1:], number) {
			s, err := p.index(strings.TrimSuffix(words[0], ":"))
			if err != nil {
				return err
			}
			states = append(states, s)
		}
	}
	if states != nil {
		p.Start = make([]float64, p.n)
	}
	for _, s := range states {
		p.Start[s] += 1 / float64(len(states))
	}
	return nil
}

// names reads the names of states, "number:(values)".
func (p *prism) names(data []byte) error {
	names := make([]string, 0, p.n)
	for _, words := range fields(data) {
		if number, name, ok := strings.Cut(words[0], ":"); ok && number == strconv.Itoa(len(names)) {
			names = append(names, name)
		}
	}
	if len(names) != p.n {
		return fmt.Errorf("%d names of states, want %d", len(names), p.n)
	}
	return p.states.take(names, true, p.bytes)
}

// finish lists the transitions.
func (p *prism) finish() error {
	if err := p.states.fit(p.n); err != nil {
		return err
	}
	type name struct {
		state int32
		label string
	}
	named, taken := true, map[name]bool{}
	for pair, label := range p.labels {
		key := name{pair[0], label}
		named = named && label != "" && !taken[key]
		taken[key] = true
	}
	led := make([]bool, p.n)
	for k, x := range p.list {
		led[x.s] = true
		action := strconv.Itoa(int(x.a))
		if named {
			action = p.labels[[2]int32{x.s, x.a}]
		}
		a, err := p.actions.at(action)
		if err != nil {
			return err
		}
		p.list[k].r = p.state[x.s] + p.reward[[3]int32{x.s, x.a, x.t}]
		p.list[k].a = a
	}
	for s, v := range p.state {
		if v != 0 && !led[s] {
			return fmt.Errorf("state %d has the reward %v and no choices; give it a loop (prism -fixdl)", s, v)
		}
	}
	return nil
}
