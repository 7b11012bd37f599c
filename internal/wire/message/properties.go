package message

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
)

// Separators of the properties text: name nameEnd value valueEnd, repeated.
const (
	nameEnd  = 1
	valueEnd = 2
)

// MaxProperties is the longest properties text in bytes: its length is stored as a
// signed short.
const MaxProperties = 1<<15 - 1

// ErrIllegalProperty is what a refused property wraps.
var ErrIllegalProperty = errors.New("illegal property")

// Properties is the properties text of a message, exactly as it is sent and stored. The
// last pair may lack its closing separator; pairs without a name or with an empty value
// are not seen by readers, and of two pairs with one name the last counts, as in Apache
// RocketMQ.
type Properties string

// Get returns the value of name and whether it is there.
func (p Properties) Get(name string) (string, bool) {
	if name == "" {
		return "", false
	}
	value, found := "", false
	for from := 0; ; {
		at := strings.Index(string(p[from:]), name)
		if at < 0 {
			return value, found
		}
		at += from
		start := at + len(name) + 1
		from = at + 1
		if start >= len(p) {
			return value, found
		}
		if p[start-1] != nameEnd || (at > 0 && p[at-1] != valueEnd) {
			continue
		}
		end := start + endOfValue(p[start:])
		if end > start {
			value, found = string(p[start:end]), true
		}
		from = end
	}
}

// Value is Get without the second result: "" when absent.
func (p Properties) Value(name string) string {
	value, _ := p.Get(name)
	return value
}

// Has reports whether name is there.
func (p Properties) Has(name string) bool {
	_, ok := p.Get(name)
	return ok
}

// All yields the pairs in their stored order; a name that stands twice is yielded twice.
func (p Properties) All() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for rest := p; rest != ""; {
			var pair Properties
			pair, rest = cutPair(rest)
			name, value, ok := splitPair(pair)
			if ok && !yield(name, value) {
				return
			}
		}
	}
}

// With returns p with name set to value, at the end. An empty value, which no reader
// would see, removes the name.
func (p Properties) With(name, value string) Properties {
	return p.WithAll(name, value)
}

// WithAll is With for several names at once: name, value, name, value, and so on.
func (p Properties) WithAll(namesAndValues ...string) Properties {
	size := len(p) + 1
	for _, s := range namesAndValues {
		size += len(s) + 1
	}
	return PropertiesIn(p.AppendEdited(make([]byte, 0, size), nil, namesAndValues...))
}

// AppendEdited appends p to dst, each pair closed, without those of some names, and then with
// others set as WithAll does.
func (p Properties) AppendEdited(dst []byte, without []string, namesAndValues ...string) []byte {
	dst = p.appendWithout(dst, func(name string) bool {
		for i := 0; i+1 < len(namesAndValues); i += 2 {
			if namesAndValues[i] == name {
				return true
			}
		}
		return slices.Contains(without, name)
	})
	for i := 0; i+1 < len(namesAndValues); i += 2 {
		dst = appendPair(dst, namesAndValues[i], namesAndValues[i+1])
	}
	return dst
}

// PropertiesIn is b as properties, without a copy: b must not change while they are in use.
func PropertiesIn(b []byte) Properties { return Properties(aliased(b)) }

// Without returns p without the named properties. It is p itself when none is there.
func (p Properties) Without(names ...string) Properties {
	found := false
	for _, name := range names {
		found = found || strings.Contains(string(p), name)
	}
	if !found {
		return p
	}
	return PropertiesIn(p.AppendEdited(make([]byte, 0, len(p)+1), names))
}

// appendWithout copies p pair by pair, each closed, without the names to drop.
func (p Properties) appendWithout(dst []byte, drop func(name string) bool) []byte {
	kept := 0 // from here on
	for at := 0; at < len(p); {
		end := at + endOfValue(p[at:])
		next := min(end+1, len(p))
		if name := nameOf(p[at:end]); end == at || (name != "" && drop(name)) {
			dst = append(dst, p[kept:at]...)
			kept = next
		}
		at = next
	}
	if dst = append(dst, p[kept:]...); kept < len(p) && p[len(p)-1] != valueEnd {
		dst = append(dst, valueEnd)
	}
	return dst
}

// Check reports what is wrong with a text that came from a client: too long, a pair
// without a name, or a separator inside a value, which readers would see as another
// property or not at all. An empty value is legal.
func (p Properties) Check() error {
	if len(p) > MaxProperties {
		return fmt.Errorf("%w: the properties have %d bytes, the limit is %d", ErrPropertiesTooLarge, len(p), MaxProperties)
	}
	for rest := p; rest != ""; {
		var pair Properties
		pair, rest = cutPair(rest)
		if pair == "" {
			continue
		}
		name, value, ok := strings.Cut(string(pair), string(rune(nameEnd)))
		switch {
		case !ok:
			return fmt.Errorf("%w: %.64q has no value; a value may not hold the separators \\x01 and \\x02", ErrIllegalProperty, name)
		case name == "":
			return fmt.Errorf("%w: the value %.64q has no name", ErrIllegalProperty, value)
		case strings.IndexByte(value, nameEnd) >= 0:
			return fmt.Errorf("%w: the value of %.64q holds the separator \\x01", ErrIllegalProperty, name)
		}
	}
	return nil
}

// CheckProperty reports why a pair can't be put into properties.
func CheckProperty(name, value string) error {
	switch {
	case name == "":
		return fmt.Errorf("%w: a property has no name", ErrIllegalProperty)
	case strings.ContainsAny(name, separators):
		return fmt.Errorf("%w: the name %.64q holds a separator, \\x01 or \\x02", ErrIllegalProperty, name)
	case strings.ContainsAny(value, separators):
		return fmt.Errorf("%w: the value of %.64q holds a separator, \\x01 or \\x02", ErrIllegalProperty, name)
	}
	return nil
}

const separators = "\x01\x02"

// AppendProperty appends one pair to a properties text under construction. The pair must
// have passed CheckProperty when it came from outside; an empty value appends nothing.
func AppendProperty(dst []byte, name, value string) []byte {
	if n := len(dst); n > 0 && dst[n-1] != valueEnd {
		dst = append(dst, valueEnd)
	}
	return appendPair(dst, name, value)
}

func appendPair(dst []byte, name, value string) []byte {
	if name == "" || value == "" {
		return dst
	}
	dst = append(append(dst, name...), nameEnd)
	return append(append(dst, value...), valueEnd)
}

// cutPair splits off the first pair, without its closing separator.
func cutPair(p Properties) (pair, rest Properties) {
	end := endOfValue(p)
	if end == len(p) {
		return p, ""
	}
	return p[:end], p[end+1:]
}

func endOfValue(p Properties) int {
	if end := strings.IndexByte(string(p), valueEnd); end >= 0 {
		return end
	}
	return len(p)
}

// splitPair takes a pair apart; ok is false for one that readers do not see.
func splitPair(pair Properties) (name, value string, ok bool) {
	at := strings.IndexByte(string(pair), nameEnd)
	if at <= 0 || at == len(pair)-1 {
		return "", "", false
	}
	return string(pair[:at]), string(pair[at+1:]), true
}

// nameOf is the name of a pair, also of one with an empty value; "" when it has none.
func nameOf(pair Properties) string {
	at := strings.IndexByte(string(pair), nameEnd)
	if at < 0 {
		return ""
	}
	return string(pair[:at])
}
