package remoting

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// lenient reads JSON and what Apache's JSON library writes and takes beside it. The first
// thing that cannot be read sets err; from then on every method returns zero at once.
type lenient struct {
	b   []byte
	i   int
	err error
}

var errBodyShort = errors.New("it ends within a value")

func (r *lenient) fail(want string) {
	if r.err != nil {
		return
	}
	if r.i >= len(r.b) {
		r.err = errBodyShort
		return
	}
	r.err = fmt.Errorf("%q at byte %d where %s was expected", r.b[r.i], r.i, want)
}

// peek passes blanks and returns the next byte, 0 at the end and after an error.
func (r *lenient) peek() byte {
	if r.err != nil {
		return 0
	}
	for r.i < len(r.b) {
		switch ch := r.b[r.i]; ch {
		case ' ', '\t', '\n', '\r':
			r.i++
		default:
			return ch
		}
	}
	return 0
}

// null passes a null and reports whether there was one.
func (r *lenient) null() bool {
	if r.peek() != 'n' || len(r.b)-r.i < 4 || string(r.b[r.i:r.i+4]) != "null" {
		return r.err != nil
	}
	r.i += 4
	return true
}

func (r *lenient) colon() bool {
	if r.peek() != ':' {
		r.fail("a colon")
		return false
	}
	r.i++
	return true
}

// object reads {…}; entry reads key, colon and value of one member.
func (r *lenient) object(entry func()) { r.sequence('{', '}', "an object", entry) }

// array reads […].
func (r *lenient) array(element func()) { r.sequence('[', ']', "an array", element) }

func (r *lenient) sequence(opening, closing byte, what string, next func()) {
	if r.peek() != opening {
		r.fail(what)
		return
	}
	r.i++
	for first := true; ; first = false {
		ch := r.peek()
		if ch == closing {
			r.i++
			return
		}
		if !first {
			if ch != ',' {
				r.fail("a comma or the end of " + what)
				return
			}
			r.i++
			if r.peek() == closing { // a comma too many
				r.i++
				return
			}
		}
		if next(); r.err != nil {
			return
		}
	}
}

// key reads a member's name: quoted either way, or bare.
func (r *lenient) key() []byte {
	if ch := r.peek(); ch == '"' || ch == '\'' {
		return r.quoted()
	}
	start := r.i
	for r.i < len(r.b) && r.err == nil && isBare(r.b[r.i]) {
		r.i++
	}
	if r.i == start {
		r.fail("a name")
		return nil
	}
	return r.b[start:r.i]
}

func isBare(ch byte) bool {
	switch ch {
	case ' ', '\t', '\n', '\r', ':', ',', '{', '}', '[', ']', '"', '\'':
		return false
	}
	return true
}

// quoted reads a string in quotes of either kind.
func (r *lenient) quoted() []byte {
	quote := r.b[r.i]
	r.i++
	start := r.i
	for ; r.i < len(r.b); r.i++ {
		switch r.b[r.i] {
		case quote:
			r.i++
			return r.b[start : r.i-1]
		case '\\':
			return r.escaped(start, quote)
		}
	}
	r.fail("")
	return nil
}

// escaped reads the rest of a string from its first escape on.
func (r *lenient) escaped(start int, quote byte) []byte {
	s := append([]byte(nil), r.b[start:r.i]...)
	for r.i < len(r.b) {
		ch := r.b[r.i]
		r.i++
		switch {
		case ch == quote:
			return s
		case ch != '\\':
			s = append(s, ch)
			continue
		}
		if r.i == len(r.b) {
			break
		}
		ch = r.b[r.i]
		switch ch {
		case '"', '\\', '/', '\'':
			s = append(s, ch)
			r.i++
		case 'b', 'f', 'n', 'r', 't', 'v', '0':
			s = append(s, plainEscape(ch))
			r.i++
		case 'u':
			code, ok := hex4(r.b, r.i+1)
			if !ok {
				r.fail("an escape")
				return nil
			}
			r.i += 5
			if utf16.IsSurrogate(code) {
				low := rune(0)
				if r.i+1 < len(r.b) && r.b[r.i] == '\\' && r.b[r.i+1] == 'u' {
					low, _ = hex4(r.b, r.i+2)
				}
				if code = utf16.DecodeRune(code, low); code != utf8.RuneError {
					r.i += 6
				}
			}
			s = utf8.AppendRune(s, code)
		default:
			r.fail("an escape")
			return nil
		}
	}
	r.fail("")
	return nil
}

// word reads a string or a bare word.
func (r *lenient) word() []byte {
	switch r.peek() {
	case '"', '\'':
		return r.quoted()
	case '{', '[':
		r.fail("a plain value")
		return nil
	}
	return r.key()
}

func (r *lenient) text() string { return string(r.word()) }

func (r *lenient) int() int64 {
	at := r.i
	w := r.word()
	if r.err != nil || len(w) == 0 {
		return 0
	}
	if n, ok := parseInt(w); ok {
		return n
	}
	if f, err := strconv.ParseFloat(string(w), 64); err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<62 {
		return int64(f)
	}
	r.i = at
	r.fail("a number")
	return 0
}

func (r *lenient) float() float64 {
	at := r.i
	w := r.word()
	if r.err != nil || len(w) == 0 {
		return 0
	}
	f, err := strconv.ParseFloat(string(w), 64)
	if err != nil {
		r.i = at
		r.fail("a number")
	}
	return f
}

func (r *lenient) bool() bool {
	at := r.i
	w := r.word()
	switch {
	case r.err != nil || len(w) == 0:
	case equalFold(w, "true"), string(w) == "1":
		return true
	case !equalFold(w, "false") && string(w) != "0":
		r.i = at
		r.fail("true or false")
	}
	return false
}

// skip passes one value of any kind, maps with objects as keys included.
func (r *lenient) skip() {
	depth := 0
	for {
		switch ch := r.peek(); ch {
		case 0:
			r.fail("a value")
			return
		case '"', '\'':
			r.quoted()
		case '{', '[':
			if depth++; depth > maxDepth {
				r.fail("less nesting")
				return
			}
			r.i++
			continue
		case '}', ']':
			if depth--; depth < 0 {
				r.fail("a value")
				return
			}
			r.i++
		case ',', ':':
			if depth == 0 {
				r.fail("a value")
				return
			}
			r.i++
			continue
		default:
			r.key()
		}
		if depth == 0 || r.err != nil {
			return
		}
	}
}
