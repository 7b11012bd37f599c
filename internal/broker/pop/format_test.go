package pop

import (
	"bytes"
	"encoding/hex"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"
)

var recordSamples = []struct {
	name   string
	r      record
	holder string
}{
	{"plain", record{base: 0, first: 0, live: math.MaxUint32, popTime: 1_700_000_000_000, due: 1_700_000_060_000, invisible: 60_000}, "client@1"},
	{"end of a block", record{base: 64, first: 63, live: 1 << 63, popTime: 5, due: 5, invisible: 0, flags: flagSuspend}, ""},
	{"renewed", record{base: 128, first: 3, live: 0b11000, popTime: 7, due: 90_007, invisible: 30_000, flags: flagRenew}, "c"},
	{"claimed", record{base: 0, first: 1, live: 2, popTime: 7, due: 3, invisible: 1, flags: flagClaimed, more: &recordMore{failures: 3, until: 900}}, ""},
	{"ordered", record{base: 0, first: 1, live: 2, popTime: 7, due: 8, invisible: 1, more: &recordMore{group: 77, attempts: 2}}, ""},
}

func TestRecordRoundTrip(t *testing.T) {
	for _, s := range recordSamples {
		key := appendRecordKey(nil, 9, s.r.offset(int(s.r.first)), s.r.popTime)
		id, got, holder, err := parseRecord(key, appendRecordValue(nil, &s.r, s.holder))
		if err != nil || id != 9 || holder != s.holder {
			t.Fatalf("%s: %v %d %q", s.name, err, id, holder)
		}
		want := s.r
		want.heapPos = -1
		if !reflect.DeepEqual(*got, want) {
			t.Errorf("%s: got %+v, want %+v", s.name, *got, want)
		}
	}
	k := windowKey{"g", "%RETRY%g_t", 7}
	if got, err := parseWindowKey(appendWindowKey(nil, k)); err != nil || got != k {
		t.Error(got, err)
	}
	e := asideEntry{offset: 12, tagsCode: -5, lastPop: 99, group: 3, attempts: 4, anyTag: true}
	if id, got, err := parseAside(appendAsideKey(nil, 4, 12), appendAsideValue(nil, e)); err != nil || id != 4 || got != e {
		t.Error(id, got, err)
	}
}

// TestFormatDocument holds that the hex samples of docs/formats/state.md are what is
// written.
func TestFormatDocument(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/formats/state.md")
	if err != nil {
		t.Fatal(err)
	}
	r := recordSamples[0].r
	for name, sample := range map[string][]byte{
		"window key":   appendWindowKey(nil, windowKey{"g", "t", 1}),
		"window value": appendWindowValue(nil, windowRow{id: 9, next: 32}),
		"lite value":   appendWindowValue(nil, windowRow{id: 9, next: 32, floor: r.popTime}),
		"record key":   appendRecordKey(nil, 9, 0, r.popTime),
		"record value": appendRecordValue(nil, &r, "client@1"),
		"aside key":    appendAsideKey(nil, 9, 33),
		"aside value":  appendAsideValue(nil, asideEntry{offset: 33, tagsCode: 97}),
	} {
		if !strings.Contains(string(doc), hex.EncodeToString(sample)) {
			t.Errorf("docs/formats/state.md does not show the %s %x", name, sample)
		}
	}
}

func FuzzParseRecord(f *testing.F) {
	for _, s := range recordSamples {
		f.Add(appendRecordKey(nil, 9, s.r.offset(int(s.r.first)), s.r.popTime), appendRecordValue(nil, &s.r, s.holder))
	}
	f.Fuzz(func(t *testing.T, key, value []byte) {
		id, r, holder, err := parseRecord(key, value)
		if err != nil {
			return
		}
		again := appendRecordKey(nil, id, r.offset(int(r.first)), r.popTime)
		if !bytes.Equal(again, key) {
			t.Fatalf("key %x became %x", key, again)
		}
		_, r2, holder2, err := parseRecord(again, appendRecordValue(nil, r, holder))
		if err != nil || holder2 != holder || !reflect.DeepEqual(r, r2) {
			t.Fatalf("%+v became %+v (%v)", r, r2, err)
		}
	})
}

func FuzzParseAside(f *testing.F) {
	f.Add(appendAsideKey(nil, 9, 33), appendAsideValue(nil, asideEntry{offset: 33, tagsCode: 97}))
	f.Fuzz(func(t *testing.T, key, value []byte) {
		id, e, err := parseAside(key, value)
		if err != nil {
			return
		}
		id2, e2, err := parseAside(appendAsideKey(nil, id, e.offset), appendAsideValue(nil, e))
		if err != nil || id != id2 || e != e2 {
			t.Fatalf("%+v became %+v (%v)", e, e2, err)
		}
	})
}

func FuzzParseSource(f *testing.F) {
	f.Add("pop/1/2/3/g/%RETRY%g_t")
	f.Fuzz(func(t *testing.T, text string) {
		k, offset, popTime, ok := parseSource(text)
		if !ok {
			return
		}
		k2, offset2, popTime2, ok := parseSource(newWindow(k, 1).source(offset, popTime))
		if !ok || k != k2 || offset != offset2 || popTime != popTime2 {
			t.Fatalf("%q: %v %v", text, k, k2)
		}
	})
}
