package report

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"icrl/internal/testkit"
)

// names returns what the package in a folder declares: "Step", "MDP", "MDP.Next" for
// methods and "Scored.Loss" for fields.
func names(t *testing.T, folder string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no package in %s: %v", folder, err)
	}
	found := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file := testkit.Must(parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution))(t)
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					of := d.Recv.List[0].Type
					if star, ok := of.(*ast.StarExpr); ok {
						of = star.X
					}
					if id, ok := of.(*ast.Ident); ok {
						name = id.Name + "." + name
					}
				}
				found[name] = true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.ValueSpec:
						for _, id := range spec.Names {
							found[id.Name] = true
						}
					case *ast.TypeSpec:
						found[spec.Name.Name] = true
						if s, ok := spec.Type.(*ast.StructType); ok {
							for _, f := range s.Fields.List {
								for _, id := range f.Names {
									found[spec.Name.Name+"."+id.Name] = true
								}
							}
						}
					}
				}
			}
		}
	}
	return found
}

// citing returns the rows below the header of a document's table, in which every name of
// code exists and at least n are.
func citing(t *testing.T, document, header string, n int) string {
	t.Helper()
	text := testkit.Must(os.ReadFile(filepath.Join("../../docs", document)))(t)
	_, table, ok := strings.Cut(string(text), header+"\n")
	if !ok {
		t.Fatalf("%s has no table %s", document, header)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	declared := map[string]map[string]bool{}
	quoted, name := regexp.MustCompile("`([^`]*)`"), regexp.MustCompile(`^([a-z0-9/]+)\.([A-Z]\w*(?:\.[A-Z]\w*)?)$`)
	checked := 0
	for _, q := range quoted.FindAllStringSubmatch(table, -1) {
		parts := name.FindStringSubmatch(q[1])
		if parts == nil {
			t.Errorf("%q is not package.Name or package.Type.Name", q[1])
			continue
		}
		if declared[parts[1]] == nil {
			declared[parts[1]] = names(t, filepath.Join("..", parts[1]))
		}
		checked++
		if !declared[parts[1]][parts[2]] {
			t.Errorf("there is no %s", q[1])
		}
	}
	if checked < n {
		t.Errorf("%d names, want at least %d", checked, n)
	}
	return table
}

// Every name on the page of terms exists, and no term stands twice.
func TestTerms(t *testing.T) {
	stands := map[string]bool{}
	for row := range strings.Lines(citing(t, "terms.md", "| word | meaning | code |\n|---|---|---|", 50)) {
		word := strings.Split(row, "|")[1]
		if stands[word] {
			t.Errorf("%s stands twice", word)
		}
		stands[word] = true
	}
}

// TestEquationTable reads the table of equations in docs/equations.md: every name in it
// exists, and every equation of the paper stands in it.
func TestEquationTable(t *testing.T) {
	table := citing(t, "equations.md", "| in the paper | code |\n|---|---|", 25)
	const equations = 31
	var stands [equations + 1]bool
	for _, r := range regexp.MustCompile(`\((\d+)\)(?:–\((\d+)\))?`).FindAllStringSubmatch(table, -1) {
		from, _ := strconv.Atoi(r[1])
		to := from
		if r[2] != "" {
			to, _ = strconv.Atoi(r[2])
		}
		for i := from; i <= min(to, equations); i++ {
			stands[i] = true
		}
	}
	for i := 1; i <= equations; i++ {
		if !stands[i] {
			t.Errorf("equation (%d) does not stand in the table", i)
		}
	}
}
