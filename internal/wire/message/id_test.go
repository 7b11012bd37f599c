package message

import (
	"errors"
	"net/netip"
	"testing"
)

func TestOffsetID(t *testing.T) {
	for _, c := range []struct {
		host   string
		offset int64
		id     string
	}{
		{"127.0.0.1:10911", 0, "7F00000100002A9F0000000000000000"},
		{"192.0.2.1:10911", 1<<40 + 5, "C000020100002A9F0000010000000005"},
		{"[2001:db8::1]:10911", 255, "20010DB800000000000000000000000100002A9F00000000000000FF"},
	} {
		host := netip.MustParseAddrPort(c.host)
		if id := OffsetID(host, c.offset); id != c.id {
			t.Errorf("OffsetID(%s, %d) = %s, want %s", host, c.offset, id, c.id)
		}
		h, offset, err := ParseOffsetID(c.id)
		if err != nil || h != host || offset != c.offset {
			t.Errorf("ParseOffsetID(%s) = %s, %d, %v", c.id, h, offset, err)
		}
	}
	for _, id := range []string{"", "7F", "ZZ00000100002A9F0000000000000000", "7F00000100002A9F00000000000000001"} {
		if _, _, err := ParseOffsetID(id); !errors.Is(err, ErrIllegalID) {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestUniqueIDsDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 10000 {
		id := NewUniqueID()
		if len(id) != 32 || seen[id] {
			t.Fatalf("%q", id)
		}
		seen[id] = true
	}
}

func TestJavaHash(t *testing.T) {
	for s, want := range map[string]int32{
		"": 0, "a": 97, "TagA": 2598919, "paid": 3433164, "polygenelubricants": -2147483648,
		"ä": 228, "中文": 646394, "😀": 1772899,
	} {
		if got := JavaHash(s); got != want {
			t.Errorf("JavaHash(%q) = %d, want %d", s, got, want)
		}
	}
	if TagsCode("polygenelubricants") != -2147483648 || TagsCode("") != 0 {
		t.Error("TagsCode")
	}
}

func FuzzParseOffsetID(f *testing.F) {
	f.Add("7F00000100002A9F0000000000000000")
	f.Fuzz(func(t *testing.T, text string) {
		host, offset, err := ParseOffsetID(text)
		if err == nil && len(text) == 32 {
			if h, o, err := ParseOffsetID(OffsetID(host, offset)); err != nil || h != host || o != offset {
				t.Fatalf("%q: %v %v %v", text, h, o, err)
			}
		}
	})
}
