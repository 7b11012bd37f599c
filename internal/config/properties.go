package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// Errors of setting properties, wrapped with the property's name.
var (
	ErrUnknown = errors.New("unknown setting")
	ErrFixed   = errors.New("setting can't be changed while the server runs")
	ErrValue   = errors.New("illegal value")
	ErrIdle    = errors.New("setting has no effect")
)

// Property is one property under Apache RocketMQ's name, in its text form.
type Property struct{ Name, Value string }

// Set changes one property of the options that target points to. Nothing changes when it
// returns an error.
func Set(target any, name, value string) error {
	v := reflect.ValueOf(target).Elem()
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if field.Tag.Get("prop") == name {
			return setField(v.Field(i), field, strings.TrimSpace(value))
		}
	}
	return unknown(name, []any{target})
}

// Apply changes the properties of several option structs; each is taken by every struct
// that has it, and must be taken by one.
func Apply(settings map[string]string, targets ...any) error {
	for _, name := range sortedNames(settings) {
		if err := setEach(name, settings[name], targets); err != nil {
			return err
		}
	}
	return nil
}

// Idle is a setting that is taken and that nothing looks at, and why.
type Idle struct{ Name, Why string }

// WithoutEffect finds the settings that ask the options for something else than they are,
// and that nothing looks at: Apache's server has them, this one does not do what they
// choose. The options are marked so by idle:"reason".
func WithoutEffect(settings map[string]string, targets ...any) []Idle {
	var idle []Idle
	for _, name := range sortedNames(settings) {
		why, asked, used := "", false, false
		for _, target := range targets {
			v := reflect.ValueOf(target).Elem()
			for i := range v.NumField() {
				tag := v.Type().Field(i).Tag
				if tag.Get("prop") != name {
					continue
				}
				if w := tag.Get("idle"); w != "" {
					why = w
				} else {
					used = true
				}
				asked = asked || !strings.EqualFold(fmt.Sprint(v.Field(i).Interface()), strings.TrimSpace(settings[name]))
			}
		}
		if asked && !used {
			idle = append(idle, Idle{name, why})
		}
	}
	return idle
}

// Change applies settings to a published set of options, all or none. Settings that are
// fixed while the server runs are refused, and so are unknown ones, and those without an
// effect unless they ask for what is.
func (l *Live[T]) Change(settings map[string]string) error {
	next := *l.Get()
	typ := reflect.TypeFor[T]()
	for _, name := range sortedNames(settings) {
		for i := range typ.NumField() {
			if tag := typ.Field(i).Tag; tag.Get("prop") == name && tag.Get("fixed") == "true" {
				return fmt.Errorf("%w: %s", ErrFixed, name)
			}
		}
		if err := Set(&next, name, settings[name]); err != nil {
			return err
		}
	}
	if idle := WithoutEffect(settings, l.Get()); len(idle) > 0 {
		return fmt.Errorf("%w: %s: %s", ErrIdle, idle[0].Name, idle[0].Why)
	}
	if o, ok := any(&next).(interface{ orders() []order }); ok {
		for _, r := range o.orders() {
			if err := r.broken(func(string) bool { return true }); err != nil {
				return err
			}
		}
	}
	l.Replace(next)
	return nil
}

// List is all properties of the options that target points to, in the order of the struct.
func List(target any) []Property {
	v := reflect.ValueOf(target).Elem()
	var all []Property
	for i := range v.NumField() {
		if name := v.Type().Field(i).Tag.Get("prop"); name != "" {
			all = append(all, Property{name, fmt.Sprint(v.Field(i).Interface())})
		}
	}
	return all
}

// BrokerDefaults are the defaults of what GET_BROKER_CONFIG tells, in their text form.
func BrokerDefaults() map[string]string {
	broker, store := DefaultBroker(), DefaultStore()
	all := make(map[string]string)
	for _, p := range append(List(&broker), List(&store)...) {
		all[p.Name] = p.Value
	}
	return all
}

func sortedNames(settings map[string]string) []string {
	names := make([]string, 0, len(settings))
	for name := range settings {
		names = append(names, name)
	}
	slices.Sort(names) // the same settings always name the same first mistake
	return names
}

func setField(v reflect.Value, field reflect.StructField, value string) error {
	name := field.Tag.Get("prop")
	if err := checkText(name, value); err != nil {
		return err
	}
	refuse := func(format string, args ...any) error {
		return fmt.Errorf("%w of %s: %s", ErrValue, name, fmt.Sprintf(format, args...))
	}
	if value == "" && v.Kind() != reflect.String {
		return refuse("it is empty (%s); the default is %v", form(field), standard(field))
	}
	switch v.Kind() {
	case reflect.Bool:
		// As Java reads it, but what Java takes for false, such as 1 or yes, is refused.
		if !strings.EqualFold(value, "true") && !strings.EqualFold(value, "false") {
			return refuse("%.64q is not true or false", value)
		}
		v.SetBool(strings.EqualFold(value, "true"))
	case reflect.Int32, reflect.Int64:
		n, err := number(field, value)
		if err != nil {
			return refuse("%s", err)
		}
		v.SetInt(n)
	case reflect.String:
		if allowed := field.Tag.Get("oneof"); allowed != "" && !slices.Contains(strings.Split(allowed, ","), value) {
			return refuse("%.64q is not one of %s. %s", value, allowed, field.Tag.Get("about"))
		}
		if c, ok := checks[field.Tag.Get("check")]; ok {
			if err := c.rule(value); err != nil {
				return refuse("%s", err)
			}
		}
		v.SetString(value)
	default:
		panic("config: " + name + " has a type that no property can have")
	}
	return nil
}

// unknown names the setting that was meant, if one is close enough.
func unknown(name string, targets []any) error {
	best, distance := "", 3 // two slips of the finger at most
	for _, target := range targets {
		typ := reflect.TypeOf(target).Elem()
		for i := range typ.NumField() {
			known := typ.Field(i).Tag.Get("prop")
			if known == "" {
				continue
			}
			if d := slips(strings.ToLower(known), strings.ToLower(name), distance); d < distance {
				best, distance = known, d
			}
		}
	}
	if best != "" {
		return fmt.Errorf("%w %.64q: did you mean %s?", ErrUnknown, name, best)
	}
	return fmt.Errorf("%w %.64q", ErrUnknown, name)
}

// slips is how many letters are missing, too many or others in one of two words, or most
// where it is more.
func slips(a, b string, most int) int {
	if len(a)-len(b) >= most || len(b)-len(a) >= most {
		return most
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			above := row[j+1]
			row[j+1] = min(above, row[j]) + 1
			if a[i] == b[j] {
				row[j+1] = min(row[j+1], corner)
			} else {
				row[j+1] = min(row[j+1], corner+1)
			}
			corner = above
		}
	}
	return min(row[len(b)], most)
}

// isSetting reports whether some options have a setting of this name.
func isSetting(name string) bool { return settingNames()[name] }

var settingNames = sync.OnceValue(func() map[string]bool {
	all := make(map[string]bool)
	o := Default()
	for _, target := range o.targets() {
		for _, p := range List(target) {
			all[p.Name] = true
		}
	}
	return all
})

// standard is a setting's default.
func standard(field reflect.StructField) any {
	o := Default()
	for _, target := range o.targets() {
		v := reflect.ValueOf(target).Elem()
		if f, ok := v.Type().FieldByName(field.Name); ok && f.Tag == field.Tag {
			return v.FieldByIndex(f.Index).Interface()
		}
	}
	return ""
}
