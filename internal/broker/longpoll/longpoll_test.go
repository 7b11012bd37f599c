package longpoll

import (
	"context"
	"fmt"
	"math/rand"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/bolidemq/bolide/internal/wire/filter"
	"github.com/bolidemq/bolide/internal/wire/message"
)

type oneCode int64

func (c oneCode) MatchTagsCode(code int64) bool { return int64(c) == code }
func (c oneCode) ByProperties() bool            { return false }
func (c oneCode) Possible(filter.Traits) bool   { return true }
func (c oneCode) Match(message.Properties) bool { panic("the code decides") }

// log collects wake-ups by name.
type wakeLog struct {
	mu   sync.Mutex
	seen []string
}

func (l *wakeLog) waiter(name string, k Key) *Waiter {
	return &Waiter{Key: k, Deadline: time.Now().Add(time.Hour), Wake: func(r Reason) {
		l.mu.Lock()
		l.seen = append(l.seen, name+" "+r.String())
		l.mu.Unlock()
	}}
}

func (l *wakeLog) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(l.seen)
	s := strings.Join(l.seen, ", ")
	l.seen = nil
	return s
}

func park(t *testing.T, table *Table, ws ...*Waiter) {
	t.Helper()
	for _, w := range ws {
		if err := table.Park(w); err != nil {
			t.Fatal(err)
		}
	}
}

func expect(t *testing.T, l *wakeLog, want string) {
	t.Helper()
	if got := l.take(); got != want {
		t.Errorf("woken: %q, want %q", got, want)
	}
}

func TestWhoIsWoken(t *testing.T) {
	table := New(Limits{Total: 100})
	var l wakeLog
	each := func(name string, q int32, offset int64, f Filter) *Waiter {
		w := l.waiter(name, Key{Topic: "T", QueueID: q})
		w.Each, w.Offset, w.Filter = true, offset, f
		return w
	}
	park(t, table, each("pull0", 0, 5, nil), each("pull0b", 0, 5, nil), each("pull1", 1, 0, nil),
		each("pullTag", 0, 5, oneCode(7)), each("pullAhead", 0, 9, nil))
	park(t, table,
		l.waiter("g1.first", Key{"T", 0, "g1"}), l.waiter("g1.second", Key{"T", 0, "g1"}),
		l.waiter("g1.all", Key{"T", AllQueues, "g1"}), l.waiter("g1.all2", Key{"T", AllQueues, "g1"}),
		l.waiter("g2.other", Key{"T", 3, "g2"}))

	table.Arrived(Arrival{Topic: "other", QueueID: 0, Offset: 5, TagsCode: 0})
	expect(t, &l, "")
	table.Arrived(Arrival{Topic: "T", QueueID: 0, Offset: 4, TagsCode: 0}) // below what the pulls wait for
	expect(t, &l, "g1.all arrived, g1.first arrived")
	table.Arrived(Arrival{Topic: "T", QueueID: 0, Offset: 5, TagsCode: 1})
	expect(t, &l, "g1.all2 arrived, g1.second arrived, pull0 arrived, pull0b arrived")
	table.Arrived(Arrival{Topic: "T", QueueID: 0, Offset: 6, TagsCode: 7})
	expect(t, &l, "pullTag arrived")
	if n := table.Waiting(); n != 3 {
		t.Errorf("%d wait, want pull1, pullAhead and g2.other", n)
	}
	if !table.WakeNext(Key{"T", 3, "g2"}) || table.WakeNext(Key{"T", 3, "g2"}) {
		t.Error("WakeNext wakes the one there is")
	}
	expect(t, &l, "g2.other arrived")
	table.Close()
	expect(t, &l, "pull1 closed, pullAhead closed")
	if err := table.Park(l.waiter("late", Key{})); err != ErrClosed {
		t.Errorf("Park after Close: %v", err)
	}
	empty(t, table)
}

// TestRetryArrivalWakes is R028: a redelivery wakes a waiter of the topic itself.
func TestRetryArrivalWakes(t *testing.T) {
	table := New(Limits{Total: 10})
	var l wakeLog
	w := l.waiter("pop", Key{"T", 2, "g"})
	w.Also = []Key{{"%RETRY%g_T", AllQueues, "g"}, {"%RETRY%g+T", AllQueues, "g"}}
	park(t, table, w)
	table.Arrived(Arrival{Topic: "%RETRY%g+T", QueueID: 0, Offset: 0, TagsCode: 0})
	expect(t, &l, "pop arrived")
	empty(t, table)
}

func TestWakeNextPrefersTheQueue(t *testing.T) {
	table := New(Limits{Total: 10})
	var l wakeLog
	park(t, table, l.waiter("all", Key{"T", AllQueues, "g"}), l.waiter("two", Key{"T", 2, "g"}))
	table.WakeNext(Key{"T", 2, "g"})
	expect(t, &l, "two arrived")
	table.WakeNext(Key{"T", 2, "g"})
	expect(t, &l, "all arrived")
}

func TestReleaseAndWakeIf(t *testing.T) {
	table := New(Limits{Total: 10})
	var l wakeLog
	a, b, c := l.waiter("a", Key{"T", 0, ""}), l.waiter("b", Key{"T", 1, ""}), l.waiter("c", Key{"U", 1, "g"})
	var one, two Peer
	a.Peer, b.Peer, c.Peer = &one, &one, &two
	park(t, table, a, b, c)
	if table.Remove(b) != true || table.Remove(b) != false {
		t.Error("Remove takes back once")
	}
	table.Release(&one)
	expect(t, &l, "a released")
	table.WakeIf(func(w *Waiter) bool { return w.Key.Topic == "U" })
	expect(t, &l, "c changed")
	empty(t, table)
}

// TestGonePeerParksNoMore: a request that was woken just before its connection closed finds
// nothing and would wait again, for nobody, until its deadline.
func TestGonePeerParksNoMore(t *testing.T) {
	table := New(Limits{Total: 10})
	var l wakeLog
	var peer Peer
	w := l.waiter("w", Key{"T", 0, ""})
	w.Peer = &peer
	park(t, table, w)
	table.Arrived(Arrival{Topic: "T"})
	expect(t, &l, "w arrived")
	table.Release(&peer)
	if err := table.Park(w); err != ErrGone {
		t.Errorf("parked for a peer that has gone: %v", err)
	}
	empty(t, table)
}

// TestLimitCountsWhoReallyWaits is R137: whatever way a wait ends, its place is free.
func TestLimitCountsWhoReallyWaits(t *testing.T) {
	const limit = 200
	table := New(Limits{Total: limit, PerKey: 100})
	rnd := rand.New(rand.NewSource(1))
	var l wakeLog
	var peers [3]*Peer
	for i := range peers {
		peers[i] = &Peer{}
	}
	for range 20000 {
		w := l.waiter("w", Key{"T", int32(rnd.Intn(4)), []string{"", "g"}[rnd.Intn(2)]})
		of := rnd.Intn(len(peers))
		w.Peer = peers[of]
		w.Each = rnd.Intn(2) == 0
		if rnd.Intn(2) == 0 {
			w.Also = []Key{{"R", AllQueues, "g"}}
		}
		if err := table.Park(w); err != nil {
			t.Fatal(err)
		}
		switch rnd.Intn(7) {
		case 0:
			table.Arrived(Arrival{Topic: "T", QueueID: w.Key.QueueID, Offset: 0, TagsCode: 0})
		case 1:
			table.Arrived(Arrival{Topic: "R", QueueID: 9, Offset: 0, TagsCode: 0})
		case 2:
			table.Release(w.Peer)
			if w.Peer.waiting.n != 0 {
				t.Fatalf("%d wait for a peer that has gone", w.Peer.waiting.n)
			}
			peers[of] = &Peer{}
		case 3:
			table.WakeNext(w.Key)
		case 4:
			table.WakeIf(func(*Waiter) bool { return rnd.Intn(2) == 0 })
		case 5:
			wake, _ := table.expire(time.Now().Add(2 * time.Hour))
			wakeAll(wake)
		}
		table.Remove(w)
	}
	table.WakeIf(func(*Waiter) bool { return true })
	empty(t, table)
	for i := range limit {
		park(t, table, l.waiter("w", Key{"T", int32(i % 2), "g"}))
	}
	extra := l.waiter("w", Key{"T", 9, "g"})
	if err := table.Park(extra); err != ErrFull {
		t.Fatalf("number 201: %v", err)
	}
	table.WakeNext(Key{"T", 0, "g"})
	park(t, table, extra)
	table.WakeNext(Key{"T", 9, "g"})
	if err := table.Park(l.waiter("w", Key{"T", 1, "g"})); err != ErrFull {
		t.Fatalf("number 101 of a key: %v", err)
	}
}

func wakeAll(ws []*Waiter) { wake(ws, Expired) }

func empty(t *testing.T, table *Table) {
	t.Helper()
	table.mu.Lock()
	defer table.mu.Unlock()
	if n := table.waiting.Load(); n != 0 || len(table.mu.slots) != 0 || len(table.mu.deadlines) != 0 {
		t.Errorf("left over: %d waiting, %d slots, %d deadlines", n, len(table.mu.slots), len(table.mu.deadlines))
	}
}

func TestDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := New(Limits{Total: 10})
		var l wakeLog
		start := time.Now()
		in := func(name string, d time.Duration) *Waiter {
			w := l.waiter(name, Key{"T", 0, ""})
			w.Deadline = start.Add(d)
			return w
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- table.Run(ctx) }()
		park(t, table, in("late", 30*time.Second), in("mid", 20*time.Second), in("early", 10*time.Second))
		for _, step := range []struct {
			at   time.Duration
			want string
		}{{9 * time.Second, ""}, {10 * time.Second, "early expired"}, {25 * time.Second, "mid expired"}, {31 * time.Second, "late expired"}} {
			time.Sleep(step.at - time.Since(start))
			synctest.Wait()
			expect(t, &l, step.want)
		}
		park(t, table, in("again", 40*time.Second))
		time.Sleep(9 * time.Second)
		synctest.Wait()
		expect(t, &l, "again expired")
		cancel()
		<-done
	})
}

// TestNoWakeUpIsLost is R026: a producer publishes while consumers park; nobody sleeps
// through an arrival.
func TestNoWakeUpIsLost(t *testing.T) {
	table := New(Limits{Total: 100})
	var end atomic.Int64 // the queue's end, as a reader sees it
	const messages = 20000
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for next := int64(0); next < messages; {
				if e := end.Load(); e > next {
					next = e
					continue
				}
				woken := make(chan struct{}, 1)
				w := &Waiter{Key: Key{"T", 0, ""}, Each: true, Offset: next, Deadline: time.Now().Add(time.Minute),
					Wake: func(r Reason) { woken <- struct{}{} }}
				if err := table.Park(w); err != nil {
					t.Error(err)
					return
				}
				if end.Load() > next && table.Remove(w) {
					continue
				}
				select {
				case <-woken:
				case <-time.After(30 * time.Second):
					t.Errorf("slept through an arrival at %d of %d", next, end.Load())
					return
				}
			}
		})
	}
	for i := range int64(messages) {
		end.Store(i + 1)
		table.Arrived(Arrival{Topic: "T", QueueID: 0, Offset: i, TagsCode: 0})
		if i%16 == 0 {
			runtime.Gosched()
		}
	}
	wg.Wait()
	empty(t, table)
}

// TestWaitersAreSmall holds the budget of 2 KiB for each of 50,000 suspended requests.
func TestWaitersAreSmall(t *testing.T) {
	const n = 50000
	table := New(Limits{Total: n})
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	peers := make([]Peer, 1000)
	for i := range n {
		topic := fmt.Sprintf("topic-%d", i%5000)
		park(t, table, &Waiter{Key: Key{topic, int32(i % 8), "group"}, Peer: &peers[i%1000], Deadline: time.Now().Add(time.Hour),
			Also: []Key{{"%RETRY%group_" + topic, AllQueues, "group"}}, Wake: func(Reason) { _ = i }})
	}
	each := (heap() - before) / n
	t.Logf("%d bytes per suspended request", each)
	if each > 2048 {
		t.Errorf("%d bytes per suspended request, want at most 2048", each)
	}
	table.Close()
}

func BenchmarkArrivedNobodyWaits(b *testing.B) {
	table := New(Limits{Total: 10})
	for b.Loop() {
		table.Arrived(Arrival{Topic: "T", QueueID: 0, Offset: 0, TagsCode: 0})
	}
}

func BenchmarkParkArrive(b *testing.B) {
	table := New(Limits{Total: 10})
	w := &Waiter{Key: Key{"T", 0, ""}, Each: true, Deadline: time.Now().Add(time.Hour), Wake: func(Reason) {}}
	b.ReportAllocs()
	for b.Loop() {
		table.Park(w)
		table.Arrived(Arrival{Topic: "T", QueueID: 0, Offset: 0, TagsCode: 0})
	}
}

// Properties are read once for all who wait for a message and ask for them, and not when
// nobody does.
func TestFiltersByProperties(t *testing.T) {
	reads := 0
	table := New(Limits{Total: 10})
	table.Properties = func(physical int64, size int32) (message.Properties, bool) {
		reads++
		return message.Properties("").With("a", fmt.Sprint(physical)), size == 100
	}
	var woken []string
	park := func(name string, f Filter) {
		err := table.Park(&Waiter{Key: Key{Topic: "T"}, Each: true, Filter: f, Deadline: time.Now().Add(time.Hour),
			Wake: func(Reason) { woken = append(woken, name) }})
		if err != nil {
			t.Fatal(err)
		}
	}
	sql := func(text string) Filter {
		e, err := filter.Compile(filter.KindSQL92, text)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	arrived := func(topic string, physical int64, size int32) string {
		woken = nil
		table.Arrived(Arrival{Topic: topic, TagsCode: 1, Physical: physical, Size: size})
		slices.Sort(woken)
		return fmt.Sprint(woken, " ", reads)
	}
	expect := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	park("tags", oneCode(1))
	expect(arrived("T", 1, 100), "[tags] 0")
	park("one", sql("a = 1"))
	park("also one", sql("a = 1"))
	park("two", sql("a = 2"))
	park("none", sql("b = 1"))
	expect(arrived("U", 1, 100), "[] 0")
	expect(arrived("T", 3, 100), "[] 1")
	expect(arrived("T", 1, 100), "[also one one] 2")
	expect(arrived("T", 2, 7), "[none two] 3") // it could not be read: they look for themselves
	park("one", sql("a = 1"))
	expect(arrived("T", 1, 0), "[one] 3")
	expect(arrived("T", 1, 100), "[] 3")
	if table.asking.Load() != 0 || table.Waiting() != 0 {
		t.Error("who is gone still counts")
	}
}
