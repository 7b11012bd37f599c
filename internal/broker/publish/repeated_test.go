package publish

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
)

// slowStore ends its appends when it is told to.
type slowStore struct {
	fakeStore
	under []func(error)
}

func (s *slowStore) Append(m *message.Message, done func(storage.Placed, error)) {
	at := storage.Placed{QueueID: m.QueueID, QueueOffset: int64(len(s.under))}
	s.under = append(s.under, func(err error) { done(at, err) })
}

// remembering is a fixture that remembers sends for a minute, with a clock of its own.
func remembering(t *testing.T, kept int32) (f *fixture, now *int64) {
	f, now = newFixture(t), new(int64)
	*now = 1_000_000_000_000
	f.o.NowMilli = func() int64 { return *now }
	f.remember(60_000, kept)
	return f, now
}

func (f *fixture) remember(window int64, kept int32) {
	b := config.DefaultBroker()
	b.RepeatedSendWindow, b.RepeatedSendsKept = window, kept
	f.live.Replace(b)
}

// try sends a message with an id and tells where it is said to be.
func (f *fixture) try(topic, id string) string {
	out := "under way"
	r := &Request{MaxReconsumeTimes: -1, Message: &message.Message{Topic: topic, QueueID: -1, Body: []byte("x"), BornHost: host, StoreHost: host}}
	if id != "" {
		r.Message.Properties = props("UNIQ_KEY=" + id)
	}
	f.Send(r, func(at storage.Placed, err error) {
		out = fmt.Sprint(at.QueueOffset)
		if at.QueueID != r.QueueID {
			out += fmt.Sprintf(" in queue %d, not %d", at.QueueID, r.QueueID)
		}
		if id != "" && string(r.UniqKey) != id {
			out += " as " + string(r.UniqKey)
		}
		if err != nil {
			out = err.Error()
		}
	})
	return out
}

// TestDiffRepeatedSends: within the window an id is stored once in each topic.
func TestDiffRepeatedSends(t *testing.T) {
	f, now := remembering(t, 100)
	for i, c := range []struct {
		topic, id, want string
		after           int64 // ms
	}{
		{"T", "a", "0", 0},
		{"T", "a", "0", 0},
		{"T", "b", "1", 0},
		{"Priority", "a", "2", 0}, // another topic
		{"T", "", "3", 0},         // the server's own ids are different ones
		{"T", "", "4", 0},
		{"%RETRY%g", "a", "5", 0}, // a consumer's retries keep the id
		{"%RETRY%g", "a", "6", 0},
		{"T", "a", "0", 60_000},
		{"T", "a", "7", 1},
		{"T", "a", "7", 0},
	} {
		*now += c.after
		if got := f.try(c.topic, c.id); got != c.want {
			t.Errorf("send %d of %q to %s: %s, want %s", i, c.id, c.topic, got, c.want)
		}
	}
	f.remember(0, 100)
	if got := f.try("T", "a"); got != "8" {
		t.Errorf("switched off: %s", got)
	}
	if f.repeated.mu.sends != nil || f.repeated.mu.order != nil {
		t.Error("what was remembered is still there")
	}
}

// TestRepeatedWhileUnderWay: whoever repeats a send that is not stored yet gets its outcome;
// one that fails is forgotten.
func TestRepeatedWhileUnderWay(t *testing.T) {
	f, _ := remembering(t, 100)
	s := &slowStore{}
	f.o.Store = s
	var outcomes []string
	send := func() {
		r := &Request{MaxReconsumeTimes: -1, Message: &message.Message{Topic: "T", QueueID: 1, Body: []byte("x"), Properties: props("UNIQ_KEY=a"), BornHost: host, StoreHost: host}}
		f.Send(r, func(at storage.Placed, err error) { outcomes = append(outcomes, fmt.Sprint(at.QueueOffset, err)) })
	}
	send()
	send()
	if len(s.under) != 1 || len(outcomes) != 0 {
		t.Fatalf("%d appends, outcomes %v", len(s.under), outcomes)
	}
	s.under[0](errors.New("busy"))
	send()
	send()
	s.under[1](nil)
	send()
	if got := strings.Join(outcomes, ", "); got != "0 busy, 0 busy, 1 <nil>, 1 <nil>, 1 <nil>" || len(s.under) != 2 {
		t.Errorf("%d appends, outcomes %s", len(s.under), got)
	}
}

// TestRepeatedBatch: a batch is repeated when all of it is.
func TestRepeatedBatch(t *testing.T) {
	f, _ := remembering(t, 100)
	send := func(ids ...string) (offsets []int64) {
		var ms []*message.Message
		for _, id := range ids {
			ms = append(ms, &message.Message{Body: []byte("x"), Properties: props("UNIQ_KEY=" + id)})
		}
		f.SendBatch(&Request{Message: &message.Message{Topic: "T", BornHost: host, StoreHost: host}}, ms, func(placed []storage.Placed, err error) {
			if err != nil {
				t.Error(err)
			}
			for _, p := range placed {
				offsets = append(offsets, p.QueueOffset)
			}
		})
		return offsets
	}
	for _, c := range []struct {
		ids  string
		want string
	}{{"a b", "[0 1]"}, {"a b", "[0 1]"}, {"a c", "[2 3]"}, {"a", "[4]"}, {"ab", "[5]"}, {"a c", "[2 3]"}} {
		if got := fmt.Sprint(send(strings.Fields(c.ids)...)); got != c.want {
			t.Errorf("batch %s: %s, want %s", c.ids, got, c.want)
		}
	}
}

// TestRepeatedIsBounded: what is remembered does not grow beyond its limit, nor its order.
func TestRepeatedIsBounded(t *testing.T) {
	f, now := remembering(t, 50)
	for i := range 1000 {
		*now += 10
		if got, want := f.try("T", fmt.Sprint("id", i)), fmt.Sprint(i); got != want {
			t.Fatalf("send %d: %s", i, got)
		}
		if n, o := len(f.repeated.mu.sends), len(f.repeated.mu.order); n > 50 || o > 101 {
			t.Fatalf("%d sends, %d in their order", n, o)
		}
	}
	if got := f.try("T", "id999"); got != "999" {
		t.Errorf("the newest: %s", got)
	}
	if got := f.try("T", "id949"); got != "1000" {
		t.Errorf("one that had to go: %s", got)
	}
}

// BenchmarkSendRemembered is BenchmarkSend with sends remembered, each of them a new one.
func BenchmarkSendRemembered(b *testing.B) {
	f, now := remembering(&testing.T{}, 100_000)
	f.o.Store = &nullStore{}
	m := &message.Message{BornHost: host, StoreHost: host}
	r := &Request{Message: m, MaxReconsumeTimes: -1}
	body := make([]byte, 100)
	done := func(storage.Placed, error) {}
	id := []byte("KEYS\x01key-123456\x02UNIQ_KEY\x017F00000100002A139A55690E00000000\x02WAIT\x01true\x02TAGS\x01TagA\x02")
	at := strings.Index(string(id), "00000000")
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		*now++
		copy(id[at:], fmt.Sprintf("%08X", i))
		m.Topic, m.QueueID, m.Properties, m.Body = "T", 1, message.Properties(id), body
		f.Send(r, done)
	}
}
