package pop

import (
	"context"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/bolidemq/bolide/internal/broker/group"
	"github.com/bolidemq/bolide/internal/broker/longpoll"
	"github.com/bolidemq/bolide/internal/broker/offset"
	"github.com/bolidemq/bolide/internal/broker/topic"
	"github.com/bolidemq/bolide/internal/clock"
	"github.com/bolidemq/bolide/internal/config"
	"github.com/bolidemq/bolide/internal/storage"
	"github.com/bolidemq/bolide/internal/storage/state"
	"github.com/bolidemq/bolide/internal/wire/message"
	"github.com/bolidemq/bolide/internal/wire/receipt"
)

// benchBroker is POP over a real store and a real state database on the disk.
func benchBroker(b testing.TB, messages int) *Popper {
	dir := b.TempDir()
	cfg := config.NewLive(config.DefaultBroker())
	var pop *Popper
	engine, err := storage.Open(storage.Options{
		FS: vfs.Default, Dir: dir + "/store", StoreHost: netip.MustParseAddrPort("127.0.0.1:1"),
		IndexSlots: 1000, IndexEntries: 4000,
		OnDispatch: func(ds []storage.Dispatched) {
			for i := range ds {
				if ds[i].Source != "" {
					pop.Dispatched(ds[i].Source)
				}
			}
		},
	})
	if err != nil {
		b.Fatal(err)
	}
	db, err := state.Open(state.Options{FS: vfs.Default, Dir: dir + "/state"})
	if err != nil {
		b.Fatal(err)
	}
	topics, err := topic.Open(topic.Options{Config: cfg})
	if err != nil {
		b.Fatal(err)
	}
	groups, err := group.Open(group.Options{Config: cfg})
	if err != nil {
		b.Fatal(err)
	}
	offsets, err := offset.Open(offset.Options{})
	if err != nil {
		b.Fatal(err)
	}
	t := topic.New("t")
	t.ReadQueues, t.WriteQueues = 8, 8
	if err := topics.Put(t); err != nil {
		b.Fatal(err)
	}
	pop, err = Open(Options{State: db, Store: engine, Offsets: offsets, Clock: clock.New(), Topic: topics.Get,
		Group: groups.GetOrCreate, Broker: cfg, LongPoll: longpoll.New(longpoll.Limits{Total: 1000})})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for _, l := range engine.Loops() {
		wg.Go(func() { _ = l.Run(ctx) })
	}
	for _, l := range db.Loops() {
		wg.Go(func() { _ = l.Run(ctx) })
	}
	for _, l := range pop.Loops() {
		wg.Go(func() { _ = l.Run(ctx) })
	}
	b.Cleanup(func() {
		cancel()
		wg.Wait()
		pop.Close()
		engine.Close()
		db.Close()
	})
	body := make([]byte, 1024)
	var stored sync.WaitGroup
	for i := range messages {
		stored.Add(1)
		engine.Append(&message.Message{Topic: "t", QueueID: int32(i % 8), Body: body, BornHost: netip.MustParseAddrPort("127.0.0.1:1"),
			StoreHost: netip.MustParseAddrPort("127.0.0.1:1")}, func(storage.Placed, error) { stored.Done() })
	}
	stored.Wait()
	for i := range int32(8) {
		for engine.MaxOffset("t", i) < int64(messages/8) {
			time.Sleep(time.Millisecond)
		}
	}
	return pop
}

// popAll pops everything in batches and hands each batch's receipts to use.
func popAll(b testing.TB, p *Popper, use func([]receipt.Handle)) int {
	n := 0
	var handles []receipt.Handle
	for {
		handles = handles[:0]
		p.Pop(Request{Group: "g", Topic: "t", QueueID: -1, Max: 32, Invisible: 60_000, Holder: "c1"}, func(res Result, err error) {
			if err != nil {
				b.Fatal(err)
			}
			for i := range res.Batches {
				for j := range res.Batches[i].Records {
					handles = append(handles, res.Handle(&res.Batches[i], &res.Batches[i].Records[j], "broker-a"))
				}
			}
			res.Release()
		})
		if len(handles) == 0 {
			return n
		}
		n += len(handles)
		if use != nil {
			use(handles)
		}
	}
}

// BenchmarkPopAck pops b.N messages in batches of 32 and acks them one by one, with at most
// 64 acks on their way.
func BenchmarkPopAck(b *testing.B) {
	p := benchBroker(b, b.N)
	room := make(chan struct{}, 64)
	done := func(err error) {
		if err != nil {
			b.Error(err)
		}
		<-room
	}
	b.ReportAllocs()
	b.ResetTimer()
	cpu := cpuSeconds()
	n := popAll(b, p, func(hs []receipt.Handle) {
		for _, h := range hs {
			room <- struct{}{}
			p.Ack("g", "t", h, done)
		}
	})
	for range cap(room) {
		room <- struct{}{}
	}
	b.ReportMetric((cpuSeconds()-cpu)*1e6/float64(b.N), "cpu-µs/msg")
	if n != b.N/8*8 && n != b.N {
		b.Fatalf("%d of %d", n, b.N)
	}
}

func BenchmarkPopBatchAck(b *testing.B) {
	p := benchBroker(b, b.N)
	room := make(chan struct{}, 8)
	b.ReportAllocs()
	b.ResetTimer()
	cpu := cpuSeconds()
	popAll(b, p, func(hs []receipt.Handle) {
		room <- struct{}{}
		p.AckBatch("g", "t", hs, func([]error) { <-room })
	})
	for range cap(room) {
		room <- struct{}{}
	}
	b.ReportMetric((cpuSeconds()-cpu)*1e6/float64(b.N), "cpu-µs/msg")
}

func BenchmarkPopOnly(b *testing.B) {
	p := benchBroker(b, b.N)
	b.ReportAllocs()
	b.ResetTimer()
	cpu := cpuSeconds()
	popAll(b, p, nil)
	b.ReportMetric((cpuSeconds()-cpu)*1e6/float64(b.N), "cpu-µs/msg")
}

// TestMillionInFlight holds that a million messages in flight cost at most 100 MB, popped
// in batches, and shows what a restart costs.
func TestMillionInFlight(t *testing.T) {
	if testing.Short() {
		t.Skip("a million messages; runs without -short")
	}
	const n = 1_000_000
	b := newTestBroker(t, false)
	b.open(true)
	defer func() { b.close() }()
	b.topic("t", "", 8)
	b.pop.o.Store = endless{n / 8}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	got := popAll(t, b.pop, nil)
	runtime.GC()
	runtime.ReadMemStats(&after)
	grown := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("%d in flight: %d MB, %d bytes a message", got, grown>>20, grown/n)
	if got != n || grown > 100<<20 {
		t.Errorf("%d messages, %d bytes", got, grown)
	}
	b.fatal(b.db.Commit(b.db.NewBatch()))
	start := time.Now()
	p, err := Open(b.pop.o)
	b.fatal(err)
	took := time.Since(start)
	c := p.Count("g", "t")
	p.Close()
	t.Logf("read again in %v", took)
	if c.InFlight != n || took > 10*time.Second {
		t.Errorf("%d in flight after %v", c.InFlight, took)
	}
}

// endless is a store whose queues have a number of empty records each.
type endless struct{ end int64 }

func (e endless) Read(r storage.ReadRequest) (res storage.ReadResult) {
	res.Max, res.Next, res.Status = e.end, r.Offset, storage.OffsetOverflowOne
	for off := r.Offset; off < e.end && len(res.Records) < r.MaxMessages; off++ {
		res.Records = append(res.Records, storage.Record{QueueOffset: off})
		res.Next, res.Status = off+1, storage.Found
	}
	return res
}

func (e endless) MinOffset(string, int32) int64 { return 0 }
func (e endless) MaxOffset(topic string, _ int32) int64 {
	if topic == "t" {
		return e.end
	}
	return 0
}

// TestLapseTogether holds that what lapses in one moment is handled linearly (R008), whether
// it was popped for as long or each message was given that moment by a change of its own:
// 20,000 messages cost about ten times what 2,000 do. The limit is generous.
func TestLapseTogether(t *testing.T) {
	took := func(t *testing.T, n int, changed bool) time.Duration {
		b := newTestBroker(t, false)
		b.open(true)
		defer func() { b.close() }()
		b.topic("t", "", 8)
		for i := range n {
			b.send("t", int32(i%8), "m", "", "")
		}
		var popped []receipt.Handle
		got := popAll(t, b.pop, func(batch []receipt.Handle) { popped = append(popped, batch...) })
		if got != n {
			t.Fatalf("%d of %d", got, n)
		}
		start := time.Now()
		if changed {
			due, done := b.clock.NowMilli()+50_000, make(chan error, n)
			for _, h := range popped {
				b.pop.ChangeInvisible("g", "t", h, due-b.clock.NowMilli(), false, func(_ receipt.Handle, err error) { done <- err })
			}
			for range n {
				b.fatal(<-done)
			}
		}
		b.clock.Advance(61 * time.Second)
		for b.store.MaxOffset("%RETRY%g_t", 0) < int64(n) {
			time.Sleep(time.Millisecond)
		}
		return time.Since(start)
	}
	for name, changed := range map[string]bool{"popped": false, "changed": true} {
		t.Run(name, func(t *testing.T) {
			few, many := took(t, 2000, changed), took(t, 20_000, changed)
			t.Logf("2,000 in %v, 20,000 in %v", few, many)
			if many > 60*few+10*time.Second {
				t.Errorf("2,000 took %v, 20,000 took %v", few, many)
			}
		})
	}
}
