package txn_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/broker/brokertest"
	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// byTheHour makes what half messages wait for so long that it doesn't matter how fast the
// machine sends them.
func byTheHour(b *config.Broker, _ *config.Store) {
	b.TransactionTimeOut, b.TransactionCheckInterval = time.Hour.Milliseconds(), 10*time.Hour.Milliseconds()
}

// openByTheHour is a broker that goes by the hour, with a topic T, and its clock.
func openByTheHour(t *testing.T) (*brokertest.Broker, *clock.Clock) {
	t.Helper()
	c := clock.New()
	b := brokertest.Open(t, brokertest.Options{Clock: c, Tune: byTheHour})
	makeTopic(t, b, "T")
	return b, c
}

// produce makes one producer the member of group p.
func produce(b *brokertest.Broker) *brokertest.Producer {
	p := &brokertest.Producer{Name: "a"}
	b.Produce(p, "p")
	return p
}

// TestOnlyOpenOnesAreAskedAbout is R084: of ten thousand half messages the odd ones are
// committed, and checks come for the even ones alone, each once in an interval.
func TestOnlyOpenOnesAreAskedAbout(t *testing.T) {
	b, c := openByTheHour(t)
	p := produce(b)
	const n = 10_000
	sent := make([]*half, n)
	for i := range n {
		var err error
		if sent[i], err = sendHalf(b, fmt.Sprint(i), "p", ""); err != nil {
			t.Fatal(err)
		}
		if i%2 == 1 {
			if err := decide(b, sent[i], true); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.Dispatched()
	var asked []int64
	c.Advance(90 * time.Minute) // all of them have passed their immunity, none an interval more
	for _, q := range p.Asked() {
		asked = append(asked, q.QueueOffset)
	}
	slices.Sort(asked)
	if len(asked) != n/2 || len(slices.Compact(slices.Clone(asked))) != n/2 {
		t.Errorf("%d checks", len(asked))
	}
	for _, offset := range asked {
		if offset%2 != 0 {
			t.Fatalf("asked about %d, which is committed", offset)
		}
	}
}

// TestOneThatNobodyAnswersHoldsUpNothing is R085: among a thousand half messages is one whose
// producers are gone for good, and one that can't be read; the others are asked about in time.
func TestOneThatNobodyAnswersHoldsUpNothing(t *testing.T) {
	c := clock.New()
	o := brokertest.Options{Clock: c, FS: vfs.NewCrashableMem(), Tune: byTheHour}
	b := brokertest.Open(t, o)
	makeTopic(t, b, "T")
	p := produce(b)
	if _, err := sendHalf(b, "lost", "gone", ""); err != nil {
		t.Fatal(err)
	}
	torn, err := sendHalf(b, "torn", "p", "")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		if _, err := sendHalf(b, fmt.Sprint(i), "p", ""); err != nil {
			t.Fatal(err)
		}
	}
	makeTopic(t, b, "filler")
	for range 160 { // several log files: the newest ones are read when a broker opens
		plain(t, b, "filler", make([]byte, 30<<10))
	}
	b.Dispatched()
	b.Stop()
	defer tear(t, o.FS, torn.log)()
	b = brokertest.Open(t, o)
	b.Produce(p, "p")
	if _, err := b.Store.ReadAt(torn.log); err == nil {
		t.Error("the torn one can be read")
	}
	for round, by := range []time.Duration{90 * time.Minute, 10 * time.Hour, 10 * time.Hour} {
		c.Advance(by)
		if asked := len(p.Asked()); asked != 1000 {
			t.Fatalf("round %d: %d checks", round, asked)
		}
	}
}

// tear makes one record of the first log file unreadable, until it is mended.
func tear(t *testing.T, fs *vfs.MemFS, at int64) (mend func()) {
	t.Helper()
	f, err := fs.OpenReadWrite(fs.PathJoin("data", "commitlog", "00000000000000000000"), vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	was := make([]byte, 8) // size and magic
	if _, err := f.ReadAt(was, at); err != nil {
		t.Fatal(err)
	}
	write := func(p []byte) {
		if _, err := f.WriteAt(p, at); err != nil {
			t.Fatal(err)
		}
	}
	write(make([]byte, len(was)))
	return func() { write(was); _ = f.Close() }
}

// The log file that half messages are in goes before they are decided: they are written once
// more, their producer's name for them stays, and nothing is there twice.
func TestOpenOnesOutliveTheirLogFile(t *testing.T) {
	c := clock.New()
	fs := vfs.NewCrashableMem()
	b := brokertest.Open(t, brokertest.Options{Clock: c, FS: fs})
	makeTopic(t, b, "T")
	makeTopic(t, b, "filler")
	var kept []*half
	for i := range 20 {
		h, err := sendHalf(b, fmt.Sprintf("h%02d", i), "p", "")
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, h)
	}
	for i := range 5 {
		if err := decide(b, kept[i], true); err != nil {
			t.Fatal(err)
		}
	}
	for range 80 { // several log files
		plain(t, b, "filler", make([]byte, 30<<10))
	}
	b = b.Restart() // a checkpoint
	// The disk is nearly full: the oldest file goes, though its half messages are not given up yet.
	fs.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: 12 << 25, UsedBytes: 88 << 25, TotalBytes: 100 << 25})
	c.Advance(2 * time.Hour)
	_, before := b.Txn.List("", "", 0)
	first := b.Store.LogMin()
	if err := b.Store.DeleteExpired(); err != nil {
		t.Fatal(err)
	}
	if b.Store.LogMin() == first || before != 15 {
		t.Fatalf("the log begins at %d, as before; %d are open", first, before)
	}
	b.Dispatched()
	b = b.Restart()
	if list, total := b.Txn.List("", "", 20); total != 15 || list[0].QueueOffset != kept[5].offset || list[0].LogOffset != kept[5].log {
		t.Fatalf("%d are open: %+v", total, list)
	}
	var want []string
	for i, h := range kept[5:] {
		if err := decide(b, h, i%2 == 0); err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			want = append(want, h.body)
		}
	}
	if err := decide(b, kept[5], false); err == nil {
		t.Error("a second decision is taken")
	}
	got := seen(t, b)
	if got = slices.DeleteFunc(got, func(s string) bool { return s < "h05" }); !slices.Equal(got, want) {
		t.Errorf("seen %v, want %v", got, want)
	}
	b = b.Restart()
	if off, _ := b.Offsets.Query(names.TransactionGroup, names.Half, 0); off != b.Store.MaxOffset(names.Half, 0) {
		t.Errorf("another server would begin at %d", off)
	}
}

func plain(t *testing.T, b *brokertest.Broker, topic string, body []byte) {
	t.Helper()
	done := make(chan error, 1)
	b.Publish.Publish(&message.Message{Topic: topic, Body: body, BornHost: brokertest.Host}, func(_ storage.Placed, err error) { done <- err })
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// A burst of checks is bounded in bytes too: what is queued on one connection has a limit.
func TestBurstsAreBoundedInBytes(t *testing.T) {
	b, c := openByTheHour(t)
	p := produce(b)
	const n, most = 300, 4<<20 + 64<<10
	for range n {
		if _, err := sendHalf(b, strings.Repeat("x", 10<<10), "p", ""); err != nil {
			t.Fatal(err)
		}
	}
	b.Dispatched()
	b.Txn.CheckAt(c.NowMilli() + (90 * time.Minute).Milliseconds())
	asked, bytes := 0, 0
	for _, q := range p.Asked() {
		asked++
		bytes += len(q.Record)
	}
	if asked == 0 || bytes > most {
		t.Errorf("a burst of %d checks has %d bytes", asked, bytes)
	}
	c.Advance(2 * time.Hour)
	if asked += len(p.Asked()); asked != n {
		t.Errorf("%d checks", asked)
	}
}

// A half message that was sent while the machine's clock was a year ahead is asked about an
// hour after the start, as any other is after its send.
func TestHalfOfAClockThatWasAhead(t *testing.T) {
	b, c := openByTheHour(t)
	c.Step(365 * 24 * time.Hour)
	h, err := sendHalf(b, "h", "p", "")
	if err != nil {
		t.Fatal(err)
	}
	b.Dispatched()
	right := clock.New()
	b = b.RestartAt(right)
	p := produce(b)
	for _, k := range []struct {
		by   time.Duration
		want int
	}{{50 * time.Minute, 0}, {20 * time.Minute, 1}} {
		right.Advance(k.by)
		if n := len(p.Asked()); n != k.want {
			t.Errorf("%v later it was asked about %d times, want %d", k.by, n, k.want)
		}
	}
	if err := decide(b, h, true); err != nil {
		t.Fatal(err)
	}
}
