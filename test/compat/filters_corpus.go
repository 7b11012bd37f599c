package main

import (
	"math/rand/v2"
	"regexp"
	"strings"

	"github.com/bolidemq/bolide/internal/wire/message"
)

// Sizes of a new corpus.
const (
	corpusMessages = 60
	corpusValid    = 700 // expressions that follow the grammar, if not all its rules
	corpusDamaged  = 250 // and others
)

// newCorpus makes messages and expressions, always the same.
func newCorpus() corpus {
	g := generator{rand.New(rand.NewPCG(55, 92))}
	c := corpus{Made: "go run ./test/compat --suites filters --server apache --record"}
	for range corpusMessages {
		c.Messages = append(c.Messages, g.message())
	}
	seen := map[string]bool{}
	add := func(text string) bool {
		if seen[text] {
			return false
		}
		seen[text] = true
		c.Expressions = append(c.Expressions, expression{Text: text})
		return true
	}
	for _, text := range oddities {
		add(text)
	}
	for n := 0; n < corpusValid; {
		if add(g.condition(g.IntN(4))) {
			n++
		}
	}
	for n := 0; n < corpusDamaged; {
		if add(g.damage(g.condition(g.IntN(3)))) {
			n++
		}
	}
	return c
}

// oddities are what a generator would rarely make.
var oddities = []string{
	"a = --1", "a = 5 -- end", "a = -- 1\n5", "a = --5\r", "a /* x ** / */ = 5", "a = 5 /* open", "a = /**/ 5", "a = 5 /*/ 6",
	"a = 007", "a = 5.", "a = .5", "a = 5.E0", "a = 5e+0", "a = 5l", "a = 5L", "a = 5LL", "a = 0L", "a = 5.0L", "a = 0", "a = 00", "a = 0.0",
	"a = 1e400", "a = 1e-400", "a = 4.9e-324", "a = 1.7976931348623157e308", "a > 9223372036854775807", "a > 9223372036854775808",
	"a = -9223372036854775808", "a = -9223372036854775807", "a = -2147483648", "a = 2147483648", "a >= 2147483647",
	"a = ''", "a = ''''", "a = 'it''s'", "a = 'x' 'y'", "a = 'x''", "a = '\n'", "b = 'größe'", "größe = 1", "a = ٥", "'größe' = b",
	"a = NULL", "NULL = a", "NULL IS NULL", "NOT NULL", "NULL", "TRUE = TRUE", "TRUE = 1", "1 = TRUE", "TRUE = a", "a = TRUE", "TRUE <> a", "'true' = TRUE",
	"a", "NOT a", "NOT NOT a", "a AND b", "a OR TRUE", "+a = 5", "-a = 5", "- - 5 = a", "-TRUE = a", "-'5' = a", "+'5' = a", "a > -b", "-a IS NULL",
	"(a) IN ('5')", "(a = 5) IN ('5')", "a IN ('5',)", "a IN ()", "a IN (5)", "5 IN ('5')", "+a IN ('5')", "-a IN ('5')", "a IN ('5') = TRUE",
	"a BETWEEN 6 AND 5", "a BETWEEN 5 AND 5", "a BETWEEN -5 AND -6", "a BETWEEN '5' AND '6'", "a BETWEEN NULL AND 5", "a BETWEEN 5 AND 5.5", "a BETWEEN 5.5 AND 5",
	"a NOT BETWEEN 6 AND 5", "5 BETWEEN a AND 6", "a BETWEEN b AND c", "a BETWEEN TRUE AND 5", "a BETWEEN (5) AND (6)", "a BETWEEN 5 AND 6 AND b = 'x'",
	"a CONTAINS ''", "a NOT CONTAINS ''", "NOT a CONTAINS '5'", "NOT (a CONTAINS '5')", "a CONTAINS b", "5 CONTAINS '5'", "'abc' CONTAINS 'b'", "(a = 5) CONTAINS 'x'",
	"a STARTSWITH '5' = TRUE", "a NOT STARTSWITH '5'", "a ENDSWITH '5'", "a NOT ENDSWITH '5'", "absent CONTAINS 'x'", "absent NOT CONTAINS 'x'",
	"a = b = TRUE", "a = b = c", "(a = 5) = (b = 'x')", "a > 5 > 6", "a = 5 IS NULL", "a IS NULL IS NULL", "(a IS NULL) IS NOT NULL", "a IS", "a IS NOT", "a NOT 5", "a NOT NULL",
	"absent = other", "absent = a", "a = absent", "absent <> a", "a <> absent", "absent > 5", "5 > absent", "absent IS NULL", "absent IS NOT NULL",
	"a = 5 OR a = 'abc'", "a = 'abc' OR a = 5", "NOT (a = 5)", "a <> 5", "a > 5 OR TRUE", "TRUE OR a > 5", "FALSE AND a > 5", "a > 5 AND FALSE",
	"NOT a = 5", "NOT a = TRUE", "NOT a IS NULL", "NOT (a) IS NULL", "a LIKE 'x%'", "a != 5", "a == 5", "a = 5 && b = 'x'", "a = \"x\"", "a.b = 5", "a-b = 5",
	"", " ", "()", "(", ")", "a =", "= 5", "5", "'x'", "a = 5)", "(a = 5", "a = 5 b", "a = 5;", "a = 5 AND", "AND a = 5", "*", "a = *", "a = 5\x0b", "a\u00a0= 5",
	"TAGS = 'x'", "TAGS IS NULL", "KEYS IS NULL", "tags = 'x'", "a > 5.0 and B = 'x'", "Between = 5", "a iN ('5')", "nuLL is nUll", "$x_1 = 5", "_ = 5",
}

// generator makes random text from a fixed seed.
type generator struct{ *rand.Rand }

func (g generator) of(list ...string) string { return list[g.IntN(len(list))] }

var values = []string{"5", "6", "-3", "+8", "05", "5.0", "5.5", "-0.0", "1e1", "abc", "x", "true", "TRUE", "false", "NaN", "Infinity", "-Infinity",
	"0x10", "0x1p3", " 7 ", "5f", "5d", "5L", "1_000", "3000000000", "-3000000000", "2147483647", "2147483648", "-2147483648", "9223372036854775807",
	"9223372036854775808", "99999999999999999999", "٥", "５", "größe", "it's", "a,b", "5 5", ".", "-", "+", "e5", "5e", "inf", "nan"}

// message is the properties of one: most have a, fewer b, c and d.
func (g generator) message() string {
	var p message.Properties
	for i, name := range []string{"a", "b", "c", "d", "TAGS"} {
		if g.IntN(10) < 9-i*2 {
			p = p.With(name, g.of(values...))
		}
	}
	return string(p)
}

func (g generator) property() string {
	return g.of("a", "a", "a", "b", "b", "c", "d", "TAGS", "absent", "$x_1")
}

func (g generator) number() string {
	return g.of("5", "6", "0", "7", "8", "5L", "2147483647", "2147483648", "3000000000", "9223372036854775807", "5.0", "5.5", ".5", "1e1", "10", "16", "-3", "-5.5", "+5", "-2147483648", "- 3")
}

func (g generator) literalText() string {
	return g.of("'5'", "'abc'", "'x'", "'true'", "'größe'", "'it''s'", "'5.0'", "''", "'NaN'", "' 7 '", "'b'")
}

func (g generator) operand(depth int) string {
	switch g.IntN(12) {
	case 0, 1, 2, 3, 4, 5:
		return g.property()
	case 6, 7, 8:
		return g.number()
	case 9:
		return g.literalText()
	case 10:
		return g.of("TRUE", "FALSE", "NULL", "true", "- a", "+b")
	}
	if depth > 0 {
		return "(" + g.condition(depth-1) + ")"
	}
	return g.property()
}

func (g generator) negated(word string) string {
	if g.IntN(2) == 0 {
		return " NOT " + word + " "
	}
	return " " + word + " "
}

// condition is a condition that nests depth levels at most.
func (g generator) condition(depth int) string {
	if depth > 0 {
		switch g.IntN(6) {
		case 0, 1:
			return g.condition(depth-1) + g.of(" AND ", " and ") + g.condition(depth-1)
		case 2, 3:
			return g.condition(depth-1) + g.of(" OR ", " or ") + g.condition(depth-1)
		case 4:
			return g.of("NOT "+g.condition(depth-1), "NOT("+g.condition(depth-1)+")")
		case 5:
			return "(" + g.condition(depth-1) + ")"
		}
	}
	switch g.IntN(10) {
	case 0, 1, 2:
		return g.property() + g.of(" = ", " <> ", "=", ">", " >= ", " < ", "<=") + g.number()
	case 3:
		return g.operand(depth) + g.of(" = ", " <> ", " > ", " <= ") + g.operand(depth)
	case 4:
		return g.property() + g.of(" = ", " <> ") + g.of(g.literalText(), "TRUE", "FALSE")
	case 5:
		return g.operand(depth) + g.of(" IS NULL", " IS NOT NULL")
	case 6:
		return g.operand(depth) + g.negated("BETWEEN") + g.number() + " AND " + g.of(g.number(), g.property())
	case 7:
		list := g.literalText()
		for range g.IntN(12) {
			list += ", " + g.literalText()
		}
		return g.property() + g.negated("IN") + "(" + list + ")"
	case 8:
		return g.operand(depth) + g.negated(g.of("CONTAINS", "STARTSWITH", "ENDSWITH")) + g.literalText()
	}
	return g.of("TRUE", "FALSE", "NULL", g.property())
}

var corpusToken = regexp.MustCompile(`'[^']*'|\w+|\S`)

// damage takes a token out, doubles one, or puts another in.
func (g generator) damage(text string) string {
	tokens := corpusToken.FindAllString(text, -1)
	at := g.IntN(len(tokens))
	switch g.IntN(3) {
	case 0:
		tokens = append(tokens[:at:at], tokens[at+1:]...)
	case 1:
		tokens = append(tokens[:at+1:at+1], tokens[at:]...)
	case 2:
		extra := g.of("(", ")", ",", "=", "<>", "-", "+", "NOT", "AND", "OR", "IS", "IN", "BETWEEN", "CONTAINS", "'", "''", "!", "LIKE", "*", "5", "a", "NULL", "--", "/*")
		tokens = append(tokens[:at:at], append([]string{extra}, tokens[at:]...)...)
	}
	return strings.Join(tokens, " ")
}
