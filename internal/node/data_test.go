package node

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDataFolderIsLocked(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "data")
	d, err := openData(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openData(dir); err == nil || !strings.Contains(err.Error(), "in use by another server") {
		t.Errorf("second lock: %v", err)
	}
	if err := d.close(); err != nil {
		t.Fatal(err)
	}
	d, err = openData(dir)
	if err != nil {
		t.Fatal("after release:", err)
	}
	defer d.close()
	if text, err := os.ReadFile(filepath.Join(dir, formatFile)); err != nil || string(text) != "bolide data format 1\n" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestFormats(t *testing.T) {
	for _, c := range []struct {
		file string
		says string // "" = opens
	}{
		{"", ""},
		{"bolide data format 1\n", ""},
		{"bolide data format 2\n", "knows formats up to 1"},
		{"bolide data format x\n", "does not say"},
		{"bolide data format 0\n", "does not say"},
		{"something else", "does not say"},
	} {
		dir := t.TempDir()
		if c.file != "" {
			if err := os.WriteFile(filepath.Join(dir, formatFile), []byte(c.file), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		d, err := openData(dir)
		if err == nil {
			d.close()
		}
		if (err == nil) != (c.says == "") || (err != nil && !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%q: %v", c.file, err)
		}
	}
}

func TestMigrationGoesOnWhereItStopped(t *testing.T) {
	dir := t.TempDir()
	if err := writeFormat(dir, 1); err != nil {
		t.Fatal(err)
	}
	d := &dataFolder{dir: dir}
	var ran []int
	broken := errors.New("broken")
	steps := []func(string) error{
		func(string) error { ran = append(ran, 1); return nil },
		func(string) error { ran = append(ran, 2); return broken },
	}
	if err := d.bringToFormat(3, steps); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	if format, err := readFormat(dir); err != nil || format != 2 {
		t.Fatalf("format %d, %v", format, err)
	}
	steps[1] = func(string) error { ran = append(ran, 3); return nil }
	if err := d.bringToFormat(3, steps); err != nil {
		t.Fatal(err)
	}
	if len(ran) != 3 || ran[2] != 3 {
		t.Errorf("steps run: %v", ran)
	}
}

func TestFolderThatIsAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := openData(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
}

// A folder whose state database is not there is told of, with what is taken instead; a new one
// and one of Apache's are not.
func TestMissingState(t *testing.T) {
	for _, c := range []struct {
		name  string
		files []string
		says  string
	}{
		{"new", nil, ""},
		{"Apache's", []string{"commitlog/00000000000000000000", "config/topics.json"}, ""},
		{"whole", []string{formatFile, "commitlog/00000000000000000000", "config/topics.json", "state/CURRENT"}, ""},
		{"a name server's", []string{formatFile, "namesrv/kvConfig.json"}, ""},
		{"without state", []string{formatFile, "commitlog/00000000000000000000", "config/topics.json"}, "are taken from the files in config/"},
		{"with the older text alone", []string{formatFile, "commitlog/00000000000000000000", "config/topics.json.bak"}, "are taken from the files in config/"},
		{"without state and config", []string{formatFile, "commitlog/00000000000000000000"}, "topics, groups and consumer offsets are gone"},
	} {
		dir := t.TempDir()
		for _, name := range c.files {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			text := ""
			if name == formatFile {
				text = formatPrefix + "1\n"
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		d, err := openData(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.missingState(); (got == "") != (c.says == "") || !strings.Contains(got, c.says) || c.says != "" && !strings.Contains(got, filepath.Join(dir, "state")) {
			t.Errorf("%s: %q", c.name, got)
		}
		if err := d.close(); err != nil {
			t.Error(err)
		}
	}
}
