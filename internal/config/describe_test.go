package config

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// setting is one that some options have.
type setting struct {
	reflect.StructField
	of       string
	name     string
	standard any
}

func settings() (all []setting) {
	for _, options := range []any{DefaultBroker(), DefaultStore(), DefaultNamesrv(), DefaultProxy()} {
		v := reflect.ValueOf(options)
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.Tag.Get("prop") != "" {
				all = append(all, setting{f, v.Type().Name(), f.Tag.Get("prop"), v.Field(i).Interface()})
			}
		}
	}
	return all
}

// labels are the settings whose numbers are a number of nothing.
var labels = map[string]bool{"brokerId": true, "brokerPermission": true}

// unitOfName is what a name says of its number: two patterns.
type unitOfName struct{ name, unit string }

// units are tried in this order.
var units = []unitOfName{
	{`(PollingSize|BatchSize|Num|Nums|Count|Max|Kept|OneRegistration|InMemory|Threshold)$`, `^[a-z]+s$`},
	{`Size|mappedFileSize`, `^bytes$`},
	{`Sec$`, `^s$`},
	{`(Ratio|Probability)`, `^percent of `},
	{`Stamp$`, `^ms since 1970$`},
	{`^fileReservedTime$`, `^hours$`},
	{`Interval|(Ms|Mills|MillsForRecv|Millis|Timeout|TimeOut|Period|Window|DelayTime|TTl)$`, `^ms$`},
}

// A setting says what it is, in a sentence, and a number of something what it is a number of.
func TestEverySettingSaysWhatItIs(t *testing.T) {
	known, said := make(map[string]setting), make(map[string]string)
	for _, s := range settings() {
		known[s.name] = s
	}
	another := regexp.MustCompile(`\b[a-z]+[A-Z]\w*[a-z]\w*`) // a name like that of a setting
	for _, s := range settings() {
		about, unit := s.Tag.Get("about"), s.Tag.Get("unit")
		if about == "" || !unicode.IsUpper(rune(about[0])) || !strings.HasSuffix(about, ".") || len(about) > 300 {
			t.Errorf("%s.%s: about is %q, want a sentence", s.of, s.Name, about)
		}
		if strings.HasPrefix(about, "Whether ") != (s.Type.Kind() == reflect.Bool) {
			t.Errorf("%s.%s: %q; a switch, and nothing else, says whether", s.of, s.Name, about)
		}
		if first, ok := said[about]; ok {
			t.Errorf("%s.%s and %s say the same of themselves", s.of, s.Name, first)
		}
		said[about] = s.of + "." + s.Name
		for _, name := range another.FindAllString(about, -1) {
			if _, ok := known[name]; !ok || name == s.name {
				t.Errorf("%s.%s: %q names %s", s.of, s.Name, about, name)
			}
		}
		switch number := s.Type.Kind() == reflect.Int32 || s.Type.Kind() == reflect.Int64; {
		case number && (unit == "") != labels[s.name]:
			t.Errorf("%s.%s: a number of what? unit is %q", s.of, s.Name, unit)
		case !number && unit != "":
			t.Errorf("%s.%s: a %s of %q", s.of, s.Name, s.Type, unit)
		}
	}
}

// A unit fits its setting's name, and options that share a setting agree on it.
func TestUnitsFitNames(t *testing.T) {
	first := make(map[string]setting)
	for _, s := range settings() {
		unit := s.Tag.Get("unit")
		if f, ok := first[s.name]; ok {
			for _, tag := range []string{"unit", "min", "max", "oneof"} {
				if s.Tag.Get(tag) != f.Tag.Get(tag) {
					t.Errorf("%s: %s is %q for %s and %q for %s", s.name, tag, f.Tag.Get(tag), f.of, s.Tag.Get(tag), s.of)
				}
			}
			if s.standard != f.standard || s.Type != f.Type {
				t.Errorf("%s: the default is %v for %s and %v for %s", s.name, f.standard, f.of, s.standard, s.of)
			}
		}
		first[s.name] = s
		if unit == "" {
			continue
		}
		rule := slices.IndexFunc(units, func(u unitOfName) bool { return regexp.MustCompile(u.name).MatchString(s.name) })
		switch {
		case rule < 0:
			t.Errorf("%s is in %s; no rule says what such a name is in", s.name, unit)
		case !regexp.MustCompile(units[rule].unit).MatchString(unit):
			t.Errorf("%s is in %s; such a name says %s", s.name, unit, units[rule].unit)
		}
	}
}

// What is printed has each setting once, below what it is and what it may be, and is itself a
// settings file: one that sets nothing.
func TestDescribe(t *testing.T) {
	text := Describe()
	if given := ReadSettings("printed", []byte(text), Strict); len(given) != 0 {
		t.Errorf("as it is printed: %v", given)
	}
	for i, line := range strings.Split(text, "\n") {
		if len(line) > commentWidth && strings.HasPrefix(line, "# ") {
			t.Errorf("line %d is long: %s", i+1, line)
		}
	}
	flowing := strings.Join(strings.Fields(strings.ReplaceAll(text, "\n# ", " ")), " ")
	for _, s := range settings() {
		if s.name == "storePathRootDir" {
			continue
		}
		line := fmt.Sprintf("#%s=%v", s.name, s.standard)
		if n := strings.Count(text, "\n"+line+"\n"); n != 1 {
			t.Errorf("%s is there %d times", line, n)
		}
		if want := s.Tag.Get("about") + " " + allowed(s.StructField); !strings.Contains(flowing, want) {
			t.Errorf("%s: %q is not there", s.name, want)
		}
	}
	for _, want := range []string{
		"# hours, 1 to 876000; can be changed while the server runs\n#fileReservedTime=72\n",
		"# percent of requests, 0 to 100; can be changed while the server runs\n#popFromRetryProbability=20\n",
		"# a number, 0 or more; read at the start\n#brokerId=0\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not there", want)
		}
	}
}
