package remoting

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
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
	more, err := p.open()
	for ; more && err == nil; more, err = p.next() {
		var name []byte
		if name, err = p.name(); err != nil {
			break
		}
		if err = c.member(&p, name); err != nil {
			break
		}
	}
	if err == nil && p.peek() != 0 {
		err = p.unexpected("the end")
	}
	return err
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
		return c.extFields(p)
	default:
		err = p.skip()
	}
	return err
}

func (c *Command) extFields(p *jsonReader) error {
	list, there := c.Ext.list[:0], uint64(0)
	more, err := p.open()
	for ; more && err == nil; more, err = p.next() {
		var f field
		if f.name, err = p.name(); err != nil {
			break
		}
		if f.value, err = p.scalar(); err != nil {
			break
		}
		if f.value != nil && len(f.name) > 0 {
			if len(list) == maxFields {
				err = errFields
				break
			}
			list = append(list, f)
			there |= nameBit(f.name)
		}
	}
	c.Ext.list, c.Ext.there = list, there
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

// open passes an object's beginning and reports whether it has members.
func (p *jsonReader) open() (more bool, err error) {
	if p.peek() != '{' {
		return false, p.unexpected("an object")
	}
	p.i++
	if p.peek() == '}' {
		p.i++
		return false, nil
	}
	return true, nil
}

// next passes what follows a member and reports whether another comes.
func (p *jsonReader) next() (more bool, err error) {
	switch p.peek() {
	case ',':
		p.i++
		return true, nil
	case '}':
		p.i++
		return false, nil
	}
	return false, p.unexpected("a comma or the object's end")
}

// name reads a member's name and the colon after it.
func (p *jsonReader) name() ([]byte, error) {
	if p.peek() != '"' {
		return nil, p.unexpected("a name")
	}
	name, err := p.string()
	if err != nil {
		return nil, err
	}
	if p.peek() != ':' {
		return nil, p.unexpected("a colon")
	}
	p.i++
	return name, nil
}

// special returns where in b, from i on, the first quote or backslash is; len(b) if none.
// It looks at eight bytes at once: most strings of a header are short.
func special(b []byte, i int) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		q, s := x^('"'*ones), x^('\\'*ones)
		if hit := ((q-ones)&^q | (s-ones)&^s) & tops; hit != 0 {
			return i + bits.TrailingZeros64(hit)>>3
		}
	}
	for ; i < len(b); i++ {
		if b[i] == '"' || b[i] == '\\' {
			return i
		}
	}
	return i
}

// string reads a quoted string at p.i. The slice it returns is part of p.b.
func (p *jsonReader) string() ([]byte, error) {
	start := p.i + 1
	i := special(p.b, start)
	if i >= len(p.b) {
		p.i = len(p.b)
		return nil, errJSONShort
	}
	if p.b[i] == '\\' {
		return p.unescape(start, i)
	}
	p.i = i + 1
	return p.b[start:i], nil
}

// unescape resolves the escapes of the string that begins at start, moving its bytes
// down: no escape is shorter than what it stands for. r is its first backslash.
func (p *jsonReader) unescape(start, r int) ([]byte, error) {
	b, w := p.b, r
	for {
		// b[r] is a backslash.
		if r++; r >= len(b) {
			return nil, errJSONShort
		}
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
			if ch < utf8.RuneSelf {
				b[w] = byte(ch)
				w++
				break
			}
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
		i := special(b, r)
		w += copy(b[w:], b[r:i])
		if r = i; r >= len(b) {
			return nil, errJSONShort
		}
		if b[r] == '"' {
			p.i = r + 1
			return b[start:w], nil
		}
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
	p.peek()
	i, n := p.i, int32(0)
	for ; i < len(p.b) && i < p.i+9 && p.b[i]-'0' <= 9; i++ {
		n = n*10 + int32(p.b[i]-'0')
	}
	if i > p.i && i < len(p.b) && (p.b[i] == ',' || p.b[i] == '}') {
		p.i = i
		return n, nil
	}
	v, err := p.scalar()
	if err != nil || v == nil {
		return 0, err
	}
	long, ok := parseInt(v)
	if !ok || long != int64(int32(long)) {
		return 0, fmt.Errorf("JSON header member %s is no 32-bit integer", name)
	}
	return int32(long), nil
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
