package internal_test

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
)

var (
	cellEnd = regexp.MustCompile(`\s*\|\s*`)
	quoted  = regexp.MustCompile("`([^`]+)`")
)

// TestDifferencesAreShown holds that each row of docs/differences.md names in its last
// column what holds it, and that it exists: a test, a transcript below internal/broker,
// `wire`, a question of test/compat that has the row's name, `metrics`, a step there that has
// it, or `mqadmin`, a command there.
func TestDifferencesAreShown(t *testing.T) {
	text, err := os.ReadFile("../docs/differences.md")
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("../test/compat/mqadmin_steps.go")
	if err != nil {
		t.Fatal(err)
	}
	steps := string(table)
	figures, err := os.ReadFile("../test/compat/metrics.go")
	if err != nil {
		t.Fatal(err)
	}
	tests, asked := testFunctions(t), wireQuestions(t)
	rows := make(map[string]bool)
	for i, line := range strings.Split(string(text), "\n") {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") || strings.HasPrefix(line, "| what |") {
			continue
		}
		cells := cellEnd.Split(strings.Trim(line, "| "), -1)
		what, shown := cells[0], quoted.FindAllStringSubmatch(cells[len(cells)-1], -1)
		rows[what] = true
		if strings.Count(line, "|") != 6 || len(shown) == 0 {
			t.Errorf("line %d, %q: the last of five columns names the test that shows it", i+1, what)
			continue
		}
		for _, s := range shown {
			switch by := s[1]; {
			case by == "wire":
				if !asked[what] {
					t.Errorf("line %d: test/compat does not ask about %q", i+1, what)
				}
			case by == "mqadmin": // a suite of test/compat; its commands are in its table
				if command := strings.Trim(strings.Fields(what)[0], ","); command != "all" && !strings.Contains(steps, `"`+command) {
					t.Errorf("line %d: test/compat does not run %s", i+1, command)
				}
			case by == "metrics":
				if !strings.Contains(string(figures), strconv.Quote(what)) {
					t.Errorf("line %d: test/compat does not show %q", i+1, what)
				}
			case strings.Contains(by, "/testdata/"):
				if _, err := os.Stat(filepath.Join("broker", filepath.FromSlash(by))); err != nil {
					t.Errorf("line %d, %q: there is no transcript %s", i+1, what, by)
				}
			case !tests[by]:
				t.Errorf("line %d, %q: there is no test %s", i+1, what, by)
			}
		}
	}
	for what := range asked {
		if !rows[what] {
			t.Errorf("test/compat asks about %q, which is no row of docs/differences.md", what)
		}
	}
}

func testFunctions(t *testing.T) map[string]bool {
	t.Helper()
	tests := make(map[string]bool)
	for _, s := range sources(t) {
		if !strings.HasSuffix(s.name, "_test.go") {
			continue
		}
		for _, d := range s.file.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(fn.Name.Name, "Test") {
				tests[fn.Name.Name] = true
			}
		}
	}
	return tests
}

// wireQuestions are the rows that the suite `differences` asks about.
func wireQuestions(t *testing.T) map[string]bool {
	t.Helper()
	files, err := filepath.Glob("../test/compat/differences*.go")
	if err != nil || len(files) == 0 {
		t.Fatal("no suite", err)
	}
	asked := make(map[string]bool)
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			kv, ok := n.(*ast.KeyValueExpr)
			if !ok {
				return true
			}
			key, isName := kv.Key.(*ast.Ident)
			if value, ok := kv.Value.(*ast.BasicLit); ok && isName && key.Name == "row" {
				row, err := strconv.Unquote(value.Value)
				if err != nil {
					t.Fatal(err)
				}
				asked[row] = true
			}
			return true
		})
	}
	return asked
}
