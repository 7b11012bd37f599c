package internal_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/bolidemq/bolide/internal/config"
)

// documented is a setting as the documents may speak of it.
type documented struct {
	unit     string
	standard string
}

// quantities are what the documents and the settings' units come down to.
var quantities = map[string]struct {
	of   string
	each float64
}{
	"ms": {"time", 1}, "s": {"time", 1000}, "second": {"time", 1000}, "minute": {"time", 60_000}, "hour": {"time", 3_600_000}, "day": {"time", 86_400_000},
	"byte": {"size", 1}, "KiB": {"size", 1 << 10}, "MiB": {"size", 1 << 20}, "GiB": {"size", 1 << 30},
	"%": {"percent", 1}, "percent of the disk": {"percent", 1}, "percent of request": {"percent", 1},
}

// amount is a number with a unit in the smallest one of its kind; a unit that is not known
// counts things.
func amount(number, unit string) (string, float64, bool) {
	n, err := strconv.ParseFloat(strings.ReplaceAll(number, ",", ""), 64)
	if q, ok := quantities[unit]; ok {
		return q.of, n * q.each, err == nil
	}
	if q, ok := quantities[strings.TrimSuffix(unit, "s")]; ok {
		return q.of, n * q.each, err == nil
	}
	return "", n, err == nil
}

// TestDocumentsSayTheDefaults holds that where a document names a setting with a value beside
// it, as in `timerMaxDelaySec` (3 days), 4 MiB (`maxMessageSize`) or `deleteWhen=04`, that is
// the setting's default, or a value that it takes. What else there is to say of settings,
// `bolide config` prints.
func TestDocumentsSayTheDefaults(t *testing.T) {
	settings := make(map[string]documented)
	for _, options := range []any{config.DefaultBroker(), config.DefaultStore(), config.DefaultNamesrv(), config.DefaultProxy()} {
		v := reflect.ValueOf(options)
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if f.Type.Kind() == reflect.Int32 || f.Type.Kind() == reflect.Int64 {
				settings[f.Tag.Get("prop")] = documented{f.Tag.Get("unit"), strconv.FormatInt(v.Field(i).Int(), 10)}
			} else {
				settings[f.Tag.Get("prop")] = documented{}
			}
		}
	}
	const number = `([0-9][0-9,.]*)(?: ?(%|(?:ms|s|seconds?|minutes?|hours?|days?|[KMG]iB|bytes?)\b))?`
	after := regexp.MustCompile("`([a-z]\\w*)`(?:,| \\() ?" + number)
	before := regexp.MustCompile(number + " \\(`([a-z]\\w*)`")
	set := regexp.MustCompile("`([a-z]\\w*)=([^`…]*)`")
	found := 0
	say := func(path, text, name, count, unit string) {
		s, ok := settings[name]
		if !ok || s.standard == "" {
			return
		}
		found++
		kind, want, _ := amount(s.standard, s.unit)
		if k, n, ok := amount(count, unit); !ok || k != kind || n != want {
			t.Errorf("%s: %q; the default of %s is %s %s", path, text, name, s.standard, s.unit)
		}
	}
	read := func(path string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range after.FindAllStringSubmatch(string(text), -1) {
			say(path, m[0], m[1], m[2], m[3])
		}
		for _, m := range before.FindAllStringSubmatch(string(text), -1) {
			say(path, m[0], m[3], m[1], m[2])
		}
		for _, m := range set.FindAllStringSubmatch(string(text), -1) {
			if _, ok := settings[m[1]]; !ok {
				continue
			}
			found++
			if _, f := config.Take([]config.Given{{Name: m[1], Value: m[2], From: path}}); f.Err() != nil {
				t.Errorf("%q: %v", m[0], f.Err())
			}
		}
	}
	read("../README.md")
	err := filepath.WalkDir("../docs", func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".md") && !strings.Contains(path, "decisions") {
			read(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 10 {
		t.Errorf("only %d settings were found with a value beside them", found)
	}
}
