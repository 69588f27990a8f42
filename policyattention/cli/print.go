package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"icrl/policyattention/paper"
	"icrl/policyattention/report"
	"icrl/policyattention/results"
	"icrl/policyattention/rows"
	"icrl/policyattention/stats"
)

// show prints a table.
func (g *globals) show(t report.Table, format string) error {
	if g.JSON {
		format = "json"
	}
	if err := t.Write(g.out, format); err != nil {
		return err
	}
	if format != "md" {
		return nil
	}
	_, err := fmt.Fprintln(g.out)
	return err
}

// folder returns the folder of the preset to read, or an error if nothing is stored there.
func (g *globals) folder() (string, error) {
	p, err := g.preset(reading)
	if err != nil {
		return "", err
	}
	folder := filepath.Join(g.Artifacts, p.Name)
	if _, err := os.Stat(filepath.Join(folder, "runs.json")); errors.Is(err, fs.ErrNotExist) {
		hint := ""
		if p.Name != reading {
			hint = "; the results that come with the repository are of --preset paper, below its folder artifacts"
		}
		return "", fmt.Errorf("%s holds no merged result of the preset %s (see 'evaluate' and 'grid merge')%s", folder, p.Name, hint)
	}
	return folder, nil
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
	if err := known("table", t.Names, results.TableNames()); err != nil {
		return err
	}
	folder, err := g.folder()
	if err != nil {
		return err
	}
	return g.tables(folder, t.Names, t.Format, false)
}

// tables prints tables of a folder, all without names. Where some can lack their rows, those do not
// stop the others.
func (g *globals) tables(folder string, names []string, format string, some bool) error {
	store := results.Open(folder)
	if len(names) == 0 {
		names = results.TableNames()
	}
	for _, name := range names {
		table, err := store.Table(name)
		if err != nil && some {
			continue
		}
		if err == nil {
			err = g.show(table, format)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// known returns an error for the first name that is none.
func known(what string, names, all []string) error {
	for _, name := range names {
		if slices.Contains(all, name) {
			continue
		}
		guess := ""
		for _, other := range all {
			if strings.HasPrefix(other, name) || strings.HasPrefix(name, other) {
				guess = fmt.Sprintf(", did you mean %q?", other)
			}
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
	if err := known("figure", f.Names, results.FigureNames()); err != nil {
		return err
	}
	folder, err := g.folder()
	if err != nil {
		return err
	}
	if len(f.Names) == 0 {
		f.Names = results.FigureNames()
	}
	store := results.Open(folder)
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

type claimsCmd struct{}

func (claimsCmd) Run(g *globals) error {
	folder, err := g.folder()
	if err != nil {
		return err
	}
	return g.tables(folder, []string{"claims"}, "md", false)
}

// documentCmd writes the tables of documents again.
type documentCmd struct {
	File []string `arg:"" help:"Markdown files with tables between markers." type:"existingfile"`
}

func (d documentCmd) Run(g *globals) error {
	folder, err := g.folder()
	if err != nil {
		return err
	}
	store := results.Open(folder)
	for _, name := range d.File {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		filled, err := report.Fill(string(text), store.Table)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := renameio.WriteFile(name, []byte(filled), 0o644); err != nil {
			return err
		}
	}
	return nil
}

type lockupCmd struct{}

// Run prints the median losses of each actor by the mass that the best actions begin with.
func (lockupCmd) Run(g *globals) error {
	folder, err := g.folder()
	if err != nil {
		return err
	}
	all, err := rows.Read[rows.Lock](filepath.Join(folder, "rows", "lockup.parquet"))
	if err != nil {
		return err
	}
	masses := paper.PaperLockUp.Masses
	t := report.Table{Name: "lockup", Title: "Median loss after 40 rounds, by the mass that the best action of each state begins with", Columns: []string{"actor"}}
	for _, mass := range masses {
		t.Columns = append(t.Columns, fmt.Sprintf("%g", mass))
	}
	for i := 0; i < len(all); {
		line, first := []any{all[i].Actor}, all[i]
		for _, mass := range masses {
			var losses []float64
			for ; i < len(all) && all[i].Mass == mass && all[i].Actor == first.Actor && all[i].Part == first.Part; i++ {
				losses = append(losses, all[i].Loss)
			}
			if len(losses) == 0 {
				return fmt.Errorf("%s: no losses of %q from the mass %g", folder, first.Actor, mass)
			}
			line = append(line, stats.Median(losses))
		}
		t.Add(line...)
	}
	return g.show(t, "md")
}

type verifyCmd struct {
	Whole bool `help:"Compute the rows of all problems again, not of a sample."`
}

func (c verifyCmd) Run(ctx context.Context, g *globals) error {
	debug.SetGCPercent(400) // little is kept of much: a tenth of the time went to collecting it
	store, err := g.open(reading)
	if err != nil {
		return err
	}
	v, err := store.Verify(ctx, c.Whole)
	if err != nil {
		return err
	}
	if v.Trainings == 0 && v.Units == 0 && len(v.Discrepancies) == 0 {
		return fmt.Errorf("nothing to verify: %s holds no result of the preset %s", store.Root(), store.Preset.Name)
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
