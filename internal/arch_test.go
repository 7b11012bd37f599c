package internal_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/bolidemq/bolide"

// ranks is the map of docs/architecture.md, section 1: a package imports only packages
// of a lower rank.
var ranks = map[string]int{
	"cmd/bolide": 17,
	"bolidetest": 17,

	"internal/cli": 16,
	"server":       16,

	"internal/node": 15,

	"internal/front/brokerrpc":  14,
	"internal/front/namesrvrpc": 14,
	"internal/front/proxyrpc":   14,
	"internal/front/grpcv2":     14,
	"internal/front/metrics":    14,

	"internal/proxy/local":  13,
	"internal/proxy/remote": 13,

	"internal/proxy": 12,

	"internal/broker":  11,
	"internal/namesrv": 11,

	"internal/broker/admin": 10,
	"internal/broker/ha":    10,

	"internal/broker/pop":   9,
	"internal/broker/pull":  9,
	"internal/broker/reply": 9,
	"internal/broker/timer": 9,
	"internal/broker/lite":  10,
	"internal/broker/txn":   9,

	"internal/broker/publish": 8,

	"internal/broker/clients":  7,
	"internal/broker/register": 7,

	"internal/broker/dataversion": 5,

	"internal/broker/topic":    6,
	"internal/broker/group":    6,
	"internal/broker/offset":   6,
	"internal/broker/longpoll": 6,
	"internal/broker/qlock":    6,
	"internal/broker/exports":  6,
	"internal/auth":            6,

	"internal/storage": 5,
	"internal/bench":   5,
	"client":           5,

	"internal/storage/commitlog":    4,
	"internal/storage/consumequeue": 4,
	"internal/storage/keyindex":     4,
	"client/internal/v2":            4,
	"client/internal/classic":       4,
	"client/admin":                  4,

	"internal/storage/segment": 3,
	"internal/storage/state":   3,
	"internal/wire/transport":  3,
	"internal/wire/h2":         3,

	"internal/wire/poll":     2,
	"internal/wire/listen":   2,
	"internal/wire/remoting": 2,
	"internal/wire/receipt":  2,
	"internal/wire/filter":   2,

	"internal/wire/message": 1,

	"internal/wire/names": 0,
	"internal/wire/sock":  0,
	"internal/round":      0,
	"internal/config":     0,
	"internal/clock":      0,
	"internal/lifecycle":  0,
	"client/rebalance":    0,
}

// testSupport may be imported by tests only, and by more of it; it may import what its rank allows.
var testSupport = map[string]int{
	"internal/wire/poll/polltest": 3,
	"internal/storage/storetest":  6,
	"internal/broker/brokertest":  12,
	"internal/node/nodetest":      16,
}

// goKeywordAllowed names the packages that may start goroutines.
var goKeywordAllowed = map[string]bool{
	"internal/lifecycle":      true,
	"internal/wire/transport": true,
	"internal/wire/h2":        true,
}

// osFilesAllowed names the packages that may touch the disk without a vfs.FS.
var osFilesAllowed = map[string]bool{
	"internal/node": true,
	"internal/cli":  true,
	"cmd/bolide":    true,
	"bolidetest":    true,
}

type source struct {
	pkg  string // path below the module, "" for the root
	name string
	file *ast.File
	fset *token.FileSet
}

func sources(t *testing.T) []source {
	t.Helper()
	root := ".."
	var all []source
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, p)
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if rel == "test" || d.Name() == "testdata" || (strings.HasPrefix(d.Name(), ".") && rel != ".") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, p, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		pkg := path.Dir(rel)
		if pkg == "." {
			pkg = ""
		}
		all = append(all, source{pkg: pkg, name: rel, file: f, fset: fset})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func rankOf(pkg string) (int, bool) {
	if r, ok := ranks[pkg]; ok {
		return r, true
	}
	r, ok := testSupport[pkg]
	return r, ok
}

// TestRanks holds the map: no import points up or sideways, no package is missing from it.
func TestRanks(t *testing.T) {
	for _, s := range sources(t) {
		if strings.HasSuffix(s.name, "_test.go") || s.pkg == "" || s.pkg == "internal" {
			continue
		}
		rank, known := rankOf(s.pkg)
		if !known {
			t.Errorf("%s: package %s is not in the map; give it a rank here and in docs/architecture.md", s.name, s.pkg)
			continue
		}
		for _, imp := range s.file.Imports {
			p, _ := strconv.Unquote(imp.Path.Value)
			p, inside := strings.CutPrefix(p, module+"/")
			if !inside {
				continue
			}
			_, support := testSupport[p]
			if _, too := testSupport[s.pkg]; support && !too {
				t.Errorf("%s imports %s, which is for tests only", s.name, p)
			}
			if r, ok := rankOf(p); ok && r >= rank {
				t.Errorf("%s (rank %d) imports %s (rank %d): imports only go down", s.name, rank, p, r)
			}
		}
	}
}

// TestClientStandsAlone holds that the client library never sees the server.
func TestClientStandsAlone(t *testing.T) {
	for _, s := range sources(t) {
		if !strings.HasPrefix(s.pkg, "client") || strings.HasSuffix(s.name, "_test.go") {
			continue
		}
		for _, imp := range s.file.Imports {
			p, _ := strconv.Unquote(imp.Path.Value)
			p, inside := strings.CutPrefix(p, module+"/")
			if inside && !strings.HasPrefix(p, "client") && !strings.HasPrefix(p, "internal/wire/") && p != "internal/lifecycle" {
				t.Errorf("%s imports %s: client stands on internal/wire and lifecycle alone", s.name, p)
			}
		}
	}
}

// TestPackageComments holds that every package says what it is, what always holds in it
// and who its neighbours are.
func TestPackageComments(t *testing.T) {
	comment := map[string]string{}
	for _, s := range sources(t) {
		if strings.HasSuffix(s.name, "_test.go") || s.pkg == "" {
			continue
		}
		if _, seen := comment[s.pkg]; !seen {
			comment[s.pkg] = ""
		}
		if s.file.Doc != nil {
			comment[s.pkg] += s.file.Doc.Text()
		}
	}
	for pkg, text := range comment {
		switch {
		case text == "":
			t.Errorf("package %s has no package comment", pkg)
		case pkg == "cmd/bolide":
		case !strings.Contains(text, "Invariant"):
			t.Errorf("package %s: its comment names no invariants", pkg)
		case !strings.Contains(text, "Neighbour"):
			t.Errorf("package %s: its comment names no neighbours", pkg)
		}
	}
}

// TestExportedNamesAreCommented holds that every exported top-level name, and every
// exported method, has a comment.
func TestExportedNamesAreCommented(t *testing.T) {
	for _, s := range sources(t) {
		if strings.HasSuffix(s.name, "_test.go") {
			continue
		}
		at := func(n ast.Node) string { return s.fset.Position(n.Pos()).String() }
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) {
					t.Errorf("%s: %s has no comment", at(d), d.Name.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch spec := spec.(type) {
					case *ast.TypeSpec:
						if spec.Name.IsExported() && d.Doc == nil && spec.Doc == nil {
							t.Errorf("%s: %s has no comment", at(spec), spec.Name.Name)
						}
					case *ast.ValueSpec:
						if d.Doc != nil || spec.Doc != nil || spec.Comment != nil {
							continue
						}
						for _, n := range spec.Names {
							if n.IsExported() {
								t.Errorf("%s: %s has no comment", at(spec), n.Name)
							}
						}
					}
				}
			}
		}
	}
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return true
	}
	typ := d.Recv.List[0].Type
	if star, ok := typ.(*ast.StarExpr); ok {
		typ = star.X
	}
	if index, ok := typ.(*ast.IndexExpr); ok {
		typ = index.X
	}
	id, ok := typ.(*ast.Ident)
	return !ok || id.IsExported()
}

// TestGoroutinesHaveOwners holds that goroutines start in lifecycle and transport only.
func TestGoroutinesHaveOwners(t *testing.T) {
	for _, s := range sources(t) {
		if strings.HasSuffix(s.name, "_test.go") || goKeywordAllowed[s.pkg] {
			continue
		}
		if _, support := testSupport[s.pkg]; support {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if g, ok := n.(*ast.GoStmt); ok {
				t.Errorf("%s: goroutines are started by lifecycle.Group", s.fset.Position(g.Pos()))
			}
			return true
		})
	}
}

// TestDiskHasOneDoor holds that files are reached through vfs.FS, apart from node and cli.
func TestDiskHasOneDoor(t *testing.T) {
	file := map[string]bool{
		"Open": true, "OpenFile": true, "Create": true, "ReadFile": true, "WriteFile": true,
		"Remove": true, "RemoveAll": true, "Rename": true, "Mkdir": true, "MkdirAll": true,
		"Stat": true, "ReadDir": true, "Truncate": true,
	}
	for _, s := range sources(t) {
		if strings.HasSuffix(s.name, "_test.go") || osFilesAllowed[s.pkg] {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if id, ok := call.X.(*ast.Ident); ok && id.Name == "os" && file[call.Sel.Name] {
				t.Errorf("%s: os.%s: files are reached through vfs.FS", s.fset.Position(call.Pos()), call.Sel.Name)
			}
			return true
		})
	}
}

// TestNamesSayWhatThingsAre refuses the names that say nothing.
func TestNamesSayWhatThingsAre(t *testing.T) {
	banned := []string{"manager", "helper", "util", "common", "base", "impl"}
	isBanned := func(name string) bool {
		name = strings.ToLower(strings.TrimSuffix(name, ".go"))
		for _, b := range banned {
			if name == b || strings.HasSuffix(name, b) || strings.HasSuffix(name, b+"s") {
				return true
			}
		}
		return false
	}
	for _, s := range sources(t) {
		if strings.HasSuffix(s.name, "_test.go") {
			continue
		}
		if isBanned(path.Base(s.name)) || isBanned(s.file.Name.Name) {
			t.Errorf("%s: a name says what the thing holds or does", s.name)
		}
		for _, d := range s.file.Decls {
			gen, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range gen.Specs {
				if ts, ok := spec.(*ast.TypeSpec); ok && isBanned(ts.Name.Name) && ts.Name.Name != "Database" {
					t.Errorf("%s: type %s: a name says what the thing holds or does", s.name, ts.Name.Name)
				}
			}
		}
	}
}

// TestMapIsWritten holds that docs/architecture.md names every package of the ranks.
func TestMapIsWritten(t *testing.T) {
	text, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	for pkg := range ranks {
		name := pkg
		if strings.HasPrefix(pkg, "client/internal/") {
			name = "client/internal/"
		}
		if !strings.Contains(string(text), "`"+name) {
			t.Errorf("docs/architecture.md does not name %s", pkg)
		}
	}
}
