package notebooks

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module  = "icrl/"
	command = "policyattention/cmd/policyattention"
	helper  = "policyattention/nb" // of notebooks, and the packages below it
)

// theory is what notebooks show of the paper's theory beyond the experiments, which are all
// that the command carries out.
var theory = map[string]bool{
	"policyattention/control.Prove": true, "policyattention/effective.New": true,
}

// Each function of ours that a notebook calls, itself or through package nb, is called by the
// command as well, or by a package that the command is made of: a notebook shows the program,
// it is no second one.
func TestNotebooksCallWhatTheCommandCalls(t *testing.T) {
	files, err := filepath.Glob("*.ipynb")
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Skip("there are no notebooks")
	}
	reached := commandCalls(t)
	shared := map[string]bool{}
	for _, folder := range []string{helper, helper + "/evidence", helper + "/training"} {
		for _, file := range packageFiles(t, folder) {
			addSelectors(shared, file, importsOf(file))
		}
	}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			used, err := notebookFunctions(data)
			if err != nil {
				t.Fatal(err)
			}
			maps.Copy(used, shared)
			for _, name := range slices.Sorted(maps.Keys(used)) {
				if !strings.HasPrefix(name, helper) && !theory[name] && !reached[name] && isFunction(t, name) {
					t.Errorf("calls %s, which the command does not", name)
				}
			}
		})
	}
}

func TestNotebookFunctions(t *testing.T) {
	cell := func(source string) string {
		text, _ := json.Marshal(strings.SplitAfter(source, "\n"))
		return fmt.Sprintf(`{"cell_type":"code","source":%s}`, text)
	}
	notebook := `{"cells":[{"cell_type":"markdown","source":["mdp.Nothing()"]},` + strings.Join([]string{
		cell("%noautoget"),
		cell("import (\n\t\"fmt\"\n\t\"icrl/policyattention/mdp\"\n\tr \"icrl/policyattention/report\"\n)\n\nfunc helper() { r.Table() }"),
		cell("!ls\n%%\np := mdp.New(1)\np.Solve()\nfmt.Println(p)"),
		cell("%main\nmdp := helper\nmdp.Hidden()"),
		cell("func f() { mdp.Late() }\n%% --flag\nf()"),
	}, ",") + `]}`
	got, err := notebookFunctions([]byte(notebook))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"policyattention/mdp.Late", "policyattention/mdp.New", "policyattention/report.Table"}
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}

// notebookFunctions returns the names "folder.Name" of this module that code cells use.
func notebookFunctions(notebook []byte) (map[string]bool, error) {
	var contents struct {
		Cells []struct {
			Type   string          `json:"cell_type"`
			Source json.RawMessage `json:"source"`
		}
	}
	if err := json.Unmarshal(notebook, &contents); err != nil {
		return nil, err
	}
	var cells []*ast.File
	imports := map[string]string{} // declarations persist from cell to cell, imports included
	for i, cell := range contents.Cells {
		if cell.Type != "code" {
			continue
		}
		var source string // one string or a list of lines
		if json.Unmarshal(cell.Source, &source) != nil {
			var lines []string
			if err := json.Unmarshal(cell.Source, &lines); err != nil {
				return nil, fmt.Errorf("cell %d: %w", i, err)
			}
			source = strings.Join(lines, "")
		}
		file, err := parser.ParseFile(token.NewFileSet(), fmt.Sprintf("cell %d", i), cellProgram(source), 0)
		if err != nil {
			return nil, err
		}
		cells = append(cells, file)
		maps.Copy(imports, importsOf(file))
	}
	used := map[string]bool{}
	for _, file := range cells {
		addSelectors(used, file, imports)
	}
	return used, nil
}

var mainLine = regexp.MustCompile(`^%(%|main\b)`)

// cellProgram turns a GoNB cell into a Go file: what follows a line %% is the body of main,
// other lines that begin with % or ! are commands to the kernel or the shell.
func cellProgram(source string) string {
	var program strings.Builder
	program.WriteString("package cell\n")
	end := ""
	for line := range strings.Lines(source) {
		switch {
		case mainLine.MatchString(line):
			program.WriteString("func main() {\n")
			end = "\n}\n"
		case strings.HasPrefix(line, "%"), strings.HasPrefix(line, "!"):
			program.WriteString("\n")
		default:
			program.WriteString(line)
		}
	}
	program.WriteString(end)
	return program.String()
}

// commandCalls returns the names "folder.Name" of this module that the command, or a
// package it is made of, uses outside of tests.
func commandCalls(t *testing.T) map[string]bool {
	used := map[string]bool{}
	seen := map[string]bool{}
	todo := []string{command}
	for len(todo) > 0 {
		folder := todo[0]
		todo = todo[1:]
		if seen[folder] {
			continue
		}
		seen[folder] = true
		for _, file := range packageFiles(t, folder) {
			imports := importsOf(file)
			addSelectors(used, file, imports)
			addCalls(used, file, folder)
			todo = slices.AppendSeq(todo, maps.Values(imports))
		}
	}
	return used
}

// importsOf maps the names under which a file imports packages of this module to their folders.
func importsOf(file *ast.File) map[string]string {
	imports := map[string]string{}
	for _, spec := range file.Imports {
		full, err := strconv.Unquote(spec.Path.Value)
		if err != nil || !strings.HasPrefix(full, module) {
			continue
		}
		name := path.Base(full)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imports[name] = strings.TrimPrefix(full, module)
	}
	return imports
}

// addCalls adds the functions of its own package, in folder, that a file calls.
func addCalls(used map[string]bool, file *ast.File, folder string) {
	ast.Inspect(file, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			if f, ok := call.Fun.(*ast.Ident); ok {
				used[folder+"."+f.Name] = true
			}
		}
		return true
	})
}

func addSelectors(used map[string]bool, file *ast.File, imports map[string]string) {
	ast.Inspect(file, func(n ast.Node) bool {
		if selector, ok := n.(*ast.SelectorExpr); ok {
			// A name that the parser resolved is a variable that hides the package.
			if x, ok := selector.X.(*ast.Ident); ok && x.Obj == nil && imports[x.Name] != "" {
				used[imports[x.Name]+"."+selector.Sel.Name] = true
			}
		}
		return true
	})
}

// isFunction says whether "folder.Name" names a function, as opposed to a type or a value.
func isFunction(t *testing.T, name string) bool {
	folder, ident := name[:strings.LastIndexByte(name, '.')], path.Ext(name)[1:]
	for _, file := range packageFiles(t, folder) {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == ident {
				return true
			}
		}
	}
	return false
}

// packageFiles parses the files of a package of this module, without its tests.
func packageFiles(t *testing.T, folder string) []*ast.File {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", folder, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no Go files in %s", folder)
	}
	var files []*ast.File
	for _, p := range paths {
		if strings.HasSuffix(p, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), p, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}
