package filter

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
)

type kind uint8

const (
	kindNull kind = iota
	kindBoolean
	kindInt  // a number literal within 32 bits: what is compared with it has to be, too
	kindLong // a longer one
	kindDouble
	kindText
	kindFailed // a text could not be read as the number that it is compared with
)

// value is what a part of an expression is for one message. Failed is stronger than NULL:
// it ends the whole question, and the message does not match.
type value struct {
	kind kind
	n    int64 // of numbers; 1 is TRUE
	f    float64
	s    string
}

func textValue(s string) value { return value{kind: kindText, s: s} }

func boolValue(b bool) value {
	if b {
		return value{kind: kindBoolean, n: 1}
	}
	return value{kind: kindBoolean}
}

func (v *value) number() bool { return v.kind >= kindInt && v.kind <= kindDouble }

func (v *value) float() float64 {
	if v.kind == kindDouble {
		return v.f
	}
	return float64(v.n)
}

// number reads a literal, or says why it is none.
func number(text string) (value, string) {
	if strings.ContainsAny(text, ".eE") {
		f, err := strconv.ParseFloat(text, 64)
		if err != nil || f == 0 {
			return value{}, fmt.Sprintf("a number with a point is between %g and %g", math.SmallestNonzeroFloat64, math.MaxFloat64)
		}
		return value{kind: kindDouble, f: f}, ""
	}
	n, err := strconv.ParseInt(strings.TrimRight(text, "lL"), 10, 64)
	switch {
	case err != nil:
		return value{}, fmt.Sprintf("a whole number is at most %d", math.MaxInt64)
	case n > math.MaxInt32:
		return value{kind: kindLong, n: n}, ""
	}
	return value{kind: kindInt, n: n}, ""
}

// compare orders two values, neither of which is NULL. A text becomes what the other side
// is, or else there is no order at all: ok is false. What can't be equal, a number and a
// boolean, is -1, which ends up as "not equal".
func compare(l, r value) (c int, ok bool) {
	ok = true
	switch {
	case l.kind == kindText && r.kind == kindText:
		return strings.Compare(l.s, r.s), true
	case l.kind == kindText:
		l, ok = l.to(r.kind)
	case r.kind == kindText && l.kind == kindBoolean:
		return 0, false
	case r.kind == kindText:
		r, ok = r.to(l.kind)
	case (l.kind == kindBoolean) != (r.kind == kindBoolean):
		return -1, true
	}
	if l.kind == kindDouble || r.kind == kindDouble {
		return compareFloats(l.float(), r.float()), ok
	}
	switch {
	case l.n < r.n:
		return -1, ok
	case l.n > r.n:
		return 1, ok
	}
	return 0, ok
}

// compareFloats is Java's order: -0 is less than 0, and NaN is the greatest and equals
// itself.
func compareFloats(l, r float64) int {
	switch {
	case l < r:
		return -1
	case l > r:
		return 1
	}
	rank := func(f float64) int {
		switch {
		case f != f:
			return 1
		case f == 0 && math.Signbit(f):
			return -1
		}
		return 0
	}
	return rank(l) - rank(r)
}

// to reads a text as another kind, as Java's valueOf does.
func (v *value) to(k kind) (value, bool) {
	switch k {
	case kindBoolean:
		return boolValue(strings.EqualFold(v.s, "true")), true
	case kindInt:
		n, ok := javaInteger(v.s, math.MinInt32, math.MaxInt32)
		return value{kind: k, n: n}, ok
	case kindLong:
		n, ok := javaInteger(v.s, math.MinInt64, math.MaxInt64)
		return value{kind: k, n: n}, ok
	}
	f, ok := javaDouble(v.s)
	return value{kind: kindDouble, f: f}, ok
}

// javaInteger reads a sign and decimal digits, of any script.
func javaInteger(s string, least, most int64) (int64, bool) {
	digits := s
	if s != "" && (s[0] == '-' || s[0] == '+') {
		digits = s[1:]
	}
	if digits == "" {
		return 0, false
	}
	var n int64 // negative, since that side reaches further
	for _, r := range digits {
		d := digitOf(r)
		if d < 0 || n < (math.MinInt64+d)/10 {
			return 0, false
		}
		n = n*10 - d
	}
	if s[0] != '-' {
		if n == math.MinInt64 {
			return 0, false
		}
		n = -n
	}
	return n, n >= least && n <= most
}

// digitOf is the value of a decimal digit, -1 for everything else. Java reads 16 bits at a
// time and so knows no digits beyond them.
func digitOf(r rune) int64 {
	if r < 0x80 {
		if r >= '0' && r <= '9' {
			return int64(r - '0')
		}
		return -1
	}
	for _, run := range unicode.Nd.R16 {
		if rune(run.Lo) <= r && r <= rune(run.Hi) {
			return int64(r-rune(run.Lo)) % 10
		}
	}
	return -1
}

// javaDouble reads what Java's Double.valueOf does: blanks around, a suffix f or d,
// hexadecimal digits with a binary exponent, NaN and Infinity.
func javaDouble(s string) (float64, bool) {
	s = strings.TrimFunc(s, func(r rune) bool { return r <= ' ' })
	digits := strings.TrimLeft(s, "+-")
	if len(s)-len(digits) > 1 || digits == "" {
		return 0, false
	}
	switch digits {
	case "NaN":
		return math.NaN(), true
	case "Infinity":
		if s[0] == '-' {
			return math.Inf(-1), true
		}
		return math.Inf(1), true
	}
	hex := len(digits) > 2 && digits[0] == '0' && digits[1]|0x20 == 'x'
	if last := digits[len(digits)-1] | 0x20; last == 'd' || last == 'f' {
		// In a hexadecimal number it is a suffix too, since an exponent must come before.
		s = s[:len(s)-1]
	}
	// Go's own syntax has more: underscores, inf, and in hexadecimal numbers no p.
	if strings.ContainsAny(s, "_iIyY") || !hex && strings.ContainsAny(s, "nNxXpP") || hex && !strings.ContainsAny(s, "pP") {
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && err.(*strconv.NumError).Err == strconv.ErrRange {
		err = nil
	}
	return f, err == nil
}
