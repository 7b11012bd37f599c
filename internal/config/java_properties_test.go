package config

import (
	"errors"
	"slices"
	"testing"
)

func TestParseProperties(t *testing.T) {
	text := "# comment\n! another\n\nbrokerName=a\n  spaced  =  value with blanks \ncolon:x\nblank y\nempty=\n" +
		"long=one \\\n   two\nescaped\\ key=\\u0041\\ud83d\\ude00\\tz\\\\\n"
	got, err := ParseProperties([]byte(text))
	want := []Property{{"brokerName", "a"}, {"spaced", "value with blanks "}, {"colon", "x"}, {"blank", "y"}, {"empty", ""},
		{"long", "one two"}, {"escaped key", "A😀\tz\\"}}
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("%q, %v", got, err)
	}
	for _, bad := range []string{"=x", `a=\u12`, `a=\uzzzz`} {
		if _, err := ParseProperties([]byte(bad)); !errors.Is(err, ErrValue) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func FuzzParseProperties(f *testing.F) {
	f.Add([]byte("a=b\nc:d\\\n e\n"))
	f.Add([]byte(`x\u0041=\ud83d`))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := ParseProperties(text)
		if err != nil {
			return
		}
		again, err := ParseProperties(FormatProperties(list))
		if err != nil || len(again) != len(list) {
			t.Fatalf("%q → %q → %q, %v", text, list, again, err)
		}
	})
}
