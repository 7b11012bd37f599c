package filter

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/wire/message"
)

// properties reads "a=1 b=x" into the stored form.
func properties(text string) message.Properties {
	var p []byte
	for _, pair := range strings.Fields(text) {
		name, value, _ := strings.Cut(pair, "=")
		p = message.AppendProperty(p, name, strings.ReplaceAll(value, "~", " "))
	}
	return message.Properties(p)
}

func TestSQL92(t *testing.T) {
	for _, c := range []struct {
		text, props string
		want        bool
	}{
		// Numbers: a property is read as what the literal is.
		{"a = 5", "a=5", true}, {"a = 5", "a=+5", true}, {"a = 5", "a=05", true}, {"a = 5", "a=5.0", false},
		{"a = 5", "a=x", false}, {"a = 5", "", false}, {"a = 5.0", "a=5", true}, {"a = 5e0", "a=~5.00f~", true},
		{"a > 5", "a=6", true}, {"a > 5", "a=5", false}, {"a >= 5", "a=5", true}, {"a < 5", "a=4", true}, {"a <= 5", "a=6", false},
		{"5 < a", "a=6", true}, {"a > -5", "a=-4", true}, {"a = - -5", "a=5", true}, {"a = +5", "a=5", true},
		{"a > 5", "a=3000000000", false}, // not in 32 bits, as the literal is
		{"a > 2147483648", "a=3000000000", true}, {"a > 5L", "a=6", true},
		{"a > 5.5", "a=Infinity", true}, {"a > 5.5", "a=NaN", true}, {"a > 5.5", "a=0x1p3", true}, {"a > 5.5", "a=1_0", false},
		{"a > b", "a=10 b=9", true}, {"a > b", "a=10 b=x", false}, {"a > -b", "a=1 b=1", false},
		{"a = ٣", "a=3", false},
		{"a = 3", "a=٣", true},
		// A text that is no number ends the whole question.
		{"a = 1 OR TRUE", "a=x", false}, {"TRUE OR a = 1", "a=x", true}, {"NOT (a = 1)", "a=x", false},
		// Texts and booleans.
		{"a = 'x'", "a=x", true}, {"a = 'it''s'", "a=it's", true}, {"a <> 'x'", "a=y", true}, {"a <> 'x'", "", false},
		{"a = TRUE", "a=tRuE", true}, {"a = FALSE", "a=x", true}, {"TRUE = a", "a=true", false}, {"1 = TRUE", "", false},
		{"TRUE", "", true}, {"FALSE", "", false}, {"NULL", "", false}, {"a", "a=true", false}, {"NOT a", "a=true", true}, {"NOT a", "", false},
		{"a = b", "a=x b=x", true}, {"a = b", "", true}, {"a = b", "a=x", false},
		{"'5' = 5", "", true}, {"(a = 1) = (b = 2)", "a=1 b=2", true},
		// NULL.
		{"a IS NULL", "", true}, {"a IS NULL", "a=1", false}, {"a IS NOT NULL", "a=1", true}, {"a is not null", "", false},
		{"(a = 1) IS NULL", "", true}, {"NOT (a IS NULL)", "a=1", true},
		{"a = 1 AND b = 1", "b=1", false}, {"a = 1 OR b = 1", "b=1", true}, {"NOT (a = 1 OR b = 1)", "b=2", false},
		{"(a = 1 AND b = 1) IS NULL", "b=1", true}, {"(a = 1 AND b = 1) IS NULL", "b=2", false},
		// BETWEEN.
		{"a BETWEEN 1 AND 3", "a=3", true}, {"a BETWEEN 1 AND 3", "a=4", false}, {"a NOT BETWEEN 1 AND 3", "a=4", true},
		{"a NOT BETWEEN 3 AND 1", "a=2", true}, {"a NOT BETWEEN 1 AND 3", "", false}, {"a BETWEEN b AND 3", "a=2 b=1", true},
		// IN.
		{"a IN ('x', 'y')", "a=y", true}, {"a IN ('x')", "a=y", false}, {"a NOT IN ('x')", "a=y", true}, {"a NOT IN ('x')", "", false},
		{"a IN ('1','2','3','4','5','6','7','8','9')", "a=9", true}, {"a NOT IN ('1','2','3','4','5','6','7','8','9')", "a=9", false},
		// CONTAINS and its kin.
		{"a CONTAINS 'bc'", "a=abcd", true}, {"a CONTAINS ''", "a=abcd", false}, {"a NOT CONTAINS ''", "a=abcd", false},
		{"a NOT CONTAINS 'x'", "a=abcd", true}, {"a NOT CONTAINS 'x'", "", false}, {"NOT (a CONTAINS 'x')", "", true},
		{"a STARTSWITH 'ab'", "a=abcd", true}, {"a NOT STARTSWITH 'ab'", "a=abcd", false}, {"a ENDSWITH 'cd'", "a=abcd", true},
		{"a NOT ENDSWITH 'cd'", "a=abcd", false}, {"5 CONTAINS '5'", "", false},
		// Binding: NOT before comparisons, AND before OR.
		{"NOT a = TRUE", "a=x", true}, {"a = 1 OR b = 1 AND c = 1", "a=1", true}, {"(a = 1 OR b = 1) AND c = 1", "a=1", false},
		{"a = 1 = TRUE", "a=1", true},
		// Words in any case, names in their own; comments and blanks.
		{"a BeTwEeN 1 aNd 3", "a=2", true}, {"A = 1", "a=1", false}, {"$a_1 = 1", "$a_1=1", true},
		{"a/* x */=--y\n1", "a=1", true}, {"a = 1 -- and so on", "a=1", true}, {"a = --1", "a=1", true}, {"a\t=\f1\r\n", "a=1", true},
		// What the protocol itself keeps as properties.
		{"TAGS IS NOT NULL AND TAGS IN ('x')", "TAGS=x", true},
	} {
		e, err := Compile(KindSQL92, c.text)
		if err != nil {
			if c.want {
				t.Errorf("%s: %v", c.text, err)
			}
			continue
		}
		if got := e.Match(properties(c.props)); got != c.want {
			t.Errorf("%s of %s: %v", c.text, c.props, got)
		}
		if e.MatchesAll() || !e.MatchTagsCode(1<<40) || !e.ByProperties() || e.Text() != c.text || e.Kind() != KindSQL92 {
			t.Errorf("%s: what an expression says of itself", c.text)
		}
	}
}

// A syntax error says where it is, what stands there and why it can't (R104).
func TestSQL92Errors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "at its end: a property, a value, NOT or ( is expected"},
		{"a =", "at its end: a property"},
		{"a = 1 AND", "at its end"},
		{"(a = 1", "at its end: ) is expected"},
		{"a = 1)", `at position 6, ")": nothing may follow`},
		{"a = 1 b", `at position 7, "b": nothing may follow`},
		{"name LIKE 'x%'", `at position 6, "LIKE 'x%'": nothing may follow here; there is no LIKE, but CONTAINS`},
		{"a != 1", `at position 3, "!= 1": this character has no meaning here; not equal is <>`},
		{"a == 1", `at position 4, "= 1"`},
		{"a = 1 && b = 2", `at position 7, "&& b = 2": this character has no meaning here; write AND`},
		{`a = "x"`, "texts stand in single quotes"},
		{"a.b = 1", `at position 2, ".b = 1"`},
		{"größer = 1", `at position 3, "ößer = 1"`},
		{"a = 'x", `at position 5, "'x": this text has no closing quote`},
		{"/* a", "this comment has no end"},
		{"a = 007", "does not begin with 0"},
		{"a = 9223372036854775808", "a whole number is at most 9223372036854775807"},
		{"a = 0.0", "a number with a point"},
		{"a = 1e999", "a number with a point"},
		{"a = NULL", `at position 5, "NULL": nothing equals NULL`},
		{"TRUE = 1", "can't be compared"},
		{"a > 'x'", `at position 5, "'x'": < <= > >= and BETWEEN compare numbers`},
		{"a > TRUE", "compare numbers"},
		{"a < 1 < 2", "compare numbers"},
		{"a BETWEEN 3 AND 1", `at position 11, "3 AND 1": the first bound is above the second`},
		{"a BETWEEN 1 AND 0.5", "the first bound is above the second"},
		{"a BETWEEN 1", "at its end: AND is expected"},
		{"a IN (1)", `at position 7, "1)": a text in single quotes is expected`},
		{"a IN ()", "a text in single quotes is expected"},
		{"5 IN ('5')", `at position 1, "5 IN ('5')": IN needs a property`},
		{"a NOT 5", "is expected after NOT"},
		{"a IS 5", "NULL is expected"},
		{"5", "this is a value, where a condition is needed"},
		{"a = 1 AND 'x'", `at position 11, "'x'": this is a value`},
		{"-a", "this is a value"},
		{"a CONTAINS b", "a text in single quotes is expected"},
		{strings.Repeat("(", 60_000), "it nests deeper than 500 levels"},
		{strings.Repeat("NOT ", 16_000) + "a", "it nests deeper than 500 levels"},
		{"a" + strings.Repeat(" = b", 16_000), "it nests deeper than 500 levels"},
		{"a = " + strings.Repeat("-", 60_000) + "1", "it nests deeper than 500 levels"},
	} {
		_, err := Compile(KindSQL92, c.text)
		short := c.text[:min(40, len(c.text))]
		if !errors.Is(err, ErrIllegal) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", short, err, c.want)
		} else if len(err.Error()) > 300 {
			t.Errorf("%s: an error of %d bytes", short, len(err.Error()))
		}
	}
}

// The longest expressions cost what their length says, to read and to ask.
func TestLongSQL92(t *testing.T) {
	chain := strings.Repeat("a=1 OR ", 9000) + "b=2"
	list := "a IN ('x'" + strings.Repeat(",'y'", 16_000) + ")"
	began := time.Now()
	for _, text := range []string{chain, list, strings.Repeat("(", 400) + "b=2" + strings.Repeat(")", 400), strings.Repeat("NOT ", 400) + "(b=2)"} {
		e, err := Compile(KindSQL92, text)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Match(properties("a=y b=2")); got != (text != chain) {
			t.Errorf("%.20s… is %v", text, got)
		}
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("took %v", took)
	}
}

const ordinary = "region = 'eu' AND (amount BETWEEN 10 AND 500 OR priority IN ('high', 'urgent')) AND note IS NULL"

var order4711 = properties("UNIQ_KEY=0A0B0C0D00002A9F00000001 KEYS=order-4711 TAGS=paid region=eu amount=99 priority=low WAIT=true")

func TestMatchAllocatesNothing(t *testing.T) {
	e, err := Compile(KindSQL92, ordinary)
	if err != nil {
		t.Fatal(err)
	}
	if !e.Match(order4711) {
		t.Error("no match")
	}
	if n := testing.AllocsPerRun(100, func() { e.Match(order4711) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkSQL92(b *testing.B) {
	e, err := Compile(KindSQL92, ordinary)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		e.Match(order4711)
	}
}

func BenchmarkCompileSQL92(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		Compile(KindSQL92, ordinary)
	}
}

func FuzzSQL92(f *testing.F) {
	for _, text := range []string{ordinary, "a NOT BETWEEN -1.5 AND b OR NOT c CONTAINS 'it''s'", "/*x*/ a <> 0x1 --y", "(a IN ('x')) = TRUE"} {
		f.Add(text, string(order4711))
	}
	f.Fuzz(func(t *testing.T, text, props string) {
		e, err := Compile(KindSQL92, text)
		if err != nil {
			if !errors.Is(err, ErrIllegal) {
				t.Fatal(err)
			}
			return
		}
		got := e.Match(message.Properties(props))
		// Brackets around a condition change nothing.
		if strings.Contains(text, "--") || len(text) > MaxText-2 {
			return
		}
		switch again, err := Compile(KindSQL92, "("+text+")"); {
		case err != nil && !strings.Contains(err.Error(), "deeper"):
			t.Fatalf("%q in brackets: %v", text, err)
		case err == nil && again.Match(message.Properties(props)) != got:
			t.Fatalf("%q is %v, but not in brackets", text, got)
		}
	})
}
