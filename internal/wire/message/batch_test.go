package message

import (
	"errors"
	"testing"

	"pgregory.net/rapid"
)

func TestBatchRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.SliceOf(messages).Draw(t, "messages")
		var body []byte
		var err error
		for _, m := range ms {
			if body, err = AppendBatch(body, m); err != nil {
				t.Fatal(err)
			}
		}
		i := 0
		err = DecodeBatch(body, func(m *Message) error {
			want := &Message{Flag: ms[i].Flag, Properties: ms[i].Properties, Body: ms[i].Body}
			i++
			return same(m, want)
		})
		if err != nil || i != len(ms) {
			t.Fatalf("%d of %d, %v", i, len(ms), err)
		}
	})
}

// R105: in a batch too, properties come with and without closing separator.
func TestBatchKeepsPropertiesApart(t *testing.T) {
	var body []byte
	for _, p := range []Properties{"TAGS\x01a", "TAGS\x01b\x02"} {
		body, _ = AppendBatch(body, &Message{Properties: p, Body: []byte("x")})
	}
	var tags string
	if err := DecodeBatch(body, func(m *Message) error { tags += m.Tag(); return nil }); err != nil || tags != "ab" {
		t.Errorf("%q, %v", tags, err)
	}
}

func TestBadBatch(t *testing.T) {
	good, _ := AppendBatch(nil, sample())
	stop := errors.New("stop")
	if err := DecodeBatch(good, func(*Message) error { return stop }); !errors.Is(err, stop) {
		t.Error(err)
	}
	for cut := 1; cut < len(good); cut++ {
		err := DecodeBatch(good[:cut], func(*Message) error { return nil })
		if !errors.Is(err, ErrTorn) && !errors.Is(err, ErrCorrupt) {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
}

func FuzzDecodeBatch(f *testing.F) {
	body, _ := AppendBatch(nil, sample())
	body, _ = AppendBatch(body, &Message{})
	f.Add(body)
	f.Fuzz(func(t *testing.T, body []byte) {
		var again []byte
		err := DecodeBatch(body, func(m *Message) error {
			var err error
			again, err = AppendBatch(again, m)
			return err
		})
		if err == nil && len(again) != len(body) {
			t.Fatalf("%d bytes became %d", len(body), len(again))
		}
	})
}
