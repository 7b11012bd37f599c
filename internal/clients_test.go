package internal_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// caseNames finds the cases of the suites of test/compat in their sources, by the first words
// of the columns of docs/clients.md.
var caseNames = map[string]struct {
	files string
	name  *regexp.Regexp
}{
	"Go":     {"go/*_test.go", regexp.MustCompile(`(?m)^func (Test[A-Z0-9]\w*)\(t \*testing\.T\)`)},
	"Java":   {"java/src/main/java/dev/bolide/compat/Suite.java", regexp.MustCompile(`(?:small|large)\.put\("([^"]+)"`)},
	"Python": {"python/suite.py", regexp.MustCompile(`\("([^"]+)", \w+, "COMPAT_TOPIC_`)},
	"Node":   {"node/suite.js", regexp.MustCompile(`\['([^']+)', \w+, 'COMPAT_TOPIC_`)},
	"Rust":   {"rust/src/main.rs", regexp.MustCompile(`\brun\("([^"]+)", "`)},
}

// TestClientsAreCovered holds that each case that docs/clients.md names exists in the suite of
// its column, that each case of those suites is named there, and that no cell is empty.
func TestClientsAreCovered(t *testing.T) {
	cases := make(map[string]map[string]bool) // by language, then name: whether the page has it
	for language, in := range caseNames {
		cases[language] = make(map[string]bool)
		files, err := filepath.Glob(filepath.Join("..", "test", "compat", filepath.FromSlash(in.files)))
		if err != nil || len(files) == 0 {
			t.Fatalf("no suite for %s: %v", language, err)
		}
		for _, name := range files {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range in.name.FindAllStringSubmatch(string(text), -1) {
				cases[language][m[1]] = false
			}
		}
		if len(cases[language]) < 3 {
			t.Fatalf("%s has the cases %v", language, cases[language])
		}
	}
	page, err := os.ReadFile("../docs/clients.md")
	if err != nil {
		t.Fatal(err)
	}
	var columns []string
	for i, line := range strings.Split(string(page), "\n") {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		switch first := strings.TrimSpace(cells[0]); {
		case !strings.HasPrefix(line, "|"):
			columns = nil
			continue
		case first == "kind":
			columns = cells
			continue
		case columns == nil || strings.HasPrefix(first, "---"):
			continue
		case len(cells) != len(columns):
			t.Errorf("line %d has %d cells, want %d", i+1, len(cells), len(columns))
			continue
		}
		for k, cell := range cells[1:] {
			if strings.TrimSpace(cell) == "" {
				t.Errorf("line %d: the cell of %s is empty", i+1, strings.TrimSpace(columns[k+1]))
			}
			language := strings.Trim(strings.Fields(columns[k+1])[0], ",")
			for _, s := range quoted.FindAllStringSubmatch(cell, -1) {
				if _, ok := cases[language][s[1]]; ok {
					cases[language][s[1]] = true
				} else if s[1] != "rebalance" { // a suite of its own
					t.Errorf("line %d: there is no case %q of %s", i+1, s[1], language)
				}
			}
		}
	}
	for language, names := range cases {
		for name, found := range names {
			if !found {
				t.Errorf("docs/clients.md does not name the case %q of %s", name, language)
			}
		}
	}
}
