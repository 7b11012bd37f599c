package filter

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bolidemq/bolide/internal/wire/message"
)

// traitsOf is what a store knows of a message with these properties.
func traitsOf(p message.Properties) Traits {
	t := Unremarkable
	for name, value := range p.All() {
		t.Add(name+pairSeparator+value, len(name))
	}
	return t
}

// What matches is possible, whatever is asked and whatever the properties are.
func TestWhatMatchesIsPossible(t *testing.T) {
	names := rapid.SampledFrom([]string{"a", "b", "c", "ab", "UNIQ_KEY"})
	values := rapid.SampledFrom([]string{"x", "y", "7", "07", "+7", "-7", "٧", "7.0", "7e0", "-0", "0", "00", "2147483648", "true", "xyz", "7x", "٧x"})
	literals := rapid.SampledFrom([]string{"'x'", "'7'", "'07'", "7", "-7", "- -7", "0", "-0", "7.0", "2147483648", "TRUE", "FALSE"})
	var condition func(t *rapid.T, depth int) string
	side := func(t *rapid.T) string {
		if rapid.Bool().Draw(t, "a property") {
			return names.Draw(t, "name")
		}
		return literals.Draw(t, "literal")
	}
	condition = func(t *rapid.T, depth int) string {
		kind := rapid.IntRange(0, 9).Draw(t, "kind")
		if depth == 0 {
			kind %= 6
		}
		switch kind {
		case 0:
			return fmt.Sprintf("%s = %s", side(t), side(t))
		case 1:
			return fmt.Sprintf("%s <> %s", side(t), side(t))
		case 2:
			return fmt.Sprintf("%s %s %s", names.Draw(t, "name"), rapid.SampledFrom([]string{"<", ">=", "BETWEEN 1 AND"}).Draw(t, "order"), rapid.SampledFrom([]string{"7", "8.5", "b"}).Draw(t, "bound"))
		case 3:
			return fmt.Sprintf("%s IS %sNULL", names.Draw(t, "name"), rapid.SampledFrom([]string{"", "NOT "}).Draw(t, "not"))
		case 4:
			return fmt.Sprintf("%s %sIN ('x', '7', 'z')", names.Draw(t, "name"), rapid.SampledFrom([]string{"", "NOT "}).Draw(t, "not"))
		case 5:
			return fmt.Sprintf("%s %sCONTAINS 'y'", names.Draw(t, "name"), rapid.SampledFrom([]string{"", "NOT "}).Draw(t, "not"))
		case 6:
			return "NOT (" + condition(t, depth-1) + ")"
		case 7:
			return "(" + condition(t, depth-1) + " OR " + condition(t, depth-1) + ")"
		}
		return "(" + condition(t, depth-1) + " AND " + condition(t, depth-1) + ")"
	}
	rapid.Check(t, func(t *rapid.T) {
		text := condition(t, 3)
		e, err := Compile(KindSQL92, text)
		if err != nil {
			t.Skip("not an expression: ", err)
		}
		for range 8 {
			var p message.Properties
			for range rapid.IntRange(0, 4).Draw(t, "properties") {
				p += message.Properties(names.Draw(t, "name") + "\x01" + values.Draw(t, "value") + "\x02") // a name may stand twice
			}
			if e.Match(p) && !e.Possible(traitsOf(p)) {
				t.Fatalf("%s matches %q and was not to be possible", text, p)
			}
		}
	})
}

// What can't match is mostly known not to: that is what traits are for. Which bits are whose
// differs from process to process, so each expression is asked in many spellings.
func TestMostOfTheRestIsImpossible(t *testing.T) {
	const messages, spellings = 1000, 64
	var all [messages]message.Properties
	var traits [messages]Traits
	for i := range all {
		all[i] = message.Properties(fmt.Sprintf("KEYS\x01k%d\x02UNIQ_KEY\x01%032d\x02TAGS\x01t\x02area\x01%d\x02kind\x01often%d\x02n\x01%d\x02", i, i, i%7, i%13, i))
		traits[i] = traitsOf(all[i])
	}
	for text, percent := range map[string]int{ // with about 15 of 64 bits set, a pair's three are there in one of 80, a name's one in one of 4
		"kind = 'rare#'": 20, "n = 12345#": 20, "n = -5#": 20, "'rare#' = kind": 20, "kind IN ('rare#', 'scarce#')": 20,
		"kind = 'rare#' AND n > 3": 20, "kind = 'rare#' OR kind = 'scarce#'": 20, "(kind = 'rare#' OR n = 12345#) AND area IS NOT NULL": 20,
		"absent# IS NOT NULL": 50, "absent# > 3": 50, "absent# NOT IN ('x')": 50, "absent# CONTAINS 'x'": 50, "absent# <> 'x'": 50,
	} {
		possible := 0
		for spelling := range spellings {
			e, err := Compile(KindSQL92, strings.ReplaceAll(text, "#", fmt.Sprint(spelling)))
			if err != nil {
				t.Fatal(err)
			}
			for i := range all {
				if e.Match(all[i]) {
					t.Fatalf("%s matches", text)
				}
				if e.Possible(traits[i]) {
					possible++
				}
			}
		}
		if possible > messages*spellings*percent/100 {
			t.Errorf("%s: %d of %d messages would be read", text, possible, messages*spellings)
		}
	}
}

// What says nothing of any property is always possible, and so is everything of a message
// that nothing is known of.
func TestAlwaysPossible(t *testing.T) {
	for _, text := range []string{"a IS NULL", "NOT (a = 'x')", "a = b", "'x' <> a", "TRUE", "a = 'x' OR b IS NULL", "UNIQ_KEY = 'x'"} {
		e, err := Compile(KindSQL92, text)
		if err != nil {
			t.Fatal(err)
		}
		if !e.Possible(Unremarkable) {
			t.Errorf("%s is impossible", text)
		}
	}
	e, err := Compile(KindSQL92, "a = 'x'")
	if err != nil || !e.Possible(0) || e.Possible(Unremarkable) {
		t.Errorf("%v: a message that nothing is known of, and one without properties", err)
	}
	var none *Expression
	if !none.Possible(Unremarkable) || !All().Possible(Unremarkable) {
		t.Error("everything is impossible")
	}
}

func BenchmarkTraits(b *testing.B) {
	p := message.Properties("KEYS\x01order-4711\x02TAGS\x01TagA\x02area\x01hangzhou\x02price\x0119\x02UNIQ_KEY\x01" + strings.Repeat("7", 32) + "\x02WAIT\x01true\x02")
	var pairs []string
	var names []int
	for name, value := range p.All() {
		pairs, names = append(pairs, name+pairSeparator+value), append(names, len(name))
	}
	b.ReportAllocs()
	for b.Loop() {
		var t Traits
		for i, pair := range pairs {
			t.Add(pair, names[i])
		}
	}
}
