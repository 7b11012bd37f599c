package filter

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bolidemq/bolide/internal/wire/message"
)

func TestCompileTags(t *testing.T) {
	for _, c := range []struct {
		text string
		tags []string // nil = all
		err  error
	}{
		{"", nil, nil},
		{"*", nil, nil},
		{"  *  ", nil, nil},
		{"A", []string{"A"}, nil},
		{"A||B", []string{"A", "B"}, nil},
		{" A || B ||A", []string{"A", "B"}, nil},
		{"A||", []string{"A"}, nil},
		{"A || *", []string{"A", "*"}, nil},
		{"A | B", []string{"A | B"}, nil},
		{"||", nil, ErrIllegal},
		{" || || ", nil, ErrIllegal},
		{strings.Repeat("a", MaxText), []string{strings.Repeat("a", MaxText)}, nil},
		{strings.Repeat("a", MaxText+1), nil, ErrIllegal},
	} {
		e, err := Compile(KindTag, c.text)
		if !errors.Is(err, c.err) {
			t.Errorf("%q: %v", c.text, err)
		}
		if err == nil && (!slices.Equal(e.Tags(), c.tags) || e.MatchesAll() != (c.tags == nil)) {
			t.Errorf("%q: tags %q", c.text, e.Tags())
		}
	}
}

func TestManyTags(t *testing.T) {
	var want, text []string
	for i := range 5000 {
		want = append(want, strconv.Itoa(i))
		text = append(text, strconv.Itoa(i), strconv.Itoa(i/2))
	}
	e, err := Compile(KindTag, strings.Join(text, "||"))
	if err != nil || !slices.Equal(e.Tags(), want) {
		t.Errorf("%d tags, want %d: %v", len(e.Tags()), len(want), err)
	}
}

func TestUnknownKinds(t *testing.T) {
	for _, kind := range []string{"sql92", "tag", "CLASS"} {
		if _, err := Compile(kind, "a = 1"); !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "TAG") {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// tagged is the properties of a message with a tag.
func tagged(tag string) message.Properties {
	return message.Properties("KEYS\x01k\x02").With(message.PropertyTags, tag)
}

func TestMatch(t *testing.T) {
	many := "t1||t2||t3||t4||t5||t6||t7"
	for _, c := range []struct {
		text, tag string
		want      bool
	}{
		{"*", "", true}, {"*", "A", true}, {"A", "A", true}, {"A", "B", false}, {"A", "", false},
		{many, "t7", true}, {many, "t8", false}, {"A||B", "B", true}, {"a", "A", false},
	} {
		e, err := Compile("", c.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Match(tagged(c.tag)); got != c.want {
			t.Errorf("%q matches tag %q: %v", c.text, c.tag, got)
		}
		if got := e.MatchTagsCode(message.TagsCode(c.tag)); got != c.want {
			t.Errorf("%q matches the code of %q: %v", c.text, c.tag, got)
		}
	}
}

// Two tags of one hash: the code lets both pass, the tag decides.
func TestHashCollision(t *testing.T) {
	e, _ := Compile(KindTag, "Aa")
	if !e.MatchTagsCode(message.TagsCode("BB")) || e.Match(tagged("BB")) || !e.Match(tagged("Aa")) {
		t.Error("Aa and BB")
	}
	if e, _ := Compile(KindTag, "Aa||BB"); len(e.CodeSet()) != 1 {
		t.Errorf("codes %v", e.CodeSet())
	}
}

func TestNilMatchesAll(t *testing.T) {
	var e *Expression
	if !e.MatchesAll() || !e.Match(tagged("A")) || !e.MatchTagsCode(5) || e.ByProperties() || e.Text() != "*" || e.Kind() != KindTag || e.Tags() != nil || e.CodeSet() != nil {
		t.Error("nil")
	}
	if e, _ := Compile("", ""); e != All() {
		t.Error("nothing is not All")
	}
}

// A delivery time in the place of a hash matches no tag.
func TestCodesBeyondHashes(t *testing.T) {
	e, _ := Compile(KindTag, "A")
	if e.MatchTagsCode(65 + 1<<32) {
		t.Error("only the low half was compared")
	}
}

func FuzzCompileTags(f *testing.F) {
	f.Add("A || B")
	f.Add("*")
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Compile(KindTag, text)
		if err != nil {
			return
		}
		for _, tag := range e.Tags() {
			if legal := message.CheckProperty(message.PropertyTags, tag) == nil; legal && !e.Match(tagged(tag)) || !e.MatchTagsCode(message.TagsCode(tag)) {
				t.Fatalf("%q does not match its own tag %q", text, tag)
			}
		}
	})
}
