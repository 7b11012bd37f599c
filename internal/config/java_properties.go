package config

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
)

// ParseProperties reads the text form of Java's properties: the form of broker.conf and
// of the bodies of requests 25 and 318.
func ParseProperties(text []byte) ([]Property, error) {
	var list []Property
	err := eachProperty(text, func(_ int, logical string) error {
		p, err := parseProperty(logical)
		list = append(list, p)
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// eachProperty calls do for every property with the number of the line it begins in.
func eachProperty(text []byte, do func(line int, logical string) error) error {
	scanner := bufio.NewScanner(bytes.NewReader(text))
	scanner.Buffer(nil, 1<<20)
	var logical strings.Builder
	number, begin := 0, 0
	for scanner.Scan() {
		number++
		line := strings.TrimLeft(scanner.Text(), " \t\f")
		if logical.Len() == 0 && (line == "" || line[0] == '#' || line[0] == '!') {
			continue
		}
		if logical.Len() == 0 {
			begin = number
		}
		if continues(line) {
			logical.WriteString(line[:len(line)-1])
			continue
		}
		logical.WriteString(line)
		if err := do(begin, logical.String()); err != nil {
			return err
		}
		logical.Reset()
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("read properties: %w", err)
	}
	if logical.Len() > 0 {
		return do(begin, logical.String())
	}
	return nil
}

// continues tells whether a line ends in a backslash that is not itself escaped.
func continues(line string) bool {
	n := len(line) - len(strings.TrimRight(line, `\`))
	return n%2 == 1
}

func parseProperty(line string) (Property, error) {
	end, escaped := len(line), false
	for i := range len(line) {
		if escaped {
			escaped = false
			continue
		}
		if line[i] == '\\' {
			escaped = true
		} else if line[i] == '=' || line[i] == ':' || line[i] == ' ' || line[i] == '\t' {
			end = i
			break
		}
	}
	value := strings.TrimLeft(line[end:], " \t\f")
	if value != "" && (value[0] == '=' || value[0] == ':') {
		value = strings.TrimLeft(value[1:], " \t\f")
	}
	name, err := unescape(line[:end])
	if err != nil {
		return Property{}, err
	}
	value, err = unescape(value)
	if err != nil {
		return Property{}, err
	}
	if name == "" {
		return Property{}, fmt.Errorf("%w: a line without a key: %q", ErrValue, line)
	}
	return Property{name, value}, nil
}

func unescape(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case 'f':
			b.WriteByte('\f')
		case 'u':
			r, next, err := unicodeEscapes(s, i-1)
			if err != nil {
				return "", err
			}
			b.WriteString(r)
			i = next - 1
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), nil
}

// unicodeEscapes reads consecutive \uXXXX escapes from at: two of them may be one
// character.
func unicodeEscapes(s string, at int) (text string, next int, err error) {
	var units []uint16
	for at+1 < len(s) && s[at] == '\\' && s[at+1] == 'u' {
		if at+6 > len(s) {
			return "", 0, fmt.Errorf("%w: a \\u escape is cut short in %q", ErrValue, s)
		}
		n, err := strconv.ParseUint(s[at+2:at+6], 16, 16)
		if err != nil {
			return "", 0, fmt.Errorf("%w: a \\u escape is malformed in %q", ErrValue, s)
		}
		units = append(units, uint16(n))
		at += 6
	}
	return string(utf16.Decode(units)), at, nil
}

// FormatProperties is the opposite of ParseProperties.
func FormatProperties(list []Property) []byte {
	var b strings.Builder
	for _, p := range list {
		b.WriteString(escape(p.Name, true))
		b.WriteByte('=')
		b.WriteString(escape(p.Value, false))
		b.WriteByte('\n')
	}
	return []byte(b.String())
}

func escape(s string, name bool) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\f':
			b.WriteString(`\f`)
		case r == '\\', name && (r == '=' || r == ':' || r == ' '), i == 0 && (r == ' ' || r == '#' || r == '!' || r == '=' || r == ':'):
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
