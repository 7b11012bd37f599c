package filter

import "strings"

type tokenKind uint8

const (
	tokenEnd    tokenKind = iota
	tokenSymbol           // also a word of the language, in capitals
	tokenName             // of a property
	tokenText             // without its quotes
	tokenNumber
)

type sqlToken struct {
	kind tokenKind
	text string
	at   int // in bytes
}

// words are the language's own, in any case.
var words = map[string]bool{
	"NOT": true, "AND": true, "OR": true, "BETWEEN": true, "IN": true, "TRUE": true, "FALSE": true, "NULL": true,
	"IS": true, "CONTAINS": true, "STARTSWITH": true, "ENDSWITH": true,
}

// hints are what to write instead of what other dialects have.
var hints = map[string]string{
	"LIKE": "there is no LIKE, but CONTAINS, STARTSWITH and ENDSWITH", "like": "there is no LIKE, but CONTAINS, STARTSWITH and ENDSWITH",
	"!": "not equal is <>", "&": "write AND", "|": "write OR", `"`: "texts stand in single quotes",
	"*": "there is no arithmetic", "/": "there is no arithmetic", "%": "there is no arithmetic",
	".": "the name of a property has letters, digits, _ and $ only",
}

type sqlLexer struct {
	text string
	pos  int
}

// next is the next token, or why there is none.
func (l *sqlLexer) next() (t sqlToken, reason string) {
	if at, closed := l.skip(); !closed {
		return sqlToken{at: at}, "this comment has no end"
	}
	t.at = l.pos
	if l.pos == len(l.text) {
		return t, ""
	}
	switch c := l.text[l.pos]; {
	case c == '\'':
		return l.quoted()
	case isDigit(c) || c == '.' && l.pos+1 < len(l.text) && isDigit(l.text[l.pos+1]):
		return l.number()
	case isLetter(c):
		for l.pos < len(l.text) && (isLetter(l.text[l.pos]) || isDigit(l.text[l.pos])) {
			l.pos++
		}
		t.kind, t.text = tokenName, l.text[t.at:l.pos]
		if len(t.text) <= len("STARTSWITH") {
			if word := strings.ToUpper(t.text); words[word] {
				t.kind, t.text = tokenSymbol, word
			}
		}
		return t, ""
	}
	for _, symbol := range [...]string{"<>", "<=", ">=", "=", "<", ">", "(", ")", ",", "+", "-"} {
		if strings.HasPrefix(l.text[l.pos:], symbol) {
			l.pos += len(symbol)
			t.kind, t.text = tokenSymbol, symbol
			return t, ""
		}
	}
	reason = "this character has no meaning here"
	if hint := hints[l.text[l.pos:l.pos+1]]; hint != "" {
		reason += "; " + hint
	}
	return t, reason
}

// skip passes blanks and comments. A comment of two dashes ends with its line; without a
// line's end behind them they are two signs.
func (l *sqlLexer) skip() (at int, closed bool) {
	for l.pos < len(l.text) {
		rest := l.text[l.pos:]
		switch {
		case strings.IndexByte(" \t\n\r\f", rest[0]) >= 0:
			l.pos++
		case strings.HasPrefix(rest, "--"):
			end := strings.IndexAny(rest, "\n\r")
			if end < 0 {
				return l.pos, true
			}
			l.pos += end + 1
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				return l.pos, false
			}
			l.pos += 2 + end + 2
		default:
			return l.pos, true
		}
	}
	return l.pos, true
}

// comment tells whether t begins a comment that ends with the text, where an expression
// may end.
func (l *sqlLexer) comment(t sqlToken) bool { return strings.HasPrefix(l.text[t.at:], "--") }

// quoted reads a text; two quotes in it are one.
func (l *sqlLexer) quoted() (sqlToken, string) {
	t := sqlToken{kind: tokenText, at: l.pos}
	doubled := false
	for i := l.pos + 1; i < len(l.text); i++ {
		switch {
		case l.text[i] != '\'':
		case i+1 < len(l.text) && l.text[i+1] == '\'':
			doubled = true
			i++
		default:
			t.text, l.pos = l.text[l.pos+1:i], i+1
			if doubled {
				t.text = strings.ReplaceAll(t.text, "''", "'")
			}
			return t, ""
		}
	}
	return t, "this text has no closing quote"
}

// number reads 12, 12L, 1.5, .5, 5. and 1e3.
func (l *sqlLexer) number() (sqlToken, string) {
	t := sqlToken{kind: tokenNumber, at: l.pos}
	digits := func() {
		for l.pos < len(l.text) && isDigit(l.text[l.pos]) {
			l.pos++
		}
	}
	digits()
	whole := l.pos
	if l.pos < len(l.text) && l.text[l.pos] == '.' {
		l.pos++
		digits()
	}
	if e := l.exponent(); e > 0 {
		l.pos += e
		digits()
	}
	if l.pos == whole {
		if l.text[t.at] == '0' && whole > t.at+1 {
			return t, "a whole number does not begin with 0"
		}
		if l.text[t.at] != '0' && l.pos < len(l.text) && l.text[l.pos]|0x20 == 'l' {
			l.pos++
		}
	}
	t.text = l.text[t.at:l.pos]
	return t, ""
}

// exponent is the length of an e and its sign, if digits follow.
func (l *sqlLexer) exponent() int {
	rest := l.text[l.pos:]
	if rest == "" || rest[0]|0x20 != 'e' {
		return 0
	}
	n := 1
	if len(rest) > 1 && (rest[1] == '+' || rest[1] == '-') {
		n++
	}
	if n < len(rest) && isDigit(rest[n]) {
		return n
	}
	return 0
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isLetter(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == '$'
}
