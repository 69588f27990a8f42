package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"github.com/agext/levenshtein"

	"icrl/policyattention/experiment"
	"icrl/policyattention/report"
	"icrl/policyattention/results"
)

func (g *globals) show(t report.Table, format string) error {
	if g.JSON {
		format = "json"
	}
	err := t.Write(g.out, format)
	if err == nil && format == "md" {
		_, err = fmt.Fprintln(g.out)
	}
	return err
}

// stored returns the results of the preset to read, or an error if there are none, or a name is none of all.
func (g *globals) stored(what string, all, names []string) (*results.Store, error) {
	if err := known(what, all, names...); err != nil {
		return nil, err
	}
	p, err := g.preset(reading)
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(g.Artifacts, p.Name)
	if _, err := os.Stat(filepath.Join(folder, "runs.json")); errors.Is(err, fs.ErrNotExist) {
		hint := ""
		if p.Name != reading {
			hint = "; the results that come with the repository are of --preset paper, below its folder artifacts"
		}
		return nil, fmt.Errorf("%s holds no merged result of the preset %s (see 'evaluate' and 'grid merge')%s",
			folder, p.Name, hint)
	}
	return g.results(p), nil
}

// results returns those of a preset, with the labels of its methods.
func (g *globals) results(p experiment.Preset) *results.Store {
	store := results.Open(filepath.Join(g.Artifacts, p.Name))
	store.Labels = map[string]string{}
	for _, m := range p.Methods {
		store.Labels[m.Name] = m.Label
	}
	return store
}

type tableCmd struct {
	Names  []string `arg:"" optional:"" name:"table" help:"Tables: ${tables}; without any, their names."`
	Format string   `help:"${enum}." enum:"md,html,csv" default:"md"`
}

func (t tableCmd) Run(g *globals) error {
	if len(t.Names) == 0 {
		_, err := fmt.Fprintln(g.out, strings.Join(results.TableNames(), "\n"))
		return err
	}
	store, err := g.stored("table", results.TableNames(), t.Names)
	if err != nil {
		return err
	}
	for _, name := range t.Names {
		table, err := store.Table(name)
		if err == nil {
			err = g.show(table, t.Format)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// known returns an error for the first name that is none of all. It tells which are nearest: begin as it
// does, or are a letter in three away.
func known(what string, all []string, names ...string) error {
	for _, name := range names {
		if slices.Contains(all, name) {
			continue
		}
		near := map[int][]string{} // by distance
		for _, other := range all {
			d := levenshtein.Distance(name, other, nil)
			if strings.HasPrefix(other, name) {
				d = 0
			}
			near[d] = append(near[d], strconv.Quote(other))
		}
		guess := ""
		if least := slices.Min(slices.Collect(maps.Keys(near))); least <= (len(name)+1)/3 {
			guess = fmt.Sprintf(", did you mean %s?", strings.Join(near[least], " or "))
		}
		return fmt.Errorf("%w: no %s %q%s; want one of %s", errUsage, what, name, guess, strings.Join(all, ", "))
	}
	return nil
}

type figureCmd struct {
	Names []string `arg:"" optional:"" name:"figure" help:"Figures: ${figures}; all without any."`
	Out   string   `help:"Folder to write to." default:"figures" type:"path"`
}

func (f figureCmd) Run(g *globals) error {
	store, err := g.stored("figure", results.FigureNames(), f.Names)
	if err != nil {
		return err
	}
	if len(f.Names) == 0 {
		f.Names = results.FigureNames()
	}
	for _, name := range f.Names {
		figure, err := store.Figure(name)
		if err != nil {
			return err
		}
		paths, err := figure.Save(f.Out)
		if err != nil {
			return err
		}
		fmt.Fprintln(g.out, strings.Join(paths, "\n"))
	}
	return nil
}

type verifyCmd struct {
	Whole bool    `help:"Compute the rows of all problems again, not of a sample."`
	Seed  *uint64 `help:"Of the sample; without it a new one each time, which is printed."`
}

func (c verifyCmd) Run(ctx context.Context, g *globals) error {
	debug.SetGCPercent(400) // little is kept of much: a tenth of the time went to collecting it
	store, err := g.open(reading)
	if err != nil {
		return err
	}
	if c.Seed == nil {
		c.Seed = new(uint64(rand.Uint32()))
	}
	v, err := store.Verify(ctx, c.Whole, *c.Seed)
	if err != nil {
		return err
	}
	if v.Trainings == 0 && v.Units == 0 && len(v.Discrepancies) == 0 {
		return fmt.Errorf("nothing to verify: %s holds no result of the preset %s", store.Root, store.Preset.Name)
	}
	if g.JSON {
		err = g.print(v)
	} else {
		for _, d := range v.Discrepancies {
			fmt.Fprintln(g.out, d)
		}
		_, err = fmt.Fprintln(g.out, v)
	}
	return errors.Join(err, v.Err())
}
