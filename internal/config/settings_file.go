package config

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Form says how a settings file is read.
type Form int

// The forms of settings files.
const (
	Strict   Form = iota // one of ours: what can only be a mistake is refused
	AsApache             // one of Apache RocketMQ: what its servers take means what it means there
)

// ReadSettings reads the settings in a file of Java's properties, as Apache's broker.conf is
// one, with the line that each begins in. What is wrong with the text itself is in the list,
// where it belongs; what the settings are is Take's to judge.
func ReadSettings(file string, text []byte, form Form) (given []Given) {
	text, err := plainText(text, "#!")
	if err != nil {
		return []Given{{From: file + ":1", Wrong: err}}
	}
	first := make(map[string]int)
	err = eachProperty(text, func(line int, logical string) error {
		p, err := parseProperty(logical)
		g := Given{Name: p.Name, Value: p.Value, From: fmt.Sprintf("%s:%d", file, line), Wrong: err}
		before, twice := first[p.Name]
		switch {
		case err != nil:
		case form == Strict && !strings.ContainsAny(logical, "=: \t\f"):
			g.Wrong = fmt.Errorf("%.64q is not KEY=VALUE", logical)
		case twice && form == Strict:
			g.Wrong = fmt.Errorf("%s is given twice, first in line %d: take one of them away", p.Name, before)
		case twice && isSetting(p.Name):
			g.Remark = fmt.Sprintf("%s is given twice, first in line %d: the last counts, as with Apache's servers", p.Name, before)
		}
		if !twice {
			first[p.Name] = line
		}
		given = append(given, g)
		return nil
	})
	if err != nil {
		given = append(given, Given{From: file, Wrong: err})
	}
	return given
}

const (
	utf8Mark    = "\xef\xbb\xbf"
	utf16Little = "\xff\xfe"
	utf16Big    = "\xfe\xff"
)

var errMark = errors.New("the file begins with a byte order mark, which for Java's properties, and so for Apache's servers, is a part of the first key: save it as UTF-8 without one")

// plainText refuses what is not text, and a byte order mark where it would change the meaning
// of the first line: before blanks and the signs that harmless ones begin with it does not.
func plainText(text []byte, harmless string) ([]byte, error) {
	switch {
	case bytes.HasPrefix(text, []byte(utf16Little)), bytes.HasPrefix(text, []byte(utf16Big)):
		return nil, errors.New("the file is UTF-16: save it as UTF-8")
	case bytes.IndexByte(text, 0) >= 0:
		return nil, errors.New("the file is not text: it has a byte that is zero")
	}
	rest, marked := bytes.CutPrefix(text, []byte(utf8Mark))
	if !marked {
		return text, nil
	}
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	line = bytes.TrimSpace(line)
	if len(line) > 0 && !strings.ContainsRune(harmless, rune(line[0])) {
		return nil, errMark
	}
	return rest, nil
}

// checkText refuses what a value can only have by mistake, whatever it is a value of.
func checkText(name, value string) error {
	if before, comment := beforeComment(value); comment {
		return fmt.Errorf("%w of %s: %.64q: in such a file # begins a comment only at the beginning of a line, here it is a part of the value; "+
			"give the comment a line of its own and write %s=%s", ErrValue, name, value, name, before)
	}
	if inside, quoted := unquoted(value); quoted {
		return fmt.Errorf("%w of %s: %.64s: the quotes are a part of the value; write %s=%s", ErrValue, name, value, name, inside)
	}
	for _, r := range value {
		if r < ' ' || r == 0x7f || r == utf8.RuneError {
			return fmt.Errorf("%w of %s: %.64q has a character that is not to be seen; a backslash is written as two", ErrValue, name, value)
		}
	}
	return nil
}

// beforeComment is what is before a # that somebody meant to begin a comment.
func beforeComment(value string) (string, bool) {
	for _, sign := range []string{" #", "\t#"} {
		if before, _, ok := strings.Cut(value, sign); ok {
			return strings.TrimSpace(before), true
		}
	}
	return "", strings.HasPrefix(value, "#")
}

func unquoted(value string) (string, bool) {
	if n := len(value); n >= 2 && value[0] == value[n-1] && (value[0] == '"' || value[0] == '\'') {
		return value[1 : n-1], true
	}
	return "", false
}
