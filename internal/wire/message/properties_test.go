package message

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// javaProperties reads a text the way Apache RocketMQ does.
func javaProperties(text string) map[string]string {
	all := map[string]string{}
	for _, pair := range strings.Split(text, "\x02") {
		if name, value, ok := strings.Cut(pair, "\x01"); ok && name != "" && value != "" {
			all[name] = value
		}
	}
	return all
}

// R105: both forms parse alike.
func TestClosingSeparatorIsOptional(t *testing.T) {
	for _, p := range []Properties{"DELAY\x013\x02TAGS\x01paid\x02", "DELAY\x013\x02TAGS\x01paid"} {
		if p.Value("DELAY") != "3" || p.Value("TAGS") != "paid" {
			t.Errorf("%q: DELAY %q, TAGS %q", p, p.Value("DELAY"), p.Value("TAGS"))
		}
		// R105: appended properties never touch others.
		q := p.With("CLUSTER", "c")
		if q != "DELAY\x013\x02TAGS\x01paid\x02CLUSTER\x01c\x02" {
			t.Errorf("%q with CLUSTER: %q", p, q)
		}
	}
}

func TestPropertiesGet(t *testing.T) {
	for _, c := range []struct {
		p     Properties
		name  string
		value string
		ok    bool
	}{
		{"", "A", "", false},
		{"A\x01b\x02", "A", "b", true},
		{"A\x01b", "A", "b", true},
		{"A\x01\x02", "A", "", false},
		{"A\x01", "A", "", false},
		{"A", "A", "", false},
		{"A\x02", "A", "", false},
		{"\x01b\x02", "", "", false},
		{"A\x01b\x02A\x01c\x02", "A", "c", true},
		{"A\x01b\x02A\x01\x02", "A", "b", true},
		{"BA\x01b\x02A\x01c\x02", "A", "c", true},
		{"A\x01b\x02BA\x01c", "A", "b", true},
		{"B\x01A\x01c\x02", "A", "", false},
		{"B\x01A\x01c\x02", "B", "A\x01c", true},
		{"B\x01A\x02A\x01c\x02", "A", "c", true},
		{"AA\x01b\x02", "A", "", false},
		{"\x02\x02A\x01b\x02", "A", "b", true},
	} {
		if value, ok := c.p.Get(c.name); value != c.value || ok != c.ok {
			t.Errorf("%q.Get(%q) = %q, %v", c.p, c.name, value, ok)
		}
	}
}

func TestPropertiesChange(t *testing.T) {
	for _, c := range []struct{ got, want Properties }{
		{Properties("").With("A", "b"), "A\x01b\x02"},
		{Properties("A\x01b").With("A", "c"), "A\x01c\x02"},
		{Properties("A\x01b\x02C\x01d\x02A\x01e").With("A", "f"), "C\x01d\x02A\x01f\x02"},
		{Properties("A\x01b\x02C\x01d").With("A", ""), "C\x01d\x02"},
		{Properties("A\x01\x02").With("A", "b"), "A\x01b\x02"},
		{Properties("A\x01b").WithAll("C", "d", "A", "e"), "C\x01d\x02A\x01e\x02"},
		{Properties("A\x01b\x02C\x01d").Without("A"), "C\x01d\x02"},
		{Properties("A\x01b\x02C\x01d").Without("A", "C"), ""},
		{Properties("AB\x01b").Without("A"), "AB\x01b\x02"},
		{Properties("AB\x01b").Without("X"), "AB\x01b"},
		{Properties(AppendProperty([]byte("A\x01b"), "C", "d")), "A\x01b\x02C\x01d\x02"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}

// R105: forbidden characters are refused.
func TestSeparatorsAreRefused(t *testing.T) {
	for _, c := range []struct{ name, value string }{
		{"", "v"}, {"a\x01", "v"}, {"a\x02b", "v"}, {"a", "v\x01"}, {"a", "\x02v"},
	} {
		if err := CheckProperty(c.name, c.value); !errors.Is(err, ErrIllegalProperty) {
			t.Errorf("%q = %q: %v", c.name, c.value, err)
		}
	}
	if err := CheckProperty("name", "any text, Ünïcode too"); err != nil {
		t.Error(err)
	}
	for _, p := range []Properties{"a\x01b\x02c", "a\x01b\x01c\x02", "\x01b\x02", "a\x01b\x02c\x02d\x01e\x02"} {
		if err := p.Check(); !errors.Is(err, ErrIllegalProperty) {
			t.Errorf("%q: %v", p, err)
		}
	}
	for _, p := range []Properties{"", "a\x01b", "a\x01b\x02", "a\x01\x02c\x01d\x02", "\x02"} {
		if err := p.Check(); err != nil {
			t.Errorf("%q: %v", p, err)
		}
	}
	if err := Properties("a\x01" + strings.Repeat("v", MaxProperties)).Check(); !errors.Is(err, ErrPropertiesTooLarge) {
		t.Error(err)
	}
}

func TestPropertiesReadAsJavaDoes(t *testing.T) {
	texts := rapid.Map(rapid.SliceOf(rapid.SampledFrom([]string{"\x01", "\x02", "A", "B", "AB", "c"})),
		func(parts []string) string { return strings.Join(parts, "") })
	rapid.Check(t, func(t *rapid.T) {
		p := Properties(texts.Draw(t, "text"))
		want := javaProperties(string(p))
		for _, name := range []string{"A", "B", "AB", "BA", "c"} {
			value, ok := p.Get(name)
			if w, has := want[name]; value != w || ok != has {
				t.Fatalf("%q.Get(%q) = %q, %v; Java reads %q, %v", p, name, value, ok, w, has)
			}
		}
		got := map[string]string{}
		for name, value := range p.All() {
			got[name] = value
		}
		if len(got) != len(want) {
			t.Fatalf("%q: All yields %q, Java reads %q", p, got, want)
		}
		changed := p.With("A", "new")
		want["A"] = "new"
		after := javaProperties(string(changed))
		for name, value := range want {
			if after[name] != value {
				t.Fatalf("%q with A: %q, %s is %q", p, changed, name, after[name])
			}
		}
		if len(after) != len(want) {
			t.Fatalf("%q with A: %q", p, changed)
		}
		if p.Without("A").Has("A") {
			t.Fatalf("%q without A has it", p)
		}
	})
}

func TestReserved(t *testing.T) {
	for _, name := range []string{"KEYS", "TAGS", "__CRC32#", "__LITE_TOPIC", PropertySource} {
		if !Reserved(name) {
			t.Errorf("%s is not reserved", name)
		}
	}
	for _, name := range []string{"__SHARDINGKEY", "TRACE_CONTEXT", "__transactionId__", "color", "INNER_NUM"} {
		if Reserved(name) {
			t.Errorf("%s is reserved", name)
		}
	}
}

func TestPropertiesAllStops(t *testing.T) {
	var names []string
	for name := range Properties("a\x011\x02b\x012\x02c\x013").All() {
		if names = append(names, name); name == "b" {
			break
		}
	}
	if !slices.Equal(names, []string{"a", "b"}) {
		t.Error(names)
	}
}

func FuzzProperties(f *testing.F) {
	f.Add("A\x01b\x02C\x01d", "A")
	f.Add("\x02\x01\x02", "")
	f.Fuzz(func(t *testing.T, text, name string) {
		p := Properties(text)
		_ = p.Check()
		if strings.ContainsAny(name, separators) {
			return
		}
		value, ok := p.Get(name)
		if want, has := javaProperties(text)[name]; value != want || ok != has {
			t.Fatalf("%q.Get(%q) = %q, %v; Java reads %q, %v", p, name, value, ok, want, has)
		}
	})
}

func BenchmarkPropertiesGet(b *testing.B) {
	p := Properties(benchmarkProperties)
	b.ReportAllocs()
	for b.Loop() {
		if p.Value(PropertyTags) != "paid" || p.Has(PropertyDelay) {
			b.Fatal("wrong")
		}
	}
}

// However a text is edited, it is what pair by pair comes of it: each closed, in their order, without
// empty ones and without those that are taken out or set, whether readers see these or not.
func TestAppendEdited(t *testing.T) {
	texts := rapid.Map(rapid.SliceOf(rapid.SampledFrom([]string{"\x01", "\x02", "A", "B", "AB", "c"})),
		func(parts []string) string { return strings.Join(parts, "") })
	some := rapid.SampledFrom([]string{"", "A", "B", "AB", "c"})
	rapid.Check(t, func(t *rapid.T) {
		p, before := Properties(texts.Draw(t, "text")), texts.Draw(t, "before")
		without := rapid.SliceOfN(some, 0, 2).Draw(t, "without")
		set := rapid.SliceOfN(some, 0, 4).Draw(t, "set")
		set = set[:len(set)/2*2] // names and values
		var want strings.Builder
		for pair := range strings.SplitSeq(string(p), "\x02") {
			name, _, named := strings.Cut(pair, "\x01")
			gone := slices.Contains(without, name)
			for i := 0; i < len(set); i += 2 {
				gone = gone || set[i] == name
			}
			if pair != "" && !(gone && named && name != "") {
				want.WriteString(pair + "\x02")
			}
		}
		for i := 0; i < len(set); i += 2 {
			if set[i] != "" && set[i+1] != "" {
				want.WriteString(set[i] + "\x01" + set[i+1] + "\x02")
			}
		}
		if got := string(p.AppendEdited([]byte(before), without, set...)); got != before+want.String() {
			t.Fatalf("%q behind %q without %q, with %q is %q, want %q", p, before, without, set, got, before+want.String())
		}
		if got := p.Without(without...).WithAll(set...); string(got) != want.String() {
			t.Fatalf("%q.Without(%q).WithAll(%q) = %q, want %q", p, without, set, got, want.String())
		}
		if got := PropertiesIn(p.AppendEdited(nil, without)); !slices.Equal(pairs(got), pairs(p.Without(without...))) {
			t.Fatalf("%q without %q is read as %q, want %q", p, without, pairs(got), pairs(p.Without(without...)))
		}
	})
}

// pairs are what a reader sees.
func pairs(p Properties) (list []string) {
	for name, value := range p.All() {
		list = append(list, name+"="+value)
	}
	return list
}
