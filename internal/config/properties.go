package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
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
	return unknown(name, v.Type())
}

// Apply changes the properties of several option structs; each is taken by every struct
// that has it, and must be taken by one.
func Apply(settings map[string]string, targets ...any) error {
	for _, name := range sortedNames(settings) {
		taken := false
		var missing error
		for _, target := range targets {
			err := Set(target, name, settings[name])
			switch {
			case err == nil:
				taken = true
			case errors.Is(err, ErrUnknown):
				missing = err
			default:
				return err
			}
		}
		if !taken {
			if missing == nil {
				missing = fmt.Errorf("%w %q", ErrUnknown, name)
			}
			return missing
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
				asked = asked || fmt.Sprint(v.Field(i).Interface()) != strings.TrimSpace(settings[name])
			}
		}
		if asked && !used {
			idle = append(idle, Idle{name, why})
		}
	}
	return idle
}

// Hours reads hours of the day as deleteWhen has them: "04" or "04;16".
func Hours(text string) ([]int, error) {
	var all []int
	for part := range strings.SplitSeq(strings.Trim(text, "; "), ";") {
		hour, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || hour < 0 || hour > 23 {
			return nil, fmt.Errorf("%w of deleteWhen: %.64q is not an hour of the day, 00 to 23", ErrValue, part)
		}
		all = append(all, hour)
	}
	return all, nil
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

func sortedNames(settings map[string]string) []string {
	names := make([]string, 0, len(settings))
	for name := range settings {
		names = append(names, name)
	}
	slices.Sort(names) // the same settings always name the same first mistake
	return names
}

func setField(v reflect.Value, field reflect.StructField, value string) error {
	name, tag := field.Tag.Get("prop"), field.Tag
	switch v.Kind() {
	case reflect.Bool:
		on, err := strconv.ParseBool(value)
		if err != nil {
			return fmt.Errorf("%w of %s: %.64q is not true or false", ErrValue, name, value)
		}
		v.SetBool(on)
	case reflect.Int32, reflect.Int64:
		n, err := strconv.ParseInt(value, 10, v.Type().Bits())
		if err != nil {
			return fmt.Errorf("%w of %s: %.64q is not a whole number", ErrValue, name, value)
		}
		if low, err := strconv.ParseInt(tag.Get("min"), 10, 64); err == nil && n < low {
			return fmt.Errorf("%w of %s: %d is below the limit %d", ErrValue, name, n, low)
		}
		if high, err := strconv.ParseInt(tag.Get("max"), 10, 64); err == nil && n > high {
			return fmt.Errorf("%w of %s: %d is over the limit %d", ErrValue, name, n, high)
		}
		v.SetInt(n)
	case reflect.String:
		if allowed := tag.Get("oneof"); allowed != "" && !slices.Contains(strings.Split(allowed, ","), value) {
			return fmt.Errorf("%w of %s: %.64q is not one of %s", ErrValue, name, value, allowed)
		}
		v.SetString(value)
	default:
		panic("config: " + name + " has a type that no property can have")
	}
	return nil
}

// unknown names the setting that was meant, if one is close enough.
func unknown(name string, typ reflect.Type) error {
	for i := range typ.NumField() {
		if known := typ.Field(i).Tag.Get("prop"); known != "" && strings.EqualFold(known, name) {
			return fmt.Errorf("%w %q: did you mean %s?", ErrUnknown, name, known)
		}
	}
	return fmt.Errorf("%w %.64q", ErrUnknown, name)
}
