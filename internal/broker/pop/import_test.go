package pop

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

const reviveTopic = "rmq_sys_REVIVE_LOG_DefaultCluster"

// revived writes a message for the revive topic as Apache does: to the timer's topic, or,
// when it is due, to the revive topic itself.
func (b *testBroker) revived(tag, body string, due int64, delivered bool) {
	b.t.Helper()
	m := &message.Message{Topic: names.WheelTimer, Body: []byte(body), BornHost: netip.MustParseAddrPort("127.0.0.1:1"), StoreHost: netip.MustParseAddrPort("127.0.0.1:2")}
	m.Properties = m.Properties.WithAll(message.PropertyTags, tag, message.PropertyTimerOutMs, strconv.FormatInt(due, 10))
	if delivered {
		m.Topic, m.QueueID = reviveTopic, 1
	} else {
		m.Properties = m.Properties.WithAll(message.PropertyRealTopic, reviveTopic, message.PropertyRealQueue, "1")
	}
	b.store.Append(m, func(_ storage.Placed, err error) { b.fatal(err) })
}

// TestImport opens what Apache's path with check points has left: one batch with one
// message acknowledged alone and one in a list, one batch that its timer has delivered and
// revived, one that it has delivered only, a changed delivery, one of a retry topic, and
// what is not to be taken over.
func TestImport(t *testing.T) {
	b := newTestBroker(t, true)
	b.open(false)
	defer b.close()
	b.topic("t", "", 1)
	b.topic("%RETRY%g_t", "", 1)
	b.fatal(b.groups.Put(group.New("g")))
	for range 40 {
		b.send("t", 0, "m", "", "")
	}
	b.send("%RETRY%g_t", 0, "m", "", "")
	b.offsets.Advance("g", "t", 0, 30)
	b.offsets.Advance("g", "%RETRY%g_t", 0, 1)

	now := b.clock.NowMilli()
	ck := func(topic, group string, start, pop, invisible int64, more string, n int) string {
		return fmt.Sprintf(`{"bm":0,"bn":"broker-a","c":%q,"it":%d,"n":%d,"pt":%d,"q":0,"ro":0,"so":%d,"t":%q%s}`, group, invisible, n, pop, start, topic, more)
	}
	ack := func(start, pop, offset int64, more string) string {
		return fmt.Sprintf(`{"ao":%d,"bn":"broker-a","c":"g","pt":%d,"q":0,"so":%d,"t":"t"%s}`, offset, pop, start, more)
	}
	later := now + 60_000
	b.revived("ck", ck("t", "g", 0, now, 60_000, `,"d":[0,1,2,5]`, 4), later, false)
	b.revived("ack", ack(0, now, 1, ""), later, false)
	b.revived("bAck", ack(0, now, -1, `,"aol":[5,77]`), later, false)
	// Acknowledged under another name: no effect.
	b.revived("ack", ack(0, now-1, 0, ""), later, false)
	// Delivered and revived; delivered only. The first of them comes from the wheel, too.
	done := ck("t", "g", 6, now-90_000, 30_000, "", 2)
	b.revived("ck", done, now-61_000, false)
	b.revived("ck", done, now-61_000, true)
	b.revived("ck", ck("t", "g", 8, now-20_000, 10_000, "", 2), now-11_000, true)
	b.revived("ack", ack(8, now-20_000, 9, ""), now-10_000, true)
	b.offsets.Advance(names.ReviveGroup, reviveTopic, 1, 0)
	// Changed: a new check point of one message, and the old delivery's ack is lost.
	b.revived("ck", ck("t", "g", 12, now, 60_000, "", 2), later, false)
	b.revived("ck", ck("t", "g", 13, now+5, 120_000, "", 1), later, false)
	b.revived("ck", ck("%RETRY%g_t", "g", 0, now, 60_000, "", 1), later, false)
	// Not read yet by Apache's offsets, no such group, no such topic, not to be understood.
	b.revived("ck", ck("t", "g", 29, now, 60_000, "", 3), later, false)
	b.revived("ck", ck("t", "gone", 0, now, 60_000, "", 3), later, false)
	b.revived("ck", ck("gone", "g", 0, now, 60_000, "", 3), later, false)
	b.revived("ck", `{"c":"g"}`, later, false)

	check := func() {
		t.Helper()
		var got []string
		for _, v := range b.pop.Dump(nil) {
			if len(v.InFlight) == 0 {
				continue
			}
			got = append(got, fmt.Sprintf("%s next %d", v.Topic, v.Next))
			for _, f := range v.InFlight {
				got = append(got, fmt.Sprintf("%v at %d due %d", f.Offsets, f.PopTime-now, f.Due-now))
			}
		}
		want := []string{"%RETRY%g_t next 1", "[0] at 0 due 60000",
			"t next 30", "[0 2] at 0 due 60000", "[8] at -20000 due -10000", "[12] at 0 due 60000", "[13] at 5 due 120005", "[29] at 0 due 60000"}
		if !slices.Equal(got, want) {
			t.Errorf("in flight:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	for range 2 { // a second time changes nothing
		out, err := b.pop.Import(func(g string) bool { _, ok := b.groups.Get(g); return ok })
		b.fatal(err)
		if out.Unread != 1 {
			t.Errorf("%+v", out)
		}
		check()
	}
	b.fatal(b.pop.Check())
	b.close()
	b.open(false)
	check()

	// A consumer acknowledges with the receipt that Apache gave it.
	h := receipt.Handle{StartOffset: 0, PopTime: now, InvisibleTime: 60_000, Broker: "broker-a", Offset: 2}
	b.pop.Ack("g", "t", h, func(err error) { b.fatal(err) })
	if off := b.pop.Dump(nil); off[1].Lowest != 0 && off[0].Lowest != 0 {
		t.Errorf("lowest %+v", off)
	}
}

// TestCheckpointDocument reads the samples of docs/formats/pop-checkpoints.md.
func TestCheckpointDocument(t *testing.T) {
	text, err := os.ReadFile("../../../docs/formats/pop-checkpoints.md")
	if err != nil {
		t.Fatal(err)
	}
	_, samples, ok := strings.Cut(string(text), "```\n")
	samples, _, ok2 := strings.Cut(samples, "\n```")
	lines := strings.Split(samples, "\n")
	if !ok || !ok2 || len(lines) != 3 {
		t.Fatal("there are not three samples")
	}
	c, err := parseCheckpoint([]byte(lines[0]))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines[1:] {
		a, err := parseRevivedAck([]byte(line))
		if err != nil || a.key() != c.key() {
			t.Fatalf("%+v, %v", a, err)
		}
		for _, off := range append(a.Offsets, a.Offset) {
			c.ack(off)
		}
	}
	if left := c.outstanding(); len(left) != 0 {
		t.Errorf("left %v of %+v", left, c)
	}
}

func FuzzCheckpoint(f *testing.F) {
	f.Add([]byte(`{"bm":0,"bn":"broker-a","c":"g","d":[0,1,3],"it":60000,"n":3,"pt":1700000000000,"q":2,"ro":0,"so":40,"t":"orders"}`), []byte(`{"ao":-1,"aol":[40,41],"c":"g","pt":1700000000000,"q":2,"so":40,"t":"orders"}`))
	f.Add([]byte(`{"bm":-1,"c":"g","it":-5,"n":127,"so":9223372036854775807,"t":"o"}`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, ck, ack []byte) {
		c, err := parseCheckpoint(ck)
		if err != nil {
			return
		}
		before := len(c.outstanding())
		if a, err := parseRevivedAck(ack); err == nil {
			c.ack(a.Offset)
		}
		if after := len(c.outstanding()); after > before || before > 64 {
			t.Errorf("%d, then %d outstanding", before, after)
		}
	})
}
