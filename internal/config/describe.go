package config

import (
	"fmt"
	"reflect"
	"strings"
)

// Describe is the settings of all options as a file: each with its default, commented out,
// below what it is, what it may be and whether it can change while the server runs, or why it
// does nothing.
func Describe() string {
	var b strings.Builder
	b.WriteString("# Settings of bolide, each with its default. Take the # away from those to change and start\n" +
		"# with --config FILE. The names are those of Apache RocketMQ.\n")
	printed := make(map[string]bool)
	broker, store, namesrv, proxy := DefaultBroker(), DefaultStore(), DefaultNamesrv(), DefaultProxy()
	for _, part := range []struct {
		title  string
		target any
	}{{"Broker", &broker}, {"Store", &store}, {"Name server", &namesrv}, {"Proxy", &proxy}} {
		fmt.Fprintf(&b, "\n# ---- %s\n", part.title)
		v := reflect.ValueOf(part.target).Elem()
		for i := range v.NumField() {
			f := v.Type().Field(i)
			name := f.Tag.Get("prop")
			if name == "" || name == "storePathRootDir" { // --data takes its place
				continue
			}
			fmt.Fprintf(&b, "\n%s%s", comment(f.Tag.Get("about")), comment(allowed(f)))
			if printed[name] { // one line for all that take it
				fmt.Fprintf(&b, "# This is %s, as above.\n", name)
				continue
			}
			printed[name] = true
			fmt.Fprintf(&b, "#%s=%v\n", name, v.Field(i).Interface())
		}
	}
	return b.String()
}

// commentWidth is where the lines of a comment end.
const commentWidth = 100

// comment is text in lines that begin with a #.
func comment(text string) string {
	var b strings.Builder
	line := "#"
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > commentWidth {
			b.WriteString(line + "\n")
			line = "#"
		}
		line += " " + word
	}
	return b.String() + line + "\n"
}

// allowed says what a setting may be, and when it counts.
func allowed(f reflect.StructField) string {
	switch why := f.Tag.Get("idle"); {
	case why != "":
		return form(f) + "; taken, and without effect: " + why
	case f.Tag.Get("fixed") == "true":
		return form(f) + "; read at the start"
	}
	return form(f) + "; can be changed while the server runs"
}

// form is what a setting may be.
func form(f reflect.StructField) string {
	tag := f.Tag
	if one := tag.Get("oneof"); one != "" {
		return strings.ReplaceAll(one, ",", " or ")
	}
	switch f.Type.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		if c, ok := checks[tag.Get("check")]; ok {
			return c.is
		}
		return "text"
	}
	what := tag.Get("unit")
	if what == "" {
		what = "a number"
	}
	switch low, high := tag.Get("min"), tag.Get("max"); {
	case low != "" && high != "":
		what += ", " + low + " to " + high
	case low != "":
		what += ", " + low + " or more"
	}
	return what
}
