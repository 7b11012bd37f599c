package remoting

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds the nesting of members that are skipped.
const maxDepth = 64

var errJSONShort = errors.New("JSON header ends within a value")

// parseJSON reads the JSON encoding: one flat object, with the ext fields in one object
// of strings inside. Any legal JSON is taken, in any order, with members we do not know;
// there is no tree: names and values are slices of b, with escapes resolved in place.
func (c *Command) parseJSON(b []byte) error {
	p := jsonReader{b: b}
	if err := p.object(func(name []byte) error { return c.member(&p, name) }); err != nil {
		return err
	}
	if p.peek() != 0 {
		return p.unexpected("the end")
	}
	return nil
}

func (c *Command) member(p *jsonReader, name []byte) (err error) {
	switch string(name) {
	case "code":
		c.Code, err = p.int32(name)
	case "opaque":
		c.Opaque, err = p.int32(name)
	case "flag":
		c.Flag, err = p.int32(name)
	case "version":
		c.Version, err = p.int32(name)
	case "language":
		var v []byte
		if v, err = p.scalar(); err == nil && v != nil {
			c.Language = languageOf(v)
		}
	case "remark":
		var v []byte
		if v, err = p.scalar(); err == nil {
			c.Remark = string(v)
		}
	case "extFields":
		if p.peek() == 'n' {
			return p.skip()
		}
		err = p.object(func(name []byte) error {
			v, err := p.scalar()
			if err == nil && v != nil {
				c.Ext.list = append(c.Ext.list, field{name, v})
			}
			return err
		})
	default:
		err = p.skip()
	}
	return err
}

// jsonReader walks over JSON that it may change in place.
type jsonReader struct {
	b []byte
	i int
}

// peek passes blanks and returns the next byte, 0 at the end.
func (p *jsonReader) peek() byte {
	for p.i < len(p.b) {
		switch ch := p.b[p.i]; ch {
		case ' ', '\t', '\n', '\r':
			p.i++
		default:
			return ch
		}
	}
	return 0
}

func (p *jsonReader) unexpected(want string) error {
	if p.i >= len(p.b) {
		return errJSONShort
	}
	return fmt.Errorf("JSON header has %q at byte %d where %s was expected", p.b[p.i], p.i, want)
}

// object reads {name: value, …}; member reads the value of each name.
func (p *jsonReader) object(member func(name []byte) error) error {
	if p.peek() != '{' {
		return p.unexpected("an object")
	}
	p.i++
	if p.peek() == '}' {
		p.i++
		return nil
	}
	for {
		if p.peek() != '"' {
			return p.unexpected("a name")
		}
		name, err := p.string()
		if err != nil {
			return err
		}
		if p.peek() != ':' {
			return p.unexpected("a colon")
		}
		p.i++
		if err := member(name); err != nil {
			return err
		}
		switch p.peek() {
		case ',':
			p.i++
		case '}':
			p.i++
			return nil
		default:
			return p.unexpected("a comma or the object's end")
		}
	}
}

// string reads a quoted string at p.i. The slice it returns is part of p.b.
func (p *jsonReader) string() ([]byte, error) {
	start := p.i + 1
	n := bytes.IndexByte(p.b[start:], '"')
	if n < 0 {
		p.i = len(p.b)
		return nil, errJSONShort
	}
	s := p.b[start : start+n]
	if e := bytes.IndexByte(s, '\\'); e >= 0 {
		return p.unescape(start, start+e, start+n)
	}
	p.i = start + n + 1
	return s, nil
}

// unescape resolves the escapes of the string that begins at start, moving its bytes
// down: no escape is shorter than what it stands for. r is the first backslash, end the
// first quote, which may turn out to be an escaped one.
func (p *jsonReader) unescape(start, r, end int) ([]byte, error) {
	b, w := p.b, r
	for {
		// b[r] is a backslash.
		if r+1 >= len(b) {
			return nil, errJSONShort
		}
		r++
		switch b[r] {
		case '"', '\\', '/', '\'':
			b[w] = b[r]
			r, w = r+1, w+1
		case 'b', 'f', 'n', 'r', 't', '0', 'v':
			b[w] = plainEscape(b[r])
			r, w = r+1, w+1
		case 'u':
			ch, ok := hex4(b, r+1)
			if !ok {
				return nil, p.badEscape(r)
			}
			r += 5
			if utf16.IsSurrogate(ch) {
				low := rune(0)
				if r+1 < len(b) && b[r] == '\\' && b[r+1] == 'u' {
					low, _ = hex4(b, r+2)
				}
				if ch = utf16.DecodeRune(ch, low); ch != utf8.RuneError {
					r += 6
				}
			}
			w += utf8.EncodeRune(b[w:], ch)
		default:
			return nil, p.badEscape(r)
		}
		if r > end { // the quote at end was escaped
			n := bytes.IndexByte(b[r:], '"')
			if n < 0 {
				return nil, errJSONShort
			}
			end = r + n
		}
		n := bytes.IndexByte(b[r:end], '\\')
		if n < 0 {
			w += copy(b[w:], b[r:end])
			p.i = end + 1
			return b[start:w], nil
		}
		w += copy(b[w:], b[r:r+n])
		r += n
	}
}

func (p *jsonReader) badEscape(at int) error {
	return fmt.Errorf("JSON header has an illegal escape at byte %d", at)
}

func plainEscape(ch byte) byte {
	switch ch {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	case 'v':
		return '\v'
	}
	return 0
}

func hex4(b []byte, at int) (rune, bool) {
	if at+4 > len(b) {
		return 0, false
	}
	var n rune
	for _, ch := range b[at : at+4] {
		switch {
		case '0' <= ch && ch <= '9':
			n = n<<4 | rune(ch-'0')
		case 'a' <= ch && ch <= 'f':
			n = n<<4 | rune(ch-'a'+10)
		case 'A' <= ch && ch <= 'F':
			n = n<<4 | rune(ch-'A'+10)
		default:
			return 0, false
		}
	}
	return n, true
}

// scalar reads a value as its text: a string without quotes, a number or true and false
// as they stand, an object or array as it stands; null is nil.
func (p *jsonReader) scalar() ([]byte, error) {
	switch p.peek() {
	case '"':
		s, err := p.string()
		if err == nil && s == nil {
			s = []byte{}
		}
		return s, err
	case 0:
		return nil, errJSONShort
	}
	start := p.i
	if err := p.skip(); err != nil {
		return nil, err
	}
	if s := p.b[start:p.i]; string(s) != "null" {
		return s, nil
	}
	return nil, nil
}

func (p *jsonReader) int32(name []byte) (int32, error) {
	v, err := p.scalar()
	if err != nil || v == nil {
		return 0, err
	}
	n, ok := parseInt(v)
	if !ok || n != int64(int32(n)) {
		return 0, fmt.Errorf("JSON header member %s is no 32-bit integer", name)
	}
	return int32(n), nil
}

// skip passes one value of any kind.
func (p *jsonReader) skip() error {
	depth := 0
	for {
		switch p.peek() {
		case 0:
			return errJSONShort
		case '"':
			if _, err := p.string(); err != nil {
				return err
			}
		case '{', '[':
			if depth++; depth > maxDepth {
				return errors.New("JSON header is nested too deeply")
			}
			p.i++
			continue
		case '}', ']':
			if depth--; depth < 0 {
				return p.unexpected("a value")
			}
			p.i++
		case ',', ':':
			if depth == 0 {
				return p.unexpected("a value")
			}
			p.i++
			continue
		default:
			start := p.i
			for p.i < len(p.b) && isWord(p.b[p.i]) {
				p.i++
			}
			if p.i == start {
				return p.unexpected("a value")
			}
		}
		if depth == 0 {
			return nil
		}
	}
}

func isWord(ch byte) bool {
	return '0' <= ch && ch <= '9' || 'a' <= ch && ch <= 'z' || 'A' <= ch && ch <= 'Z' || ch == '-' || ch == '+' || ch == '.'
}

var visitors = sync.Pool{New: func() any { return new(Visitor) }}

// appendJSONHeader writes the members in alphabetical order, as Apache does.
func appendJSONHeader(dst []byte, code, opaque, flag int32, language Language, remark string, h Header) []byte {
	dst = append(dst, `{"code":`...)
	dst = strconv.AppendInt(dst, int64(code), 10)
	if h != nil {
		dst = append(dst, `,"extFields":{`...)
		v := visitors.Get().(*Visitor)
		*v = Visitor{writing: true, out: dst}
		h.Fields(v)
		dst = append(v.out, '}')
		*v = Visitor{}
		visitors.Put(v)
	}
	dst = append(dst, `,"flag":`...)
	dst = strconv.AppendInt(dst, int64(flag), 10)
	dst = append(dst, `,"language":"`...)
	dst = append(dst, language.String()...)
	dst = append(dst, `","opaque":`...)
	dst = strconv.AppendInt(dst, int64(opaque), 10)
	if remark != "" {
		dst = append(dst, `,"remark":"`...)
		dst = append(appendEscaped(dst, remark), '"')
	}
	return append(dst, `,"serializeTypeCurrentRPC":"JSON","version":513}`...)
}

const hexDigits = "0123456789abcdef"

// appendEscaped appends s as the inside of a JSON string.
func appendEscaped(dst []byte, s string) []byte {
	from := 0
	for i := 0; i < len(s); i++ {
		ch := s[i]
		if ch >= ' ' && ch != '"' && ch != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		switch ch {
		case '"', '\\':
			dst = append(dst, '\\', ch)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[ch>>4], hexDigits[ch&15])
		}
	}
	return append(dst, s[from:]...)
}
