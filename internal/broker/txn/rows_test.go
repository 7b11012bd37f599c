package txn_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/bolidemq/bolide/internal/broker/brokertest"
	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/names"
)

// TestOnlyOpenOnesAreAskedAbout is R084: of ten thousand half messages the odd ones are
// committed, and checks come for the even ones alone, each once in an interval.
func TestOnlyOpenOnesAreAskedAbout(t *testing.T) {
	c := clock.New()
	b := brokertest.Open(t, brokertest.Options{Clock: c})
	makeTopic(t, b, "T")
	p := &brokertest.Producer{Name: "a"}
	b.Produce(p, "p")
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
	took := time.Now()
	c.Advance(12 * time.Second) // all of them have passed their immunity, none an interval more
	if time.Since(took) > 20*time.Second {
		t.Skip("the machine is too busy to tell checks of one interval from those of the next")
	}
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
	b := brokertest.Open(t, brokertest.Options{Clock: c})
	makeTopic(t, b, "T")
	p := &brokertest.Producer{Name: "a"}
	b.Produce(p, "p")
	if _, err := sendHalf(b, "lost", "gone", ""); err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		if _, err := sendHalf(b, fmt.Sprint(i), "p", ""); err != nil {
			t.Fatal(err)
		}
	}
	b.Dispatched()
	for round := range 3 {
		c.Advance(30 * time.Second)
		if asked := len(p.Asked()); asked != 1000 {
			t.Fatalf("round %d: %d checks", round, asked)
		}
	}
}

// The log file that half messages are in goes before they are decided: they are written once
// more, their producer's name for them stays, and nothing is there twice.
func TestOpenOnesOutliveTheirLogFile(t *testing.T) {
	c := clock.New()
	hours := int64(1)
	b := brokertest.Open(t, brokertest.Options{Clock: c, Tune: func(_ *config.Broker, s *config.Store) { s.FileReservedTime = hours }})
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
	// Files of that age go, and half messages of that age are not given up yet.
	sc := *b.StoreConfig.Get()
	hours, sc.FileReservedTime = 100, 100
	b.StoreConfig.Replace(sc)
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
