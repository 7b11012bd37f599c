package receipt

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text string
		want Handle
		says string
	}{
		{"100 1700000000000 60000 3 0 broker-a 2 105 4096",
			Handle{100, 1700000000000, 60000, 3, 0, "broker-a", 2, 105, 4096, ""}, ""},
		{"100 1700000000000 60000 999 2 broker-a 2 105",
			Handle{100, 1700000000000, 60000, 999, 2, "broker-a", 2, 105, NoLogOffset, ""}, ""},
		{"", Handle{}, "start offset"},
		{"100", Handle{}, "ends before the pop time"},
		{"100 1700000000000 60000 3 0 broker-a 2", Handle{}, "ends before the offset"},
		{"x 1700000000000 60000 3 0 broker-a 2 105", Handle{}, "start offset"},
		{"100 1700000000000 60000 3 3 broker-a 2 105", Handle{}, "retry flag is 3"},
		{"100 1700000000000 60000 3 -1 broker-a 2 105", Handle{}, "retry flag is -1"},
		{"100 1700000000000 60000 3 0 broker a 2 105", Handle{}, "queue"},
		{"100 1700000000000 60000 999 0 broker-a 0 105 4096 chat_7",
			Handle{100, 1700000000000, 60000, 999, 0, "broker-a", 0, 105, 4096, "chat_7"}, ""},
		{"100 1700000000000 60000 999 0 broker-a 0 105 -1 chat_7",
			Handle{100, 1700000000000, 60000, 999, 0, "broker-a", 0, 105, NoLogOffset, "chat_7"}, ""},
		{"100 1700000000000 60000 3 0 broker-a 2 105 9 a/b", Handle{}, "a/b"},
		{"100 1700000000000 60000 3 0 broker-a 2 105 9 a b", Handle{}, "ten"},
		{"100 1700000000000 60000 99999999999 0 broker-a 2 105", Handle{}, "revive queue"},
		{"100 1700000000000 60000 3 0 broker-a 2 105 ", Handle{}, "log offset"},
	} {
		h, err := Parse(c.text)
		if c.says == "" {
			if err != nil || h != c.want || h.String() != c.text {
				t.Errorf("%q: %+v, %v", c.text, h, err)
			}
			continue
		}
		if !errors.Is(err, ErrIllegal) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v, want %q", c.text, err, c.says)
		}
	}
}

func TestParseAfterAppendIsIdentity(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := Handle{
			StartOffset:   rapid.Int64().Draw(t, "start"),
			PopTime:       rapid.Int64().Draw(t, "pop"),
			InvisibleTime: rapid.Int64().Draw(t, "invisible"),
			ReviveQueue:   rapid.Int32().Draw(t, "revive"),
			RetryFlag:     rapid.ByteMax(FlagRetryV2).Draw(t, "flag"),
			Broker:        rapid.StringMatching(`[a-zA-Z0-9_.-]*`).Draw(t, "broker"),
			QueueID:       rapid.Int32().Draw(t, "queue"),
			Offset:        rapid.Int64().Draw(t, "offset"),
			LogOffset:     rapid.Int64().Draw(t, "log"),
			Lite:          rapid.StringMatching(`([a-zA-Z0-9_-]{1,64})?`).Draw(t, "lite"),
		}
		back, err := Parse(h.String())
		if err != nil || back != h {
			t.Fatalf("%+v became %+v, %v", h, back, err)
		}
	})
}

func TestRealTopic(t *testing.T) {
	for flag, want := range []string{"orders", "%RETRY%g_orders", "%RETRY%g+orders"} {
		if got := (Handle{RetryFlag: byte(flag)}).RealTopic("orders", "g"); got != want {
			t.Errorf("flag %d: %s", flag, got)
		}
	}
}

func TestAnswerFields(t *testing.T) {
	normal, retry := Queue{0, 0}, Queue{1, 3}
	starts := string(AppendStartOffset(AppendStartOffset(nil, normal, 100), retry, 7))
	offsets := string(AppendOffsets(AppendOffsets(nil, normal, []int64{100, 101, 103}), retry, []int64{7}))
	counts := string(AppendOrderCountOf(AppendOrderCount(nil, normal, 2), normal, 101, 5))
	if starts != "0 0 100;1 3 7" || offsets != "0 0 100,101,103;1 3 7" || counts != "0 0 2;0 qo0%101 5" {
		t.Errorf("%q %q %q", starts, offsets, counts)
	}
	if m, err := ParseStartOffsets(starts); err != nil || !reflect.DeepEqual(m, map[Queue]int64{normal: 100, retry: 7}) {
		t.Errorf("%v, %v", m, err)
	}
	if m, err := ParseOffsets(offsets); err != nil || !reflect.DeepEqual(m, map[Queue][]int64{normal: {100, 101, 103}, retry: {7}}) {
		t.Errorf("%v, %v", m, err)
	}
	m, err := ParseOrderCounts(counts)
	if err != nil || m.Queues[normal] != 2 || m.Messages[OrderedMessage{normal, 101}] != 5 {
		t.Errorf("%v, %v", m, err)
	}
	for _, bad := range []string{"0 0", "0 0 1 2", "x 0 1", "3 0 1", "0 0 x", "0 0 1;", "0 0 1;0 0 2", "0 x 1"} {
		if _, err := ParseStartOffsets(bad); !errors.Is(err, ErrIllegalAnswer) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, bad := range []string{"0 0 1,", "0 0 1,x"} {
		if _, err := ParseOffsets(bad); !errors.Is(err, ErrIllegalAnswer) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, bad := range []string{"0 qo0 1", "0 qox%1 1", "0 qo0%x 1", "0 0 1;0 0 1", "0 qo0%1 1;0 qo0%1 1"} {
		if _, err := ParseOrderCounts(bad); !errors.Is(err, ErrIllegalAnswer) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if m, err := ParseStartOffsets(""); err != nil || len(m) != 0 {
		t.Errorf("%v, %v", m, err)
	}
}

func TestReceiptsAllocateNothing(t *testing.T) {
	dst := make([]byte, 0, 256)
	h := Handle{Broker: "broker-a", LogOffset: 4096}
	if n := testing.AllocsPerRun(100, func() { dst = h.AppendTo(dst[:0]) }); n != 0 {
		t.Errorf("AppendTo allocates %v times", n)
	}
	text := h.String()
	if n := testing.AllocsPerRun(100, func() { _, _ = Parse(text) }); n != 0 {
		t.Errorf("Parse allocates %v times", n)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("100 1700000000000 60000 3 0 broker-a 2 105 4096")
	f.Add("100 1700000000000 60000 999 1 broker-a 2 105")
	f.Fuzz(func(t *testing.T, text string) {
		h, err := Parse(text)
		if err != nil {
			return
		}
		if back, err := Parse(h.String()); err != nil || back != h {
			t.Fatalf("%q: %+v became %+v, %v", text, h, back, err)
		}
	})
}

func FuzzAnswerFields(f *testing.F) {
	f.Add("0 0 100;1 3 7")
	f.Add("0 0 100,101;1 3 7")
	f.Add("0 0 2;0 qo0%101 5")
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = ParseStartOffsets(text)
		_, _ = ParseOffsets(text)
		_, _ = ParseOrderCounts(text)
	})
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse("100 1700000000000 60000 3 0 broker-a 2 105 4096"); err != nil {
			b.Fatal(err)
		}
	}
}
